//! Convolutions over words, in two layouts.
//!
//! `kim`: convolutions of several widths side by side, ReLU, the maximum over the text, dropout, one output per label.
//! `two-layer`: convolution, ReLU, maximum of pairs, convolution, ReLU, maximum over the text, a hidden layer with ReLU,
//! dropout, normalisation, outputs. It is normalised layer-wise, where the original takes statistics of the batch: a
//! document's scores then do not depend on its neighbours.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Tensor, TensorData, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{DROPOUT, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Task, rows, setting};
use crate::blocks::{LayerNorm, Linear, dropout};
use crate::encoder::{Encoded, LayerSet, Packing, place};
use crate::error::Result;

/// One line of help.
pub const ABOUT: &str = "convolutions over word vectors (TextCNN: two layers, or Kim's)";

/// How convolutions are arranged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// One on the other.
    #[default]
    TwoLayer,
    /// Several widths side by side.
    Kim,
}

/// Settings of the convolutional head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextCnnConfig {
    /// How convolutions are arranged: `two-layer` or `kim`.
    pub layout: Layout,
    /// Words that each convolution sees; 3 and 3 one on the other or 3, 4 and 5 side by side if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<Vec<usize>>,
    /// Outputs of each convolution; 256 one on the other or 100 side by side if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maps: Option<usize>,
    /// Dropout before the output.
    pub dropout: f64,
}

impl Default for TextCnnConfig {
    fn default() -> Self {
        Self { layout: Layout::default(), kernels: None, maps: None, dropout: 0.5 }
    }
}

/// Units of the hidden layer for each map of the convolution below.
const WIDEN: usize = 2;

/// The head.
#[derive(Module, Debug)]
pub struct TextCnn {
    convolutions: Vec<Linear>,
    hidden: Option<Linear>,
    norm: Option<LayerNorm>,
    output: Linear,
    #[module(skip)]
    kernels: Vec<usize>,
    #[module(skip)]
    labels: Vec<LabelId>,
    #[module(skip)]
    layer: usize,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    task: Task,
    #[module(skip)]
    label_smoothing: f64,
}

impl HeadConfig for TextCnnConfig {
    type Head = TextCnn;

    fn pooled(&self) -> bool {
        false
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<TextCnn> {
        let (kernels, maps) = match self.layout {
            Layout::TwoLayer => (vec![3, 3], 256),
            Layout::Kim => (vec![3, 4, 5], 100),
        };
        let (kernels, maps) = (self.kernels.clone().unwrap_or(kernels), self.maps.unwrap_or(maps));
        let list = || format!("{kernels:?}");
        if kernels.is_empty() || kernels.iter().any(|kernel| !(1..=32).contains(kernel)) {
            return Err(setting("text-cnn.kernels", "a list of widths from 1 to 32", list()));
        }
        if self.layout == Layout::TwoLayer
            && (kernels.len() != 2 || kernels.iter().any(|kernel| kernel % 2 == 0))
        {
            return Err(setting("text-cnn.kernels", "two odd widths with `layout = \"two-layer\"`", list()));
        }
        if !(1..=16_384).contains(&maps) {
            return Err(setting("text-cnn.maps", "1 to 16384", maps));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(setting("text-cnn.dropout", "at least 0 and below 1", self.dropout));
        }
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let (n_labels, device) = (context.taxonomy.n_labels(), context.device);
        let two = self.layout == Layout::TwoLayer;
        let mut convolutions = Vec::new();
        for (n, kernel) in kernels.iter().enumerate() {
            let inputs = if two && n > 0 { maps } else { context.hidden_size };
            convolutions.push(Linear::new(kernel * inputs, maps, &mut random, device));
        }
        let width = if two { WIDEN * maps } else { kernels.len() * maps };
        Ok(TextCnn {
            convolutions,
            hidden: two.then(|| Linear::new(maps, width, &mut random, device)),
            norm: two.then(|| LayerNorm::new(width, device)),
            output: Linear::new(width, n_labels, &mut random, device),
            kernels,
            labels: context.taxonomy.labels().collect(),
            layer: context.n_layers,
            dropout: self.dropout,
            task: context.task,
            label_smoothing: context.label_smoothing,
        })
    }
}

impl TextCnn {
    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let features = match &self.hidden {
            Some(hidden) => self.two_layers(input.documents, hidden),
            None => self.side_by_side(input.documents),
        };
        let mut features = dropout(features, self.dropout, seed.map(|seed| place(seed, DROPOUT)));
        if let Some(norm) = &self.norm {
            features = norm.forward(features);
        }
        self.output.forward(features)
    }

    fn side_by_side(&self, documents: &Encoded) -> Tensor<2> {
        let (words, packing) = (documents.tokens(self.layer).0, documents.packing());
        let lengths = lengths(packing);
        let features = self.convolutions.iter().zip(&self.kernels).map(|(convolution, &kernel)| {
            // A convolution begins before the text and ends after it, by all its words but one.
            let ends: Vec<usize> = lengths.iter().map(|length| length + kernel - 1).collect();
            highest(convolve(convolution, words.clone(), kernel, kernel - 1, &ends))
        });
        Tensor::cat(features.collect(), 1)
    }

    fn two_layers(&self, documents: &Encoded, hidden: &Linear) -> Tensor<2> {
        let mut x = documents.tokens(self.layer).0;
        let mut lengths = lengths(documents.packing());
        for (n, (convolution, &kernel)) in self.convolutions.iter().zip(&self.kernels).enumerate() {
            if n > 0 {
                x = pairs(x);
                lengths.iter_mut().for_each(|length| *length = length.div_ceil(2));
            }
            x = convolve(convolution, x, kernel, kernel / 2, &lengths);
        }
        activation::relu(hidden.forward(highest(x)))
    }
}

fn lengths(packing: &Packing) -> Vec<usize> {
    (0..packing.n_sequences()).map(|sequence| packing.length(sequence)).collect()
}

/// ReLU of a convolution with `padding` zeros on both sides of `[n, words, width]`; 0 from each text's end on.
fn convolve(block: &Linear, x: Tensor<3>, kernel: usize, padding: usize, ends: &[usize]) -> Tensor<3> {
    let ([n, words, width], device) = (x.dims(), x.device());
    let side = Tensor::zeros([n, padding, width], &device);
    let x = if padding > 0 { Tensor::cat(vec![side.clone(), x, side], 1) } else { x };
    // A text shorter than the convolution is wide has no place but the first.
    let places = (words + 2 * padding + 1).saturating_sub(kernel);
    let windows: Vec<Tensor<3>> =
        (0..kernel).map(|at| x.clone().slice([0..n, at..at + places, 0..width])).collect();
    let windows = Tensor::cat(windows, 2).reshape([n * places, kernel * width]);
    let y = activation::relu(block.forward(windows));
    let [_, maps] = y.dims();
    let cells: Vec<f32> = (ends.iter())
        .flat_map(|&end| (0..places).map(move |place| if place < end { 1.0 } else { 0.0 }))
        .collect();
    let mask = Tensor::<3>::from_data(TensorData::new(cells, [n, places, 1]), &device);
    y.reshape([n, places, maps]) * mask
}

/// The highest of each pair of neighbours.
fn pairs(x: Tensor<3>) -> Tensor<3> {
    let [n, places, width] = x.dims();
    let x = if places % 2 == 0 {
        x
    } else {
        Tensor::cat(vec![x.clone(), Tensor::zeros([n, 1, width], &x.device())], 1)
    };
    let half = places.div_ceil(2);
    x.reshape([n, half, 2, width]).max_dim(2).reshape([n, half, width])
}

/// The highest over the places; what ReLU left is at least 0, and so is what was masked.
fn highest(x: Tensor<3>) -> Tensor<2> {
    let [n, _, width] = x.dims();
    x.max_dim(1).reshape([n, width])
}

impl Head for TextCnn {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        self.task.objective(self.compute(input, moment.seed), gold, self.label_smoothing)
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        [self.layer].into_iter().collect()
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        Some((self.compute(input, None), self.labels.clone()))
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.output.outputs())
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        rows(self.task.probabilities(self.compute(input, None)), &self.labels, top_k)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::{named, replace, to_vec};

    #[test]
    fn a_convolution_is_the_sum_over_its_window() {
        let device = Device::flex();
        let block = Linear::new(4, 1, &mut ChaCha8Rng::seed_from_u64(1), &device);
        let mut values = named(&block);
        values.get_mut("weight").unwrap().1.copy_from_slice(&[1.0, 10.0, 100.0, 1000.0]);
        values.get_mut("bias").unwrap().1.fill(0.5);
        let block = replace(block, values).unwrap();
        let x = Tensor::<3>::from_data([[[1.0f32, 2.0], [3.0, 4.0], [0.0, 0.0]]], &device);
        // Kernel 2, a zero on each side, and a text of two words: three places.
        let y = convolve(&block, x, 2, 1, &[3]);
        assert_eq!(to_vec(y.clone()), [2100.5, 4321.5, 43.5, 0.0]);
        assert_eq!(to_vec(pairs(y.clone())), [4321.5, 43.5]);
        assert_eq!(to_vec(highest(y)), [4321.5]);
    }
}
