//! Label-wise attention over n-grams that a tree-structured LSTM composes of shorter ones (BiForest, Wang et al. 2019).
//!
//! A word is a node with c = i⊙u, h = o⊙tanh(c). An n-gram is a node made of two, with gates from both:
//! ```text
//! c = i⊙u + f_l⊙c_l + f_r⊙c_r     h = o⊙tanh(c)
//! ```
//! In one forest it is made of the n-gram without its last word and that word, in the other of its first word and the rest;
//! each forest has parameters of its own, the same for all lengths. Label-wise attention, as in [`super::label_pooling`], is over
//! the nodes of both, so that evidence is phrases rather than words.

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData, activation};
use cladist_core::LabelId;
use cladist_core::text::tfidf::SparseRow;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::label_attention::{labels_at_once, select};
use super::label_pooling::{pool, shares};
use super::per_label::by_logits;
use super::settings::{check_rates, check_recurrent, setting};
use super::{BCE_EPOCHS, DROPOUT, Group, Head, HeadConfig, HeadContext, HeadInput, Labelwise, Masking};
use crate::blocks::{Linear, Matrix, dropout};
use crate::encoder::{LayerSet, Packing, place};
use crate::error::Result;
use crate::fused::by_rows;
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "label-wise attention over n-grams composed by a tree-structured LSTM (BiForest)";

/// Settings of the BiForest head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BiforestConfig {
    /// Words of the longest n-gram.
    pub longest: usize,
    /// Width of a node.
    pub width: usize,
    /// Dropout on token states.
    pub dropout: f64,
    /// The loss of any number of labels: `bce`, `f-measure`, `macro-f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
    /// Epochs that `f-measure` and `macro-f-measure` learn as `bce` first, from when the encoder learns.
    pub bce_epochs: usize,
}

impl Default for BiforestConfig {
    fn default() -> Self {
        Self { longest: 5, width: 128, dropout: 0.2, loss: Loss::default(), bce_epochs: BCE_EPOCHS }
    }
}

/// Nodes of n-grams of all lengths.
#[derive(Module, Debug)]
pub struct Forest {
    word: Linear,
    compose: Linear,
}

/// The head.
#[derive(Module, Debug)]
pub struct Biforest {
    /// The one in which words come last, and the one in which they come first.
    forests: Vec<Forest>,
    queries: Matrix,
    outputs: Linear,
    #[module(skip)]
    config: BiforestConfig,
    #[module(skip)]
    labelwise: Labelwise,
    #[module(skip)]
    layer: usize,
}

impl HeadConfig for BiforestConfig {
    type Head = Biforest;

    fn masking(&self) -> Masking {
        Masking::Alone
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Biforest> {
        let Self { longest, width, dropout, .. } = *self;
        if !(1..=20).contains(&longest) {
            return Err(setting("biforest.longest", "1 to 20", longest));
        }
        check_recurrent("biforest.width", width)?;
        check_rates(&[("biforest.dropout", dropout)])?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let (hidden, n_labels, device) = (context.hidden_size, context.taxonomy.n_labels(), context.device);
        let mut forest = || Forest {
            word: Linear::new(hidden, 3 * width, &mut random, device),
            compose: Linear::new(2 * width, 5 * width, &mut random, device),
        };
        let forests = vec![forest(), forest()];
        Ok(Biforest {
            forests,
            queries: Matrix::new(width, n_labels, &mut random, device),
            outputs: context.outputs(width, &mut random),
            config: self.clone(),
            labelwise: Labelwise::new(context, self.loss).with_bce_epochs(self.bce_epochs),
            layer: context.n_layers,
        })
    }
}

/// h and c of nodes, each `[nodes, width]`.
type Nodes = (Tensor<2>, Tensor<2>);

impl Forest {
    /// The nodes of words.
    fn words(&self, states: Tensor<2>) -> Nodes {
        let gates = self.word.forward(states);
        let width = gates.dims()[1] / 3;
        let part = |n: usize| gates.clone().narrow(1, n * width, width);
        let c = activation::sigmoid(part(0)) * part(2).tanh();
        (activation::sigmoid(part(1)) * c.clone().tanh(), c)
    }

    /// The node of each pair.
    fn pairs(&self, left: Nodes, right: Nodes) -> Nodes {
        let gates = self.compose.forward(Tensor::cat(vec![left.0, right.0], 1));
        let width = gates.dims()[1] / 5;
        let part = |n: usize| gates.clone().narrow(1, n * width, width);
        let c = activation::sigmoid(part(0)) * part(4).tanh()
            + activation::sigmoid(part(2)) * left.1
            + activation::sigmoid(part(3)) * right.1;
        (activation::sigmoid(part(1)) * c.clone().tanh(), c)
    }
}

/// N-grams of a batch in the order of their nodes: the first word of each among all tokens, and its length.
struct Grams {
    /// Nodes by document, and where they lie among all nodes.
    packing: Packing,
    rows: Vec<usize>,
    /// Of each node in the order of `rows`.
    spans: Vec<(usize, usize)>,
}

impl Biforest {
    /// Values of all nodes `[nodes, width]` by document.
    fn nodes(&self, input: &HeadInput<'_>, seed: Option<u64>) -> (Tensor<2>, Grams) {
        let packing = input.documents.packing();
        let seed = seed.map(|seed| place(seed, DROPOUT));
        let states = dropout(input.documents.packed(self.layer), self.config.dropout, seed);
        let device = states.device();
        let (mut values, mut spans) = (Vec::new(), Vec::new());
        for (words_first, forest) in self.forests.iter().enumerate() {
            let words = forest.words(states.clone());
            let mut below = words.clone();
            // The first words of n-grams of the length below, and of this one.
            let mut starts: Vec<usize> = (0..states.dims()[0]).collect();
            spans.extend(starts.iter().map(|&start| (start, 1)));
            values.push(words.0.clone());
            for length in 2..=self.config.longest.min(packing.longest()) {
                let (mut shorter, mut word, mut next) = (Vec::new(), Vec::new(), Vec::new());
                for sequence in 0..packing.n_sequences() {
                    let end = packing.offsets[sequence + 1];
                    let own = starts.partition_point(|&start| start < packing.offsets[sequence])
                        ..starts.partition_point(|&start| start < end);
                    for (row, &start) in own.clone().zip(&starts[own]) {
                        if start + length <= end {
                            shorter.push(row + words_first);
                            word.push(if words_first == 0 { start + length - 1 } else { start });
                            next.push(start);
                        }
                    }
                }
                let pick = |nodes: &Nodes, rows: &[usize]| {
                    let rows = numbers(rows, &device);
                    (nodes.0.clone().select(0, rows.clone()), nodes.1.clone().select(0, rows))
                };
                let (shorter, word) = (pick(&below, &shorter), pick(&words, &word));
                below =
                    if words_first == 0 { forest.pairs(shorter, word) } else { forest.pairs(word, shorter) };
                values.push(below.0.clone());
                spans.extend(next.iter().map(|&start| (start, length)));
                starts = next;
            }
        }
        let grams = by_document(&spans, packing);
        let values = Tensor::cat(values, 0).select(0, numbers(&grams.rows, &device));
        (values, grams)
    }

    fn label_rows(&self) -> Tensor<2> {
        Tensor::cat(vec![self.queries.weight(), self.outputs.rows()], 1)
    }

    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let (values, Grams { packing, .. }) = self.nodes(input, seed);
        let at_once = labels_at_once(packing.n_sequences() * self.config.width.max(packing.longest()));
        let work = Arc::new(move |_, rows, _: &Vec<Linear>, values: &[Tensor<2>]| {
            pool(rows, values[0].clone(), values[0].clone(), &packing)
        });
        by_rows(self.label_rows(), &Vec::new(), vec![values], at_once, work).transpose()
    }
}

fn numbers(rows: &[usize], device: &burn::tensor::Device) -> Tensor<1, Int> {
    let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
    let shape = [rows.len()];
    Tensor::from_data(TensorData::new(rows, shape), device)
}

/// Puts the nodes of each document side by side.
fn by_document(spans: &[(usize, usize)], packing: &Packing) -> Grams {
    let document = |token: usize| packing.offsets.partition_point(|&offset| offset <= token) - 1;
    let mut rows: Vec<usize> = (0..spans.len()).collect();
    rows.sort_by_key(|&row| document(spans[row].0));
    let mut offsets = vec![0; packing.n_sequences() + 1];
    for (start, _) in spans {
        offsets[document(*start) + 1] += 1;
    }
    for n in 1..offsets.len() {
        offsets[n] += offsets[n - 1];
    }
    let spans = rows.iter().map(|&row| spans[row]).collect();
    Grams { packing: Packing::new(&offsets), rows, spans }
}

impl Head for Biforest {
    by_logits!(labelwise);

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        [self.layer].into_iter().collect()
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.outputs.outputs())
    }

    /// The weight of an n-gram goes to its words in equal parts.
    fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
        let of_labels: Vec<u32> = labels.iter().map(|label| label.index() as u32).collect();
        let (values, Grams { packing: nodes, spans, .. }) = self.nodes(input, None);
        let device = values.device();
        let weights = shares(select(self.label_rows(), Some(&of_labels)), values, &nodes);
        let weights = crate::parameters::to_vec(weights);
        let tokens = input.documents.packing();
        let longest = tokens.longest();
        let mut shares = vec![0.0f32; tokens.n_sequences() * labels.len() * longest];
        for document in 0..tokens.n_sequences() {
            let own = nodes.offsets[document]..nodes.offsets[document + 1];
            for label in 0..labels.len() {
                let row = document * labels.len() + label;
                for (&(start, length), weight) in
                    spans[own.clone()].iter().zip(&weights[row * nodes.longest()..])
                {
                    let first = row * longest + start - tokens.offsets[document];
                    shares[first..first + length]
                        .iter_mut()
                        .for_each(|share| *share += weight / length as f32);
                }
            }
        }
        let shape = [tokens.n_sequences(), labels.len(), longest];
        Some(Tensor::from_data(TensorData::new(shares, shape), &device))
    }

    fn group(&self, parameter: &str) -> Group {
        if parameter.starts_with("outputs") { Group::Output } else { Group::Labels }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::to_vec;

    #[test]
    fn a_node_is_the_formula() {
        let device = Device::flex();
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let forest = Forest {
            word: Linear::new(2, 3, &mut random, &device),
            compose: Linear::new(2, 5, &mut random, &device),
        };
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let (h, c) = forest.words(Tensor::from_floats([[0.5, -1.0], [2.0, 0.3]], &device));
        let gates = to_vec(forest.word.forward(Tensor::from_floats([[0.5, -1.0], [2.0, 0.3]], &device)));
        let (h, c) = (to_vec(h), to_vec(c));
        for n in 0..2 {
            let expected = sigmoid(gates[n * 3]) * gates[n * 3 + 2].tanh();
            assert!((c[n] - expected).abs() < 1e-6);
            assert!((h[n] - sigmoid(gates[n * 3 + 1]) * expected.tanh()).abs() < 1e-6);
        }
        let node = |n: usize| {
            (Tensor::<2>::from_floats([[h[n]]], &device), Tensor::<2>::from_floats([[c[n]]], &device))
        };
        let (pair_h, pair_c) = forest.pairs(node(0), node(1));
        let g = to_vec(forest.compose.forward(Tensor::from_floats([[h[0], h[1]]], &device)));
        let expected = sigmoid(g[0]) * g[4].tanh() + sigmoid(g[2]) * c[0] + sigmoid(g[3]) * c[1];
        assert!((to_vec(pair_c)[0] - expected).abs() < 1e-6);
        assert!((to_vec(pair_h)[0] - sigmoid(g[1]) * expected.tanh()).abs() < 1e-6);
    }

    #[test]
    fn nodes_of_a_document_lie_side_by_side() {
        let packing = Packing::new(&[0, 2, 3]);
        // Words of both documents, the one pair there is; and the same of the other forest.
        let spans = [(0, 1), (1, 1), (2, 1), (0, 2), (0, 1), (1, 1), (2, 1), (0, 2)];
        let grams = by_document(&spans, &packing);
        assert_eq!(grams.rows, [0, 1, 3, 4, 5, 7, 2, 6]);
        assert_eq!(&grams.packing.offsets[..], [0, 6, 8]);
    }
}
