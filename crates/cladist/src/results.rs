//! What evaluation and explanation come to, as plain data: printed, written as JSON, and shown on pages.

use cladist_core::corpus::SplitName;
use cladist_core::decode::DecodeConfig;
use cladist_core::explain::Explanation;
use cladist_core::metrics::bootstrap::Interval;
use cladist_core::metrics::{GroupScores, Report};
use cladist_core::Taxonomy;
use serde::Serialize;

/// A model judged on a split.
#[derive(Debug, Serialize)]
pub struct Evaluation {
    /// The run folder or bundle.
    pub run: String,
    /// The head.
    pub head: String,
    /// The split.
    pub split: SplitName,
    /// Its files.
    pub files: Vec<String>,
    /// Whether the model was trained on these documents, which makes every figure too good.
    pub seen_in_training: bool,
    /// How scores became label sets.
    pub decode: DecodeConfig,
    /// Confidence intervals, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Interval>,
    /// Everything that was measured.
    #[serde(flatten)]
    pub report: Report,
}

/// Metrics shown first, in this order; the rest is in the JSON and the page.
pub const HEADLINE: &[&str] = &[
    "micro-f1",
    "macro-f1",
    "sample-f1",
    "micro-precision",
    "micro-recall",
    "hamming-accuracy",
    "set-accuracy",
    "accuracy",
    "p@1",
    "p@3",
    "p@5",
    "r@5",
    "rp@5",
    "ndcg@5",
    "psp@1",
    "psp@3",
    "psp@5",
    "r-precision-micro",
    "r-precision-macro",
    "hierarchical-f1-micro",
    "hierarchical-f1-macro",
    "coherence-violation-rate",
    "ece-uncalibrated",
    "ece",
];

/// Heads of the columns that [`cells`] fills.
pub const HEADS_OF_GROUPS: [&str; 7] =
    ["labels", "gold", "predicted", "precision", "recall", "F1", "macro F1"];

/// How a group of labels went, column by column.
#[must_use]
pub fn cells(scores: &GroupScores) -> [String; 7] {
    let GroupScores { labels, gold, predicted, precision, recall, f1, macro_f1 } = scores;
    let counts = [*labels as u64, *gold, *predicted].map(|count| count.to_string());
    let [labels, gold, predicted] = counts;
    let [precision, recall, f1] = [precision, recall, f1].map(|value| figure(Some(*value)));
    [labels, gold, predicted, precision, recall, f1, figure(*macro_f1)]
}

/// A metric as people write it: four decimals, or a dash.
#[must_use]
pub fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"))
}

/// A document with what each of one or two models says of it.
#[derive(Debug, Clone, Serialize)]
pub struct Explained {
    /// The document.
    pub id: String,
    /// Its text.
    pub text: String,
    /// One or two models.
    pub models: Vec<ByModel>,
}

/// What one model says.
#[derive(Debug, Clone, Serialize)]
pub struct ByModel {
    /// The model as it was named.
    pub run: String,
    /// The labels, the best first.
    pub labels: Vec<ByLabel>,
}

/// Why a label got its probability.
#[derive(Debug, Clone, Serialize)]
pub struct ByLabel {
    /// The label.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its probability.
    pub score: f32,
    /// The words, in the order of the text.
    pub words: Vec<Word>,
}

/// A word, or several together.
#[derive(Debug, Clone, Serialize)]
pub struct Word {
    /// As it stands in the text.
    pub text: String,
    /// The first character, counted from 0.
    pub start: usize,
    /// The character after the last.
    pub end: usize,
    /// By how much the probability falls without it, or what it adds to the logit, as the method has it.
    pub importance: f32,
}

impl ByLabel {
    /// An explanation with places counted in characters.
    #[must_use]
    pub fn new(found: &Explanation, text: &str, taxonomy: &Taxonomy) -> Self {
        let (mut bytes, mut characters) = (0, 0);
        let words = found.parts.iter().map(|(range, importance)| {
            let length = |from: usize, to: usize| text[from..to].chars().count();
            let start = characters + length(bytes, range.start);
            let end = start + length(range.start, range.end);
            (bytes, characters) = (range.end, end);
            Word { text: text[range.clone()].to_owned(), start, end, importance: *importance }
        });
        Self {
            words: words.collect(),
            id: taxonomy.id(found.label).to_owned(),
            name: taxonomy.name(found.label).to_owned(),
            score: found.score,
        }
    }
}
