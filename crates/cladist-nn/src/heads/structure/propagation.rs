//! Node features, graph layers, and an output per label: what the heads with graph layers share.
//!
//! *Text propagation* makes node features X of the document vector t, and classifies after message passing:
//! ```text
//! X = drop(t·W + b), a part for each label        X_k = drop(t·W + b + u_k)      in the small form
//! Y = layers(X)
//! z = W_c·drop(all of Y) + b_c                    z_k = w_k·drop(Y_k) + b_k      in the small form
//! ```
//! *Label attention* passes messages between label embeddings E instead, without the document; with F = layers(drop(E)) and R the
//! token states projected to the width of E, label-wise attention gives y_k = softmax(F_k·Rᵀ)·R, and z of y as above.

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::config::{Common, GraphSettings};
use super::gat::GraphAttention;
use super::gcn::GraphConvolution;
use super::{Drops, Nodes};
use crate::blocks::{Linear, Matrix};
use crate::encoder::LayerSet;
use crate::error::Result;
use crate::fused::by_rows;
use crate::heads::label_attention::{answer, labels_at_once, seen, select, weights};
use crate::heads::label_pooling::normal_matrix;
use crate::heads::per_label::by_logits;
use crate::heads::settings::check_matrix;
use crate::heads::{DocumentVector, Group, Head, HeadContext, HeadInput, Labelwise, Moment, Objective, Pool};

/// Places of dropouts: the features, then some for each layer, then the output.
const START: u64 = 0;
const OUTPUT: u64 = 1;
const LAYERS: u64 = 8;
const OF_A_LAYER: u64 = 8;

/// What is propagated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Node features made of the document vector.
    #[default]
    TextPropagation,
    /// Label embeddings, which are then the queries of label-wise attention over the tokens.
    LabelAttention,
}

impl Variant {
    /// The document vector that is read where `pool` is set; label attention reads all tokens.
    pub(super) fn reads(self, pool: Pool) -> Pool {
        match self {
            Self::TextPropagation => pool,
            Self::LabelAttention => Pool::Mean,
        }
    }
}

/// What node features are made of.
#[derive(Module, Debug)]
pub enum Start {
    /// A projection of the document vector for each label.
    Full(Linear),
    /// One projection of the document vector, and an embedding of each label.
    Small(Shared),
    /// Label embeddings, and the projection of token states to their width.
    Labels(Shared),
}

/// One projection for all labels, and an embedding of each.
#[derive(Module, Debug)]
pub struct Shared {
    projection: Linear,
    labels: Matrix,
}

/// A layer of message passing.
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "a head has few")]
pub enum Layer {
    /// Gated graph convolution.
    Gcn(GraphConvolution),
    /// Graph attention.
    Gat(GraphAttention),
}

impl Layer {
    fn forward(&self, x: Tensor<3>, drops: Drops, site: u64) -> Tensor<3> {
        match self {
            Self::Gcn(layer) => layer.forward(x, drops, site),
            Self::Gat(layer) => layer.forward(x, drops, site),
        }
    }
}

/// Everything between the document and the logits.
#[derive(Module, Debug)]
pub struct Structure {
    start: Start,
    layers: Vec<Layer>,
    output: Linear,
    #[module(skip)]
    nodes: Arc<Nodes>,
    #[module(skip)]
    shape: Shape,
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    width: usize,
    full: bool,
    dropout: f64,
    output_dropout: f64,
}

impl Structure {
    fn pass(&self, x: Tensor<2>, drops: Drops) -> Tensor<3> {
        let Shape { width, dropout, .. } = self.shape;
        let documents = x.dims()[0] / drops.rows.max(1);
        let x = drops.on(x, dropout, START).reshape([documents, drops.rows, width]);
        let layers = (LAYERS..).step_by(OF_A_LAYER as usize).zip(&self.layers);
        layers.fold(x, |x, (site, layer)| layer.forward(x, drops, site))
    }

    fn drops(&self, seed: Option<u64>, first: usize) -> Drops {
        Drops { seed, first, rows: self.nodes.len() }
    }

    /// Y from document vectors: `[documents, hidden]` → `[documents, nodes, width]`.
    pub(super) fn features(&self, vectors: Tensor<2>, seed: Option<u64>, first: usize) -> Tensor<3> {
        let (n_nodes, width) = (self.nodes.len(), self.shape.width);
        let [documents, _] = vectors.dims();
        let x = match &self.start {
            Start::Full(linear) => linear.forward(vectors).reshape([documents * n_nodes, width]),
            Start::Small(shared) | Start::Labels(shared) => {
                let of_document = shared.projection.forward(vectors).unsqueeze_dim::<3>(1);
                let x = of_document + shared.labels.weight().unsqueeze::<3>();
                x.reshape([documents * n_nodes, width])
            }
        };
        self.pass(x, self.drops(seed, first))
    }

    /// z from Y: `[documents, nodes, width]` → `[documents, labels]`.
    pub(super) fn logits(&self, features: Tensor<3>, seed: Option<u64>, first: usize) -> Tensor<2> {
        let Shape { width, full, output_dropout, .. } = self.shape;
        let ([documents, ..], n_nodes) = (features.dims(), self.nodes.len());
        let rows = features.reshape([documents * n_nodes, width]);
        let rows = self.drops(seed, first).on(rows, output_dropout, OUTPUT);
        if full {
            return self.output.forward(rows.reshape([documents, n_nodes * width]));
        }
        let features = self.nodes.answered(rows.reshape([documents, n_nodes, width])).swap_dims(0, 1);
        answer(features, self.output.rows()).transpose()
    }

    /// F and the projection of tokens, with label attention.
    fn labels(&self, seed: Option<u64>) -> Option<(Tensor<2>, &Linear)> {
        let Start::Labels(shared) = &self.start else { return None };
        let labels = self.pass(shared.labels.weight(), self.drops(seed, 0));
        Some((labels.reshape([self.nodes.len(), self.shape.width]), &shared.projection))
    }
}

/// The head.
#[derive(Module, Debug)]
pub struct Propagation {
    pub(super) structure: Structure,
    #[module(skip)]
    labelwise: Labelwise,
    #[module(skip)]
    vector: DocumentVector,
    #[module(skip)]
    layer: usize,
}

impl Propagation {
    /// A new head; `layer` makes each of its graph layers.
    pub(super) fn new(
        context: &HeadContext<'_>,
        settings: &GraphSettings,
        mut layer: impl FnMut(&Nodes, &mut ChaCha8Rng) -> Layer,
        random: &mut ChaCha8Rng,
    ) -> Result<Self> {
        let GraphSettings { common, variant, layers, node_size, node_size_key } = *settings;
        let Common { form, pool, dropout, output_dropout, recursive_regularisation, loss } = common;
        let (hidden, device) = (context.hidden_size, context.device);
        let full = form.is_full(context.taxonomy.n_labels());
        let nodes = Nodes::new(context, (!full).then_some(layers));
        let n_nodes = nodes.len();
        if full {
            check_matrix(node_size_key, node_size, &[n_nodes, node_size, hidden.max(context.n_answered())])?;
        }
        let layers = (0..layers).map(|_| layer(&nodes, &mut *random)).collect();
        let mut shared = || Shared {
            projection: Linear::new(hidden, node_size, random, device),
            // He's deviation, √(2/width).
            labels: normal_matrix(node_size, n_nodes, (2.0 / node_size as f32).sqrt(), random, device),
        };
        let start = match variant {
            Variant::LabelAttention => Start::Labels(shared()),
            Variant::TextPropagation if full => {
                Start::Full(Linear::new(hidden, n_nodes * node_size, random, device))
            }
            Variant::TextPropagation => Start::Small(shared()),
        };
        let width = if full { n_nodes * node_size } else { node_size };
        let output = context.outputs(width, random);
        let shape = Shape { width: node_size, full, dropout, output_dropout };
        Ok(Self {
            structure: Structure { start, layers, output, nodes, shape },
            labelwise: Labelwise::new(context, loss).with_recursive(recursive_regularisation),
            vector: variant.reads(pool).at(context)?,
            layer: context.n_layers,
        })
    }

    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        match self.structure.labels(seed) {
            Some((labels, projection)) => self.attend(input, labels, projection, seed),
            None => self.propagate(self.vector.of(input.documents), seed),
        }
    }

    /// The width of [`Propagation::objective_and_summary`]'s rows.
    pub(super) fn summary_width(&self) -> usize {
        let Shape { width, full, .. } = self.structure.shape;
        if full { self.structure.nodes.len() * width } else { width }
    }

    /// The objective of text propagation and a row for each document: its node features after message passing, all of them or, in
    /// the small form, their mean.
    pub(super) fn objective_and_summary(
        &self,
        input: &HeadInput<'_>,
        gold: &[LabelSet],
        moment: &Moment,
    ) -> (Objective, Tensor<2>) {
        let vectors = self.vector.of(input.documents);
        let [documents, _] = vectors.dims();
        let features = self.structure.features(vectors, moment.seed, 0);
        let logits = self.structure.logits(features.clone(), moment.seed, 0);
        let Structure { nodes, shape, .. } = &self.structure;
        let summary = if shape.full { features } else { nodes.answered(features).mean_dim(1) };
        (self.learn(logits, gold, moment), summary.reshape([documents, self.summary_width()]))
    }

    fn learn(&self, logits: Tensor<2>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let objective = self.labelwise.objective(logits, gold, moment);
        self.labelwise.regularise(objective, [self.structure.output.weight()])
    }

    /// Logits of text propagation, of some documents at a time if there are many labels.
    fn propagate(&self, vectors: Tensor<2>, seed: Option<u64>) -> Tensor<2> {
        let at_once = labels_at_once(self.structure.nodes.len() * self.structure.shape.width);
        let logits = move |first, vectors, structure: &Structure, _: &[Tensor<2>]| {
            structure.logits(structure.features(vectors, seed, first), seed, first)
        };
        if vectors.dims()[0] <= at_once {
            return logits(0, vectors, &self.structure, &[]);
        }
        by_rows(vectors, &self.structure, Vec::new(), at_once, Arc::new(logits))
    }

    /// Logits of label attention, of some labels at a time if each has an output of its own.
    fn attend(
        &self,
        input: &HeadInput<'_>,
        labels: Tensor<2>,
        projection: &Linear,
        seed: Option<u64>,
    ) -> Tensor<2> {
        let documents = input.documents;
        let packing = documents.packing().clone();
        let tokens = projection.forward(documents.packed(self.layer));
        if self.structure.shape.full {
            let seen = seen(labels.unsqueeze_dim(1), tokens.clone(), tokens, &packing, 1, 1.0);
            return self.structure.logits(seen.swap_dims(0, 1), seed, 0);
        }
        let labels = self.structure.nodes.answered(labels.unsqueeze()).squeeze_dim(0);
        let rows = Tensor::cat(vec![labels, self.structure.output.rows()], 1);
        let width = self.structure.shape.width;
        let at_once = labels_at_once(packing.n_sequences() * width.max(packing.longest()));
        let rate = self.structure.shape.output_dropout;
        let work = Arc::new(move |first, rows: Tensor<2>, _: &Vec<Linear>, tokens: &[Tensor<2>]| {
            let queries = rows.clone().narrow(1, 0, width).unsqueeze_dim(1);
            let seen = seen(queries, tokens[0].clone(), tokens[0].clone(), &packing, 1, 1.0);
            let [labels, documents, _] = seen.dims();
            let drops = Drops { seed, first, rows: documents };
            let seen = drops.on(seen.reshape([labels * documents, width]), rate, OUTPUT);
            answer(seen.reshape([labels, documents, width]), rows.narrow(1, width, width + 1))
        });
        by_rows(rows, &Vec::new(), vec![tokens], at_once, work).transpose()
    }
}

impl Head for Propagation {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        self.learn(self.compute(input, moment.seed), gold, moment)
    }

    by_logits!(labelwise, except objective);

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        match self.structure.start {
            // Labels attend over tokens.
            Start::Labels(_) => [self.layer].into_iter().collect(),
            Start::Full(_) | Start::Small(_) => self.vector.layers(),
        }
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.structure.output.outputs())
    }

    fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
        let (queries, projection) = self.structure.labels(None)?;
        let places = labels.iter().map(|&label| self.structure.nodes.place(label));
        let places: Vec<u32> = places.collect::<Option<_>>()?;
        let queries = select(queries, Some(&places)).unsqueeze_dim(1);
        let tokens = projection.forward(input.documents.packed(self.layer));
        Some(weights(queries, tokens, input.documents.packing(), 1, 1.0).squeeze_dim(1))
    }

    fn group(&self, parameter: &str) -> Group {
        if parameter.starts_with("structure.output") { Group::Output } else { Group::Labels }
    }
}
