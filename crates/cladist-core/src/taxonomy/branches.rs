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

    /// The label at the top of each label's branch, one for each: with several parents that of the first. Where one label
    /// stands above all others, branches begin below it.
    #[must_use]
    pub fn tops(&self) -> Vec<LabelId> {
        let mut starts = self.roots();
        while let [only] = starts
            && !self.children(*only).is_empty()
        {
            starts = self.children(*only);
        }
        let mut tops: Vec<LabelId> = Vec::with_capacity(self.n_labels());
        for label in self.labels() {
            let above = self.parents(label).first().map(|parent| tops[parent.index()]);
            tops.push(above.filter(|_| starts.binary_search(&label).is_err()).unwrap_or(label));
        }
        tops
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

    #[test]
    fn every_label_has_one_top_below_what_all_share() {
        let tops = |edges: &[(Option<&str>, &str)]| -> Vec<String> {
            let taxonomy = build(edges);
            let name = |(label, top)| format!("{}<{}", taxonomy.id(top), taxonomy.id(label));
            taxonomy.labels().zip(taxonomy.tops()).map(name).collect()
        };
        let two = [(None, "a"), (None, "b"), (Some("a"), "c"), (Some("b"), "c"), (Some("c"), "d")];
        assert_eq!(tops(&two), ["a<a", "b<b", "a<c", "a<d"]);
        let one = [(None, "r"), (Some("r"), "a"), (Some("r"), "b"), (Some("b"), "c")];
        assert_eq!(tops(&one), ["r<r", "a<a", "b<b", "b<c"]);
        assert_eq!(tops(&[(None, "a"), (Some("a"), "b")]), ["a<a", "b<b"]);
        assert!(tops(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn the_branches_cover_all_labels(taxonomy in dag()) {
            let covered: LabelSet = taxonomy.branches().iter().flatten().copied().collect();
            prop_assert_eq!(covered.len(), taxonomy.n_labels());
        }
    }
}
