//! Ancestors and descendants, without a table of all pairs: a chain of n labels would need n² entries.

use super::{LabelId, LabelSet, Taxonomy};

/// Reusable scratch space for closures: linear in what is visited, not in the size of the taxonomy.
#[derive(Debug, Clone)]
pub struct Closure<'a> {
    taxonomy: &'a Taxonomy,
    seen: Vec<u32>,
    round: u32,
}

impl<'a> Closure<'a> {
    /// Scratch space for one taxonomy; keep it when closing many sets.
    #[must_use]
    pub fn new(taxonomy: &'a Taxonomy) -> Self {
        Self { taxonomy, seen: vec![0; taxonomy.n_labels()], round: 0 }
    }

    fn walk(&mut self, start: &[LabelId], next: impl Fn(&'a Taxonomy, LabelId) -> &'a [LabelId]) -> LabelSet {
        if self.round == u32::MAX {
            self.seen.fill(0);
            self.round = 0;
        }
        self.round += 1;
        let mut found = Vec::with_capacity(start.len() * 2);
        for &label in start {
            if std::mem::replace(&mut self.seen[label.index()], self.round) != self.round {
                found.push(label);
            }
        }
        let mut done = 0;
        while done < found.len() {
            for &label in next(self.taxonomy, found[done]) {
                if std::mem::replace(&mut self.seen[label.index()], self.round) != self.round {
                    found.push(label);
                }
            }
            done += 1;
        }
        found.into_iter().collect()
    }

    /// The labels and all their ancestors, through every parent.
    pub fn upward(&mut self, labels: &[LabelId]) -> LabelSet {
        self.walk(labels, Taxonomy::parents)
    }

    /// The labels and all their descendants.
    pub fn downward(&mut self, labels: &[LabelId]) -> LabelSet {
        self.walk(labels, Taxonomy::children)
    }
}

impl Taxonomy {
    /// The labels and all their ancestors. For many sets, keep a [`Closure`].
    #[must_use]
    pub fn close_upward(&self, labels: &[LabelId]) -> LabelSet {
        Closure::new(self).upward(labels)
    }

    /// The labels and all their descendants.
    #[must_use]
    pub fn close_downward(&self, labels: &[LabelId]) -> LabelSet {
        Closure::new(self).downward(labels)
    }
}
