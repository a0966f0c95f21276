//! Isotonic calibration (Zadrozny and Elkan 2002) by pooling adjacent violators.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Pair;

/// The weight of the score itself in the result: small enough not to matter to a probability, and enough to keep
/// the map rising where the fit is flat.
const RAW_WEIGHT: f64 = 1e-3;

/// A non-decreasing line.
///
/// The least-squares non-decreasing fit is a staircase, which would make ties of most scores. Here each step is
/// reduced to its centre (mean score, share of gold), and the map is the line from (0, 0) through the centres, level
/// after the last, with a thousandth of the score itself mixed in: strictly increasing, so that rankings survive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Isotonic {
    /// Centres of steps: score and probability, both increasing.
    points: Vec<(f64, f64)>,
}

/// An [`Isotonic`] as a file has it, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    points: Vec<(f64, f64)>,
}

impl TryFrom<Stored> for Isotonic {
    type Error = &'static str;

    fn try_from(Stored { points }: Stored) -> Result<Self, Self::Error> {
        let share = 0.0..=1.0;
        if points.is_empty() {
            return Err("an isotonic map without points");
        }
        if points.iter().any(|(score, probability)| !share.contains(score) || !share.contains(probability)) {
            return Err("an isotonic map with a point that is not between 0 and 1");
        }
        if points.windows(2).any(|pair| pair[0].0 > pair[1].0 || pair[0].1 > pair[1].1) {
            return Err("an isotonic map that falls");
        }
        Ok(Self { points })
    }
}

/// A step of the staircase.
struct Block {
    score_sum: f64,
    gold: f64,
    n: f64,
}

impl Isotonic {
    /// Fits pairs in any order.
    pub(super) fn fit(mut pairs: Vec<Pair>) -> Self {
        pairs.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut blocks: Vec<Block> = Vec::new();
        for same in pairs.chunk_by(|a, b| a.0 == b.0) {
            let mut block = Block {
                score_sum: f64::from(same[0].0) * same.len() as f64,
                gold: same.iter().filter(|pair| pair.1).count() as f64,
                n: same.len() as f64,
            };
            while let Some(below) = blocks.pop_if(|below| below.gold * block.n >= block.gold * below.n) {
                block.score_sum += below.score_sum;
                block.gold += below.gold;
                block.n += below.n;
            }
            blocks.push(block);
        }
        Self {
            points: blocks
                .iter()
                .map(|block| ((block.score_sum / block.n).clamp(0.0, 1.0), block.gold / block.n))
                .collect(),
        }
    }

    /// The probability for a score.
    #[must_use]
    pub fn apply(&self, score: f32) -> f32 {
        let score = f64::from(score).clamp(0.0, 1.0);
        let after = self.points.partition_point(|point| point.0 <= score);
        let (x0, y0) = if after == 0 { (0.0, 0.0) } else { self.points[after - 1] };
        let fitted = match self.points.get(after) {
            Some(&(x1, y1)) if x1 > x0 => y0 + (y1 - y0) * ((score - x0) / (x1 - x0)),
            _ => y0,
        };
        ((1.0 - RAW_WEIGHT) * fitted + RAW_WEIGHT * score) as f32
    }
}
