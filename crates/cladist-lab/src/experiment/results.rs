//! What an experiment comes to: the table, as numbers and as text.

use std::collections::BTreeMap;

use cladist_core::corpus::SplitName;
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::runs::{Run, VariantRuns};
use super::significance::Tests;
use crate::commands::trials::Spread;
use crate::output::Table;

/// What the names of values of the training journal begin with: the mean of the last epoch.
pub(super) const IN_TRAINING: &str = "train:";

/// Differences with a p-value below this are marked.
pub(super) const SIGNIFICANT: f64 = 0.05;

/// What is written and, with `--json`, printed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// The experiment.
    pub experiment: String,
    /// What it compares.
    pub description: String,
    /// Whether every run is done.
    pub finished: bool,
    /// Runs that are done.
    pub n_done: usize,
    /// All runs.
    pub n_runs: usize,
    /// Files of the corpus.
    pub corpus: Vec<String>,
    /// What is measured.
    pub measure: String,
    /// Where: `test`, or `dev` if there is no test split.
    pub split: SplitName,
    /// Its documents.
    pub documents: usize,
    /// Seeds of training.
    pub seeds: Vec<u64>,
    /// The variant that the others are tested against.
    pub baseline: String,
    /// How they are tested, in words; none without a test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub significance: Option<String>,
    /// The columns of the table.
    pub columns: Vec<Shown>,
    /// The rows.
    pub variants: Vec<Row>,
    /// Parts of the table to be shown one after the other; the whole if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<Part>,
    /// A variant that answers with other settings than it was trained with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Swept>,
}

/// Some rows and columns of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it is about.
    pub title: String,
    /// Its variants; all if there are none.
    pub variants: Vec<String>,
    /// Its metrics.
    pub metrics: Vec<String>,
}

/// What a trained model comes to with other settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swept {
    /// The variant.
    pub variant: String,
    /// The setting that varies.
    pub key: String,
    /// Which model it was.
    pub model: Option<String>,
    /// What came out, value by value.
    pub rows: Vec<SweptRow>,
}

/// One value of the setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweptRow {
    /// The value.
    pub value: String,
    /// The metrics of the table.
    pub metrics: BTreeMap<String, f64>,
    /// Seconds of scoring the split.
    pub seconds: f64,
}

impl Swept {
    /// For the terminal.
    #[must_use]
    pub fn table(&self, columns: &[Shown]) -> Table {
        let heads = [self.key.clone()].into_iter().chain(columns.iter().map(|column| column.label.clone()));
        let mut table = Table::new(1, heads.chain(["seconds".to_owned()]));
        for row in &self.rows {
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
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// Its head.
    pub label: String,
    /// Its metric.
    pub metric: String,
}

impl Shown {
    /// Whether it is a share of something, printed in percent, and not a value of the training journal.
    #[must_use]
    pub fn is_share(&self) -> bool {
        !self.metric.starts_with(IN_TRAINING)
    }

    /// A value of this column as people write it: `81.7 ± 0.1`.
    #[must_use]
    pub fn text(&self, Spread { mean, std }: Spread, n_runs: usize) -> String {
        let (factor, digits) = if self.is_share() { (100.0, 1) } else { (1.0, 4) };
        let (mean, std) = (factor * mean, factor * std);
        if n_runs > 1 { format!("{mean:.digits$} ± {std:.digits$}") } else { format!("{mean:.digits$}") }
    }
}

/// A variant.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What makes it.
    pub definition: BTreeMap<String, String>,
    /// What was chosen for it, by a short name.
    pub chosen: BTreeMap<String, String>,
    /// Whole settings of its runs, as TOML.
    pub settings: String,
    /// Over seeds, by metric.
    pub values: BTreeMap<String, Spread>,
    /// Seconds of training, over seeds.
    pub seconds: Option<Spread>,
    /// Tests against the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<Tests>,
    /// One run a seed, with the chosen settings.
    pub runs: Vec<Run>,
    /// One run of each combination of settings, with the first seed.
    pub grid: Vec<Run>,
}

impl Row {
    /// The most memory of any run as people write it.
    #[must_use]
    pub fn memory(&self) -> String {
        self.runs
            .iter()
            .filter_map(|run| run.peak_mb)
            .max()
            .map_or_else(|| "–".to_owned(), |mb| mb.to_string())
    }

    /// Runs that ended with a model.
    pub fn finished(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.problem.is_none())
    }

    /// Whether a metric differs from the baseline's by more than chance.
    #[must_use]
    pub fn differs(&self, metric: &str) -> bool {
        let mut tests = self.tests.iter().flat_map(|tests| &tests.metrics);
        tests.any(|test| test.metric == metric && test.p_value < SIGNIFICANT)
    }

    /// What was chosen, in words.
    #[must_use]
    pub fn choice(&self) -> String {
        let words: Vec<String> = self.chosen.iter().map(|(name, value)| format!("{name} {value}")).collect();
        words.join(", ")
    }
}

impl Results {
    /// The results of what is done so far.
    pub(super) fn new(
        plan: &Plan,
        done: &[VariantRuns],
        tests: &BTreeMap<String, Tests>,
    ) -> anyhow::Result<Self> {
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
        Ok(Self {
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

    /// What the table shows, in words.
    #[must_use]
    pub fn caption(&self) -> String {
        let seeds = match self.seeds.len() {
            1 => "one seed".to_owned(),
            n => format!("mean ± standard deviation over {n} seeds"),
        };
        format!("{} on {} ({} documents), in percent, {seeds}", self.measure, self.split, self.documents)
    }

    /// Whether settings were chosen, so that there is something to say about them.
    #[must_use]
    pub fn has_choice(&self) -> bool {
        self.variants.iter().any(|row| !row.chosen.is_empty())
    }

    /// The parts to be shown, each with its title, rows and columns; none of its rows may be there yet.
    #[must_use]
    pub fn parts(&self) -> Vec<(&str, Vec<&Row>, Vec<&Shown>)> {
        let part = |part: &'_ Part| {
            let is_in = |row: &&Row| part.variants.is_empty() || part.variants.contains(&row.name);
            let rows: Vec<&Row> = self.variants.iter().filter(is_in).collect();
            let columns = self.columns.iter().filter(|column| part.metrics.contains(&column.metric));
            (rows, columns.collect::<Vec<&Shown>>())
        };
        if self.views.is_empty() {
            return vec![("", self.variants.iter().collect(), self.columns.iter().collect())];
        }
        let parts = self.views.iter().map(|view| {
            let (rows, columns) = part(view);
            (view.title.as_str(), rows, columns)
        });
        parts.filter(|(_, rows, _)| !rows.is_empty()).collect()
    }

    /// For the terminal.
    #[must_use]
    pub fn table(&self, rows: &[&Row], columns: &[&Shown]) -> Table {
        // The first columns are text.
        let n_text = if self.has_choice() { 2 } else { 1 };
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
            let seconds =
                row.seconds.map_or_else(|| "–".to_owned(), |seconds| format!("{:.0}", seconds.mean));
            let first = [row.name.clone(), row.choice()].into_iter().take(n_text);
            table.row(first.chain(cells).chain([n_runs, seconds, row.memory()]));
        }
        table
    }
}
