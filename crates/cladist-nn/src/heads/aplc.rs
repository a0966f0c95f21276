//! Probabilistic label clusters by frequency: frequent labels form the head cluster, rare ones tail clusters behind a gate and
//! with fewer parameters (APLC, Ye et al. 2020).
//!
//! Labels are sorted by the number of their training documents and cut into a head and tails. With f the document vector
//! through a layer with tanh:
//! ```text
//! [z_head; c] = W·f     t_i = V_i·relu(LN(U_i·f))     p = σ(z) in the head, σ(c_i)·σ(t) in tail i
//! ```
//! U_i halves the width once more from tail to tail. A document without gold labels in a tail learns only that its
//! gate is closed, so the tail is not computed for it.
//!
//! Everything is done with log-odds: those of σ(c)·σ(t) are −ln(e⁻ᶜ + e⁻ᵗ + e⁻ᶜ⁻ᵗ), which no rare label underflows.

mod clusters;

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use clusters::AplcConfig;

use super::mixture::log_sum_exp;
use super::{
    DROPOUT, DocumentVector, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Pool, rows,
};
use crate::blocks::{LayerNorm, Linear, Matrix, dropout};
use crate::encoder::{LayerSet, place};
use crate::error::Result;
use crate::losses::{softplus, targets};
use clusters::Clusters;

/// One line of help.
pub const ABOUT: &str = "probabilistic label clusters by frequency, smaller ones for tail labels (APLC)";

/// The outputs of a cluster of rare labels.
#[derive(Module, Debug)]
pub struct Tail {
    narrow: Matrix,
    norm: LayerNorm,
    output: Matrix,
}

/// The head.
#[derive(Module, Debug)]
pub struct Aplc {
    summary: Linear,
    /// Labels of the head, then a gate for each tail.
    head: Matrix,
    tails: Vec<Tail>,
    #[module(skip)]
    clusters: Clusters,
    #[module(skip)]
    vector: DocumentVector,
    #[module(skip)]
    config: AplcConfig,
    #[module(skip)]
    label_smoothing: f64,
}

impl HeadConfig for AplcConfig {
    type Head = Aplc;

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Aplc> {
        let (taxonomy, device) = (context.taxonomy, context.device);
        let cuts = self.checked_cuts(taxonomy.n_labels(), context.task)?;
        let clusters = Clusters::new(taxonomy.labels(), context.label_counts, &cuts);
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let random = &mut random;
        let width = if self.hidden == 0 { context.hidden_size } else { self.hidden };
        let mut narrow = width;
        let summary = Linear::new(context.hidden_size, width, random, device);
        let head = Matrix::new(width, clusters.labels[0].len() + cuts.len(), random, device);
        let tail = |labels: &Vec<LabelId>| {
            narrow = (narrow / self.divisor).max(1);
            Tail {
                narrow: Matrix::new(width, narrow, random, device),
                norm: LayerNorm::new(narrow, device),
                output: Matrix::new(narrow, labels.len(), random, device),
            }
        };
        Ok(Aplc {
            summary,
            head,
            tails: clusters.labels[1..].iter().map(tail).collect(),
            clusters,
            vector: self.pool.at(context)?,
            config: self.clone(),
            label_smoothing: context.label_smoothing,
        })
    }
}

/// The log-odds of σ(a)·σ(b).
fn both(a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    let (a, b) = (a.neg(), b.neg());
    let either = [a.clone() + b.zeros_like(), b.clone() + a.zeros_like(), a + b];
    log_sum_exp(&either).map_or_else(|| unreachable!("there are three"), Tensor::neg)
}

/// Numbers of documents for whom a cluster is open.
fn open(gold: &[Vec<u32>]) -> Vec<usize> {
    (0..gold.len()).filter(|&document| !gold[document].is_empty()).collect()
}

impl Aplc {
    fn summary(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let vector = self.vector.of(input.documents);
        let vector = self.summary.forward(vector).tanh();
        dropout(vector, self.config.dropout, seed.map(|seed| place(seed, DROPOUT)))
    }

    /// Logits of the head's labels and of the gates.
    fn of_head(&self, summary: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let n_labels = self.clusters.labels[0].len();
        let logits = self.head.forward(summary);
        let n_tails = self.tails.len();
        if n_tails == 0 {
            let none = logits.clone().narrow(1, 0, 1).zeros_like();
            return (logits, none);
        }
        (logits.clone().narrow(1, 0, n_labels), logits.narrow(1, n_labels, n_tails))
    }

    /// Log-odds of all labels, cluster by cluster.
    fn compute(&self, input: &HeadInput<'_>) -> Tensor<2> {
        let summary = self.summary(input, None);
        let (head, gates) = self.of_head(summary.clone());
        let tails = self.tails.iter().enumerate();
        let tails = tails.map(|(n, tail)| both(gates.clone().narrow(1, n, 1), tail.forward(summary.clone())));
        Tensor::cat(std::iter::once(head).chain(tails).collect(), 1)
    }

    /// Mean over documents of the mean binary cross-entropy over what is open for them: labels of the head and of tails with
    /// gold labels, and gates of other tails. `gold` has columns by cluster and document.
    fn loss(&self, summary: Tensor<2>, gold: &[Vec<Vec<u32>>]) -> Tensor<1> {
        let (head, gates) = self.of_head(summary.clone());
        let device = summary.device();
        let n = gold[0].len();
        let mut sizes = vec![self.clusters.labels[0].len(); n];
        for (gold, labels) in gold[1..].iter().zip(&self.clusters.labels[1..]) {
            for (size, gold) in sizes.iter_mut().zip(gold) {
                *size += if gold.is_empty() { 1 } else { labels.len() };
            }
        }
        let share = |document: usize| 1.0 / (n * sizes[document]) as f32;
        let shares = |documents: &[usize]| column(documents.iter().map(|&d| share(d)).collect(), &device);
        let all: Vec<usize> = (0..n).collect();
        let mut loss = (self.cells(head, &gold[0]) * shares(&all)).sum();
        for (number, (tail, gold)) in self.tails.iter().zip(&gold[1..]).enumerate() {
            let gate = gates.clone().narrow(1, number, 1);
            let closed = (0..n).map(|d| if gold[d].is_empty() { share(d) } else { 0.0 }).collect();
            loss = loss + (softplus(gate.clone()) * column(closed, &device)).sum();
            let documents = open(gold);
            if documents.is_empty() {
                continue;
            }
            let rows: Vec<i64> = documents.iter().map(|&document| document as i64).collect();
            let rows: Tensor<1, Int> = Tensor::from_data(TensorData::new(rows, [documents.len()]), &device);
            let logits = both(gate.select(0, rows.clone()), tail.forward(summary.clone().select(0, rows)));
            let gold: Vec<Vec<u32>> = documents.iter().map(|&document| gold[document].clone()).collect();
            loss = loss + (self.cells(logits, &gold) * shares(&documents)).sum();
        }
        loss
    }

    /// Binary cross-entropy of every cell.
    fn cells(&self, logits: Tensor<2>, gold: &[Vec<u32>]) -> Tensor<2> {
        let targets = targets(logits.dims(), gold, self.label_smoothing, &logits.device());
        softplus(logits.clone()) - targets * logits
    }

    fn labels(&self) -> Vec<LabelId> {
        self.clusters.labels.concat()
    }
}

fn column(values: Vec<f32>, device: &Device) -> Tensor<2> {
    let shape = [values.len(), 1];
    Tensor::from_data(TensorData::new(values, shape), device)
}

impl Tail {
    fn forward(&self, summary: Tensor<2>) -> Tensor<2> {
        self.output.forward(self.norm.rectified(self.narrow.forward(summary)))
    }
}

impl Head for Aplc {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let summary = self.summary(input, moment.seed);
        Objective::of("bce", self.loss(summary, &self.clusters.columns.of(gold)))
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.vector.layers()
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        Some((self.compute(input), self.labels()))
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        rows(activation::sigmoid(self.compute(input)), &self.labels(), top_k)
    }

    /// Every cluster has columns of its own, since its output weights are on other features.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        let mut vectors = vec![SparseRow::new(); self.labels().len()];
        let mut first = 0;
        let outputs = std::iter::once(&self.head).chain(self.tails.iter().map(|tail| &tail.output));
        for (labels, output) in self.clusters.labels.iter().zip(outputs) {
            let mut width = 0;
            for (label, row) in labels.iter().zip(output.outputs()) {
                width = row.len() as u32;
                vectors[label.index()] =
                    row.into_iter().map(|(column, value)| (first + column, value)).collect();
            }
            first += width;
        }
        Some(vectors)
    }
}

#[cfg(test)]
mod tests;
