//! Scores that respect the hierarchy (the max constraint module of C-HMCNN, Giunchiglia and Lukasiewicz 2020).
//!
//! With `D(a)` the label `a` and its descendants, `coherent(a) = max over b in D(a) of score(b)`. Computed from the
//! bottom up over the scored labels and their ancestors only, instead of over all pairs of labels.

use rayon::prelude::*;

use super::filter::LabelFilter;
use crate::scores::Scores;
use crate::taxonomy::{LabelId, Taxonomy};

/// Scores in which a parent's is at least its children's. Ancestors of scored labels get a score too.
///
/// Idempotent; no score becomes smaller.
#[must_use]
pub fn make_coherent(scores: &Scores, taxonomy: &Taxonomy) -> Scores {
    let rows: Vec<_> = (0..scores.len())
        .into_par_iter()
        .with_min_len(256)
        .map_init(|| Workspace::new(taxonomy), |space, document| space.lift(scores.row(document), &[]))
        .collect();
    Scores::from_rows(rows).with_counts(scores.counts().to_vec())
}

/// Reusable scratch space: one entry per label, of which each document touches only a few.
pub(super) struct Workspace<'a> {
    taxonomy: &'a Taxonomy,
    /// The round in which a label was last touched.
    stamp: Vec<u32>,
    /// Valid where the stamp is the current round.
    value: Vec<f32>,
    round: u32,
    found: Vec<LabelId>,
}

impl<'a> Workspace<'a> {
    pub(super) fn new(taxonomy: &'a Taxonomy) -> Self {
        let n = taxonomy.n_labels();
        Self { taxonomy, stamp: vec![0; n], value: vec![0.0; n], round: 0, found: Vec::new() }
    }

    fn begin(&mut self) {
        if self.round == u32::MAX {
            self.stamp.fill(0);
            self.round = 0;
        }
        self.round += 1;
        self.found.clear();
    }

    /// Gives a label a value, unless this round touched it before.
    fn touch(&mut self, label: LabelId, value: f32) {
        if self.stamp[label.index()] != self.round {
            self.stamp[label.index()] = self.round;
            self.value[label.index()] = value;
            self.found.push(label);
        }
    }

    /// Touches all ancestors of the labels found so far.
    fn climb(&mut self, value: f32) {
        let taxonomy = self.taxonomy;
        let mut done = 0;
        while done < self.found.len() {
            for &parent in taxonomy.parents(self.found[done]) {
                self.touch(parent, value);
            }
            done += 1;
        }
    }

    /// `row` and its ancestors, in any order, with each score the largest at or below the label. `known` scores
    /// count too, where they speak of those labels.
    pub(super) fn lift(&mut self, row: &[(LabelId, f32)], known: &[(LabelId, f32)]) -> Vec<(LabelId, f32)> {
        self.begin();
        for &(label, score) in row {
            self.touch(label, score);
        }
        self.climb(f32::NEG_INFINITY);
        for &(label, score) in known {
            if self.stamp[label.index()] == self.round {
                let value = &mut self.value[label.index()];
                *value = value.max(score);
            }
        }
        // Labels are numbered topologically: going down in number, children come before parents.
        self.found.sort_unstable_by(|a, b| b.cmp(a));
        for &label in &self.found {
            let value = self.value[label.index()];
            for parent in self.taxonomy.parents(label) {
                let above = &mut self.value[parent.index()];
                *above = above.max(value);
            }
        }
        self.found.iter().map(|&label| (label, self.value[label.index()])).collect()
    }

    /// Marks the proper ancestors of `labels`, until the next use of the workspace.
    pub(super) fn mark_above(&mut self, labels: impl Iterator<Item = LabelId>) {
        self.begin();
        let taxonomy = self.taxonomy;
        for label in labels {
            for &parent in taxonomy.parents(label) {
                self.touch(parent, 0.0);
            }
        }
        self.climb(0.0);
    }

    pub(super) fn is_marked(&self, label: LabelId) -> bool {
        self.stamp[label.index()] == self.round
    }

    /// Drops labels to which no path of `chosen` labels leads from the root, through labels that may not be answered if
    /// need be; the order stays.
    pub(super) fn prune(&mut self, chosen: &mut Vec<(LabelId, f32)>, filter: &LabelFilter) {
        self.begin();
        let mut ascending: Vec<LabelId> = chosen.iter().map(|&(label, _)| label).collect();
        if !filter.allows_all() {
            ascending.extend(self.dropped_above(&ascending, filter));
            self.begin();
        }
        ascending.sort_unstable();
        for label in ascending {
            let reached = self.taxonomy.is_root_child(label)
                || self.taxonomy.parents(label).iter().any(|&parent| self.is_marked(parent));
            if reached {
                self.touch(label, 0.0);
            }
        }
        chosen.retain(|&(label, _)| self.is_marked(label));
    }

    /// The labels that may not be answered and from which a path of such labels leads down to one of these.
    fn dropped_above(&mut self, labels: &[LabelId], filter: &LabelFilter) -> Vec<LabelId> {
        let taxonomy = self.taxonomy;
        let dropped =
            |label: LabelId| taxonomy.parents(label).iter().copied().filter(|parent| !filter.allows(*parent));
        labels.iter().copied().flat_map(dropped).for_each(|parent| self.touch(parent, 0.0));
        let mut done = 0;
        while done < self.found.len() {
            dropped(self.found[done]).for_each(|parent| self.touch(parent, 0.0));
            done += 1;
        }
        self.found.clone()
    }
}
