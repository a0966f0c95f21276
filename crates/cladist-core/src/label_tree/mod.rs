//! Label trees: labels that occur in similar documents are together, level by level.
//!
//! Features of labels come from the documents they occur in; a tree is grown from the root down by clustering them, and
//! its leaves are a [`Partition`] of the labels. Parabel, Bonsai and shortlists on encoders all use these trees.

mod cluster;
mod features;
mod partition;

use std::ops::Range;

use rayon::prelude::*;

use crate::error::Result;
use crate::job::Job;
use crate::seeds::seed_of;
use crate::sparse::{ColumnPlaces, SparseMatrix};

pub use features::label_features;
pub use partition::{Partition, PartitionConfig};

/// How labels are clustered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeConfig {
    /// Clusters that a node is split into.
    pub k: usize,
    /// Whether halves are of equal size; without effect unless `k` is 2.
    pub balanced: bool,
    /// Nodes with fewer labels are not split.
    pub min_split: usize,
    /// Levels at most, that of the labels counted.
    pub max_depth: usize,
    /// Clustering stops when the mean similarity to the own centre grows by less.
    pub epsilon: f32,
}

impl Default for TreeConfig {
    fn default() -> Self {
        Self { k: 2, balanced: true, min_split: 100, max_depth: 20, epsilon: 1e-4 }
    }
}

/// A tree over labels. The labels below a node are a range of `order`, and those of its children parts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelTree {
    /// All labels.
    pub order: Vec<u32>,
    /// The root first, then level by level.
    pub nodes: Vec<TreeNode>,
}

/// A node of a [`LabelTree`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNode {
    /// Where its labels are in `order`.
    pub labels: Range<usize>,
    /// Its children; empty for a leaf, which decides between labels.
    pub children: Range<usize>,
}

impl LabelTree {
    /// One leaf with all labels: one-vs-rest.
    #[must_use]
    pub fn flat(labels: Vec<u32>) -> Self {
        let nodes = vec![TreeNode { labels: 0..labels.len(), children: 0..0 }];
        Self { order: labels, nodes }
    }

    /// Clusters labels (rows of `features`) from the root down, without recursion. The same features, settings and seed
    /// give the same tree on any number of threads. Beside the features there is a copy of them at most, of the nodes
    /// that are being split.
    pub fn grow(
        features: &SparseMatrix,
        labels: Vec<u32>,
        config: &TreeConfig,
        seed: u64,
        job: &Job,
    ) -> Result<Self> {
        let mut tree = Self::flat(labels);
        let mut level = 0..1;
        for _ in 1..config.max_depth {
            if level.is_empty() {
                break;
            }
            let splits: Vec<Vec<Vec<u32>>> = level
                .clone()
                .into_par_iter()
                .map_init(ColumnPlaces::default, |places, node| {
                    job.cancel.check()?;
                    let labels = &tree.order[tree.nodes[node].labels.clone()];
                    if labels.len() < config.min_split {
                        return Ok(Vec::new());
                    }
                    let seed = seed_of(&[seed, node as u64]);
                    Ok(cluster::split(features, labels, config, seed, places, &job.cancel))
                })
                .collect::<Result<_>>()?;
            let next = tree.nodes.len();
            for (node, clusters) in level.zip(splits) {
                if clusters.len() < 2 {
                    continue;
                }
                let first = tree.nodes.len();
                let mut start = tree.nodes[node].labels.start;
                for cluster in clusters {
                    let end = start + cluster.len();
                    tree.order[start..end].copy_from_slice(&cluster);
                    tree.nodes.push(TreeNode { labels: start..end, children: 0..0 });
                    start = end;
                }
                tree.nodes[node].children = first..tree.nodes.len();
            }
            level = next..tree.nodes.len();
        }
        Ok(tree)
    }

    /// The labels below each output of a node: its children, or its labels one by one.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn outputs(&self, node: usize) -> Vec<&[u32]> {
        let TreeNode { labels, children } = &self.nodes[node];
        if children.is_empty() {
            self.order[labels.clone()].chunks(1).collect()
        } else {
            self.nodes[children.clone()].iter().map(|child| &self.order[child.labels.clone()]).collect()
        }
    }

    /// The leaves in the order of their labels.
    #[must_use]
    pub fn leaves(&self) -> Vec<&TreeNode> {
        let mut leaves: Vec<&TreeNode> = self.nodes.iter().filter(|node| node.children.is_empty()).collect();
        leaves.sort_unstable_by_key(|leaf| leaf.labels.start);
        leaves
    }
}

#[cfg(test)]
mod tests;
