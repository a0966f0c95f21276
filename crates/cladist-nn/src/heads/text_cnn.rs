//! TextCNN: convolutions over words, in two layouts.
//!
//! `kim`: convolutions of several widths side by side, ReLU, the maximum over the text, dropout, one output per label.
//! `two-layer`: convolution, ReLU, maximum of pairs, convolution, ReLU, maximum over the text, a hidden layer with ReLU,
//! dropout, normalisation, outputs. It is normalised layer-wise, where the original takes statistics of the batch: a
//! document's scores then do not depend on its neighbours.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Tensor, activation};
use cladist_core::text::tfidf::SparseRow;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::per_label::by_logits;
use super::settings::{check_matrix, check_rates, check_widths, setting};
use super::{DROPOUT, Head, HeadConfig, HeadContext, HeadInput, Labelwise, Masking};
use crate::blocks::{Convolution, LayerNorm, Linear, dropout};
use crate::encoder::{Encoded, LayerSet, Packing, place};
use crate::error::Result;
use crate::losses::Loss;

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
    pub kernels: Option<Vec<usize>>,
    /// Outputs of each convolution; 256 one on the other or 100 side by side if not given.
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
    convolutions: Vec<Convolution>,
    hidden: Option<Linear>,
    norm: Option<LayerNorm>,
    output: Linear,
    #[module(skip)]
    labelwise: Labelwise,
    #[module(skip)]
    layer: usize,
    #[module(skip)]
    dropout: f64,
}

impl HeadConfig for TextCnnConfig {
    type Head = TextCnn;

    fn masking(&self) -> Masking {
        Masking::Alone
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
        check_widths(&[("text-cnn.maps", maps)])?;
        let widest = kernels.iter().copied().max().unwrap_or(1);
        check_matrix("text-cnn.maps", maps, &[maps, widest, maps.max(context.hidden_size)])?;
        check_rates(&[("text-cnn.dropout", self.dropout)])?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let device = context.device;
        let two = self.layout == Layout::TwoLayer;
        let mut convolutions = Vec::new();
        for (n, kernel) in kernels.iter().enumerate() {
            let inputs = if two && n > 0 { maps } else { context.hidden_size };
            convolutions.push(Convolution::new(inputs, maps, *kernel, &mut random, device));
        }
        let width = if two { WIDEN * maps } else { kernels.len() * maps };
        Ok(TextCnn {
            convolutions,
            hidden: two.then(|| Linear::new(maps, width, &mut random, device)),
            norm: two.then(|| LayerNorm::new(width, device)),
            output: context.outputs(width, &mut random),
            labelwise: Labelwise::new(context, Loss::default()),
            layer: context.n_layers,
            dropout: self.dropout,
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
        let (words, packing) = (documents.packed(self.layer), documents.packing());
        let features = self.convolutions.iter().map(|convolution| {
            highest(packing.pad(activation::relu(convolution.forward(words.clone(), packing))))
        });
        Tensor::cat(features.collect(), 1)
    }

    fn two_layers(&self, documents: &Encoded, hidden: &Linear) -> Tensor<2> {
        let mut packing = documents.packing().clone();
        let mut x = documents.packed(self.layer);
        for (n, convolution) in self.convolutions.iter().enumerate() {
            if n > 0 {
                (x, packing) = pairs(packing.pad(x), &packing);
            }
            x = activation::relu(convolution.forward(x, &packing));
        }
        let places = packing.pad(x);
        activation::relu(hidden.forward(highest(places)))
    }
}

/// The highest of each pair of neighbours, packed. Padding is 0, and what ReLU left is at least that.
fn pairs(x: Tensor<3>, packing: &Packing) -> (Tensor<2>, Packing) {
    let ([n, places, width], device) = (x.dims(), x.device());
    let x = if places % 2 == 0 { x } else { Tensor::cat(vec![x, Tensor::zeros([n, 1, width], &device)], 1) };
    let half = places.div_ceil(2);
    let highest = x.reshape([n * half, 2, width]).max_dim(1).reshape([n * half, width]);
    let mut offsets = vec![0];
    for sequence in 0..n {
        offsets.push(offsets[sequence] + packing.length(sequence).div_ceil(2));
    }
    let packing = Packing::new(&offsets);
    (highest.select(0, packing.rows(&device)), packing)
}

/// The highest over the places.
fn highest(x: Tensor<3>) -> Tensor<2> {
    let [n, _, width] = x.dims();
    x.max_dim(1).reshape([n, width])
}

impl Head for TextCnn {
    by_logits!(labelwise);

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        [self.layer].into_iter().collect()
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.output.outputs())
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::to_vec;

    #[test]
    fn pairs_end_where_texts_end() {
        let packing = Packing::new(&[0, 3, 5, 6]);
        let rows = [[1.0f32], [4.0], [2.0], [5.0], [3.0], [7.0]];
        let x = packing.pad(Tensor::from_floats(rows, &Device::flex()));
        let (halves, packing) = pairs(x.clone(), &packing);
        assert_eq!((to_vec(halves), &packing.offsets[..]), (vec![4.0, 2.0, 5.0, 7.0], &[0, 2, 3, 4][..]));
        assert_eq!(to_vec(highest(x)), [4.0, 5.0, 7.0]);
    }
}
