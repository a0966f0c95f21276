//! Dropping whole levels at the top or at the bottom.

use super::{LabelId, LabelSet, Taxonomy};

/// How many levels to drop below the root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TopLevels(pub usize);

/// How many of the deepest levels to drop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BottomLevels(pub usize);

/// A truncated taxonomy, and where the labels of the whole one went.
#[derive(Debug, Clone, PartialEq)]
pub struct Truncated {
    /// What is left.
    pub taxonomy: Taxonomy,
    /// For each label of the whole taxonomy, by [`LabelId::index`]: itself if kept, else the nearest kept labels
    /// above it. Nothing, if there is none: the fate of dropped top levels.
    pub replacement: Vec<LabelSet>,
}

impl Truncated {
    /// The labels, given in the whole taxonomy, that take the place of a gold set.
    #[must_use]
    pub fn replace(&self, labels: &[LabelId]) -> LabelSet {
        labels.iter().flat_map(|label| self.replacement[label.index()].iter().copied()).collect()
    }
}

impl Taxonomy {
    /// Drops the first `top` levels and the last `bottom` ones. Children of a dropped top level become roots;
    /// labels below the cut are replaced by the nearest kept labels above them.
    ///
    /// A label is dropped by its level, the shortest way from the root. In a DAG a kept label can be below a
    /// dropped one: it comes under the nearest kept labels above, so that nothing kept loses an ancestor that is
    /// kept too.
    #[must_use]
    pub fn truncate(&self, TopLevels(top): TopLevels, BottomLevels(bottom): BottomLevels) -> Truncated {
        let deepest = self.n_levels().saturating_sub(bottom);
        let (taxonomy, replacement) = self.select(
            |label| self.level(label) > top && self.level(label) <= deepest,
            |label| self.level(label) == top.saturating_add(1),
        );
        Truncated { taxonomy, replacement }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::taxonomy::strategies::{build, dag};

    fn ids<'a>(taxonomy: &'a Taxonomy, labels: &[LabelId]) -> Vec<&'a str> {
        labels.iter().map(|&label| taxonomy.id(label)).collect()
    }

    #[test]
    fn gold_labels_below_the_cut_move_to_kept_ancestors() {
        let whole = build(&[(None, "a"), (Some("a"), "b"), (Some("b"), "c"), (Some("c"), "d")]);
        let cut = whole.truncate(TopLevels(0), BottomLevels(2));
        let gold: Vec<LabelId> = whole.labels().collect();
        assert_eq!(ids(&cut.taxonomy, &cut.replace(&gold[3..])), ["b"]);
        assert_eq!(cut.taxonomy.n_labels(), 2);
    }

    #[test]
    fn children_of_a_dropped_top_become_roots_and_the_top_maps_to_nothing() {
        let whole = build(&[(None, "a"), (None, "z"), (Some("a"), "b"), (Some("a"), "c"), (Some("b"), "d")]);
        let cut = whole.truncate(TopLevels(1), BottomLevels(0));
        assert_eq!(ids(&cut.taxonomy, cut.taxonomy.roots()), ["b", "c"]);
        assert!(cut.replace(&[whole.get("a").unwrap(), whole.get("z").unwrap()]).is_empty());
        assert_eq!(cut.taxonomy.level(cut.taxonomy.get("d").unwrap()), 2);
    }

    #[test]
    fn a_label_with_a_dropped_parent_stays_under_what_is_above_it() {
        // `low` is at level 2 by way of `b`, but also below `deep`, which is cut.
        let whole = build(&[
            (None, "a"),
            (None, "b"),
            (Some("a"), "mid"),
            (Some("mid"), "deep"),
            (Some("deep"), "low"),
            (Some("b"), "low"),
        ]);
        let cut = whole.truncate(TopLevels(0), BottomLevels(1)).taxonomy;
        assert_eq!(cut.get("deep"), None);
        assert_eq!(ids(&cut, cut.parents(cut.get("low").unwrap())), ["b", "mid"]);
    }

    #[test]
    fn dropping_every_level_leaves_nothing() {
        let whole = build(&[(None, "a"), (Some("a"), "b")]);
        for cut in [
            whole.truncate(TopLevels(1), BottomLevels(1)),
            whole.truncate(TopLevels(usize::MAX), BottomLevels(usize::MAX)),
        ] {
            assert_eq!(cut.taxonomy.n_labels(), 0);
            assert!(cut.replace(&[whole.roots()[0]]).is_empty());
        }
    }

    proptest! {
        #[test]
        fn truncation_keeps_the_order_above_and_below(whole in dag(), top in 0usize..3, bottom in 0usize..3) {
            let Truncated { taxonomy, replacement } = whole.truncate(TopLevels(top), BottomLevels(bottom));
            for label in taxonomy.labels() {
                prop_assert!(taxonomy.parents(label).iter().all(|&parent| parent < label));
                let old = whole.get(taxonomy.id(label)).unwrap();
                prop_assert_eq!(taxonomy.level(label) + top, whole.level(old));
                prop_assert_eq!(&*replacement[old.index()], &[label]);
                let expected: Vec<&str> = whole.close_upward(&[old]).iter()
                    .map(|&above| whole.id(above)).filter(|id| taxonomy.get(id).is_some()).collect();
                let mut actual = ids(&taxonomy, &taxonomy.close_upward(&[label]));
                actual.sort_by_key(|id| whole.get(id));
                prop_assert_eq!(actual, expected);
            }
            for label in whole.labels().filter(|&label| taxonomy.get(whole.id(label)).is_none()) {
                let above = whole.close_upward(&[label]);
                prop_assert!(replacement[label.index()].iter().all(|&new| above.contains(whole.get(taxonomy.id(new)).unwrap())));
            }
        }

        #[test]
        fn dropping_no_level_changes_nothing(whole in dag()) {
            prop_assert_eq!(whole.truncate(TopLevels(0), BottomLevels(0)).taxonomy, whole);
        }
    }
}
