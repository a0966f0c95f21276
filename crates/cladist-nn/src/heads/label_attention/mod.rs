//! Label attention: cross-attention whose queries are encoded label descriptions, over the tokens of a document (LAME).
//!
//! With U the descriptions encoded by the encoder of the documents, and H the token states:
//! ```text
//! A = softmax((U·W_Q)·(H·W_K)ᵀ/√d)     M = A·(H·W_V)·W_O       for each attention head
//! X₁ = LN(U + M)                        X₂ = LN(X₁ + FFN(X₁))
//! z = w·X₂ + c
//! ```
//! Since label representations come from descriptions alone, unseen labels are scored like any other (zero-shot).
//! Labels are worked on in parts that backward computes again, so memory does not grow with their number.

mod attend;
mod block;
mod config;

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData, activation};
use cladist_core::{LabelId, LabelSet};
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

pub(crate) use attend::{labels_at_once, seen, weights};
pub(super) use block::answer;
pub use block::{Block, FeedForward, Source, Stack};
pub use config::{Encode, LabelAttentionConfig, Output};

use super::per_label::by_logits;
use super::{
    Group, Head, HeadConfig, HeadContext, HeadInput, LabelBatch, Labelwise, Masking, Moment, Objective,
    columns,
};
use crate::blocks::{Convolution, Linear, Matrix};
use crate::descriptions::DescriptionConfig;
use crate::encoder::{EncoderConfig, LayerSet, place};
use crate::error::Result;
use crate::fused::by_rows;
use block::Setting;

/// One line of help.
pub const ABOUT: &str = "cross-attention from encoded label descriptions to the document's tokens (LAME)";

/// The place of the sample of labels in the seed of a step.
const SAMPLE: u64 = crate::seeds::LABEL_SAMPLE;

/// The head.
#[derive(Module, Debug)]
pub struct LabelAttention {
    /// The labels' vectors, if they do not come from descriptions.
    table: Option<Matrix>,
    /// Under the attention, for an encoder that does not learn.
    convolution: Option<Convolution>,
    sources: Vec<Source>,
    stack: Stack,
    /// An output for each label, if they do not share one.
    outputs: Option<Linear>,
    #[module(skip)]
    labelwise: Labelwise,
    #[module(skip)]
    config: LabelAttentionConfig,
    #[module(skip)]
    n_heads: usize,
    #[module(skip)]
    hidden: usize,
    #[module(skip)]
    layer: usize,
}

impl HeadConfig for LabelAttentionConfig {
    type Head = LabelAttention;

    fn describes(&self) -> Option<DescriptionConfig> {
        self.description()
    }

    fn knows_new_labels(&self) -> bool {
        self.description().is_some_and(|config| !config.at_start_only) && self.output == Output::Shared
    }

    fn masking(&self) -> Masking {
        Masking::Alone
    }

    fn suit(&mut self, encoder: &EncoderConfig) {
        self.take_heads(encoder);
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<LabelAttention> {
        let (hidden, device) = (context.hidden_size, context.device);
        let n_heads = self.checked_heads(hidden)?;
        let n_labels = context.taxonomy.n_labels();
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let random = &mut random;
        let is_table = self.description().is_none_or(|config| config.at_start_only);
        let table = is_table.then(|| match context.labels {
            Some(vectors) => Matrix::of(vectors.clone(), device),
            None => Matrix::new(hidden, n_labels, random, device),
        });
        let output = |biases: Vec<f32>, random: &mut ChaCha8Rng| {
            Linear::normal(hidden, biases.len(), 0.02, random, device).with_bias(biases)
        };
        Ok(LabelAttention {
            table,
            convolution: (self.convolution > 0)
                .then(|| Convolution::new(hidden, hidden, self.convolution, random, device)),
            sources: (0..self.blocks).map(|_| Source::new(hidden, random, device)).collect(),
            stack: Stack {
                blocks: (0..self.blocks)
                    .map(|_| Block::new(hidden, self.feed_forward, random, device))
                    .collect(),
                output: (self.output == Output::Shared).then(|| output(vec![context.shared_bias()], random)),
            },
            outputs: (self.output == Output::PerLabel).then(|| output(context.biases(), random)),
            labelwise: Labelwise::new(context, self.loss).with_bce_epochs(self.bce_epochs),
            config: self.clone(),
            n_heads,
            hidden,
            layer: context.n_layers,
        })
    }
}

impl LabelAttention {
    /// What there is of each label of the input, or of `only` some of them: its query and, if it has one, its output.
    fn label_rows(&self, input: &HeadInput<'_>, only: Option<&[u32]>) -> Tensor<2> {
        let given = input.labels.and_then(|states| states.labels.as_deref());
        let queries = match (&self.table, input.labels) {
            (Some(table), _) => table.weight(),
            (None, Some(states)) => states.vectors.clone(),
            // Descriptions are always encoded for a head that wants them.
            (None, None) => unreachable!("vectors of labels are missing"),
        };
        let rows = match &self.outputs {
            Some(outputs) => Tensor::cat(vec![queries, select(outputs.rows(), given)], 1),
            None => queries,
        };
        select(rows, only)
    }

    fn sources(&self, input: &HeadInput<'_>) -> Vec<Tensor<2>> {
        let mut tokens = input.documents.packed(self.layer);
        if let Some(convolution) = &self.convolution {
            tokens = activation::relu(convolution.forward(tokens, input.documents.packing()));
        }
        let pair =
            |source: &Source| [source.key.forward(tokens.clone()), source.value.forward(tokens.clone())];
        self.sources.iter().flat_map(pair).collect()
    }

    fn setting(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Setting {
        Setting {
            packing: input.documents.packing().clone(),
            hidden: self.hidden,
            n_heads: self.n_heads,
            dropout: self.config.dropout,
            seed,
        }
    }

    /// Logits `[documents, labels]` of the labels of the input.
    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let packing = input.documents.packing();
        let width = self.hidden * self.config.feed_forward.max(1);
        let cells = packing.n_sequences() * width.max(self.n_heads * packing.longest());
        self.logits_of(input, seed, labels_at_once(cells))
    }

    fn logits_of(&self, input: &HeadInput<'_>, seed: Option<u64>, at_once: usize) -> Tensor<2> {
        let setting = self.setting(input, seed);
        let work = Arc::new(move |first, rows, stack: &Stack, sources: &[Tensor<2>]| {
            stack.logits(rows, sources, &setting, first)
        });
        by_rows(self.label_rows(input, None), &self.stack, self.sources(input), at_once, work).transpose()
    }
}

/// Rows by number; all of them if `None`.
pub(super) fn select(rows: Tensor<2>, numbers: Option<&[u32]>) -> Tensor<2> {
    let Some(numbers) = numbers else { return rows };
    let numbers: Vec<i64> = numbers.iter().map(|&number| i64::from(number)).collect();
    let shape = [numbers.len()];
    let numbers = Tensor::<1, Int>::from_data(TensorData::new(numbers, shape), &rows.device());
    rows.select(0, numbers)
}

/// The labels of all documents and others at random, `n` together if that is enough: ascending.
fn sample(gold: &[LabelSet], n_labels: usize, n: usize, seed: u64) -> Vec<u32> {
    let mut labels: Vec<u32> = columns(gold).concat();
    labels.sort_unstable();
    labels.dedup();
    let mut random = ChaCha8Rng::seed_from_u64(place(seed, SAMPLE));
    // As many as would be enough if none of them were there yet.
    let others = index::sample(&mut random, n_labels, n.min(n_labels));
    let others =
        others.into_iter().map(|label| label as u32).filter(|label| labels.binary_search(label).is_err());
    let room = n.saturating_sub(labels.len());
    let others: Vec<u32> = others.take(room).collect();
    labels.extend(others);
    labels.sort_unstable();
    labels
}

impl Head for LabelAttention {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let labels = input.labels.and_then(|states| states.labels.as_deref());
        let logits = self.compute(input, moment.seed);
        self.labelwise.objective_of(logits, gold, labels, moment)
    }

    by_logits!(labelwise, except objective);

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        [self.layer].into_iter().collect()
    }

    fn label_batch(&self, gold: &[LabelSet], moment: &Moment) -> Option<LabelBatch> {
        match self.config.encode {
            _ if self.table.is_some() => None,
            Encode::EveryStep | Encode::Table => Some(LabelBatch::All),
            Encode::EveryN => Some(LabelBatch::Every(self.config.refresh)),
            Encode::Sampled => {
                let seed = moment.seed.unwrap_or(0);
                Some(LabelBatch::Of(sample(gold, self.labelwise.labels.len(), self.config.sample, seed)))
            }
        }
    }

    fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
        let numbers: Vec<u32> = labels.iter().map(|label| label.index() as u32).collect();
        let queries = self.label_rows(input, Some(&numbers)).narrow(1, 0, self.hidden);
        let weights = self.stack.weights(queries, &self.sources(input), &self.setting(input, None))?;
        Some(weights.mean_dim(1).squeeze_dim(1))
    }

    fn group(&self, parameter: &str) -> Group {
        let is_output = parameter.starts_with("stack.output") || parameter.starts_with("outputs");
        if is_output { Group::Output } else { Group::Labels }
    }
}

#[cfg(test)]
mod tests;
