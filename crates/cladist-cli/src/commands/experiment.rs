//! `cladist experiment`: variants compared as their authors did.

use cladist::Error;
use cladist::results::experiment::{Results, Row, Shown, Swept};
use cladist_lab::experiment::{self, ExperimentOptions, PAGE, RESULTS};
use cladist_lab::experiments;

use crate::args::ExperimentArgs;
use crate::error::Usage;
use crate::flags::{layers, spec};
use crate::output::Table;
use crate::session::Session;

/// Runs an experiment, or lists all.
pub fn run(args: &ExperimentArgs, session: &Session) -> anyhow::Result<()> {
    let Some(name) = args.name.as_deref().filter(|_| !args.list) else { return list(args, session) };
    if args.train.print_config {
        return Err(Usage::Needs { flag: "--print-config", needs: "cladist train" }.into());
    }
    experiments::find(name)?;
    let options = ExperimentOptions {
        name: name.to_owned(),
        out: args.train.out.clone().ok_or(Error::NoFolder)?,
        spec: spec(layers(&args.train)?, &args.train, session)?,
        variants: args.variants.clone(),
        tries: args.tries.clone(),
        no_grid: args.no_grid,
        seeds: args.train.seeds.unwrap_or(3),
        overwrite: args.train.overwrite,
    };
    let results = experiment::run(&options)?;
    session.view.clear();
    if args.train.json {
        return session.output.json(&results);
    }
    session.output.line(results.caption())?;
    for (title, rows, columns) in results.parts() {
        let title = if title.is_empty() { String::new() } else { format!("\n{title}\n") };
        session.output.line(format!("{title}\n{}", table(&results, &rows, &columns)))?;
    }
    if let Some(words) = &results.significance {
        session.output.line(format!("\n{words}"))?;
    }
    if let Some(swept) = &results.sweep {
        session.output.line(format!(
            "\n`{}` with other settings\n\n{}",
            swept.variant,
            sweep_table(swept, &results.columns)
        ))?;
    }
    session.output.note(format!("\nwritten to {} and {PAGE}", options.out.join(RESULTS).display()));
    Ok(())
}

fn list(args: &ExperimentArgs, session: &Session) -> anyhow::Result<()> {
    if args.train.json {
        return session.output.json(&experiments::ALL);
    }
    let mut table = Table::new(3, ["experiment", "variants", "what it is"]);
    for experiment in experiments::ALL {
        let variants: Vec<&str> = experiment.variants.iter().map(|variant| variant.name).collect();
        table.row([experiment.name.to_owned(), variants.join(", "), experiment.description.to_owned()]);
    }
    session.output.line(table)
}

/// Rows and columns for the terminal.
fn table(results: &Results, rows: &[&Row], columns: &[&Shown]) -> Table {
    // The first columns are text.
    let n_text = if results.has_choice() { 2 } else { 1 };
    let heads = ["variant", "settings"].map(str::to_owned).into_iter().take(n_text);
    let heads = heads.chain(columns.iter().map(|column| column.label.clone()));
    let mut table = Table::new(n_text, heads.chain(["runs", "seconds", "peak MB"].map(str::to_owned)));
    for row in rows {
        let mark = |metric: &str| if row.differs(metric) { "*" } else { " " };
        let cells = columns.iter().map(|column| {
            let value = row.values.get(&column.metric);
            value.map_or_else(
                || "– ".to_owned(),
                |value| column.text(*value, row.runs.len()) + mark(&column.metric),
            )
        });
        let failed = row.runs.len() - row.finished().count();
        let n_runs = match (row.runs.len(), failed) {
            (0, _) => "failed".to_owned(),
            (n, 0) => n.to_string(),
            (n, failed) => format!("{} ({failed} failed)", n - failed),
        };
        let seconds = row.seconds.map_or_else(|| "–".to_owned(), |seconds| format!("{:.0}", seconds.mean));
        let first = [row.name.clone(), row.choice()].into_iter().take(n_text);
        table.row(first.chain(cells).chain([n_runs, seconds, row.memory()]));
    }
    table
}

/// A sweep for the terminal.
fn sweep_table(swept: &Swept, columns: &[Shown]) -> Table {
    let heads = [swept.key.clone()].into_iter().chain(columns.iter().map(|column| column.label.clone()));
    let mut table = Table::new(1, heads.chain(["seconds".to_owned()]));
    for row in &swept.rows {
        let cell = |column: &Shown| {
            row.metrics
                .get(&column.metric)
                .map_or_else(|| "–".to_owned(), |value| format!("{:.1}", 100.0 * value))
        };
        let cells = [row.value.clone()].into_iter().chain(columns.iter().map(cell));
        table.row(cells.chain([format!("{:.1}", row.seconds)]));
    }
    table
}
