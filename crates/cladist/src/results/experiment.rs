//! What an experiment comes to: variants, their runs and the tests between them.

use std::collections::BTreeMap;

use cladist_core::corpus::SplitName;
use cladist_core::metrics::compare::Comparison;
use serde::{Deserialize, Serialize};

/// What the names of values of the training journal begin with: the mean of the last epoch.
pub const IN_TRAINING: &str = "train:";

/// Differences with a p-value below this are marked.
pub const SIGNIFICANT: f64 = 0.05;

/// The result, as it is written.
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
}

/// A run that is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Below the experiment's folder.
    pub folder: String,
    /// What varies, with its value here.
    pub settings: BTreeMap<String, String>,
    /// The seed of training.
    pub seed: u64,
    /// What settings are chosen by; none for a run that failed.
    pub best: Option<Best>,
    /// Seconds of training.
    pub seconds: f64,
    /// The most memory meanwhile, in megabytes, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mb: Option<u64>,
    /// Metrics of the split that results are measured on.
    pub metrics: BTreeMap<String, f64>,
    /// Levels of the taxonomy.
    pub levels: usize,
    /// Documents of the split.
    pub documents: usize,
    /// BLAKE3 of the bundle's manifest: which model it is.
    pub model: Option<String>,
    /// Why there is no model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Tests of a variant against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tests {
    /// One a metric: `a` is the baseline, `b` the variant, both over all seeds.
    pub metrics: Vec<Comparison>,
    /// Seeds that both have a run of.
    pub seeds: Vec<u64>,
    /// The models compared, baseline and variant by seed.
    pub models: Vec<(String, String)>,
    /// Documents.
    pub documents: usize,
    /// Rounds of the randomisation.
    pub resamples: usize,
}

impl Tests {
    /// What was done, in words.
    #[must_use]
    pub fn describe(&self, baseline: &str, split: SplitName) -> String {
        let exchanged = match self.seeds.len() {
            1 => "a document's answers of both are exchanged".to_owned(),
            n => format!("a document's answers of {n} seeds are exchanged together"),
        };
        format!(
            "* differs from `{baseline}`, p < {SIGNIFICANT}: two-sided paired randomisation over {} documents of {split}, \
             {} rounds; {exchanged}; each column by itself, not corrected for their number",
            self.documents, self.resamples
        )
    }
}

/// The best value of what training watched on dev.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// `loss` or a metric: the setting `train.monitor`.
    pub monitor: String,
    /// Updates made before it was measured.
    pub step: u64,
    /// The value.
    pub value: f64,
}

/// Mean and standard deviation (of a sample) over runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// √(Σ(x − mean)² / (n − 1)); 0 for one run.
    pub std: f64,
}

impl Spread {
    /// Of values, of which there is at least one.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, std: if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 } }
    }

    /// Of each metric over runs that have it.
    #[must_use]
    pub fn by_metric<'a>(
        runs: impl IntoIterator<Item = &'a BTreeMap<String, f64>>,
    ) -> BTreeMap<String, Self> {
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, value) in runs.into_iter().flatten() {
            values.entry(name.clone()).or_default().push(*value);
        }
        values.into_iter().map(|(name, values)| (name, Self::of(&values))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(Spread::of(&[2.0]), Spread { mean: 2.0, std: 0.0 });
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0]);
        assert!((spread.mean - 2.5).abs() < 1e-12 && (spread.std - 1.290_994_448_735_805_6).abs() < 1e-12);
    }
}
