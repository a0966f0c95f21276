//! Label-wise attention pooling: every label has its own attention over the tokens, and an output on the weighted mean.
//!
//! With K and V made of the token states, a query u_l and an output (w_l, b_l) for each label:
//! ```text
//! α = softmax(K·u_l)     m = Σ αₜ·vₜ     z = w_l·m + b_l
//! ```
//! | head | K | V |
//! |---|---|---|
//! | `caml` | V | tanh of a convolution over the states |
//! | `laat` | tanh(W·states) | the states |
//! | `lwan` | the states | the states |
//! | `lwan` with descriptions | tanh(W·states + b) | the states; u_l = w_l is the vector of the description by the square root of its width |

pub mod caml;
pub mod laat;
pub mod lwan;

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand_chacha::ChaCha8Rng;

use super::label_attention::{answer, labels_at_once, seen, select, weights};
use super::per_label::by_logits;
use super::{
    DROPOUT, Group, Head, HeadContext, HeadInput, LabelBatch, Labelwise, Moment, Objective, columns,
};
use crate::blocks::{Convolution, Linear, Matrix, dropout};
use crate::encoder::{LayerSet, Packing, place};
use crate::fused::by_rows;
use crate::losses::Loss;
use crate::random::normal;

/// What makes keys of states, under a tanh.
#[derive(Module, Debug)]
pub enum Projection {
    /// W·h.
    Plain(Matrix),
    /// W·h + b.
    Biased(Linear),
}

/// The head.
#[derive(Module, Debug)]
pub struct LabelPooling {
    convolution: Option<Convolution>,
    projection: Option<Projection>,
    /// u of each label; descriptions if there are none.
    queries: Option<Matrix>,
    /// w and b of each label; the queries if there are none.
    outputs: Option<Linear>,
    /// From the vector of a description to what w of the label should be.
    described: Option<Linear>,
    #[module(skip)]
    common: Common,
}

/// What all heads of this kind have.
#[derive(Debug, Clone)]
pub(super) struct Common {
    labelwise: Labelwise,
    layer: usize,
    dropout: f64,
    /// Updates after which descriptions are encoded again, without gradients; 0 encodes them in every step, with gradients.
    refresh: u64,
    /// Weight of the description regulariser.
    description_weight: f64,
}

impl Common {
    fn new(context: &HeadContext<'_>, dropout: f64, loss: Loss, bce_epochs: usize) -> Self {
        Self {
            labelwise: Labelwise::new(context, loss).with_bce_epochs(bce_epochs),
            layer: context.n_layers,
            dropout,
            refresh: 0,
            description_weight: 0.0,
        }
    }
}

/// A matrix by a normal distribution around 0.
pub(super) fn normal_matrix(
    inputs: usize,
    outputs: usize,
    deviation: f32,
    random: &mut ChaCha8Rng,
    device: &Device,
) -> Matrix {
    let values: Vec<f32> = (0..inputs * outputs).map(|_| normal(random) * deviation).collect();
    Matrix::of(Tensor::from_data(TensorData::new(values, [outputs, inputs]), device), device)
}

/// Logits `[labels, documents]` from rows of u, w and b.
pub(super) fn pool(rows: Tensor<2>, keys: Tensor<2>, values: Tensor<2>, packing: &Packing) -> Tensor<2> {
    let ([_, width], [_, out]) = (keys.dims(), values.dims());
    let queries = rows.clone().narrow(1, 0, width).unsqueeze_dim(1);
    let seen = seen(queries, keys, values, packing, 1, 1.0);
    answer(seen, rows.narrow(1, width, out + 1))
}

/// Attention weights, `[documents, labels, longest]`, from rows that begin with u.
pub(super) fn shares(rows: Tensor<2>, keys: Tensor<2>, packing: &Packing) -> Tensor<3> {
    let queries = rows.narrow(1, 0, keys.dims()[1]).unsqueeze_dim(1);
    weights(queries, keys, packing, 1, 1.0).squeeze_dim(1)
}

impl LabelPooling {
    /// Keys and values of all tokens.
    fn tokens(&self, input: &HeadInput<'_>, seed: Option<u64>) -> [Tensor<2>; 2] {
        let documents = input.documents;
        let seed = seed.map(|seed| place(seed, DROPOUT));
        let mut values = dropout(documents.packed(self.common.layer), self.common.dropout, seed);
        if let Some(convolution) = &self.convolution {
            values = convolution.forward(values, documents.packing()).tanh();
        }
        let keys = match &self.projection {
            Some(Projection::Plain(matrix)) => matrix.forward(values.clone()).tanh(),
            Some(Projection::Biased(linear)) => linear.forward(values.clone()).tanh(),
            None => values.clone(),
        };
        [keys, values]
    }

    /// u, w and b of each label.
    fn label_rows(&self, input: &HeadInput<'_>) -> Tensor<2> {
        let queries = match (&self.queries, input.labels) {
            (Some(queries), _) => queries.weight(),
            // Long vectors would make probabilities of 0 and 1.
            (None, Some(states)) => {
                let vectors = states.vectors.clone();
                let width = vectors.dims()[1] as f64;
                vectors / width.sqrt()
            }
            // Descriptions are always encoded for a head that wants them.
            (None, None) => unreachable!("vectors of labels are missing"),
        };
        let outputs = match &self.outputs {
            Some(outputs) => outputs.rows(),
            None => {
                let zeros = queries.clone().narrow(1, 0, 1).zeros_like();
                Tensor::cat(vec![queries.clone(), zeros], 1)
            }
        };
        Tensor::cat(vec![queries, outputs], 1)
    }

    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let packing = input.documents.packing().clone();
        let tokens = self.tokens(input, seed);
        let width = tokens[1].dims()[1];
        let at_once = labels_at_once(packing.n_sequences() * width.max(packing.longest()));
        let work = Arc::new(move |_, rows, _: &Vec<Linear>, tokens: &[Tensor<2>]| {
            pool(rows, tokens[0].clone(), tokens[1].clone(), &packing)
        });
        by_rows(self.label_rows(input), &Vec::new(), tokens.to_vec(), at_once, work).transpose()
    }
}

/// Mean over documents of Σ mean((w − b)²) over their labels: `outputs` has w and `described` b of these labels, all if
/// `None`.
fn distance(
    outputs: Tensor<2>,
    described: Tensor<2>,
    labels: Option<&[u32]>,
    gold: &[Vec<u32>],
) -> Tensor<1> {
    let [n, _] = described.dims();
    let mut shares = vec![0.0f32; n];
    for label in gold.iter().flatten() {
        let row = labels.map_or(Ok(*label as usize), |labels| labels.binary_search(label));
        if let Some(share) = row.ok().and_then(|row| shares.get_mut(row)) {
            *share += 1.0 / gold.len() as f32;
        }
    }
    let shares: Tensor<2> = Tensor::from_data(TensorData::new(shares, [n, 1]), &described.device());
    let difference = outputs - described;
    ((difference.clone() * difference).mean_dim(1) * shares).sum()
}

impl Head for LabelPooling {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let logits = self.compute(input, moment.seed);
        let objective = self.common.labelwise.objective(logits, gold, moment);
        let (Some(described), Some(outputs), Some(states)) = (&self.described, &self.outputs, input.labels)
        else {
            return objective;
        };
        let described = described.forward(states.vectors.clone());
        let labels = states.labels.as_deref();
        let outputs = select(outputs.rows(), labels).narrow(1, 0, described.dims()[1]);
        let distance = distance(outputs, described, labels, &columns(gold));
        objective.with("descriptions", self.common.description_weight, distance)
    }

    by_logits!(common.labelwise, except objective);

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        [self.common.layer].into_iter().collect()
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.outputs.as_ref()?.outputs())
    }

    fn label_batch(&self, gold: &[LabelSet], _moment: &Moment) -> Option<LabelBatch> {
        if self.described.is_some() {
            let labels: LabelSet = gold.iter().flat_map(|labels| labels.iter().copied()).collect();
            let labels: Vec<u32> = labels.iter().map(|label| label.index() as u32).collect();
            return (!labels.is_empty()).then_some(LabelBatch::Of(labels));
        }
        match self.common.refresh {
            _ if self.queries.is_some() => None,
            0 => Some(LabelBatch::All),
            updates => Some(LabelBatch::Every(updates)),
        }
    }

    fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
        let numbers: Vec<u32> = labels.iter().map(|label| label.index() as u32).collect();
        let [keys, _] = self.tokens(input, None);
        Some(shares(select(self.label_rows(input), Some(&numbers)), keys, input.documents.packing()))
    }

    fn group(&self, parameter: &str) -> Group {
        if parameter.starts_with("outputs") { Group::Output } else { Group::Labels }
    }
}

#[cfg(test)]
mod tests;
