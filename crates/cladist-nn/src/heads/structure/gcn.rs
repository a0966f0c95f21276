//! Hierarchy-GCN: features of labels travel between parents and children through gates (HiAGM, Zhou et al. 2020).
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
use serde::{Deserialize, Serialize};

pub use super::Propagation;
use super::propagation::Settings;
use super::{Drops, Form, Layer, Nodes, Variant, check_rates, check_sizes, check_weight};
use crate::blocks::Matrix;
use crate::error::Result;
use crate::fused::sum_along;
use crate::heads::{HeadConfig, HeadContext, Masking, Pool};
use crate::losses::Loss;
use crate::random::xavier;

/// One line of help.
pub const ABOUT: &str = "features of labels travel along the hierarchy through gates (HiAGM)";

/// Settings of the hierarchy-gcn head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HierarchyGcnConfig {
    /// What travels: `text-propagation` or `label-attention`.
    pub variant: Variant,
    /// `full` has weights of every label on the features of all, `small` on its own; `auto` is `full` up to 200 labels.
    pub form: Form,
    /// The document vector of text propagation: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Layers on top of each other.
    pub layers: usize,
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

impl Default for HierarchyGcnConfig {
    fn default() -> Self {
        Self {
            variant: Variant::default(),
            form: Form::default(),
            pool: Pool::default(),
            layers: 1,
            node_size: 300,
            dropout: 0.1,
            node_dropout: 0.05,
            output_dropout: 0.1,
            recursive_regularisation: 1e-6,
            loss: Loss::default(),
        }
    }
}

impl HeadConfig for HierarchyGcnConfig {
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
            node_size,
            dropout,
            node_dropout,
            output_dropout,
            recursive_regularisation,
            loss,
        } = *self;
        check_sizes(&[("hierarchy-gcn.layers", layers), ("hierarchy-gcn.node_size", node_size)])?;
        check_rates(&[
            ("hierarchy-gcn.dropout", dropout),
            ("hierarchy-gcn.node_dropout", node_dropout),
            ("hierarchy-gcn.output_dropout", output_dropout),
        ])?;
        check_weight("hierarchy-gcn.recursive_regularisation", recursive_regularisation)?;
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
        let layer = |_| Layer::Gcn(GraphConvolution::new(&nodes, node_size, node_dropout, random, device));
        let layers = (0..layers).map(layer).collect();
        Propagation::new(context, &settings, nodes, layers, random)
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
