//! Multi-label BERT: a linear output layer over labels on the document vector, without the hierarchy.
//!
//! h = `[CLS]` of the last layer, or tanh(W_p·`[CLS]` + b_p); p = σ(W·drop(h) + b), trained with binary
//! cross-entropy, or softmax with cross-entropy when each document has one label. The baseline of every paper on
//! the subject. The choice between the pooled and the raw vector is rarely stated; the raw one is the default here, since
//! sentence encoders come with a pooler that nobody trained.

use std::ops::RangeInclusive;

use burn::module::Module;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use super::Pool;
use super::per_label::by_outputs;
use super::settings::{check_rates, check_weights, setting};
use super::{
    BCE_EPOCHS, DROPOUT, DocumentVector, Head, HeadConfig, HeadContext, HeadInput, Labelwise, Masking,
};
use crate::blocks::dropout;
use crate::encoder::{LayerSet, place};
use crate::error::Result;
use crate::heads::{Outputs, Vectors};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "fine-tuned encoder with a linear output layer over labels (multi-label BERT)";

/// Settings of the flat head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlatConfig {
    /// The document vector: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Dropout on the document vector.
    pub dropout: f64,
    /// The loss of any number of labels: `bce`, `f-measure`, `macro-f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
    /// Epochs that `f-measure` and `macro-f-measure` learn as `bce` first, from when the encoder learns.
    pub bce_epochs: usize,
    /// λ of recursive regularisation, ½λ·Σ‖w_parent − w_child‖² over the output weights of adjacent labels.
    pub recursive_regularisation: f64,
}

impl Default for FlatConfig {
    fn default() -> Self {
        Self {
            pool: Pool::default(),
            dropout: 0.1,
            loss: Loss::default(),
            bce_epochs: BCE_EPOCHS,
            recursive_regularisation: 0.0,
        }
    }
}

/// The head.
#[derive(Module, Debug)]
pub struct Flat {
    output: Outputs,
    #[module(skip)]
    labelwise: Labelwise,
    #[module(skip)]
    vector: DocumentVector,
    #[module(skip)]
    dropout: f64,
}

impl HeadConfig for FlatConfig {
    type Head = Flat;

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn masking(&self) -> Masking {
        Masking::Alone
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Flat> {
        let Self { pool, dropout, loss, bce_epochs, recursive_regularisation } = *self;
        check_rates(&[("flat.dropout", dropout)])?;
        check_weights(&[("flat.recursive_regularisation", recursive_regularisation)])?;
        if context.shortlist.is_some() && recursive_regularisation > 0.0 {
            let key = "flat.recursive_regularisation";
            return Err(setting(key, "0 with a shortlist", recursive_regularisation));
        }
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let width = context.hidden_size;
        Ok(Flat {
            output: Outputs::new(width, width, loss, context, &mut random)?,
            labelwise: Labelwise::new(context, loss)
                .with_bce_epochs(bce_epochs)
                .with_recursive(recursive_regularisation),
            vector: pool.at(context)?,
            dropout,
        })
    }
}

impl Flat {
    fn vectors(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Vectors {
        let vector = self.vector.of(input.documents);
        Vectors::same(dropout(vector, self.dropout, seed.map(|seed| place(seed, DROPOUT))))
    }
}

impl Head for Flat {
    by_outputs!();

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.vector.layers()
    }
}
