//! From scores to label sets.
//!
//! Decoding takes these steps, each of them optional but the second:
//! 1. *coherence*: a label's score becomes the largest score of the label and its descendants;
//! 2. *threshold*: labels with `score > threshold` (strictly) and `score > floor` are chosen; or, by *predicted count*,
//!    as many of the best labels as the classifier says that the document has;
//! 3. *coarser when unsure*: a chosen label goes if a descendant of it is chosen, on whatever path of a DAG, so that
//!    the deepest passing labels stay; for a label that does not pass, its deepest passing ancestors answer;
//! 4. *at least*: if fewer than `at_least` are chosen, the best others above the floor join;
//! 5. *top-k*: of the chosen labels the `top_k` best stay;
//! 6. *closure*: the set becomes path-consistent, by adding ancestors or by dropping orphans.
//!
//! A label without a score is chosen by closure only. Every step is linear in the scored labels and their
//! ancestors (but for sorting them), and none recurses.

mod coherence;
mod thresholds;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::scores::{Scores, by_rank};
use crate::taxonomy::{LabelId, LabelSet, Taxonomy};

use coherence::Workspace;
pub use coherence::make_coherent;
pub use thresholds::{PerLabel, Thresholds};

/// How chosen labels become a path-consistent set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClosureRule {
    /// The set stays as chosen.
    #[default]
    None,
    /// All ancestors join, through every parent.
    #[serde(alias = "path-consistent")]
    CloseUpward,
    /// A label stays only if a path of chosen labels leads to it from the root: it is at level 1, or one of its
    /// parents stays.
    Prune,
}

/// What passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Labels above their thresholds.
    #[default]
    Threshold,
    /// As many labels as a network says that learnt how many a document has; by thresholds where none does.
    PredictedCount,
}

/// How scores become label sets: the section `[decode]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecodeConfig {
    /// What passes: labels above their `threshold`, or the `predicted-count` best.
    pub rule: Rule,
    /// A label is chosen if its score is above this: one number, a list of one number per level, or a table with
    /// a `default` and numbers for `labels` by id.
    pub threshold: Thresholds,
    /// Choose at most this many labels, before closure.
    pub top_k: Option<usize>,
    /// Choose at least this many labels, even below the threshold, if as many have a score above the floor.
    pub at_least: usize,
    /// Labels with this score or less are never chosen.
    pub floor: f32,
    /// How the set becomes path-consistent: `none`, `close-upward` or `prune`.
    pub closure: ClosureRule,
    /// Raise every score to the largest among the label's descendants first.
    pub coherence: bool,
    /// Answer with the deepest labels that pass: a label that does not pass is replaced by its deepest passing
    /// ancestors. Scores are made coherent first.
    pub coarser_when_unsure: bool,
}

impl Default for DecodeConfig {
    fn default() -> Self {
        Self {
            rule: Rule::default(),
            threshold: Thresholds::default(),
            top_k: None,
            at_least: 0,
            floor: 0.0,
            closure: ClosureRule::None,
            coherence: false,
            coarser_when_unsure: false,
        }
    }
}

impl DecodeConfig {
    /// Checks every value on its own; labels of thresholds are checked by [`DecodeConfig::build`].
    pub fn validate(&self) -> Result<()> {
        self.threshold.validate()?;
        if self.top_k == Some(0) {
            return Err(Error::setting("decode.top_k", "at least 1", 0));
        }
        if self.top_k.is_some_and(|k| self.at_least > k) {
            return Err(Error::setting("decode.at_least", "at most `decode.top_k`", self.at_least));
        }
        if !(0.0..=1.0).contains(&self.floor) {
            return Err(Error::setting("decode.floor", "between 0 and 1", self.floor));
        }
        Ok(())
    }

    /// Checks the settings against a taxonomy.
    pub fn build<'a>(&self, taxonomy: &'a Taxonomy) -> Result<Decoder<'a>> {
        self.validate()?;
        let Self { rule, threshold, top_k, at_least, floor, closure, coherence, coarser_when_unsure } = self;
        Ok(Decoder {
            taxonomy,
            rule: *rule,
            thresholds: threshold.resolve(taxonomy)?,
            top_k: top_k.unwrap_or(usize::MAX),
            at_least: *at_least,
            floor: *floor,
            closure: *closure,
            coherence: *coherence || *coarser_when_unsure,
            coarser: *coarser_when_unsure,
        })
    }
}

/// Turns scores into label sets of one taxonomy.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    taxonomy: &'a Taxonomy,
    rule: Rule,
    /// By label.
    thresholds: Vec<f32>,
    top_k: usize,
    at_least: usize,
    floor: f32,
    closure: ClosureRule,
    coherence: bool,
    coarser: bool,
}

impl Decoder<'_> {
    /// Whether [`Decoder::prepare`] changes scores.
    #[must_use]
    pub fn makes_coherent(&self) -> bool {
        self.coherence
    }

    /// The scores as decoding sees them: coherent if the settings ask for it. Ranking metrics should see the
    /// same. Preparing twice changes nothing.
    #[must_use]
    pub fn prepare(&self, scores: Scores) -> Scores {
        if self.coherence { make_coherent(&scores, self.taxonomy) } else { scores }
    }

    /// The chosen labels of each document, prepared or not.
    #[must_use]
    pub fn decode(&self, scores: &Scores) -> Vec<LabelSet> {
        self.each(scores, |chosen| chosen.into_iter().map(|(label, _)| label).collect())
    }

    /// The chosen labels of each document with their scores, best first.
    ///
    /// A label that closure added carries the larger of its own score and the best score below it.
    #[must_use]
    pub fn answer(&self, scores: &Scores) -> Scores {
        Scores::from_rows(self.each(scores, |chosen| chosen))
    }

    fn each<T: Send>(&self, scores: &Scores, finish: impl Fn(Vec<(LabelId, f32)>) -> T + Sync) -> Vec<T> {
        (0..scores.len())
            .into_par_iter()
            .with_min_len(256)
            .map_init(
                || Workspace::new(self.taxonomy),
                |space, document| {
                    let count = scores.counts().get(document).filter(|_| self.rule == Rule::PredictedCount);
                    finish(self.choose(scores.row(document), count.copied(), space))
                },
            )
            .collect()
    }

    fn choose(
        &self,
        row: &[(LabelId, f32)],
        count: Option<u32>,
        space: &mut Workspace,
    ) -> Vec<(LabelId, f32)> {
        let coherent;
        let row = if self.coherence {
            let mut lifted = space.lift(row, &[]);
            lifted.sort_unstable_by(by_rank);
            coherent = lifted;
            &coherent
        } else {
            row
        };
        // The last label that the count leaves room for.
        let last = count.map(|count| row[..row.len().min(count as usize)].last());
        let passes = |entry: &(LabelId, f32)| {
            let (label, score) = *entry;
            let enough = match last {
                Some(last) => last.is_some_and(|last| by_rank(entry, last).is_le()),
                None => self.thresholds.get(label.index()).is_some_and(|&t| score > t),
            };
            enough && score > self.floor
        };
        if self.coarser {
            space.mark_above(row.iter().filter(|entry| passes(entry)).map(|&(label, _)| label));
        } else {
            space.mark_above(std::iter::empty());
        }
        // Best first, so that the loop can tell how many of the others may still join.
        let mut missing =
            self.at_least.saturating_sub(row.iter().filter(|e| passes(e) && !space.is_marked(e.0)).count());
        let mut chosen = Vec::new();
        for entry in row.iter().filter(|entry| !space.is_marked(entry.0)) {
            if passes(entry) {
                chosen.push(*entry);
            } else if missing > 0 && entry.1 > self.floor {
                missing -= 1;
                chosen.push(*entry);
            }
        }
        chosen.truncate(self.top_k);
        match self.closure {
            ClosureRule::None => chosen,
            ClosureRule::CloseUpward => {
                let mut closed = space.lift(&chosen, row);
                closed.sort_unstable_by(by_rank);
                closed
            }
            ClosureRule::Prune => {
                space.prune(&mut chosen);
                chosen
            }
        }
    }
}

#[cfg(test)]
mod tests;
