//! How the layers of an encoder are used: whether they say different things of a document, where they look, and whether
//! their heads look at different things.
//!
//! Every measure is a mean over the queries of a document, special tokens included and padding left out, and then over
//! documents, which all count the same.

use std::borrow::Cow;
use std::ops::Range;

use cladist_core::Job;
use rayon::prelude::*;
use serde::Serialize;

use super::divergence::{angular_distance, average_heads, entropy_of_logs, kl_of_logs};
use crate::encoder::{LayerSet, Mode};
use crate::error::{Error, Result};
use crate::model::NeuralModel;
use crate::parameters::to_vec;
use crate::tokens::{BUDGET, CHUNK, Sequence, TokenBatch, TokensConfig, sorted_by_tokens};

/// Attention probabilities of a batch at most, over all layers and heads: 64 MB. One document may need more.
const CELLS: usize = 1 << 24;
/// Queries of a document that one task looks at.
const BLOCK: usize = 32;

/// What was found about the layers of an encoder. Matrices are indexed by layer, from the first to the last.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerStudy {
    /// Documents looked at.
    pub n_documents: u64,
    /// Their tokens, as far as the encoder read them.
    pub n_tokens: u64,
    /// Layers of the encoder.
    pub n_layers: usize,
    /// Attention heads of each layer.
    pub n_heads: usize,
    /// Angular distance between the `[CLS]` vectors of two layers, from 0 to 1; symmetric.
    pub distance: Vec<Vec<f64>>,
    /// KL(row ‖ column) between the attention of two layers, heads averaged first, in nats.
    pub attention_kl: Vec<Vec<f64>>,
    /// Entropy of the attention of each layer, heads averaged first, in nats.
    pub entropy: Vec<f64>,
    /// Mean KL over ordered pairs of distinct heads of each layer, in nats; none if there is one head.
    pub head_kl: Option<Vec<f64>>,
}

impl NeuralModel {
    /// Looks at the layers while texts go through them. Of a text that is cut into windows, the first counts.
    ///
    /// Memory does not grow with the number of texts.
    pub fn study_layers<'a>(
        &self,
        texts: impl IntoIterator<Item = Cow<'a, str>>,
        job: &Job<'_>,
    ) -> Result<LayerStudy> {
        let encoder = &self.network.encoder;
        let (n_layers, n_heads) = (encoder.n_layers(), encoder.config().n_heads);
        let tokens = TokensConfig { windows: 1, ..self.design.tokens.clone() };
        let mut sums = Sums::new(n_layers);
        let (mut n_documents, mut n_tokens) = (0, 0);
        let mut texts = texts.into_iter();
        loop {
            let chunk: Vec<Cow<'_, str>> = texts.by_ref().take(CHUNK).collect();
            if chunk.is_empty() {
                break;
            }
            let chunk: Vec<&str> = chunk.iter().map(AsRef::as_ref).collect();
            let sequences: Vec<Sequence> =
                self.tokenizer.encode(&chunk, &tokens)?.into_iter().flatten().collect();
            let lengths: Vec<usize> = sequences.iter().map(Sequence::len).collect();
            for batch in plan(&lengths, n_layers * n_heads, CELLS) {
                job.cancel.check()?;
                let batch: Vec<&Sequence> = batch.iter().map(|&n| &sequences[n]).collect();
                self.look(&batch).add_to(&mut sums);
                n_documents += batch.len() as u64;
                n_tokens += batch.iter().map(|sequence| sequence.len() as u64).sum::<u64>();
                job.progress.advance(batch.len() as u64);
            }
        }
        if n_documents == 0 {
            return Err(Error::NothingToStudy);
        }
        let mean = |sums: &[f64]| -> Vec<f64> { sums.iter().map(|sum| sum / n_documents as f64).collect() };
        let rows = |sums: &[f64]| -> Vec<Vec<f64>> {
            mean(sums).chunks(n_layers.max(1)).map(<[f64]>::to_vec).collect()
        };
        Ok(LayerStudy {
            n_documents,
            n_tokens,
            n_layers,
            n_heads,
            distance: rows(&sums.distance),
            attention_kl: rows(&sums.attention_kl),
            entropy: mean(&sums.entropy),
            head_kl: (n_heads > 1).then(|| mean(&sums.head_kl)),
        })
    }

    fn look(&self, sequences: &[&Sequence]) -> Looked {
        let encoder = &self.network.encoder;
        let all: LayerSet = (1..=encoder.n_layers()).collect();
        let mode = Mode::Inference(self.packed.as_ref());
        let encoded = encoder.encode_with_attention(&TokenBatch::new(sequences), &all, &all, mode);
        Looked {
            lengths: sequences.iter().map(|sequence| sequence.len()).collect(),
            longest: encoded.packing().longest(),
            hidden: encoder.hidden_size(),
            n_heads: encoder.config().n_heads,
            cls: all.iter().map(|layer| to_vec(encoded.cls(layer))).collect(),
            attention: all.iter().filter_map(|layer| encoded.attention(layer).map(to_vec)).collect(),
        }
    }
}

/// Batches of sequences of about the same length. A batch of more than one has at most `cells` attention probabilities,
/// where each pair of tokens has `per_pair`.
fn plan(lengths: &[usize], per_pair: usize, cells: usize) -> Vec<Vec<usize>> {
    let mut batches = Vec::new();
    for batch in sorted_by_tokens(lengths, BUDGET) {
        let longest = batch.first().map_or(0, |&longest| lengths[longest]);
        let each = longest.saturating_mul(longest).saturating_mul(per_pair).max(1);
        batches.extend(batch.chunks((cells / each).max(1)).map(<[usize]>::to_vec));
    }
    batches
}

/// What a batch looks like inside, by layer.
struct Looked {
    lengths: Vec<usize>,
    longest: usize,
    hidden: usize,
    n_heads: usize,
    /// `[sequences][hidden]`
    cls: Vec<Vec<f32>>,
    /// `[sequences][heads][longest][longest]`
    attention: Vec<Vec<f32>>,
}

impl Looked {
    /// Adds everything about the batch, in an order that does not depend on the number of threads.
    fn add_to(&self, sums: &mut Sums) {
        let blocks: Vec<(usize, Range<usize>)> = (self.lengths.iter().enumerate())
            .flat_map(|(sequence, &length)| {
                (0..length).step_by(BLOCK).map(move |start| (sequence, start..(start + BLOCK).min(length)))
            })
            .collect();
        let parts: Vec<Sums> =
            blocks.into_par_iter().map(|(sequence, queries)| self.block(sequence, queries)).collect();
        for part in &parts {
            sums.add(part);
        }
    }

    /// Some queries of a sequence; with the first of them, its `[CLS]` vectors.
    fn block(&self, sequence: usize, queries: Range<usize>) -> Sums {
        let n_layers = self.attention.len();
        let mut sums = Sums::new(n_layers);
        if queries.start == 0 {
            let cls = |layer: usize| &self.cls[layer][sequence * self.hidden..][..self.hidden];
            for i in 0..n_layers {
                for j in 0..i {
                    let distance = angular_distance(cls(i), cls(j));
                    sums.distance[i * n_layers + j] = distance;
                    sums.distance[j * n_layers + i] = distance;
                }
            }
        }
        let length = self.lengths[sequence];
        let share = 1.0 / length as f64;
        let (mut means, mut logs) = (vec![0.0; n_layers * length], vec![0.0; n_layers * length]);
        for query in queries {
            let rows = means.chunks_exact_mut(length).zip(logs.chunks_exact_mut(length));
            for (layer, (mean, logs)) in rows.enumerate() {
                let heads = (0..self.n_heads).map(|head| self.row(layer, sequence, head, query));
                sums.head_kl[layer] += share * average_heads(heads, mean, logs);
                sums.entropy[layer] += share * entropy_of_logs(mean, logs);
            }
            let row = |layer: usize| layer * length..(layer + 1) * length;
            for i in 0..n_layers {
                for j in 0..n_layers {
                    let kl = kl_of_logs(&means[row(i)], &logs[row(i)], &logs[row(j)]);
                    sums.attention_kl[i * n_layers + j] += share * kl;
                }
            }
        }
        sums
    }

    /// The attention of a query to the keys of its sequence.
    fn row(&self, layer: usize, sequence: usize, head: usize, query: usize) -> &[f32] {
        let start = ((sequence * self.n_heads + head) * self.longest + query) * self.longest;
        &self.attention[layer][start..start + self.lengths[sequence]]
    }
}

/// Sums over documents of their means.
struct Sums {
    distance: Vec<f64>,
    attention_kl: Vec<f64>,
    entropy: Vec<f64>,
    head_kl: Vec<f64>,
}

impl Sums {
    fn new(n_layers: usize) -> Self {
        let zeros = |n: usize| vec![0.0; n];
        Self {
            distance: zeros(n_layers * n_layers),
            attention_kl: zeros(n_layers * n_layers),
            entropy: zeros(n_layers),
            head_kl: zeros(n_layers),
        }
    }

    fn add(&mut self, other: &Self) {
        let Self { distance, attention_kl, entropy, head_kl } = self;
        for (sums, others) in [
            (distance, &other.distance),
            (attention_kl, &other.attention_kl),
            (entropy, &other.entropy),
            (head_kl, &other.head_kl),
        ] {
            sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        }
    }
}

#[cfg(test)]
mod tests;
