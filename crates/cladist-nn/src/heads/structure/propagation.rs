//! Features of labels, graph layers, and an output per label: what the graph heads share.
//!
//! *Text propagation* gives every label features made of the document vector t, lets them travel, and answers:
//! ```text
//! X = drop(t·W + b), a part for each label        X_k = drop(t·W + b + u_k)      in the small form
//! Y = layers(X)
//! z = W_c·drop(all of Y) + b_c                    z_k = w_k·drop(Y_k) + b_k      in the small form
//! ```
//! *Label attention* lets vectors E of the labels travel instead, without the document; with F = layers(drop(E)) and rows R
//! of the document, its token states made as wide as E: y_k = softmax(F_k·Rᵀ)·R, and z of y as above.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::gat::GraphAttention;
use super::gcn::GraphConvolution;
use super::{Drops, Form, Part};
use crate::blocks::{Linear, Matrix};
use crate::encoder::LayerSet;
use crate::error::Result;
use crate::fused::by_rows;
use crate::heads::label_attention::{answer, labels_at_once, seen, select, weights};
use crate::heads::label_pooling::{normal_matrix, pool};
use crate::heads::{DocumentVector, Group, Head, HeadContext, HeadInput, Labelwise, Moment, Objective, Pool};
use crate::losses::Loss;

/// Places of dropouts: the features, then some for each layer, then the output.
const START: u64 = 0;
const OUTPUT: u64 = 1;
const LAYERS: u64 = 8;
const OF_A_LAYER: u64 = 8;

/// What travels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Features of labels made of the document vector.
    #[default]
    TextPropagation,
    /// Vectors of labels, which then look at the tokens.
    LabelAttention,
}

/// Settings of all heads of this kind.
pub(super) struct Settings {
    pub(super) variant: Variant,
    pub(super) form: Form,
    pub(super) pool: Pool,
    pub(super) node_size: usize,
    pub(super) dropout: f64,
    pub(super) output_dropout: f64,
    pub(super) recursive_regularisation: f64,
    pub(super) loss: Loss,
}

/// What features are made of.
#[derive(Module, Debug)]
pub enum Start {
    /// A part of one product for each label.
    Full(Linear),
    /// One product for all, and something of each label.
    Small(Shared),
    /// Vectors of labels, and what makes token states as wide.
    Labels(Shared),
}

/// One product for all, and a vector for each label.
#[derive(Module, Debug)]
pub struct Shared {
    projection: Linear,
    labels: Matrix,
}

/// A layer along the edges.
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "a head has few")]
pub enum Layer {
    /// By gates.
    Gcn(GraphConvolution),
    /// By attention.
    Gat(GraphAttention),
}

impl Layer {
    fn forward(&self, x: Tensor<3>, part: Option<&Part>, drops: Drops, site: u64) -> Tensor<3> {
        match self {
            Self::Gcn(layer) => layer.forward(x, part, drops, site),
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
    shape: Shape,
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    n_labels: usize,
    width: usize,
    full: bool,
    dropout: f64,
    output_dropout: f64,
}

impl Structure {
    fn travel(&self, x: Tensor<2>, part: Option<&Part>, drops: Drops) -> Tensor<3> {
        let Shape { width, dropout, .. } = self.shape;
        let documents = x.dims()[0] / drops.rows.max(1);
        let x = drops.on(x, dropout, START).reshape([documents, drops.rows, width]);
        let layers = (LAYERS..).step_by(OF_A_LAYER as usize).zip(&self.layers);
        layers.fold(x, |x, (site, layer)| layer.forward(x, part, drops, site))
    }

    /// z of the labels of a part that count: `[documents, hidden]` → `[documents, labels]`. None if labels read the
    /// features of all others, or if layers know nothing of parts.
    fn logits_of_part(&self, vectors: Tensor<2>, part: &Part, seed: Option<u64>) -> Option<Tensor<2>> {
        let Start::Small(shared) = &self.start else { return None };
        let Shape { width, output_dropout, .. } = self.shape;
        let ([documents, _], n_labels) = (vectors.dims(), part.labels.len());
        let of_document = shared.projection.forward(vectors).unsqueeze_dim::<3>(1);
        let x = of_document + select(shared.labels.weight(), Some(&part.labels)).unsqueeze::<3>();
        let drops = Drops { seed, first: 0, rows: n_labels };
        let features = self.travel(x.reshape([documents * n_labels, width]), Some(part), drops);
        let rows = drops.on(features.reshape([documents * n_labels, width]), output_dropout, OUTPUT);
        let features = part.counted(rows.reshape([documents, n_labels, width]));
        let outputs = select(self.output.rows(), Some(&part.only));
        Some(answer(features.swap_dims(0, 1), outputs).transpose())
    }

    fn drops(&self, seed: Option<u64>, first: usize) -> Drops {
        Drops { seed, first, rows: self.shape.n_labels }
    }

    /// Y from document vectors: `[documents, hidden]` → `[documents, labels, width]`.
    pub(super) fn features(&self, vectors: Tensor<2>, seed: Option<u64>, first: usize) -> Tensor<3> {
        let Shape { n_labels, width, .. } = self.shape;
        let [documents, _] = vectors.dims();
        let x = match &self.start {
            Start::Full(linear) => linear.forward(vectors).reshape([documents * n_labels, width]),
            Start::Small(shared) | Start::Labels(shared) => {
                let of_document = shared.projection.forward(vectors).unsqueeze_dim::<3>(1);
                let x = of_document + shared.labels.weight().unsqueeze::<3>();
                x.reshape([documents * n_labels, width])
            }
        };
        self.travel(x, None, self.drops(seed, first))
    }

    /// z from Y: `[documents, labels, width]` → `[documents, labels]`.
    pub(super) fn logits(&self, features: Tensor<3>, seed: Option<u64>, first: usize) -> Tensor<2> {
        let Shape { n_labels, width, full, output_dropout, .. } = self.shape;
        let [documents, ..] = features.dims();
        let rows = features.reshape([documents * n_labels, width]);
        let rows = self.drops(seed, first).on(rows, output_dropout, OUTPUT);
        if full {
            return self.output.forward(rows.reshape([documents, n_labels * width]));
        }
        let features = rows.reshape([documents, n_labels, width]).swap_dims(0, 1);
        answer(features, self.output.rows()).transpose()
    }

    /// F and W of tokens, if labels look at them.
    fn labels(&self, seed: Option<u64>) -> Option<(Tensor<2>, &Linear)> {
        let Start::Labels(shared) = &self.start else { return None };
        let Shape { n_labels, width, .. } = self.shape;
        let labels = self.travel(shared.labels.weight(), None, self.drops(seed, 0));
        Some((labels.reshape([n_labels, width]), &shared.projection))
    }
}

/// The head.
#[derive(Module, Debug)]
pub struct Propagation {
    structure: Structure,
    #[module(skip)]
    labelwise: Labelwise,
    #[module(skip)]
    vector: DocumentVector,
    #[module(skip)]
    layer: usize,
    /// What a masked branch computes, made when it is first asked for.
    #[module(skip)]
    part: OnceLock<Arc<Part>>,
}

impl Propagation {
    pub(super) fn new(
        context: &HeadContext<'_>,
        settings: &Settings,
        layers: Vec<Layer>,
        random: &mut ChaCha8Rng,
    ) -> Result<Self> {
        let Settings { variant, form, pool, node_size, dropout, output_dropout, .. } = *settings;
        let (hidden, device) = (context.hidden_size, context.device);
        let n_labels = context.taxonomy.n_labels();
        let full = form.is_full(n_labels);
        let mut shared = || Shared {
            projection: Linear::new(hidden, node_size, random, device),
            // He's deviation, √(2/width).
            labels: normal_matrix(node_size, n_labels, (2.0 / node_size as f32).sqrt(), random, device),
        };
        let start = match variant {
            Variant::LabelAttention => Start::Labels(shared()),
            Variant::TextPropagation if full => {
                Start::Full(Linear::new(hidden, n_labels * node_size, random, device))
            }
            Variant::TextPropagation => Start::Small(shared()),
        };
        let width = if full { n_labels * node_size } else { node_size };
        let output = context.outputs(width, random);
        let shape = Shape { n_labels, width: node_size, full, dropout, output_dropout };
        let labelwise = Labelwise::new(context, settings.loss);
        let vector = match variant {
            Variant::TextPropagation => pool,
            Variant::LabelAttention => Pool::Mean,
        };
        Ok(Self {
            structure: Structure { start, layers, output, shape },
            labelwise: labelwise.with_recursive(settings.recursive_regularisation),
            vector: vector.at(context)?,
            layer: context.n_layers,
            part: OnceLock::new(),
        })
    }

    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        match self.structure.labels(seed) {
            Some((labels, projection)) => self.look(input, labels, projection, seed),
            None => self.propagate(self.vector.of(input.documents), seed),
        }
    }

    /// The part of these labels, if features of few labels are enough for them.
    fn part(&self, only: &[u32], documents: usize) -> Option<Arc<Part>> {
        let Structure { start, layers, shape, .. } = &self.structure;
        let knows_parts =
            matches!(start, Start::Small(_)) && layers.iter().all(|layer| matches!(layer, Layer::Gcn(_)));
        if !knows_parts || self.labelwise.needs_all_labels() {
            return None;
        }
        let make = || Arc::new(Part::new(only, self.labelwise.edges(), layers.len()));
        let part = self.part.get_or_init(make);
        let part = if part.only == only { Arc::clone(part) } else { make() };
        // Where there are very many labels still, documents are worked on some at a time.
        (documents <= labels_at_once(part.labels.len() * shape.width)).then_some(part)
    }

    /// Logits of the labels that count alone, and which labels these are.
    fn counted(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Option<(Tensor<2>, Arc<Part>)> {
        let part = self.part(input.only?, input.documents.n_sequences())?;
        let logits = self.structure.logits_of_part(self.vector.of(input.documents), &part, seed)?;
        Some((logits, part))
    }

    /// The width of [`Propagation::objective_and_summary`]'s rows.
    pub(super) fn summary_width(&self) -> usize {
        let Shape { n_labels, width, full, .. } = self.structure.shape;
        if full { n_labels * width } else { width }
    }

    /// The objective of text propagation and a row for each document: its features after they travelled, all of them or, in the
    /// small form, their mean.
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
        let summary = if self.structure.shape.full { features } else { features.mean_dim(1) };
        (self.learn(logits, input, gold, moment), summary.reshape([documents, self.summary_width()]))
    }

    fn learn(
        &self,
        logits: Tensor<2>,
        input: &HeadInput<'_>,
        gold: &[LabelSet],
        moment: &Moment,
    ) -> Objective {
        let objective = self.labelwise.objective(logits, gold, input.only, moment);
        self.labelwise.regularise(objective, [self.structure.output.weight()], input.only)
    }

    /// Logits of text propagation, of some documents at a time if there are many labels.
    fn propagate(&self, vectors: Tensor<2>, seed: Option<u64>) -> Tensor<2> {
        let Shape { n_labels, width, .. } = self.structure.shape;
        let at_once = labels_at_once(n_labels * width);
        let logits = move |first, vectors, structure: &Structure, _: &[Tensor<2>]| {
            structure.logits(structure.features(vectors, seed, first), seed, first)
        };
        if vectors.dims()[0] <= at_once {
            return logits(0, vectors, &self.structure, &[]);
        }
        by_rows(vectors, &self.structure, Vec::new(), at_once, Arc::new(logits))
    }

    /// Logits of label attention, of some labels at a time if each has an output of its own.
    fn look(
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
        let rows = Tensor::cat(vec![labels, self.structure.output.rows()], 1);
        let width = self.structure.shape.width;
        let at_once = labels_at_once(packing.n_sequences() * width.max(packing.longest()));
        let work = Arc::new(move |_, rows, _: &Vec<Linear>, tokens: &[Tensor<2>]| {
            pool(rows, tokens[0].clone(), tokens[0].clone(), &packing)
        });
        by_rows(rows, &Vec::new(), vec![tokens], at_once, work).transpose()
    }
}

impl Head for Propagation {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let Some((logits, part)) = self.counted(input, moment.seed) else {
            return self.learn(self.compute(input, moment.seed), input, gold, moment);
        };
        let objective = self.labelwise.objective_of(logits, gold, Some(&part.only), input.only, moment);
        self.labelwise.regularise(objective, [self.structure.output.weight()], input.only)
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.vector.layers()
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        match self.counted(input, None) {
            Some((logits, part)) => self.labelwise.score_of(logits, &part.only, top_k),
            None => self.labelwise.score(self.compute(input, None), top_k),
        }
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        Some((self.compute(input, None), self.labelwise.labels.to_vec()))
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.structure.output.outputs())
    }

    fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
        let (queries, projection) = self.structure.labels(None)?;
        let numbers: Vec<u32> = labels.iter().map(|label| label.index() as u32).collect();
        let queries = select(queries, Some(&numbers)).unsqueeze_dim(1);
        let tokens = projection.forward(input.documents.packed(self.layer));
        Some(weights(queries, tokens, input.documents.packing(), 1, 1.0).squeeze_dim(1))
    }

    fn group(&self, parameter: &str) -> Group {
        if parameter.starts_with("structure.output") { Group::Output } else { Group::Labels }
    }
}
