//! A model judged on a split.

use cladist_core::corpus::SplitName;
use cladist_core::decode::DecodeConfig;
use cladist_core::metrics::bootstrap::Interval;
use cladist_core::metrics::{GroupScores, Report};
use serde::Serialize;

use super::four_decimals;

/// The result, as it is written.
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
    let [precision, recall, f1] = [precision, recall, f1].map(|value| four_decimals(Some(*value)));
    [labels, gold, predicted, precision, recall, f1, four_decimals(*macro_f1)]
}
