//! Multi-label BERT: one linear output per label on the document vector, blind to the hierarchy.
//!
//! h = `[CLS]` of the last layer, or tanh(W_p·`[CLS]` + b_p); p = σ(W·drop(h) + b), trained with binary
//! cross-entropy, or softmax with cross-entropy when each document has one label. The baseline of every paper on
//! the subject. The choice between the pooled and the raw vector is rarely stated; the raw one is the default here, since
//! sentence encoders come with a pooler that nobody trained.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{
    DROPOUT, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Task, columns, objective,
    probabilities, rows, setting,
};
use crate::blocks::{Linear, dropout};
use crate::encoder::{Encoded, LayerSet, place};
use crate::error::{Error, Result};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "fine-tuned encoder with one output per label (multi-label BERT)";

/// The document vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// `[CLS]` of the last layer.
    #[default]
    Cls,
    /// The encoder's pooler on `[CLS]`, which not every encoder has learnt to use.
    Pooled,
    /// The mean of all tokens of the last layer.
    Mean,
}

impl Pool {
    /// Refuses `[CLS]` where words have no context.
    pub(super) fn check(self, n_layers: usize, hint: &'static str) -> Result<()> {
        if n_layers > 0 || self == Self::Mean {
            return Ok(());
        }
        let problem = "`[CLS]` says nothing of a document where words have no context".to_owned();
        Err(Error::Head { problem, hint })
    }

    /// The vectors `[documents, hidden]`.
    pub(super) fn vector(self, documents: &Encoded, layer: usize) -> Tensor<2> {
        match self {
            Self::Pooled => documents.pooled().unwrap_or_else(|| documents.cls(layer)),
            Self::Cls => documents.cls(layer),
            Self::Mean => documents.mean(layer),
        }
    }

    /// What is read of a layer.
    pub(super) fn layers(self, layer: usize) -> LayerSet {
        let layers: LayerSet = [layer].into_iter().collect();
        match self {
            Self::Mean => layers,
            Self::Cls | Self::Pooled => layers.first_tokens(),
        }
    }
}

/// Settings of the flat head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlatConfig {
    /// The document vector: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Dropout on the document vector.
    pub dropout: f64,
    /// What is minimised with any number of labels: `bce`, `f-measure`, `bce-and-f`, `focal` or `asymmetric`.
    pub loss: Loss,
}

impl Default for FlatConfig {
    fn default() -> Self {
        Self { pool: Pool::default(), dropout: 0.1, loss: Loss::default() }
    }
}

/// The head.
#[derive(Module, Debug)]
pub struct Flat {
    output: Linear,
    #[module(skip)]
    labels: Vec<LabelId>,
    #[module(skip)]
    pool: Pool,
    #[module(skip)]
    layer: usize,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    loss: Loss,
    #[module(skip)]
    task: Task,
    #[module(skip)]
    label_smoothing: f64,
}

impl HeadConfig for FlatConfig {
    type Head = Flat;

    fn pooled(&self) -> bool {
        self.pool == Pool::Pooled
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Flat> {
        let Self { pool, dropout, loss } = *self;
        if !(0.0..1.0).contains(&dropout) {
            return Err(setting("flat.dropout", "at least 0 and below 1", dropout));
        }
        pool.check(context.n_layers, "use `flat.pool = \"mean\"` on word vectors")?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let n_labels = context.taxonomy.n_labels();
        Ok(Flat {
            output: Linear::new(context.hidden_size, n_labels, &mut random, context.device),
            labels: context.taxonomy.labels().collect(),
            pool,
            layer: context.n_layers,
            dropout,
            loss,
            task: context.task,
            label_smoothing: context.label_smoothing,
        })
    }
}

impl Flat {
    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let vector = self.pool.vector(input.documents, self.layer);
        self.output.forward(dropout(vector, self.dropout, seed.map(|seed| place(seed, DROPOUT))))
    }
}

impl Head for Flat {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let logits = self.compute(input, moment.seed);
        objective(self.task, self.loss, logits, &columns(gold), self.label_smoothing)
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.pool.layers(self.layer)
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        Some((self.compute(input, None), self.labels.clone()))
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        rows(probabilities(self.task, self.compute(input, None)), &self.labels, top_k)
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.output.outputs())
    }
}
