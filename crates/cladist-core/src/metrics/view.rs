//! What all metrics see of a document, worked out once.

use super::counts::Sets;
use super::options::MetricOptions;
use super::violations::{Counter, Violations};
use crate::error::{Error, Result};
use crate::scores::Scores;
use crate::taxonomy::LabelCounts;
use crate::taxonomy::{Closure, LabelId, LabelSet, Taxonomy};

/// Scores and decoded sets beside the gold they are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// One row per document.
    pub scores: &'a Scores,
    /// The decoded set of each document.
    pub predicted: &'a [LabelSet],
    /// The gold set of each document.
    pub gold: &'a [LabelSet],
    /// The labels all of them speak of.
    pub taxonomy: &'a Taxonomy,
    /// How often labels occur in training; default if unknown.
    pub counts: &'a LabelCounts,
}

impl Judged<'_> {
    /// The number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.gold.len()
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gold.is_empty()
    }

    /// Checks that all parts speak of the same documents and labels.
    pub fn check(&self) -> Result<()> {
        let mismatch = |left, n_left, right, n_right| {
            if n_left == n_right { Ok(()) } else { Err(Error::Mismatch { left, n_left, right, n_right }) }
        };
        mismatch("rows of scores", self.scores.len(), "gold sets", self.gold.len())?;
        mismatch("decoded sets", self.predicted.len(), "gold sets", self.gold.len())?;
        let n_labels = self.taxonomy.n_labels();
        for (sets, place) in [(self.gold, "gold sets"), (self.predicted, "decoded sets")] {
            // Sets are ascending.
            let beyond = sets.iter().filter_map(|set| set.last()).find(|label| label.index() >= n_labels);
            if let Some(label) = beyond {
                return Err(Error::UnknownLabel { place, id: label.index().to_string() });
            }
        }
        if !self.counts.counts.is_empty() {
            mismatch(
                "label counts",
                self.counts.counts.len(),
                "labels in the taxonomy",
                self.taxonomy.n_labels(),
            )?;
        }
        Ok(())
    }

    /// Training documents of a label.
    pub(crate) fn train(&self, label: LabelId) -> u32 {
        self.counts.counts.get(label.index()).copied().unwrap_or(0)
    }

    /// Which labels training saw; where sets are closed, an ancestor of such a label counts as seen.
    pub(crate) fn trained(&self, sets: Sets) -> Vec<bool> {
        let mut trained = vec![false; self.taxonomy.n_labels()];
        for label in self.taxonomy.labels().rev() {
            let below = || self.taxonomy.children(label).iter().any(|child| trained[child.index()]);
            trained[label.index()] = self.train(label) > 0 || (sets != Sets::Plain && below());
        }
        trained
    }
}

/// R-Precision of a document at one level: `hits` of the `gold` labels among as many best-ranked labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LevelHits {
    pub(crate) level: usize,
    pub(crate) hits: u32,
    pub(crate) gold: u32,
}

/// One document.
pub(crate) struct View<'v> {
    pub(crate) ranked: &'v [(LabelId, f32)],
    /// Whether the label at each rank is gold.
    pub(crate) relevant: &'v [bool],
    pub(crate) predicted: &'v LabelSet,
    pub(crate) gold: &'v LabelSet,
    /// Labels both predicted and gold.
    pub(crate) hits: usize,
    /// The predicted labels and their ancestors.
    pub(crate) closed_predicted: LabelSet,
    /// The gold labels and their ancestors.
    pub(crate) closed_gold: LabelSet,
    /// Levels with gold, ascending.
    pub(crate) levels: &'v [LevelHits],
    /// Inverse propensity by label; empty if unknown.
    pub(crate) weights: &'v [f64],
    /// Inverse propensities of the gold labels, descending; empty if unknown.
    pub(crate) ideal: &'v [f64],
    /// Scores against the hierarchy.
    pub(crate) violations: Violations,
}

impl View<'_> {
    /// Gold labels among the `k` best.
    pub(crate) fn hits_at(&self, k: usize) -> usize {
        self.relevant.iter().take(k).filter(|&&relevant| relevant).count()
    }
}

/// Makes views, with scratch space for one taxonomy.
pub(crate) struct Viewer<'a> {
    judged: Judged<'a>,
    weights: &'a [f64],
    /// Labels further down a ranking count as not scored.
    most: usize,
    closure: Closure<'a>,
    /// The document (from 1) of which a label was last gold.
    gold_in: Vec<usize>,
    violations: Counter<'a>,
    /// By level: gold, taken from the ranking, hits.
    by_level: Vec<(u32, u32, u32)>,
    relevant: Vec<bool>,
    levels: Vec<LevelHits>,
    ideal: Vec<f64>,
}

impl<'a> Viewer<'a> {
    /// `weights`: inverse propensity by label, or nothing.
    pub(crate) fn new(judged: &Judged<'a>, weights: &'a [f64], options: &MetricOptions) -> Self {
        let n = judged.taxonomy.n_labels();
        Self {
            judged: *judged,
            weights,
            most: options.top_k(judged.gold.len(), n).unwrap_or(usize::MAX),
            closure: Closure::new(judged.taxonomy),
            gold_in: vec![0; n],
            violations: Counter::new(judged.taxonomy),
            by_level: vec![(0, 0, 0); judged.taxonomy.n_levels() + 1],
            relevant: Vec::new(),
            levels: Vec::new(),
            ideal: Vec::new(),
        }
    }

    /// One document, by number.
    pub(crate) fn view(&mut self, document: usize) -> View<'_> {
        let Judged { scores, predicted, gold, taxonomy, .. } = self.judged;
        let (ranked, predicted, gold) = (scores.row(document), &predicted[document], &gold[document]);
        let ranked = &ranked[..ranked.len().min(self.most)];
        let round = document + 1;

        self.ideal.clear();
        for label in gold {
            self.gold_in[label.index()] = round;
            self.by_level[taxonomy.level(*label)].0 += 1;
            self.ideal.extend(self.weights.get(label.index()));
        }
        self.ideal.sort_unstable_by(|a, b| b.total_cmp(a));

        self.relevant.clear();
        for &(label, _) in ranked {
            let relevant = self.gold_in[label.index()] == round;
            self.relevant.push(relevant);
            let (gold, taken, hits) = &mut self.by_level[taxonomy.level(label)];
            if taken < gold {
                *taken += 1;
                *hits += u32::from(relevant);
            }
        }

        self.levels.clear();
        for label in gold {
            let level = taxonomy.level(*label);
            let (gold, _, hits) = std::mem::take(&mut self.by_level[level]);
            if gold > 0 {
                self.levels.push(LevelHits { level, hits, gold });
            }
        }
        self.levels.sort_unstable_by_key(|at| at.level);

        View {
            ranked,
            relevant: &self.relevant,
            predicted,
            gold,
            hits: predicted.intersection_len(gold),
            closed_predicted: self.closure.upward(predicted),
            closed_gold: self.closure.upward(gold),
            levels: &self.levels,
            weights: self.weights,
            ideal: &self.ideal,
            violations: self.violations.count(ranked),
        }
    }
}
