//! Probabilities that mean what they say, and thresholds that make the most of them.
//!
//! A calibration is a non-decreasing map from a score to the share of such scores that are right, learned from the
//! scored (document, label) pairs of a dev split. There is one map for all labels, or one per level: single labels
//! rarely have enough pairs for a map of their own, and one map keeps every ranking as it is.

mod isotonic;
mod platt;
mod thresholds;

use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::bundle;
use crate::error::{Error, Result};
use crate::job::Cancel;
use crate::scores::Scores;
use crate::taxonomy::{LabelId, LabelSet, Taxonomy};

pub use crate::metrics::{EceOver, expected_calibration_error};
pub use isotonic::Isotonic;
pub use platt::Platt;
pub use thresholds::{FitThresholds, FittedThresholds, Granularity, Objective, fit_thresholds};

/// The kind of map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Scores stay as they are.
    None,
    /// Any non-decreasing map, by pooling adjacent violators.
    #[default]
    Isotonic,
    /// A logistic map of the score's logit.
    Platt,
}

/// Which scores share a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// All.
    #[default]
    Global,
    /// Those of one level of the taxonomy.
    Level,
}

/// How scores are calibrated: the section `[calibrate]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CalibrateConfig {
    /// The kind of map: `none`, `isotonic` or `platt`.
    pub method: Method,
    /// Which scores share a map: `global` or `level`.
    pub pool: Pool,
    /// A level with fewer scored gold labels than this uses the global map.
    pub min_positives: usize,
}

impl Default for CalibrateConfig {
    fn default() -> Self {
        Self { method: Method::Isotonic, pool: Pool::Global, min_positives: 50 }
    }
}

/// A score and whether its label is gold.
type Pair = (f32, bool);

impl CalibrateConfig {
    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        if self.min_positives == 0 {
            return Err(Error::setting("calibrate.min_positives", "at least 1", 0));
        }
        Ok(())
    }

    /// Learns a calibration from scored documents with gold. Without a scored gold label, or without a scored label
    /// that is not gold, there is nothing to learn and scores stay as they are.
    pub fn fit(
        &self,
        scores: &Scores,
        gold: &[LabelSet],
        taxonomy: &Taxonomy,
        cancel: &Cancel,
    ) -> Result<Calibration> {
        self.validate()?;
        check_lengths(scores, gold)?;
        let Self { method, pool, min_positives } = self;
        let n_pools = if *pool == Pool::Level { taxonomy.n_levels() } else { 0 };
        let mut all = Vec::new();
        let mut by_level = vec![Vec::new(); n_pools];
        for (row, gold) in scores.rows().zip(gold) {
            cancel.check()?;
            for &(label, score) in row {
                let pair = (score, gold.contains(label));
                all.push(pair);
                if let Some(pairs) = by_level.get_mut(taxonomy.level(label) - 1) {
                    pairs.push(pair);
                }
            }
        }
        let global = Map::fit(*method, all);
        let levels = by_level.into_iter().map(|pairs| {
            cancel.check()?;
            let positives = pairs.iter().filter(|pair| pair.1).count();
            Ok(if positives < *min_positives { global.clone() } else { Map::fit(*method, pairs) })
        });
        let levels = levels.collect::<Result<_>>()?;
        Ok(Calibration { global, levels })
    }
}

fn check_lengths(scores: &Scores, gold: &[LabelSet]) -> Result<()> {
    let (n_left, n_right) = (scores.len(), gold.len());
    if n_left == n_right {
        return Ok(());
    }
    Err(Error::Mismatch { left: "rows of scores", n_left, right: "gold sets", n_right })
}

/// A non-decreasing map from scores to probabilities.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Map {
    /// Scores stay as they are.
    #[default]
    Identity,
    /// A line through points.
    Isotonic(Isotonic),
    /// A logistic curve.
    Platt(Platt),
}

impl Map {
    fn fit(method: Method, pairs: Vec<Pair>) -> Self {
        let positives = pairs.iter().filter(|pair| pair.1).count();
        if positives == 0 || positives == pairs.len() {
            return Self::Identity;
        }
        match method {
            Method::None => Self::Identity,
            Method::Isotonic => Self::Isotonic(Isotonic::fit(pairs)),
            Method::Platt => Platt::fit(&pairs).map_or(Self::Identity, Self::Platt),
        }
    }

    /// The probability that a label of this score is right.
    #[must_use]
    pub fn apply(&self, score: f32) -> f32 {
        match self {
            Self::Identity => score,
            Self::Isotonic(map) => map.apply(score),
            Self::Platt(map) => map.apply(score),
        }
    }
}

/// A learned calibration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The map of labels that have no other.
    pub global: Map,
    /// The map of each level, from level 1; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Map>,
}

impl Calibration {
    /// Reads the calibration of a bundle. A map that falls, leaves [0, 1] or has no points is refused.
    pub fn read(path: &Path) -> Result<Self> {
        bundle::read_json(path)
    }

    /// Whether scores stay as they are.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.global == Map::Identity && self.levels.iter().all(|map| *map == Map::Identity)
    }

    /// Whether labels of a row stay in their order, as they do with one map for all.
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        self.levels.is_empty() || self.is_identity()
    }

    /// Calibrated scores.
    ///
    /// Labels of one map keep their order: where rounding or a flat piece of the map would make two scores of a row
    /// equal that were not, the lower one gives way by the smallest step there is.
    #[must_use]
    pub fn apply(&self, scores: Scores, taxonomy: &Taxonomy) -> Scores {
        if self.is_identity() {
            return scores;
        }
        let rows: Vec<_> = (0..scores.len())
            .into_par_iter()
            .with_min_len(256)
            .map(|document| self.apply_row(scores.row(document), taxonomy))
            .collect();
        Scores::from_rows(rows).with_counts(scores.counts().to_vec())
    }

    fn apply_row(&self, row: &[(LabelId, f32)], taxonomy: &Taxonomy) -> Vec<(LabelId, f32)> {
        // By map: the score before and after of the label just above.
        let mut last: Vec<Option<(f32, f32)>> = vec![None; self.levels.len() + 1];
        let calibrated = row.iter().map(|&(label, raw)| {
            let level = taxonomy.level(label) - 1;
            let (map, slot) = match self.levels.get(level) {
                Some(map) => (map, level),
                None => (&self.global, self.levels.len()),
            };
            let mut score = map.apply(raw);
            if let Some((raw_above, above)) = last[slot] {
                score = score.min(if raw < raw_above { above.next_down() } else { above }).max(0.0);
            }
            last[slot] = Some((raw, score));
            (label, score)
        });
        calibrated.collect()
    }
}

#[cfg(test)]
mod tests;
