//! The choices that metrics leave open, each with a name.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::taxonomy::LabelCounts;

/// Which labels a label-wise mean runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelSpace {
    /// Labels with a training document or with gold in the evaluated documents.
    #[default]
    Seen,
    /// Every label of the taxonomy.
    All,
    /// Labels with gold in the evaluated documents.
    Gold,
}

impl LabelSpace {
    /// The convention in words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Seen => "seen: labels with a training document or with gold in the evaluated documents",
            Self::All => "all: every label of the taxonomy",
            Self::Gold => "gold: labels with gold in the evaluated documents",
        }
    }

    /// Whether a label belongs, by whether training saw it and by its gold count.
    pub(crate) fn holds(self, trained: bool, support: u32) -> bool {
        match self {
            Self::Seen => trained || support > 0,
            Self::All => true,
            Self::Gold => support > 0,
        }
    }
}

/// The constants of the propensity model, by data set or by number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a propensity: `standard`, `wiki-500k`, `amazon-670k` or a table of `a` and `b`"
)]
pub enum Propensity {
    /// Constants in use for a data set.
    Preset(PropensityPreset),
    /// Constants of one's own.
    Numbers(PropensityNumbers),
}

/// Named propensity constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PropensityPreset {
    /// A = 0.55, B = 1.5: EUR-Lex, Wiki10-31K, AmazonCat-13K and most others.
    #[serde(alias = "eurlex", alias = "wiki10-31k", alias = "amazoncat-13k")]
    Standard,
    /// A = 0.5, B = 0.4.
    #[serde(rename = "wiki-500k")]
    Wiki500k,
    /// A = 0.6, B = 2.6.
    #[serde(rename = "amazon-670k")]
    Amazon670k,
}

/// A and B of the propensity model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropensityNumbers {
    /// The exponent.
    pub a: f64,
    /// The shift of counts.
    pub b: f64,
}

impl Propensity {
    /// A and B.
    #[must_use]
    pub fn numbers(self) -> PropensityNumbers {
        let (a, b) = match self {
            Self::Numbers(numbers) => return numbers,
            Self::Preset(PropensityPreset::Standard) => (0.55, 1.5),
            Self::Preset(PropensityPreset::Wiki500k) => (0.5, 0.4),
            Self::Preset(PropensityPreset::Amazon670k) => (0.6, 2.6),
        };
        PropensityNumbers { a, b }
    }

    /// Inverse propensities (Jain et al. 2016): `w = 1 + C (n + B)^-A` with `C = (ln N - 1) (B + 1)^A`, for `n` of
    /// the `N` training documents. `C` is 0 at least, where fewer than three documents would make it negative.
    /// Empty if nothing is known of training.
    #[must_use]
    pub fn weights(self, counts: &LabelCounts) -> Vec<f64> {
        if counts.n_documents == 0 {
            return Vec::new();
        }
        let PropensityNumbers { a, b } = self.numbers();
        let c = (((counts.n_documents as f64).ln() - 1.0) * (b + 1.0).powf(a)).max(0.0);
        counts.counts.iter().map(|&n| 1.0 + c * (f64::from(n) + b).powf(-a)).collect()
    }
}

/// How metrics are computed: the section `[metrics]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricOptions {
    /// The cut-offs of ranking metrics.
    pub k: Vec<usize>,
    /// The labels of macro averages and of Hamming accuracy: `seen`, `all` or `gold`.
    pub labels: LabelSpace,
    /// The propensity constants of PSP and PSnDCG: a preset or a table of `a` and `b`.
    pub propensity: Propensity,
    /// Labels with at most this many training documents (and at least one) are few-shot.
    pub few_at_most: u32,
    /// Labels with more than that and at most this many are medium-shot; those above are many-shot.
    pub medium_at_most: u32,
    /// Bins of equal width for the expected calibration error.
    pub ece_bins: usize,
    /// Look at this many of the best labels of each document and take the others for not scored. 0 looks at all, or at the
    /// 100 best where documents times labels would not fit in memory. Saves memory on very many labels. Label sets stay the same; metrics of all scores differ: R-Precision, ECE and
    /// violations.
    pub max_labels: usize,
}

/// Scores that are kept at most unless settings say otherwise: 2 GiB of labels and probabilities.
const MAX_SCORES: usize = 1 << 28;
/// Labels of a document that are kept where that is too many.
const FEWEST: usize = 100;
/// Bins and cut-offs at most: each costs memory, the latter for every label.
const MAX_BINS: usize = 10_000;
const MAX_CUTOFFS: usize = 100;

impl Default for MetricOptions {
    fn default() -> Self {
        Self {
            k: vec![1, 3, 5, 10],
            labels: LabelSpace::Seen,
            propensity: Propensity::Preset(PropensityPreset::Standard),
            few_at_most: 20,
            medium_at_most: 100,
            ece_bins: 15,
            max_labels: 0,
        }
    }
}

impl MetricOptions {
    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        if self.k.contains(&0) {
            return Err(Error::setting("metrics.k", "at least 1", 0));
        }
        if self.k.len() > MAX_CUTOFFS {
            let given = format!("{} of them", self.k.len());
            return Err(Error::setting("metrics.k", format!("at most {MAX_CUTOFFS} numbers"), given));
        }
        let PropensityNumbers { a, b } = self.propensity.numbers();
        if !(0.0..=10.0).contains(&a) {
            return Err(Error::setting("metrics.propensity.a", "between 0 and 10", a));
        }
        if !(b > 0.0 && b <= 1000.0) {
            return Err(Error::setting("metrics.propensity.b", "above 0 and at most 1000", b));
        }
        if self.medium_at_most < self.few_at_most {
            return Err(Error::setting(
                "metrics.medium_at_most",
                "at least `metrics.few_at_most`",
                self.medium_at_most,
            ));
        }
        if !(1..=MAX_BINS).contains(&self.ece_bins) {
            return Err(Error::setting("metrics.ece_bins", format!("1 to {MAX_BINS}"), self.ece_bins));
        }
        if let Some(&deepest) = self.k.iter().max().filter(|&&k| self.max_labels > 0 && k > self.max_labels) {
            let expected = format!("0, or at least the largest of `metrics.k`, {deepest}");
            return Err(Error::setting("metrics.max_labels", expected, self.max_labels));
        }
        Ok(())
    }

    /// How many of the best labels of each of so many documents metrics look at; none for all. Decoding may need more:
    /// [`crate::decode::Decoder::needed_labels`].
    #[must_use]
    pub fn top_k(&self, n_documents: usize, n_labels: usize) -> Option<usize> {
        let deepest = || self.k.iter().max().map_or(FEWEST, |&k| k.max(FEWEST));
        let many = n_documents.saturating_mul(n_labels) > MAX_SCORES;
        match self.max_labels {
            0 => many.then(deepest),
            most => Some(most),
        }
    }

    /// The cut-offs, ascending and each once.
    pub(crate) fn cutoffs(&self) -> Vec<usize> {
        let mut k = self.k.clone();
        k.sort_unstable();
        k.dedup();
        k
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_a_large_split_are_limited_unless_settings_say_otherwise() {
        let options = MetricOptions { k: vec![1, 200], ..MetricOptions::default() };
        assert_eq!(options.top_k(3_019, 90), None);
        // The dev split of AmazonCat-13K: 12.6 GB of scores.
        assert_eq!(options.top_k(118_624, 13_330), Some(200));
        assert_eq!(MetricOptions::default().top_k(118_624, 13_330), Some(100));
        assert_eq!(MetricOptions { max_labels: 13_330, ..options }.top_k(118_624, 13_330), Some(13_330));
    }
}
