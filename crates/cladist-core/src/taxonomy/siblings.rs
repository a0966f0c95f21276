//! Labels that share a parent.

use super::{LabelId, LabelSet, Taxonomy};

impl Taxonomy {
    /// The labels that share a parent with `label`, the root included; without itself.
    #[must_use]
    pub fn siblings(&self, label: LabelId) -> LabelSet {
        let roots = if self.is_root_child(label) { self.roots() } else { &[] };
        let below = self.parents(label).iter().flat_map(|&parent| self.children(parent));
        roots.iter().chain(below).copied().filter(|&other| other != label).collect()
    }

    /// The children of each parent that has some: first the root's (without a parent), then in topological order.
    pub fn sibling_sets(&self) -> impl Iterator<Item = (Option<LabelId>, &[LabelId])> {
        let below = self.labels().map(|label| (Some(label), self.children(label)));
        std::iter::once((None, self.roots())).chain(below).filter(|(_, children)| !children.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use crate::taxonomy::strategies::build;

    #[test]
    fn siblings_come_from_every_parent_and_from_the_root() {
        let taxonomy = build(&[
            (None, "a"),
            (None, "b"),
            (Some("a"), "x"),
            (Some("a"), "y"),
            (Some("b"), "x"),
            (Some("b"), "z"),
        ]);
        let siblings = |id: &str| {
            let set = taxonomy.siblings(taxonomy.get(id).unwrap());
            set.iter().map(|&label| taxonomy.id(label)).collect::<Vec<_>>()
        };
        assert_eq!(siblings("x"), ["y", "z"]);
        assert_eq!(siblings("y"), ["x"]);
        assert_eq!(siblings("a"), ["b"]);
    }

    #[test]
    fn sibling_sets_start_at_the_root_and_skip_leaves() {
        let taxonomy = build(&[(None, "a"), (None, "b"), (Some("b"), "c")]);
        let sets: Vec<_> = taxonomy
            .sibling_sets()
            .map(|(parent, set)| (parent.map(|p| taxonomy.id(p)), set.len()))
            .collect();
        assert_eq!(sets, [(None, 2), (Some("b"), 1)]);
    }
}
