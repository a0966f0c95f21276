//! From scores to label sets.
//!
//! Decoding takes these steps, each of them optional but the third:
//! 1. *filter*: the scores of labels that are excluded, or not included, are dropped;
//! 2. *coherence*: a label's score becomes the largest score of the label and its descendants;
//! 3. *threshold*: labels with `score > threshold` (strictly) and `score > floor` are chosen; or, by *predicted count*,
//!    as many of the best labels as the classifier says that the document has;
//! 4. *coarser when unsure*: a chosen label goes if a descendant of it is chosen, on whatever path of a DAG, so that
//!    the deepest passing labels stay; for a label that does not pass, its deepest passing ancestors answer;
//! 5. *at least*: if fewer than `at_least` are chosen, the best others above the floor join;
//! 6. *top-k*: of the chosen labels the `top_k` best stay;
//! 7. *closure*: the set becomes path-consistent, by adding ancestors or by dropping orphans.
//!
//! A label that the filter drops never comes back: neither coherence nor closure adds it. Paths lead through it all the
//! same, so that what is below it can be chosen.
//!
//! A label without a score is chosen by closure only. Every step is linear in the scored labels and their
//! ancestors (but for sorting them), and none recurses.

mod coherence;
mod filter;
mod thresholds;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::scores::{Scores, by_rank};
use crate::taxonomy::{LabelId, LabelSet, Taxonomy};

use coherence::Workspace;
pub use coherence::make_coherent;
pub use filter::LabelFilter;
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
    /// parents stays. Labels that may not be answered do not interrupt a path.
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
    /// Answer with these labels alone: ids, or `id/**` for a label and all below it. Empty for all labels.
    pub include: Vec<String>,
    /// Never answer with these labels, in the same form.
    pub exclude: Vec<String>,
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
            include: Vec::new(),
            exclude: Vec::new(),
        }
    }
}

impl DecodeConfig {
    /// Checks every value on its own; labels are checked by [`DecodeConfig::build`].
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
        let Self {
            rule,
            threshold,
            top_k,
            at_least,
            floor,
            closure,
            coherence,
            coarser_when_unsure,
            include,
            exclude,
        } = self;
        Ok(Decoder {
            rule: *rule,
            thresholds: threshold.resolve(taxonomy)?,
            filter: LabelFilter::new(include, exclude, taxonomy)?,
            taxonomy,
            top_k: top_k.unwrap_or(usize::MAX),
            at_least: *at_least,
            floor: *floor,
            closure: *closure,
            coherence: *coherence || *coarser_when_unsure,
            coarser: *coarser_when_unsure,
        })
    }
}

/// Label sets of documents, and the scores they were chosen by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decoded {
    /// Scores as decoding sees them; the best of each document if there is a limit.
    pub scores: Scores,
    /// The chosen labels.
    pub sets: Vec<LabelSet>,
}

impl Decoded {
    /// Appends other documents.
    pub fn append(&mut self, other: Self) {
        self.scores.append(other.scores);
        self.sets.extend(other.sets);
    }
}

/// Turns scores into label sets of one taxonomy.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    taxonomy: &'a Taxonomy,
    filter: LabelFilter,
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
    /// Whether [`Decoder::prepare`] makes scores coherent.
    #[must_use]
    pub fn makes_coherent(&self) -> bool {
        self.coherence
    }

    /// The scores as decoding sees them: of labels that may be answered, and coherent if the settings ask for it. Ranking
    /// metrics should see the same. Preparing twice changes nothing.
    #[must_use]
    pub fn prepare(&self, scores: Scores) -> Scores {
        let mut scores = self.filtered(scores);
        if self.coherence {
            scores = self.filtered(make_coherent(&scores, self.taxonomy));
        }
        scores
    }

    fn filtered(&self, scores: Scores) -> Scores {
        if self.filter.allows_all() { scores } else { scores.retain(|label, _| self.filter.allows(label)) }
    }

    /// How many of the best labels of each document decide its label set; none if it may take all of them.
    ///
    /// That is `top_k` where labels pass by rank alone: with one threshold for all, and without coherence, predicted
    /// counts and filters. Thresholds of single labels can choose a label far down the ranking.
    #[must_use]
    pub fn needed_labels(&self) -> Option<usize> {
        let one_threshold = self.thresholds.windows(2).all(|pair| pair[0] == pair[1]);
        let by_rank =
            one_threshold && self.rule == Rule::Threshold && !self.coherence && self.filter.allows_all();
        (by_rank && self.top_k < usize::MAX).then_some(self.top_k)
    }

    /// Label sets of all scores, and then the `most` best of the scores alone: a limit changes no label set.
    #[must_use]
    pub fn decode_keeping(&self, scores: Scores, most: Option<usize>) -> Decoded {
        let scores = self.prepare(scores);
        let sets = self.decode(&scores);
        let scores = match most {
            Some(most) => scores.keep_best(most),
            None => scores,
        };
        Decoded { scores, sets }
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
        let allowed = |entry: &(LabelId, f32)| self.filter.allows(entry.0);
        let (filtered, coherent);
        let mut row = row;
        if !self.filter.allows_all() {
            filtered = row.iter().copied().filter(allowed).collect::<Vec<_>>();
            row = &filtered;
        }
        if self.coherence {
            let mut lifted = space.lift(row, &[]);
            lifted.retain(allowed);
            lifted.sort_unstable_by(by_rank);
            coherent = lifted;
            row = &coherent;
        }
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
                closed.retain(allowed);
                closed.sort_unstable_by(by_rank);
                closed
            }
            ClosureRule::Prune => {
                space.prune(&mut chosen, &self.filter);
                chosen
            }
        }
    }
}

#[cfg(test)]
mod tests;
