//! Orders of the labels for models that emit them one after the other.

use super::LabelCounts;
use super::{LabelId, Taxonomy};

impl Taxonomy {
    /// Depth first from the root: a label, then everything below it, then its next sibling. A label with several
    /// parents comes once, after the first of them.
    #[must_use]
    pub fn depth_first(&self) -> Vec<LabelId> {
        let mut seen = vec![false; self.n_labels()];
        let mut order = Vec::with_capacity(self.n_labels());
        let mut stack: Vec<LabelId> = self.roots().iter().rev().copied().collect();
        while let Some(label) = stack.pop() {
            if std::mem::replace(&mut seen[label.index()], true) {
                continue;
            }
            order.push(label);
            stack.extend(self.children(label).iter().rev().filter(|child| !seen[child.index()]));
        }
        order
    }

    /// Most frequent first; ties in topological order. A label without a count counts 0.
    #[must_use]
    pub fn by_frequency(&self, counts: &LabelCounts) -> Vec<LabelId> {
        let mut order: Vec<LabelId> = self.labels().collect();
        order.sort_by_key(|label| std::cmp::Reverse(counts.counts.get(label.index()).copied().unwrap_or(0)));
        order
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::taxonomy::LabelSet;
    use crate::taxonomy::strategies::{build, chain, dag};

    fn ids<'a>(taxonomy: &'a Taxonomy, labels: &[LabelId]) -> Vec<&'a str> {
        labels.iter().map(|&label| taxonomy.id(label)).collect()
    }

    #[test]
    fn depth_first_finishes_a_branch_before_the_next() {
        let taxonomy = build(&[
            (None, "a"),
            (None, "b"),
            (Some("a"), "a1"),
            (Some("a"), "a2"),
            (Some("a1"), "deep"),
            (Some("b"), "deep"),
            (Some("b"), "b1"),
        ]);
        assert_eq!(ids(&taxonomy, &taxonomy.depth_first()), ["a", "a1", "deep", "a2", "b", "b1"]);
    }

    #[test]
    fn a_deep_chain_needs_no_recursion() {
        let taxonomy = chain(100_000);
        assert_eq!(taxonomy.depth_first(), taxonomy.labels().collect::<Vec<_>>());
    }

    #[test]
    fn frequency_order_is_descending_with_ties_in_topological_order() {
        let taxonomy = build(&[(None, "a"), (None, "b"), (None, "c"), (None, "d")]);
        let counts = LabelCounts { n_documents: 9, counts: vec![1, 5, 5] };
        assert_eq!(ids(&taxonomy, &taxonomy.by_frequency(&counts)), ["b", "c", "a", "d"]);
    }

    proptest! {
        #[test]
        fn depth_first_has_every_label_once(taxonomy in dag()) {
            let order = taxonomy.depth_first();
            prop_assert_eq!(order.len(), taxonomy.n_labels());
            prop_assert_eq!(order.into_iter().collect::<LabelSet>().len(), taxonomy.n_labels());
        }
    }
}
