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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::taxonomy::strategies::{chain, dag, diamond};

    #[test]
    fn ancestors_come_through_every_parent() {
        let taxonomy = diamond();
        let bottom = taxonomy.get("bottom").unwrap();
        assert_eq!(taxonomy.close_upward(&[bottom]).len(), 4);
        let left = taxonomy.get("left").unwrap();
        assert_eq!(&*taxonomy.close_downward(&[left]), &[left, bottom]);
    }

    #[test]
    fn scratch_space_is_clean_for_every_set() {
        let taxonomy = diamond();
        let mut closure = Closure::new(&taxonomy);
        closure.round = u32::MAX - 1;
        for label in taxonomy.labels() {
            assert_eq!(closure.upward(&[label]), taxonomy.close_upward(&[label]));
            assert!(closure.upward(&[]).is_empty());
        }
    }

    #[test]
    fn a_deep_chain_is_closed_without_recursion() {
        let taxonomy = chain(100_000);
        let last = taxonomy.labels().next_back().unwrap();
        assert_eq!(taxonomy.close_upward(&[last]).len(), 100_000);
    }

    fn pick(taxonomy: &Taxonomy, picks: &[prop::sample::Index]) -> LabelSet {
        picks.iter().filter_map(|pick| taxonomy.at(pick.index(taxonomy.n_labels()))).collect()
    }

    proptest! {
        #[test]
        fn closures_are_idempotent_and_monotone(
            taxonomy in dag(),
            small in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            more in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let small = pick(&taxonomy, &small);
            let large: LabelSet = small.iter().chain(&pick(&taxonomy, &more)).copied().collect();
            for close in [Taxonomy::close_upward, Taxonomy::close_downward] {
                let closed = close(&taxonomy, &small);
                prop_assert_eq!(&close(&taxonomy, &closed), &closed);
                prop_assert_eq!(closed.intersection_len(&small), small.len());
                prop_assert_eq!(close(&taxonomy, &large).intersection_len(&closed), closed.len());
            }
        }

        #[test]
        fn up_and_down_are_each_others_inverse(taxonomy in dag()) {
            for label in taxonomy.labels() {
                for &above in &taxonomy.close_upward(&[label]) {
                    prop_assert!(taxonomy.close_downward(&[above]).contains(label));
                }
            }
        }
    }
}
