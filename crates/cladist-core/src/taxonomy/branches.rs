//! Splitting a taxonomy into the parts below chosen labels.

use super::{Closure, LabelId, LabelSet, Taxonomy};

impl Taxonomy {
    /// One set per label under the root: itself and everything below. In a DAG they overlap; together they are
    /// all labels.
    #[must_use]
    pub fn branches(&self) -> Vec<LabelSet> {
        self.branches_at(self.roots())
    }

    /// One set per given label: itself and everything below.
    #[must_use]
    pub fn branches_at(&self, tops: &[LabelId]) -> Vec<LabelSet> {
        let mut closure = Closure::new(self);
        tops.iter().map(|&top| closure.downward(&[top])).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::taxonomy::LabelSet;
    use crate::taxonomy::strategies::{build, dag};

    #[test]
    fn a_label_below_two_roots_is_in_both_branches() {
        let taxonomy =
            build(&[(None, "a"), (None, "b"), (Some("a"), "c"), (Some("b"), "c"), (Some("b"), "d")]);
        let branches = taxonomy.branches();
        let ids = |set: &LabelSet| set.iter().map(|&label| taxonomy.id(label)).collect::<Vec<_>>();
        assert_eq!(branches.iter().map(ids).collect::<Vec<_>>(), [vec!["a", "c"], vec!["b", "c", "d"]]);
        let lower = taxonomy.branches_at(&[taxonomy.get("d").unwrap()]);
        assert_eq!(ids(&lower[0]), ["d"]);
    }

    proptest! {
        #[test]
        fn the_branches_cover_all_labels(taxonomy in dag()) {
            let covered: LabelSet = taxonomy.branches().iter().flatten().copied().collect();
            prop_assert_eq!(covered.len(), taxonomy.n_labels());
        }
    }
}
