//! One way up, for display.

use super::{LabelId, Taxonomy};

impl Taxonomy {
    /// The label, then a parent of it, up to a label under the root: one of the shortest ways, always the same.
    ///
    /// Its length is [`Taxonomy::level`].
    pub fn way_up(&self, label: LabelId) -> impl Iterator<Item = LabelId> + '_ {
        std::iter::successors(Some(label), |&current| {
            // A label of level n > 1 has a parent of level n − 1.
            let above = |parent: &LabelId| self.level(*parent) + 1 == self.level(current);
            self.parents(current).iter().copied().find(above)
        })
    }

    /// All of [`Taxonomy::way_up`].
    #[must_use]
    pub fn path_to_root(&self, label: LabelId) -> Vec<LabelId> {
        self.way_up(label).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::taxonomy::strategies::{build, dag};

    #[test]
    fn the_path_is_a_shortest_one() {
        let taxonomy =
            build(&[(None, "a"), (None, "z"), (Some("a"), "b"), (Some("b"), "c"), (Some("z"), "c")]);
        let path = taxonomy.path_to_root(taxonomy.get("c").unwrap());
        assert_eq!(path.iter().map(|&label| taxonomy.id(label)).collect::<Vec<_>>(), ["c", "z"]);
    }

    proptest! {
        #[test]
        fn a_path_is_as_long_as_the_level_and_ends_under_the_root(taxonomy in dag()) {
            for label in taxonomy.labels() {
                let path = taxonomy.path_to_root(label);
                prop_assert_eq!(path.len(), taxonomy.level(label));
                prop_assert!(taxonomy.is_root_child(*path.last().unwrap()));
                prop_assert!(path.windows(2).all(|pair| taxonomy.parents(pair[0]).contains(&pair[1])));
            }
        }
    }
}
