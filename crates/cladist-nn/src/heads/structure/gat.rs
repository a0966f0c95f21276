//! Hierarchy-GAT: features of labels travel between parents and children by attention (Veličković et al. 2018, in the
//! place of the gates of [`super::gcn`]).
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
use serde::{Deserialize, Serialize};

pub use super::Propagation;
use super::propagation::Settings;
use super::{Drops, Form, Layer, Nodes, Variant, check_rates, check_sizes, check_weight};
use crate::blocks::Matrix;
use crate::error::Result;
use crate::fused::attend_along;
use crate::heads::{HeadConfig, HeadContext, Masking, Pool, setting};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "features of labels travel along the hierarchy by attention (graph attention)";

/// The slope of LeakyReLU below 0.
const LEAK: f64 = 0.2;

/// Settings of the hierarchy-gat head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HierarchyGatConfig {
    /// What travels: `text-propagation` or `label-attention`.
    pub variant: Variant,
    /// `full` has weights of every label on the features of all, `small` on its own; `auto` is `full` up to 200 labels.
    pub form: Form,
    /// The document vector of text propagation: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Layers on top of each other.
    pub layers: usize,
    /// Attention heads of a layer.
    pub heads: usize,
    /// Features of a label.
    pub node_size: usize,
    /// Dropout on the features before they travel.
    pub dropout: f64,
    /// Dropout on what reaches a label.
    pub node_dropout: f64,
    /// Dropout on the features before the output.
    pub output_dropout: f64,
    /// What it costs that outputs of adjacent labels differ.
    pub recursive_regularisation: f64,
    /// What is minimised with any number of labels: `bce`, `f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
}

impl Default for HierarchyGatConfig {
    fn default() -> Self {
        Self {
            variant: Variant::default(),
            form: Form::default(),
            pool: Pool::default(),
            layers: 1,
            heads: 4,
            node_size: 300,
            dropout: 0.1,
            node_dropout: 0.05,
            output_dropout: 0.1,
            recursive_regularisation: 1e-6,
            loss: Loss::default(),
        }
    }
}

impl HeadConfig for HierarchyGatConfig {
    type Head = Propagation;

    fn pooled(&self) -> bool {
        self.pool == Pool::Pooled && self.variant == Variant::TextPropagation
    }

    fn learns_ancestors(&self) -> bool {
        true
    }

    fn masking(&self) -> Masking {
        Masking::Among
    }

    fn fit(&mut self, n_labels: usize) {
        self.form = self.form.of(n_labels);
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Propagation> {
        let Self {
            variant,
            form,
            pool,
            layers,
            heads,
            node_size,
            dropout,
            node_dropout,
            output_dropout,
            recursive_regularisation,
            loss,
        } = *self;
        check_sizes(&[("hierarchy-gat.layers", layers), ("hierarchy-gat.node_size", node_size)])?;
        if heads == 0 || !node_size.is_multiple_of(heads) {
            return Err(setting("hierarchy-gat.heads", "a divisor of `hierarchy-gat.node_size`", heads));
        }
        check_rates(&[
            ("hierarchy-gat.dropout", dropout),
            ("hierarchy-gat.node_dropout", node_dropout),
            ("hierarchy-gat.output_dropout", output_dropout),
        ])?;
        check_weight("hierarchy-gat.recursive_regularisation", recursive_regularisation)?;
        let settings = Settings {
            variant,
            form,
            pool,
            node_size,
            dropout,
            output_dropout,
            recursive_regularisation,
            loss,
        };
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let nodes = settings.nodes(context, layers);
        let (device, random) = (context.device, &mut random);
        let layer =
            |_| Layer::Gat(GraphAttention::new(&nodes, [node_size, heads], node_dropout, random, device));
        let layers = (0..layers).map(layer).collect();
        Propagation::new(context, &settings, nodes, layers, random)
    }
}

/// The layer.
#[derive(Module, Debug)]
pub struct GraphAttention {
    /// W of all attention heads, one below the other.
    values: Matrix,
    /// a of each attention head, for the label that looks and for the one looked at.
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
    use crate::toy::Toy;

    #[test]
    fn a_label_is_a_mean_of_its_neighbours_and_of_nothing_else() {
        let device = Device::flex().autodiff();
        let taxonomy = Toy::new(Default::default()).taxonomy;
        let counts = LabelCounts::default();
        let context = HeadContext {
            taxonomy: &taxonomy,
            only: None,
            label_counts: &counts,
            hidden_size: 4,
            n_layers: 1,
            task: Default::default(),
            label_smoothing: 0.0,
            prior_bias: false,
            labels: None,
            shortlist: None,
            trees: &Default::default(),
            device: &device,
            seed: 1,
        };
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
