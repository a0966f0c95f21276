//! Label vocabularies: immutable, acyclic, topologically numbered.
//!
//! A [`Taxonomy`] is a DAG under an artificial root that is never a label. It is made by a [`Builder`], which
//! checks everything once; after that no operation can fail, and none recurses, so that a chain of 100,000 labels
//! is as safe as a bush.

mod branches;
mod build;
mod closure;
mod coding_tree;
mod cycles;
mod diff;
mod extend;
pub mod io;
mod label_counts;
mod order;
mod path;
mod priors;
mod problem;
mod select;
mod siblings;
mod stats;
#[cfg(test)]
mod strategies;
mod tree;
mod truncate;

pub use branches::{Branch, Branches, Projection};
pub use build::{Builder, Label, OnCycle};
pub use closure::Closure;
pub use coding_tree::{CodingRule, CodingTree, CodingTrees};
pub use diff::{Changed, Diff, Named};
pub use io::{Format, IdStyle, Loaded, ReadOptions, Warning, WriteError, read, read_vocabulary, write};
pub use label_counts::LabelCounts;
pub use priors::Priors;
pub use problem::{Origin, Problem, ProblemKind, Problems};
pub use stats::TaxonomyStats;
pub use tree::{TreeLine, TreeLines};
pub use truncate::{BottomLevels, TopLevels, Truncated};

use std::collections::HashMap;
use std::ops::Deref;

/// A label of one taxonomy: its position in topological order (every parent comes before its children).
///
/// Numbering is by longest path from the root, then by id. In a tree that is by level, then by id. Only a
/// [`Taxonomy`] hands these out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(u32);

impl LabelId {
    /// The position, for indexing arrays of one entry per label.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of labels, in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LabelSet(Vec<LabelId>);

impl LabelSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Whether `label` is in the set, by binary search.
    #[must_use]
    pub fn contains(&self, label: LabelId) -> bool {
        self.0.binary_search(&label).is_ok()
    }

    /// How many labels two sets share.
    #[must_use]
    pub fn intersection_len(&self, other: &Self) -> usize {
        let (mut i, mut j, mut shared) = (0, 0, 0);
        while i < self.0.len() && j < other.0.len() {
            match self.0[i].cmp(&other.0[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => (i, j, shared) = (i + 1, j + 1, shared + 1),
            }
        }
        shared
    }
}

impl Deref for LabelSet {
    type Target = [LabelId];
    fn deref(&self) -> &[LabelId] {
        &self.0
    }
}

impl FromIterator<LabelId> for LabelSet {
    fn from_iter<I: IntoIterator<Item = LabelId>>(labels: I) -> Self {
        let mut labels: Vec<_> = labels.into_iter().collect();
        labels.sort_unstable();
        labels.dedup();
        labels.shrink_to_fit();
        Self(labels)
    }
}

impl<'a> IntoIterator for &'a LabelSet {
    type Item = &'a LabelId;
    type IntoIter = std::slice::Iter<'a, LabelId>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Lists of labels, one list per label, in two flat arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Adjacency {
    starts: Vec<usize>,
    targets: Vec<LabelId>,
}

impl Adjacency {
    fn of(&self, label: LabelId) -> &[LabelId] {
        &self.targets[self.starts[label.index()]..self.starts[label.index() + 1]]
    }

    /// The position of a target in the flat array.
    fn position(&self, from: LabelId, to: LabelId) -> Option<usize> {
        self.of(from).binary_search(&to).ok().map(|place| self.starts[from.index()] + place)
    }
}

/// A vocabulary of labels and their hierarchy: a forest or a DAG.
#[derive(Debug, Clone)]
pub struct Taxonomy {
    labels: Vec<Label>,
    index: HashMap<String, LabelId>,
    parents: Adjacency,
    children: Adjacency,
    /// Shortest distance from the root, from 1.
    levels: Vec<u32>,
    /// Labels of level n, ascending, at position n − 1.
    by_level: Vec<Vec<LabelId>>,
}

impl PartialEq for Taxonomy {
    fn eq(&self, other: &Self) -> bool {
        // The levels tell which labels hang under the root, the one thing parents do not; the rest is derived.
        self.labels == other.labels && self.parents == other.parents && self.levels == other.levels
    }
}

impl Taxonomy {
    /// A vocabulary without hierarchy: every label at level 1. Duplicates are merged.
    pub fn flat<S: Into<String>>(ids: impl IntoIterator<Item = S>) -> Self {
        let mut builder = Builder::new();
        for id in ids {
            builder.label(&id.into(), &Origin::default());
        }
        builder.build_acyclic()
    }

    /// The number of labels; the root is not one.
    #[must_use]
    pub fn n_labels(&self) -> usize {
        self.labels.len()
    }

    /// All labels in topological order.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = LabelId> + DoubleEndedIterator + Clone + use<> {
        (0..self.labels.len() as u32).map(LabelId)
    }

    /// The label with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<LabelId> {
        self.index.get(id).copied()
    }

    /// The label at a position in topological order.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<LabelId> {
        (index < self.labels.len()).then_some(LabelId(index as u32))
    }

    /// The id as written in the vocabulary.
    #[must_use]
    pub fn id(&self, label: LabelId) -> &str {
        &self.labels[label.index()].id
    }

    /// The name people read; the id if the vocabulary has none.
    #[must_use]
    pub fn name(&self, label: LabelId) -> &str {
        let label = &self.labels[label.index()];
        label.name.as_deref().unwrap_or(&label.id)
    }

    /// Everything the vocabulary says of a label but its place.
    #[must_use]
    pub fn label(&self, label: LabelId) -> &Label {
        &self.labels[label.index()]
    }

    /// Direct parents, ascending; empty at level 1 (unless a level-1 label is also below another).
    #[must_use]
    pub fn parents(&self, label: LabelId) -> &[LabelId] {
        self.parents.of(label)
    }

    /// Direct children, ascending.
    #[must_use]
    pub fn children(&self, label: LabelId) -> &[LabelId] {
        self.children.of(label)
    }

    /// Labels directly under the root.
    #[must_use]
    pub fn roots(&self) -> &[LabelId] {
        self.labels_at(1)
    }

    /// Edges on the shortest path from the root: 1 for labels under the root.
    #[must_use]
    pub fn level(&self, label: LabelId) -> usize {
        self.levels[label.index()] as usize
    }

    /// The number of levels, 0 for an empty taxonomy.
    #[must_use]
    pub fn n_levels(&self) -> usize {
        self.by_level.len()
    }

    /// The labels of a level (from 1), ascending; empty if there is no such level.
    #[must_use]
    pub fn labels_at(&self, level: usize) -> &[LabelId] {
        level.checked_sub(1).and_then(|n| self.by_level.get(n)).map_or(&[], Vec::as_slice)
    }

    /// The number of edges between labels; edges from the root do not count.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.parents.targets.len()
    }

    /// Every edge between labels, parent first, ascending.
    pub fn edges(&self) -> impl Iterator<Item = (LabelId, LabelId)> + '_ {
        self.labels().flat_map(|parent| self.children(parent).iter().map(move |&child| (parent, child)))
    }

    /// Whether no label has two parents; the root counts as one.
    #[must_use]
    pub fn is_tree(&self) -> bool {
        self.labels().all(|label| self.parents(label).len() + usize::from(self.is_root_child(label)) <= 1)
    }

    /// Whether the label hangs directly under the root, whatever its other parents.
    #[must_use]
    pub fn is_root_child(&self, label: LabelId) -> bool {
        self.levels[label.index()] == 1
    }
}

impl Eq for Taxonomy {}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_root_edge(rooted: bool) -> Taxonomy {
        let mut builder = Builder::new();
        builder.edge(None, "a", &Origin::default());
        builder.edge(Some("a"), "b", &Origin::default());
        if rooted {
            builder.edge(None, "b", &Origin::default());
        }
        builder.build().unwrap()
    }

    #[test]
    fn a_root_edge_beside_another_parent_makes_a_different_taxonomy() {
        assert_ne!(with_root_edge(true), with_root_edge(false));
        assert_eq!(with_root_edge(true), with_root_edge(true));
        assert!(with_root_edge(false).is_tree());
        assert!(!with_root_edge(true).is_tree());
    }

    #[test]
    fn a_flat_vocabulary_merges_duplicates_and_orders_by_id() {
        let flat = Taxonomy::flat(["b", "a", "b"]);
        let ids: Vec<&str> = flat.labels().map(|label| flat.id(label)).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(flat.roots().len(), 2);
        assert_eq!(flat.at(2), None);
    }

    #[test]
    fn sets_are_ascending_without_duplicates_and_count_what_they_share() {
        let set: LabelSet = [3, 1, 3, 2].into_iter().map(LabelId).collect();
        assert_eq!(&*set, &[LabelId(1), LabelId(2), LabelId(3)]);
        assert!(set.contains(LabelId(2)) && !set.contains(LabelId(4)));
        let other: LabelSet = [0, 2, 3, 9].into_iter().map(LabelId).collect();
        assert_eq!(set.intersection_len(&other), 2);
        assert_eq!(set.intersection_len(&LabelSet::new()), 0);
    }
}
