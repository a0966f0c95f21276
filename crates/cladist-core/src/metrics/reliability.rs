//! Whether probabilities mean what they say.

use serde::{Deserialize, Serialize};

use super::Tally;
use super::sum::ExactSum;
use super::view::View;
use crate::error::{Error, Result};
use crate::scores::Scores;
use crate::taxonomy::LabelSet;

/// Which scores an expected calibration error runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EceOver {
    /// All scored (document, label) pairs.
    #[default]
    Pairs,
    /// The best-ranked label of each document.
    TopLabel,
}

/// Scores of a range and how often they were right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Where the range begins; it ends where the next begins, the last at 1.
    pub from: f64,
    /// Scores in the range.
    pub count: u64,
    /// Their mean.
    pub mean_score: f64,
    /// How many of their labels are gold, as a share.
    pub gold_share: f64,
}

/// Scores against gold, in bins of equal width over `[0, 1]`.
#[derive(Debug, Clone)]
pub(crate) struct Reliability {
    over: EceOver,
    /// Scores, gold among them, their sum.
    bins: Vec<(u64, u64, ExactSum)>,
}

impl Reliability {
    pub(crate) fn new(over: EceOver, n_bins: usize) -> Self {
        Self { over, bins: vec![(0, 0, ExactSum::default()); n_bins.max(1)] }
    }

    fn add(&mut self, score: f32, relevant: bool) {
        let score = f64::from(score).clamp(0.0, 1.0);
        let bin = ((score * self.bins.len() as f64) as usize).min(self.bins.len() - 1);
        let (count, gold, sum) = &mut self.bins[bin];
        *count += 1;
        *gold += u64::from(relevant);
        sum.add(score);
    }

    /// `Σ over bins of count / n · |mean score - gold share|`; none without a score.
    pub(crate) fn error(&self) -> Option<f64> {
        let n: u64 = self.bins.iter().map(|&(count, _, _)| count).sum();
        let gaps = self.bins.iter().map(|&(_, gold, sum)| (sum.value() - gold as f64).abs());
        (n > 0).then(|| gaps.sum::<f64>() / n as f64)
    }

    /// The bins that hold a score.
    pub(crate) fn bins(&self) -> Vec<ReliabilityBin> {
        let width = 1.0 / self.bins.len() as f64;
        let filled = self.bins.iter().enumerate().filter(|(_, bin)| bin.0 > 0);
        filled
            .map(|(n, &(count, gold, sum))| ReliabilityBin {
                from: n as f64 * width,
                count,
                mean_score: sum.value() / count as f64,
                gold_share: gold as f64 / count as f64,
            })
            .collect()
    }
}

impl Tally for Reliability {
    fn update(&mut self, view: &View) {
        let n = if self.over == EceOver::TopLabel { 1 } else { view.ranked.len() };
        for ((_, score), &relevant) in view.ranked.iter().zip(view.relevant).take(n) {
            self.add(*score, relevant);
        }
    }

    fn merge(&mut self, other: Self) {
        for ((count, gold, sum), (more, more_gold, more_sum)) in self.bins.iter_mut().zip(other.bins) {
            *count += more;
            *gold += more_gold;
            sum.merge(more_sum);
        }
    }
}

/// The expected calibration error: `Σ over bins of count / n · |mean score - gold share|`, with bins of equal width.
/// None if nothing is scored.
///
/// Labels that were not scored do not count: they say nothing.
pub fn expected_calibration_error(
    scores: &Scores,
    gold: &[LabelSet],
    bins: usize,
    over: EceOver,
) -> Result<Option<f64>> {
    if scores.len() != gold.len() {
        return Err(Error::Mismatch {
            left: "rows of scores",
            n_left: scores.len(),
            right: "gold sets",
            n_right: gold.len(),
        });
    }
    let mut reliability = Reliability::new(over, bins);
    for (row, gold) in scores.rows().zip(gold) {
        let n = if over == EceOver::TopLabel { 1 } else { row.len() };
        for &(label, score) in row.iter().take(n) {
            reliability.add(score, gold.contains(label));
        }
    }
    Ok(reliability.error())
}
