//! A part of a taxonomy: some labels dropped, the rest still above and below each other as before.

use super::{Builder, LabelId, LabelSet, Origin, Taxonomy};

impl Taxonomy {
    /// Keeps the labels that `keep` says and hangs under the root those that `rooted` says (and those left without
    /// parents). A label whose parent is dropped comes under the nearest kept labels above it, so that one kept
    /// label is above another exactly if it was before.
    ///
    /// Also returns, for each label of `self`, itself if kept or else the nearest kept labels above it, as labels
    /// of the new taxonomy.
    pub(super) fn select(
        &self,
        keep: impl Fn(LabelId) -> bool,
        rooted: impl Fn(LabelId) -> bool,
    ) -> (Self, Vec<LabelSet>) {
        let here = Origin::default();
        let mut builder = Builder::new();
        let mut nearest: Vec<LabelSet> = Vec::with_capacity(self.n_labels());
        for label in self.labels() {
            let above = match self.parents(label) {
                [parent] => nearest[parent.index()].clone(),
                parents => {
                    parents.iter().flat_map(|parent| nearest[parent.index()].iter().copied()).collect()
                }
            };
            if !keep(label) {
                nearest.push(above);
                continue;
            }
            builder.declare(self.label(label).clone(), &here);
            if rooted(label) {
                builder.edge(None, self.id(label), &here);
            }
            for &parent in &above {
                builder.edge(Some(self.id(parent)), self.id(label), &here);
            }
            nearest.push([label].into_iter().collect());
        }
        let taxonomy = builder.build_acyclic();
        let new_of: Vec<Option<LabelId>> = self.labels().map(|label| taxonomy.get(self.id(label))).collect();
        for set in &mut nearest {
            *set = set.iter().filter_map(|label| new_of[label.index()]).collect();
        }
        (taxonomy, nearest)
    }

    /// The given labels and all their ancestors, as a taxonomy of its own.
    #[must_use]
    pub fn restrict(&self, labels: &[LabelId]) -> Self {
        let kept = self.close_upward(labels);
        self.select(|label| kept.contains(label), |label| self.is_root_child(label)).0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::taxonomy::strategies::{dag, diamond};

    #[test]
    fn restricting_keeps_labels_with_their_ancestors() {
        let taxonomy = diamond();
        let bottom = taxonomy.get("left").unwrap();
        let part = taxonomy.restrict(&[bottom]);
        let ids: Vec<&str> = part.labels().map(|label| part.id(label)).collect();
        assert_eq!(ids, ["top", "left"]);
        assert_eq!(part.level(part.get("left").unwrap()), 2);
    }

    proptest! {
        #[test]
        fn restricting_to_everything_changes_nothing(taxonomy in dag()) {
            let all: Vec<_> = taxonomy.labels().collect();
            prop_assert_eq!(taxonomy.restrict(&all), taxonomy);
        }

        #[test]
        fn restricting_keeps_levels_and_parents(taxonomy in dag(), picks in prop::collection::vec(any::<prop::sample::Index>(), 0..4)) {
            let labels: Vec<_> = picks.iter().filter_map(|pick| taxonomy.at(pick.index(taxonomy.n_labels()))).collect();
            let part = taxonomy.restrict(&labels);
            prop_assert_eq!(part.n_labels(), taxonomy.close_upward(&labels).len());
            for label in part.labels() {
                let old = taxonomy.get(part.id(label)).unwrap();
                prop_assert_eq!(part.level(label), taxonomy.level(old));
                prop_assert_eq!(part.parents(label).len(), taxonomy.parents(old).len());
            }
        }
    }
}
