//! What an experiment comes to, put together and as text.

use std::collections::BTreeMap;

use super::plan::Plan;
use super::runs::VariantRuns;
use crate::output::Table;
use crate::results::experiment::{Part, Results, Row, Shown, Spread, Swept, Tests};

/// The results of what is done so far.
pub(super) fn collect(
    plan: &Plan,
    done: &[VariantRuns],
    tests: &BTreeMap<String, Tests>,
) -> anyhow::Result<Results> {
    let experiment = plan.experiment;
    let all = || done.iter().flat_map(|runs| runs.grid.iter().chain(&runs.runs));
    let levels = all().map(|run| run.levels).max().unwrap_or(0);
    let columns: Vec<Shown> = experiment
        .columns
        .iter()
        .flat_map(|column| {
            let last = if column.metric.contains("<n>") { levels } else { 1 };
            (1..=last).map(move |n| Shown {
                label: column.label.replace("<n>", &n.to_string()),
                metric: column.metric.replace("<n>", &n.to_string()),
            })
        })
        .collect();
    let mut variants = Vec::new();
    for (planned, runs) in plan.variants.iter().zip(done) {
        let chosen = runs.chosen.unwrap_or(0);
        let config = planned.combinations.get(chosen).map(|one| toml::to_string(&one.config));
        let values = columns.iter().filter_map(|column| {
            let values: Vec<f64> =
                runs.runs.iter().filter_map(|run| run.metrics.get(&column.metric).copied()).collect();
            (!values.is_empty()).then(|| (column.metric.clone(), Spread::of(&values)))
        });
        let seconds: Vec<f64> =
            runs.runs.iter().filter(|run| run.problem.is_none()).map(|run| run.seconds).collect();
        let text = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        variants.push(Row {
            name: planned.variant.name.to_owned(),
            definition: planned.variant.settings.iter().map(text).collect(),
            chosen: runs.chosen.map(|n| runs.grid[n].settings.clone()).unwrap_or_default(),
            settings: config.transpose()?.unwrap_or_default(),
            values: values.collect(),
            seconds: (!seconds.is_empty()).then(|| Spread::of(&seconds)),
            tests: tests.get(planned.variant.name).cloned(),
            runs: runs.runs.clone(),
            grid: runs.grid.clone(),
        });
    }
    let n_done: usize = done.iter().map(|runs| runs.grid.len() + runs.runs.len().saturating_sub(1)).sum();
    let whole = done.len() == plan.variants.len()
        && done.iter().all(|runs| runs.chosen.is_none() || runs.runs.len() == plan.seeds.len());
    let significance = variants
        .iter()
        .find_map(|row| row.tests.as_ref())
        .map(|tests| tests.describe(experiment.baseline, plan.split));
    Ok(Results {
        experiment: experiment.name.to_owned(),
        description: experiment.description.to_owned(),
        finished: whole,
        n_done,
        n_runs: plan.n_runs(),
        corpus: plan.corpus_files(),
        measure: experiment.measure.to_owned(),
        split: plan.split,
        documents: all().map(|run| run.documents).max().unwrap_or(0),
        seeds: plan.seeds.clone(),
        baseline: experiment.baseline.to_owned(),
        significance,
        columns,
        variants,
        views: (experiment.views.iter())
            .map(|view| Part {
                title: view.title.to_owned(),
                variants: view.variants.iter().map(|&name| name.to_owned()).collect(),
                metrics: view.metrics.iter().map(|&name| name.to_owned()).collect(),
            })
            .collect(),
        sweep: None,
    })
}

/// Rows and columns for the terminal.
pub(super) fn table(results: &Results, rows: &[&Row], columns: &[&Shown]) -> Table {
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
pub(super) fn sweep_table(swept: &Swept, columns: &[Shown]) -> Table {
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
