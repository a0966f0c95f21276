//! The shape of label trees: which labels are together, level by level.

use std::ops::Range;

use rayon::prelude::*;

use super::cluster;
use super::config::{LinearConfig, LinearHead};
use super::matrix::{ColumnPlaces, SparseMatrix};
use super::seed_of;
use crate::error::Result;
use crate::job::Job;

/// A tree over labels. The labels below a node are a range of `order`, and those of its children parts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) order: Vec<u32>,
    /// The root first, then level by level.
    pub(crate) nodes: Vec<ShapeNode>,
}

/// A node of a [`Shape`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeNode {
    /// Where its labels are in `order`.
    pub(crate) labels: Range<usize>,
    /// Its children; empty for a leaf, which decides between labels.
    pub(crate) children: Range<usize>,
}

impl Shape {
    /// One leaf with all labels: one-vs-rest.
    pub(crate) fn flat(labels: Vec<u32>) -> Self {
        let nodes = vec![ShapeNode { labels: 0..labels.len(), children: 0..0 }];
        Self { order: labels, nodes }
    }

    /// Clusters labels (rows of `features`) from the root down, without recursion.
    pub(crate) fn grow(
        features: &SparseMatrix,
        labels: Vec<u32>,
        head: LinearHead,
        config: &LinearConfig,
        seed: u64,
        job: &Job,
    ) -> Result<Self> {
        let (preset_depth, preset_k) = match head {
            LinearHead::Svm => (1, 2),
            LinearHead::Parabel => (20, 2),
            LinearHead::Bonsai => (3, 100),
        };
        let balanced = head == LinearHead::Parabel;
        let (max_depth, k) = (config.max_depth.unwrap_or(preset_depth), config.k.unwrap_or(preset_k));
        let mut shape = Self::flat(labels);
        let mut level = 0..1;
        for _ in 1..max_depth {
            if level.is_empty() {
                break;
            }
            let splits: Vec<Vec<Vec<u32>>> = level
                .clone()
                .into_par_iter()
                .map_init(ColumnPlaces::default, |places, node| {
                    job.cancel.check()?;
                    let labels = &shape.order[shape.nodes[node].labels.clone()];
                    if labels.len() < config.min_branch_size {
                        return Ok(Vec::new());
                    }
                    let seed = seed_of(&[seed, node as u64]);
                    Ok(cluster::split(
                        features,
                        labels,
                        k,
                        balanced,
                        config.cluster_epsilon,
                        seed,
                        places,
                        &job.cancel,
                    ))
                })
                .collect::<Result<_>>()?;
            let next = shape.nodes.len();
            for (node, clusters) in level.zip(splits) {
                if clusters.len() < 2 {
                    continue;
                }
                let first = shape.nodes.len();
                let mut start = shape.nodes[node].labels.start;
                for cluster in clusters {
                    let end = start + cluster.len();
                    shape.order[start..end].copy_from_slice(&cluster);
                    shape.nodes.push(ShapeNode { labels: start..end, children: 0..0 });
                    start = end;
                }
                shape.nodes[node].children = first..shape.nodes.len();
            }
            level = next..shape.nodes.len();
        }
        Ok(shape)
    }

    /// The labels below each output of a node: its children, or its labels one by one.
    pub(crate) fn outputs(&self, node: usize) -> Vec<&[u32]> {
        let ShapeNode { labels, children } = &self.nodes[node];
        if children.is_empty() {
            self.order[labels.clone()].chunks(1).collect()
        } else {
            self.nodes[children.clone()].iter().map(|child| &self.order[child.labels.clone()]).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(n: u32) -> SparseMatrix {
        let rows: Vec<_> = (0..n).map(|row| vec![(row % 5, 0.8), (5 + row % 3, 0.6)]).collect();
        SparseMatrix::from_rows(&rows, 8)
    }

    fn grow(n: u32, head: LinearHead, config: &LinearConfig) -> Shape {
        Shape::grow(&features(n), (0..n).collect(), head, config, 7, &Job::silent()).unwrap()
    }

    #[test]
    fn halves_go_on_until_nodes_are_small() {
        let config = LinearConfig { min_branch_size: 10, ..LinearConfig::default() };
        let shape = grow(40, LinearHead::Parabel, &config);
        let leaves: Vec<_> = shape.nodes.iter().filter(|node| node.children.is_empty()).collect();
        assert!(leaves.iter().all(|leaf| leaf.labels.len() == 5), "{shape:?}");
        assert_eq!(leaves.len(), 8);
        assert_eq!(shape.outputs(0).len(), 2);
        assert_eq!(shape.outputs(shape.nodes.len() - 1).len(), 5);
        let mut order = shape.order.clone();
        order.sort_unstable();
        assert_eq!(order, (0..40).collect::<Vec<_>>());
    }

    #[test]
    fn depth_and_arity_follow_the_head_unless_set() {
        let small = LinearConfig { min_branch_size: 2, ..LinearConfig::default() };
        let depth = |shape: &Shape| {
            let mut depth = vec![1; shape.nodes.len()];
            for (node, ShapeNode { children, .. }) in shape.nodes.iter().enumerate() {
                for child in children.clone() {
                    depth[child] = depth[node] + 1;
                }
            }
            depth.into_iter().max().unwrap()
        };
        assert_eq!(depth(&grow(40, LinearHead::Svm, &small)), 1);
        assert!(depth(&grow(40, LinearHead::Bonsai, &small)) <= 3);
        let shallow = LinearConfig { max_depth: Some(2), ..small.clone() };
        assert_eq!(depth(&grow(40, LinearHead::Parabel, &shallow)), 2);
        let four = LinearConfig { max_depth: Some(2), k: Some(4), ..small };
        assert!((3..=4).contains(&grow(40, LinearHead::Bonsai, &four).outputs(0).len()));
    }

    #[test]
    fn one_label_or_none_is_one_leaf() {
        for n in [0, 1] {
            let shape =
                grow(n, LinearHead::Parabel, &LinearConfig { min_branch_size: 2, ..LinearConfig::default() });
            assert_eq!(shape.nodes.len(), 1);
            assert_eq!(shape.outputs(0).len(), n as usize);
        }
    }

    #[test]
    fn thousands_of_labels_end_in_small_leaves() {
        let row = |label: u32| {
            let word = |n: u32| label.wrapping_mul(2_654_435_761).wrapping_add(n.wrapping_mul(40_503)) >> 12;
            let topic = label / 100;
            let mut columns: Vec<u32> = (0..15).map(|n| (topic * 15 + n) % 100_000).collect();
            columns.extend((0..15).map(|n| word(n) % 100_000));
            columns.sort_unstable();
            columns.dedup();
            let value = (columns.len() as f32).sqrt().recip();
            columns.into_iter().map(move |column| (column, value))
        };
        let mut features = SparseMatrix::new(100_000);
        for label in 0..20_000 {
            features.push_row(row(label));
        }
        let labels = (0..20_000).collect();
        let config = LinearConfig::default();
        let shape = Shape::grow(&features, labels, LinearHead::Parabel, &config, 7, &Job::silent()).unwrap();
        assert!(
            shape.nodes.iter().filter(|node| node.children.is_empty()).all(|leaf| leaf.labels.len() < 100)
        );
        assert_eq!(
            shape
                .nodes
                .iter()
                .filter(|node| node.children.is_empty())
                .map(|leaf| leaf.labels.len())
                .sum::<usize>(),
            20_000
        );
    }
}
