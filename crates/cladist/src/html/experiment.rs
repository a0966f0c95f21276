//! The page of an experiment: the table, a picture of it, and everything behind it.

use askama::Template;

use super::table::{Table, numbers, text};
use super::{PageError, render};
use crate::figure::{Over, Spreads, Svg};
use crate::results::experiment::{Results, Row, Run, Shown, Swept};

#[derive(Template)]
#[template(path = "experiment.html", whitespace = "minimize")]
struct Page<'a> {
    results: &'a Results,
    parts: Vec<(&'a str, Table)>,
    spreads: Option<Svg>,
    curves: Option<&'a Svg>,
    sweep: Option<(String, Table)>,
    tests: Option<(String, Table)>,
    variants: Vec<Variant<'a>>,
}

struct Variant<'a> {
    name: &'a str,
    runs: Vec<RunRow<'a>>,
}

struct RunRow<'a> {
    settings: String,
    seed: u64,
    best: String,
    step: String,
    seconds: String,
    folder: &'a str,
    /// The first line of why there is no report.
    problem: Option<&'a str>,
}

/// The page of an experiment; `curves` is the picture of its trainings, if there is one.
pub fn experiment(results: &Results, curves: Option<&Svg>) -> Result<String, PageError> {
    let parts = results.parts();
    render(&Page {
        results,
        parts: parts.iter().map(|(title, rows, columns)| (*title, table(results, rows, columns))).collect(),
        spreads: spreads(results),
        curves,
        sweep: results.sweep.as_ref().map(|swept| sweep(swept, results)),
        tests: tests(results),
        variants: results.variants.iter().map(variant).collect(),
    })
}

fn dash() -> String {
    "–".to_owned()
}

fn table(results: &Results, rows: &[&Row], columns: &[&Shown]) -> Table {
    let first = [text("variant")].into_iter().chain(results.has_choice().then(|| text("settings")));
    let heads = columns.iter().map(|column| numbers(column.label.as_str()));
    let mut table = Table::new(first.chain(heads).chain(["runs", "seconds", "peak MB"].map(numbers)));
    for row in rows {
        let first = [row.name.clone()].into_iter().chain(results.has_choice().then(|| row.choice()));
        let values = columns.iter().map(|column| {
            let mark = if row.differs(&column.metric) { "*" } else { "" };
            let value = row.values.get(&column.metric);
            value.map_or_else(dash, |value| column.text(*value, row.runs.len()) + mark)
        });
        let seconds = row.seconds.map_or_else(dash, |seconds| format!("{:.0}", seconds.mean));
        table.row(first.chain(values).chain([row.finished().count().to_string(), seconds, row.memory()]));
    }
    table
}

/// A dot for each variant in each column that is a share, in percent.
fn spreads(results: &Results) -> Option<Svg> {
    let columns: Vec<&Shown> = results.columns.iter().filter(|column| column.is_share()).collect();
    let over = |row: &Row, column: &Shown| {
        let value = row.values.get(&column.metric)?;
        let runs: Vec<f64> = row
            .finished()
            .filter_map(|run| run.metrics.get(&column.metric))
            .map(|value| 100.0 * value)
            .collect();
        let title = format!("{}: {}", row.name, column.text(*value, runs.len()));
        Some(Over { mean: 100.0 * value.mean, std: 100.0 * value.std, runs, title })
    };
    let values = results.variants.iter().map(|row| columns.iter().map(|column| over(row, column)).collect());
    let figure = Spreads {
        title: &results.caption(),
        measures: columns.iter().map(|column| column.label.as_str()).collect(),
        names: results.variants.iter().map(|row| row.name.as_str()).collect(),
        values: values.collect(),
    };
    figure.draw().map(|figure| figure.to_svg())
}

fn sweep(swept: &Swept, results: &Results) -> (String, Table) {
    let heads = results.columns.iter().map(|column| numbers(column.label.as_str()));
    let mut table =
        Table::new([text(swept.key.as_str())].into_iter().chain(heads).chain([numbers("seconds")]));
    for row in &swept.rows {
        let cell = |column: &Shown| {
            row.metrics.get(&column.metric).map_or_else(dash, |value| format!("{:.1}", 100.0 * value))
        };
        let cells = [row.value.clone()].into_iter().chain(results.columns.iter().map(cell));
        table.row(cells.chain([format!("{:.1}", row.seconds)]));
    }
    (format!("{} with other settings", swept.variant), table)
}

fn tests(results: &Results) -> Option<(String, Table)> {
    let heads = ["difference", "95% interval", "p"].map(numbers);
    let mut table = Table::new([text("variant"), text("metric")].into_iter().chain(heads));
    for row in &results.variants {
        for test in row.tests.iter().flat_map(|tests| &tests.metrics) {
            let mark = if row.differs(&test.metric) { "*" } else { "" };
            table.row([
                row.name.clone(),
                test.metric.clone(),
                format!("{:+.2}", 100.0 * test.difference),
                format!("{:+.2} – {:+.2}", 100.0 * test.ci_low, 100.0 * test.ci_high),
                format!("{:.4}{mark}", test.p_value),
            ]);
        }
    }
    (!table.rows.is_empty()).then(|| (format!("Differences to {}", results.baseline), table))
}

/// Every run of a variant: the grid, then the other seeds of the chosen settings.
fn variant(row: &Row) -> Variant<'_> {
    Variant { name: &row.name, runs: row.grid.iter().chain(row.runs.iter().skip(1)).map(run_row).collect() }
}

fn run_row(run: &Run) -> RunRow<'_> {
    let settings: Vec<String> = run.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let best = run.best.as_ref();
    RunRow {
        settings: settings.join(", "),
        seed: run.seed,
        best: best.map_or_else(dash, |best| format!("{} {:.5}", best.monitor, best.value)),
        step: best.map_or_else(dash, |best| best.step.to_string()),
        seconds: format!("{:.0}", run.seconds),
        folder: &run.folder,
        problem: run.problem.as_deref().map(|problem| problem.lines().next().unwrap_or_default()),
    }
}
