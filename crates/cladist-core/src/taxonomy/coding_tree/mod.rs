//! Coding trees: labels in groups of groups, such that a walk along the label graph is cheap to describe.
//!
//! The graph has the edges between labels, without direction and without the root. With `vol` the degrees of a
//! node's labels added up, `cut` the edges that leave them and `V` the volume of the whole graph, a tree has the
//! *structural entropy* `−Σ cut/V · log2(vol / vol of the parent)` over all nodes but the root. A tree of minimal
//! entropy groups labels that hang together (Li and Pan 2016); networks that pass messages along it are those of HiTIN
//! (Zhu et al. 2023), whose greedy construction this is, in near-linear time: at height 2 tie for tie; above it, nodes that hold a single
//! label are numbered by label, and savings that differ by rounding alone are equal.

mod compress;
mod graph;
mod kept;
mod levels;
mod merge;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use kept::CodingTrees;

use super::Taxonomy;
use crate::{Cancel, Result};
use graph::{Graph, Partition};

/// How labels are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodingRule {
    /// As published: merge until nothing is adjacent, then take out the cheapest nodes until the tree is two levels
    /// high. Each level more comes from splitting the lowest groups or from grouping the highest ones, whichever saves
    /// more entropy per node.
    #[default]
    Reference,
    /// Merge only while that lowers the entropy; what is left are the groups. Each level more groups these in turn.
    StopWhenPositive,
}

/// A tree over the labels of a taxonomy, with every label at the same depth.
///
/// Level 0 are the labels, in their order; the last level is the root alone. Nodes of a level are ordered by their
/// first label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct CodingTree {
    parents: Vec<Vec<u32>>,
    entropy: f64,
}

impl CodingTree {
    /// Steps from a label to the root.
    #[must_use]
    pub fn height(&self) -> usize {
        self.parents.len()
    }

    /// Nodes of a level, from 0 (the labels) to the height (the root).
    #[must_use]
    pub fn n_nodes(&self, level: usize) -> usize {
        if level == self.height() { 1 } else { self.parents(level).len() }
    }

    /// For each node of a level, the node above it in the next one; nothing for the root.
    #[must_use]
    pub fn parents(&self, level: usize) -> &[u32] {
        self.parents.get(level).map_or(&[], Vec::as_slice)
    }

    /// The structural entropy, in bits; 0 if no two labels are adjacent.
    #[must_use]
    pub fn structural_entropy(&self) -> f64 {
        self.entropy
    }

    fn new(graph: &Graph, parents: Vec<Vec<u32>>) -> Self {
        let total = graph.volume();
        let mut entropy = 0.0;
        let mut below = graph.clone();
        for (level, groups) in parents.iter().enumerate() {
            let n_groups = parents.get(level + 1).map_or(1, Vec::len);
            let above = below.contract(&Partition { groups: groups.clone(), n_groups });
            entropy += below.entropy_below(|node| above.volumes[groups[node] as usize], total);
            below = above;
        }
        Self { parents, entropy }
    }
}

/// A tree as files have it.
#[derive(Serialize, Deserialize)]
struct Stored {
    parents: Vec<Vec<u32>>,
    /// As text, which comes back to the bit.
    entropy: String,
}

impl From<CodingTree> for Stored {
    fn from(CodingTree { parents, entropy }: CodingTree) -> Self {
        Self { parents, entropy: entropy.to_string() }
    }
}

impl TryFrom<Stored> for CodingTree {
    type Error = &'static str;

    fn try_from(Stored { parents, entropy }: Stored) -> std::result::Result<Self, Self::Error> {
        let sizes = parents.iter().skip(1).map(Vec::len).chain([1]);
        let whole = parents.iter().zip(sizes).all(|(level, n)| level.iter().all(|&node| (node as usize) < n));
        if parents.is_empty() || !whole {
            return Err("a coding tree names a node that it does not have; build it again from the taxonomy");
        }
        let entropy = entropy.parse().map_err(|_| "the entropy of a coding tree is not a number")?;
        Ok(Self { parents, entropy })
    }
}

impl Taxonomy {
    /// The coding tree of a height; a height of 0 counts as 1, which is the root right above the labels.
    ///
    /// With at most two labels there is nothing to group: one node per level, all labels under the lowest.
    pub fn coding_tree(&self, height: usize, rule: CodingRule, cancel: &Cancel) -> Result<CodingTree> {
        cancel.check()?;
        let graph = Graph::of(self);
        let height = height.max(1);
        let parents = match (graph.len(), rule) {
            (..=2, _) => levels::chain(graph.len(), height),
            (_, CodingRule::Reference) => levels::reference(&graph, height, cancel)?,
            (_, CodingRule::StopWhenPositive) => levels::level_by_level(&graph, height, cancel)?,
        };
        Ok(CodingTree::new(&graph, parents))
    }
}
