//! `cladist heads`: what can be trained.

use cladist::heads;
use serde_json::json;

use crate::args::JsonArgs;
use crate::output::Table;
use crate::session::Session;

/// Lists the table of heads.
pub fn run(args: &JsonArgs, session: &Session) -> anyhow::Result<()> {
    if args.json {
        let rows: Vec<_> = heads::all()
            .map(|head| json!({"name": head.name, "family": head.family.name(), "description": head.description}))
            .collect();
        return session.output.json(&rows);
    }
    let mut table = Table::new(3, ["head", "family", "what it is"]);
    for head in heads::all() {
        table.row([head.name, head.family.name(), head.description]);
    }
    session.output.line(table)
}
