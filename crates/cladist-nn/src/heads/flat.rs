//! Multi-label BERT: one linear output per label on the document vector, blind to the hierarchy.
//!
//! h = `[CLS]` of the last layer, or tanh(W_p·`[CLS]` + b_p); p = σ(W·drop(h) + b), trained with binary
//! cross-entropy, or softmax with cross-entropy when each document has one label. The baseline of every paper on
//! the subject. The choice between the pooled and the raw vector is rarely stated; the raw one is the default here, since
//! sentence encoders come with a pooler that nobody trained.

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{DROPOUT, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, setting};
use crate::blocks::dropout;
use crate::encoder::{LayerSet, place};
use crate::error::{Error, Result};
use crate::losses::Loss;
use crate::shortlist::{Goal, Outputs, Vectors};

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

/// Settings of the flat head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlatConfig {
    /// The document vector: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Dropout on the document vector.
    pub dropout: f64,
    /// What is minimised with any number of labels: `bce`, `f-measure`, `bce-and-f`, `focal`, `asymmetric` or `ranking`.
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
    output: Outputs,
    #[module(skip)]
    labels: Arc<[LabelId]>,
    #[module(skip)]
    pool: Pool,
    #[module(skip)]
    layer: usize,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    goal: Goal,
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
        if context.n_layers == 0 && pool != Pool::Mean {
            return Err(Error::Head {
                problem: "`[CLS]` says nothing of a document where words have no context".to_owned(),
                hint: "use `flat.pool = \"mean\"` on word vectors",
            });
        }
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let width = context.hidden_size;
        Ok(Flat {
            output: Outputs::new(width, width, context, &mut random),
            labels: context.taxonomy.labels().collect(),
            pool,
            layer: context.n_layers,
            dropout,
            goal: Goal::new(context, loss),
        })
    }
}

impl Flat {
    fn vectors(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Vectors {
        let documents = input.documents;
        let vector = match self.pool {
            Pool::Pooled => documents.pooled().unwrap_or_else(|| documents.cls(self.layer)),
            Pool::Cls => documents.cls(self.layer),
            Pool::Mean => documents.mean(self.layer),
        };
        Vectors::same(dropout(vector, self.dropout, seed.map(|seed| place(seed, DROPOUT))))
    }
}

impl Head for Flat {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        self.output.objective(self.vectors(input, moment.seed), input, gold, moment, self.goal)
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        let layers: LayerSet = [self.layer].into_iter().collect();
        match self.pool {
            Pool::Mean => layers,
            Pool::Cls | Pool::Pooled => layers.first_tokens(),
        }
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        Some(self.output.logits(self.vectors(input, None), input, &self.labels))
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        self.output.score(self.vectors(input, None), input, &self.labels, self.goal.task, top_k)
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        self.output.label_vectors()
    }

    fn row_width(&self) -> Option<usize> {
        self.output.row_width()
    }
}
