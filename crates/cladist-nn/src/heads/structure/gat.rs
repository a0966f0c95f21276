//! Hierarchy-GAT: graph attention between labels and their parents and children (Veličković et al. 2018, in the place of
//! the gated convolution of [`super::gcn`]).
//!
//! One layer, for label i with N(i) its parents, its children and itself, in each of several attention heads:
//! ```text
//! α_ij = softmax over j of LeakyReLU(a·[W·h_i; W·h_j])      slope .2 below 0
//! h'_i = ELU(Σ over j in N(i) of α_ij·W·h_j)
//! ```
//! Heads are put side by side, so that what comes out is as wide as what went in.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use cladist_kernels::graph::Edges;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use super::Propagation;
use super::config::{of_all_levels, propagating};
use super::{Drops, Layer, Nodes, Variant};
use crate::blocks::Matrix;
use crate::error::Result;
use crate::fused::attend_along;
use crate::heads::settings::setting;
use crate::heads::{HeadConfig, HeadContext, Pool};

/// One line of help.
pub const ABOUT: &str = "message passing along the hierarchy by graph attention (GAT)";

/// The slope of LeakyReLU below 0.
const LEAK: f64 = 0.2;

propagating! {
    /// Settings of the hierarchy-gat head.
    HierarchyGatConfig of "hierarchy-gat", recursive_regularisation = 1e-6 {
        /// What is propagated: `text-propagation` or `label-attention`.
        variant: Variant = Variant::default(),
        /// Attention heads of a layer.
        heads: usize = 4,
    }
}

impl HeadConfig for HierarchyGatConfig {
    type Head = Propagation;

    of_all_levels!();

    fn pooled(&self) -> bool {
        self.variant.reads(self.pool) == Pool::Pooled
    }

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Propagation> {
        let graph = self.graph(self.variant)?;
        let Self { heads, node_size, node_dropout, .. } = *self;
        if heads == 0 || !node_size.is_multiple_of(heads) {
            return Err(setting("hierarchy-gat.heads", "a divisor of `hierarchy-gat.node_size`", heads));
        }
        let random = &mut ChaCha8Rng::seed_from_u64(context.seed);
        let layer = |nodes: &Nodes, random: &mut ChaCha8Rng| {
            Layer::Gat(GraphAttention::new(nodes, [node_size, heads], node_dropout, random, context.device))
        };
        Propagation::new(context, &graph, layer, random)
    }
}

/// The layer.
#[derive(Module, Debug)]
pub struct GraphAttention {
    /// W of all attention heads, one below the other.
    values: Matrix,
    /// a of each attention head, for the query label and for the key label.
    looking: Matrix,
    seen: Matrix,
    #[module(skip)]
    edges: Arc<Edges>,
    #[module(skip)]
    dropout: f64,
}

/// Edges both ways and from every label to itself, by target.
fn both_ways(down: &Edges) -> Edges {
    let n = down.n_sources as u32;
    let mut pairs: Vec<(u32, u32)> = (0..n).map(|label| (label, label)).collect();
    for (&parent, &child) in down.sources.iter().zip(&down.targets) {
        pairs.extend([(parent, child), (child, parent)]);
    }
    pairs.sort_unstable();
    let (targets, sources) = pairs.into_iter().unzip();
    Edges { sources, targets, n_sources: down.n_sources, n_targets: down.n_targets }
}

impl GraphAttention {
    pub(super) fn new(
        nodes: &Nodes,
        [width, heads]: [usize; 2],
        dropout: f64,
        random: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        Self {
            values: Matrix::new(width, width, random, device),
            looking: Matrix::new(width / heads, heads, random, device),
            seen: Matrix::new(width / heads, heads, random, device),
            edges: Arc::new(both_ways(&nodes.down)),
            dropout,
        }
    }

    /// `[documents, labels, width]` → the same
    pub(super) fn forward(&self, x: Tensor<3>, drops: Drops, site: u64) -> Tensor<3> {
        let [documents, n_labels, width] = x.dims();
        let [heads, part] = self.looking.weight().dims();
        let rows = self.values.forward(x.reshape([documents * n_labels, width]));
        let by_head = rows.clone().reshape([documents, n_labels, heads, part]);
        let part_of = |weights: &Matrix, nodes: &[u32]| {
            let weights = weights.weight().reshape([1, 1, heads, part]);
            let scores = (by_head.clone() * weights).sum_dim(3).reshape([documents, n_labels, heads]);
            let nodes: Vec<i64> = nodes.iter().map(|&node| i64::from(node)).collect();
            let shape = [nodes.len()];
            scores.select(1, Tensor::<1, Int>::from_data(TensorData::new(nodes, shape), &rows.device()))
        };
        let scores = part_of(&self.looking, &self.edges.targets) + part_of(&self.seen, &self.edges.sources);
        let values = rows.clone().reshape([documents, n_labels, width]);
        let sums = attend_along(values, activation::leaky_relu(scores, LEAK), &self.edges);
        let sums = drops.on(sums.reshape([documents * n_labels, width]), self.dropout, site);
        // e^x − 1 of what is below 0 alone: above it could be infinite.
        let below = -activation::relu(-sums.clone());
        (activation::relu(sums) + below.exp() - 1.0).reshape([documents, n_labels, width])
    }
}

#[cfg(test)]
mod tests {
    use cladist_core::LabelCounts;

    use super::*;
    use crate::parameters::to_vec;
    use crate::toy::{self, Toy};

    #[test]
    fn a_label_is_a_mean_of_its_neighbours_and_of_nothing_else() {
        let device = Device::flex().autodiff();
        let taxonomy = Toy::new(Default::default()).taxonomy;
        let counts = LabelCounts::default();
        let context = toy::context(&taxonomy, &counts, &device);
        let layer = GraphAttention::new(
            &Nodes::new(&context, None),
            [4, 2],
            0.0,
            &mut ChaCha8Rng::seed_from_u64(1),
            &device,
        );
        let n = taxonomy.n_labels();
        let x: Vec<f32> = (0..n * 4).map(|i| (i as f32).cos()).collect();
        let x: Tensor<3> = Tensor::from_data(TensorData::new(x, [1, n, 4]), &device);
        let x = x.require_grad();
        let drops = Drops { seed: None, first: 0, rows: n };
        for label in taxonomy.labels() {
            let out = layer.forward(x.clone(), drops, 0).narrow(1, label.index(), 1);
            assert!(to_vec(out.clone()).iter().all(|value| *value > -1.0 && value.is_finite()));
            let slopes = to_vec(x.grad(&out.powi_scalar(2).sum().backward()).unwrap());
            for other in taxonomy.labels() {
                let is_near = other == label
                    || taxonomy.parents(label).contains(&other)
                    || taxonomy.children(label).contains(&other);
                let moves = slopes[other.index() * 4..][..4].iter().any(|slope| *slope != 0.0);
                assert_eq!(moves, is_near, "{} {}", taxonomy.id(label), taxonomy.id(other));
            }
        }
    }
}
