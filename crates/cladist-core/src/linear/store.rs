//! Trained trees on disk: the arrays of [`Forest`] in `model.safetensors`, each under its name there, and
//! `roots`. Everything is checked on reading, so that scoring need not.

use std::path::Path;

use super::forest::Forest;
use crate::error::Result;
use crate::tensors::{self, Array, Arrays};

impl Forest {
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        tensors::write(
            path,
            &[
                ("roots", Array::U32(&self.roots)),
                ("leaf", Array::U32(&self.leaf)),
                ("node_outputs", Array::U64(&self.node_outputs)),
                ("targets", Array::U32(&self.targets)),
                ("bias", Array::F32(&self.bias)),
                ("node_features", Array::U64(&self.node_features)),
                ("features", Array::U32(&self.features)),
                ("feature_weights", Array::U64(&self.feature_weights)),
                ("outputs", Array::U32(&self.outputs)),
                ("weights", Array::F32(&self.weights)),
            ],
        )
    }

    pub(crate) fn read(path: &Path, n_features: usize, n_labels: usize) -> Result<Self> {
        let arrays = Arrays::read(path)?;
        let mut forest = Self::new(n_features, n_labels);
        forest.roots = arrays.u32("roots")?;
        forest.leaf = arrays.u32("leaf")?;
        forest.node_outputs = arrays.u64("node_outputs")?;
        forest.targets = arrays.u32("targets")?;
        forest.bias = arrays.f32("bias")?;
        forest.node_features = arrays.u64("node_features")?;
        forest.features = arrays.u32("features")?;
        forest.feature_weights = arrays.u64("feature_weights")?;
        forest.outputs = arrays.u32("outputs")?;
        forest.weights = arrays.f32("weights")?;
        forest.check().map_err(|reason| arrays.refuse(reason))?;
        drop(arrays);
        forest.index();
        Ok(forest)
    }

    /// Whether the arrays fit together; if not, why.
    fn check(&self) -> Result<(), &'static str> {
        let starts = |starts: &[u64], n: usize, total: usize| {
            starts.len() == n + 1
                && starts.first() == Some(&0)
                && starts.last() == Some(&(total as u64))
                && starts.is_sorted()
        };
        let n_nodes = self.n_nodes();
        if !starts(&self.node_outputs, n_nodes, self.targets.len()) || self.bias.len() != self.targets.len() {
            return Err("its nodes and outputs do not fit together");
        }
        if !starts(&self.node_features, n_nodes, self.features.len()) {
            return Err("its nodes and features do not fit together");
        }
        if !starts(&self.feature_weights, self.features.len(), self.weights.len())
            || self.outputs.len() != self.weights.len()
        {
            return Err("its features and weights do not fit together");
        }
        let ends = self.roots.iter().skip(1).copied().chain([n_nodes as u32]);
        if self.roots.first() != Some(&0)
            || self.roots.iter().zip(ends.clone()).any(|(&root, end)| root >= end)
        {
            return Err("its trees do not fit together");
        }
        for (&root, end) in self.roots.iter().zip(ends) {
            self.check_tree(root as usize, end as usize)?;
        }
        for node in 0..n_nodes {
            let range = self.node_features[node] as usize..self.node_features[node + 1] as usize;
            let features = &self.features[range.clone()];
            if !features.is_sorted_by(|a, b| a < b)
                || features.last().is_some_and(|&feature| feature as usize >= self.n_features)
            {
                return Err("it has features out of order or range");
            }
            let n_outputs = self.targets_of(node).len();
            let weights =
                self.feature_weights[range.start] as usize..self.feature_weights[range.end] as usize;
            if self.outputs[weights].iter().any(|&output| output as usize >= n_outputs) {
                return Err("it has weights for outputs that do not exist");
            }
        }
        Ok(())
    }

    /// Every node of a tree but its root hangs under exactly one earlier node; every label occurs at most once.
    fn check_tree(&self, root: usize, end: usize) -> Result<(), &'static str> {
        let mut hung = vec![false; end - root];
        hung[0] = true;
        let mut seen = vec![false; self.n_labels];
        for node in root..end {
            for &target in self.targets_of(node) {
                let target = target as usize;
                let taken = if self.is_leaf(node) {
                    seen.get_mut(target)
                } else if target > node {
                    hung.get_mut(target - root)
                } else {
                    None
                };
                match taken {
                    Some(taken) if !*taken => *taken = true,
                    _ => return Err("it has a tree that is none"),
                }
            }
        }
        if hung.contains(&false) { Err("it has a tree that is none") } else { Ok(()) }
    }
}
