//! `cladist metrics`: what `evaluate` reports, and how it is defined.

use cladist_core::metrics::METRICS;
use serde_json::json;

use crate::args::JsonArgs;
use crate::output::Table;
use crate::session::Session;

/// Lists the table of metrics.
pub fn run(args: &JsonArgs, session: &Session) -> anyhow::Result<()> {
    if args.json {
        let rows: Vec<_> = METRICS
            .iter()
            .map(|m| json!({"name": m.name, "higher_is_better": m.higher_is_better, "definition": m.definition}))
            .collect();
        return session.output.json(&rows);
    }
    let mut table = Table::new(3, ["metric", "better", "definition"]);
    for metric in METRICS {
        table.row([metric.name, if metric.higher_is_better { "up" } else { "down" }, metric.definition]);
    }
    session.output.line(table)
}
