//! Hierarchy-GCN: gated graph convolution between labels and their parents and children (HiAGM, Zhou et al. 2020).
//!
//! One layer, for label k:
//! ```text
//! below_k = Σ over children c of a_kc·x_c + b_k        a starts at 1
//! above_k = Σ over parents p of r_kp·x_p + b'_k        r starts at the share of k among the children of p
//! g_1 = σ(w_1·x_k + β_k)   g_2 = σ(w_2·x_k + β'_k)   g_3 = σ(w_3·x_k)
//! y_k = ReLU(drop(g_1·below_k) + drop(g_2·above_k) + drop(g_3·x_k))
//! ```
//! Weights exist on edges alone. Shares come from training documents, not from dev ones too. Dropout before the output is on
//! features; the released code has it on logits, half of which it sets to 0.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData, activation};
use cladist_kernels::graph::Edges;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use super::Propagation;
use super::config::{of_all_levels, propagating};
use super::{Drops, Layer, Nodes, Variant};
use crate::blocks::Matrix;
use crate::error::Result;
use crate::fused::sum_along;
use crate::heads::{HeadConfig, HeadContext, Pool};
use crate::random::xavier;

/// One line of help.
pub const ABOUT: &str = "message passing along the hierarchy by gated graph convolution (HiAGM)";

propagating! {
    /// Settings of the hierarchy-gcn head.
    HierarchyGcnConfig of "hierarchy-gcn", recursive_regularisation = 1e-6 {
        /// What is propagated: `text-propagation` or `label-attention`.
        variant: Variant = Variant::default(),
    }
}

impl HeadConfig for HierarchyGcnConfig {
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
        let random = &mut ChaCha8Rng::seed_from_u64(context.seed);
        let layer = GraphConvolution::layer(self.node_size, self.node_dropout, context.device);
        Propagation::new(context, &self.graph(self.variant)?, layer, random)
    }
}

/// The layer.
#[derive(Module, Debug)]
pub struct GraphConvolution {
    /// a and r of each edge, if there are edges.
    below: Option<Param<Tensor<1>>>,
    above: Option<Param<Tensor<1>>>,
    /// b and b' of all labels, end to end.
    below_bias: Param<Tensor<1>>,
    above_bias: Param<Tensor<1>>,
    /// w₁, w₂ and w₃.
    gates: Matrix,
    /// β and β' of each label.
    gate_bias: Param<Tensor<1>>,
    #[module(skip)]
    up: Arc<Edges>,
    #[module(skip)]
    down: Arc<Edges>,
    #[module(skip)]
    dropout: f64,
}

impl GraphConvolution {
    /// Makes layers of this kind.
    pub(super) fn layer(
        width: usize,
        dropout: f64,
        device: &Device,
    ) -> impl FnMut(&Nodes, &mut ChaCha8Rng) -> Layer {
        move |nodes: &Nodes, random: &mut ChaCha8Rng| {
            Layer::Gcn(Self::new(nodes, width, dropout, random, device))
        }
    }

    pub(super) fn new(
        nodes: &Nodes,
        width: usize,
        dropout: f64,
        random: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        let (n_labels, down) = (nodes.len(), &nodes.down);
        let on_edges = |weights: Vec<f32>| (!down.is_empty()).then(|| vector(weights, device));
        let gates: Vec<f32> = (0..3).flat_map(|_| xavier(1, width, random)).collect();
        let gates = Tensor::from_data(TensorData::new(gates, [3, width]), device);
        Self {
            below: on_edges(vec![1.0; down.len()]),
            above: on_edges(nodes.priors.clone()),
            below_bias: vector(vec![0.0; n_labels * width], device),
            above_bias: vector(vec![0.0; n_labels * width], device),
            gates: Matrix::of(gates, device),
            gate_bias: vector(vec![0.0; n_labels * 2], device),
            up: Arc::clone(&nodes.up),
            down: Arc::clone(down),
            dropout,
        }
    }

    /// `[documents, labels, width]` → the same
    pub(super) fn forward(&self, x: Tensor<3>, drops: Drops, site: u64) -> Tensor<3> {
        let [documents, n_labels, width] = x.dims();
        let shape = [documents * n_labels, width];
        let of_labels = |values: &Param<Tensor<1>>, width: usize| values.val().reshape([1, n_labels, width]);
        let along = |edges: &Arc<Edges>, weights: &Option<Param<Tensor<1>>>, bias: &Param<Tensor<1>>| {
            let bias = of_labels(bias, width);
            let sums = match weights {
                Some(weights) => sum_along(x.clone(), weights.val(), edges) + bias,
                None => bias.repeat_dim(0, documents),
            };
            sums.reshape(shape)
        };
        let below = along(&self.up, &self.below, &self.below_bias);
        let above = along(&self.down, &self.above, &self.above_bias);
        let x = x.reshape(shape);
        let bias = of_labels(&self.gate_bias, 2);
        let bias = Tensor::cat(vec![bias.clone(), bias.narrow(2, 0, 1).zeros_like()], 2);
        let gates = self.gates.forward(x.clone()).reshape([documents, n_labels, 3]) + bias;
        let gates = activation::sigmoid(gates).reshape([documents * n_labels, 3]);
        let through = |gate: usize, x: Tensor<2>| {
            drops.on(gates.clone().narrow(1, gate, 1) * x, self.dropout, site + gate as u64)
        };
        let sum = through(0, below) + through(1, above) + through(2, x);
        activation::relu(sum).reshape([documents, n_labels, width])
    }
}

/// A parameter of one dimension, which does not decay.
pub(super) fn vector(values: Vec<f32>, device: &Device) -> Param<Tensor<1>> {
    let shape = [values.len()];
    Param::from_data(TensorData::new(values, shape), device)
}
