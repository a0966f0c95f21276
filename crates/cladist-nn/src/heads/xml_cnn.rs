//! Convolutions over words with dynamic pooling, for very many labels (Liu et al. 2017).
//!
//! Convolutions of several widths, two words apart; of each map the text is cut into as many pieces as are wanted and the
//! highest of every piece is kept, so that it also shows where something was said. Then a hidden layer, and one
//! output per label.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData, activation};
use cladist_core::text::tfidf::SparseRow;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::per_label::by_logits;
use super::settings::{check_matrix, check_rates, check_widths, setting};
use super::{DROPOUT, Head, HeadConfig, HeadContext, HeadInput, Labelwise, Masking};
use crate::blocks::{Convolution, Linear, dropout};
use crate::encoder::{LayerSet, Packing, place};
use crate::error::Result;
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "convolutions over word vectors with dynamic pooling, for very many labels (XML-CNN)";

/// Settings of the head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XmlCnnConfig {
    /// Words that each convolution sees.
    pub kernels: Vec<usize>,
    /// Outputs of each convolution.
    pub maps: usize,
    /// Words from one place of a convolution to the next.
    pub stride: usize,
    /// Pieces of the text of which the highest is kept.
    pub pieces: usize,
    /// Units of the hidden layer.
    pub hidden: usize,
    /// Dropout on word vectors.
    pub word_dropout: f64,
    /// Dropout before the output.
    pub dropout: f64,
}

impl Default for XmlCnnConfig {
    fn default() -> Self {
        Self {
            kernels: vec![2, 4, 8],
            maps: 32,
            stride: 2,
            pieces: 32,
            hidden: 512,
            word_dropout: 0.25,
            dropout: 0.5,
        }
    }
}

/// The head.
#[derive(Module, Debug)]
pub struct XmlCnn {
    convolutions: Vec<Convolution>,
    hidden: Linear,
    output: Linear,
    #[module(skip)]
    labelwise: Labelwise,
    #[module(skip)]
    layer: usize,
    #[module(skip)]
    config: XmlCnnConfig,
}

impl HeadConfig for XmlCnnConfig {
    type Head = XmlCnn;

    fn masking(&self) -> Masking {
        Masking::Alone
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<XmlCnn> {
        self.check()?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let random = &mut random;
        let device = context.device;
        let convolution =
            |&kernel: &usize| Convolution::new(context.hidden_size, self.maps, kernel, random, device);
        let convolutions: Vec<Convolution> = self.kernels.iter().map(convolution).collect();
        let width = convolutions.len() * self.pieces * self.maps;
        Ok(XmlCnn {
            convolutions,
            hidden: Linear::new(width, self.hidden, random, device),
            output: context.outputs(self.hidden, random),
            labelwise: Labelwise::new(context, Loss::default()),
            layer: context.n_layers,
            config: self.clone(),
        })
    }
}

impl XmlCnnConfig {
    fn check(&self) -> Result<()> {
        if self.kernels.is_empty() || self.kernels.iter().any(|kernel| !(1..=32).contains(kernel)) {
            let kernels = format!("{:?}", self.kernels);
            return Err(setting("xml-cnn.kernels", "a list of widths from 1 to 32", kernels));
        }
        check_widths(&[
            ("xml-cnn.maps", self.maps),
            ("xml-cnn.stride", self.stride),
            ("xml-cnn.pieces", self.pieces),
            ("xml-cnn.hidden", self.hidden),
        ])?;
        let sizes = [self.kernels.len(), self.pieces, self.maps, self.hidden];
        check_matrix("xml-cnn.pieces", self.pieces, &sizes)?;
        check_rates(&[("xml-cnn.word_dropout", self.word_dropout), ("xml-cnn.dropout", self.dropout)])
    }
}

impl XmlCnn {
    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let XmlCnnConfig { stride, pieces, word_dropout, dropout: rate, .. } = self.config;
        let drop = |x: Tensor<2>, rate: f64, site: u64| {
            dropout(x, rate, seed.map(|seed| place(seed, DROPOUT + site)))
        };
        let packing = input.documents.packing();
        let words = drop(input.documents.packed(self.layer), word_dropout, 0);
        let features = self.convolutions.iter().map(|convolution| {
            let (maps, places) = convolution.forward_by(stride, words.clone(), packing);
            highest(activation::relu(maps), &places, pieces)
        });
        let hidden = activation::relu(self.hidden.forward(Tensor::cat(features.collect(), 1)));
        self.output.forward(drop(hidden, rate, 1))
    }
}

/// The highest of each column over each of so many pieces of a text, `[texts, pieces·width]`. Pieces of a text of l places
/// go from ⌊i·l/n⌋ to ⌈(i + 1)·l/n⌉: a text with fewer places than pieces has some of them twice.
fn highest(x: Tensor<2>, packing: &Packing, pieces: usize) -> Tensor<2> {
    let ([_, width], device, n) = (x.dims(), x.device(), packing.n_sequences());
    let longest = (packing.longest() / pieces + 2).min(packing.longest().max(1));
    let nothing = packing.n_tokens();
    let mut rows = Vec::with_capacity(n * pieces * longest);
    for text in 0..n {
        let (start, length) = (packing.offsets[text], packing.length(text));
        for piece in 0..pieces {
            let (first, end) = (piece * length / pieces, ((piece + 1) * length).div_ceil(pieces));
            // A place that is there twice is as high as once.
            let place = |n: usize| if length == 0 { nothing } else { start + (first + n).min(end - 1) };
            rows.extend((0..longest).map(|n| place(n) as i64));
        }
    }
    let cells = rows.len();
    let rows: Tensor<1, Int> = Tensor::from_data(TensorData::new(rows, [cells]), &device);
    let x = Tensor::cat(vec![x, Tensor::zeros([1, width], &device)], 0);
    x.select(0, rows).reshape([n * pieces, longest, width]).max_dim(1).reshape([n, pieces * width])
}

impl Head for XmlCnn {
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
    fn every_piece_of_a_text_keeps_its_highest() {
        let rows = [[1.0f32], [4.0], [2.0], [5.0], [3.0], [7.0], [6.0]];
        let x = || Tensor::<2>::from_floats(rows, &Device::flex());
        // Texts of five places, of one and of none, and one more.
        let packing = Packing::new(&[0, 5, 6, 6, 7]);
        // Five places in two pieces: 0 to 2 and 2 to 4.
        assert_eq!(to_vec(highest(x(), &packing, 2)), [4.0, 5.0, 7.0, 7.0, 0.0, 0.0, 6.0, 6.0]);
        assert_eq!(to_vec(highest(x(), &packing, 1)), [5.0, 7.0, 0.0, 6.0]);
        let each = to_vec(highest(x(), &packing, 5));
        assert_eq!(each[..5], [1.0, 4.0, 2.0, 5.0, 3.0]);
        assert_eq!(each[5..10], [7.0; 5]);
        // More pieces than places.
        assert_eq!(to_vec(highest(x(), &packing, 10))[..4], [1.0, 1.0, 4.0, 4.0]);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        let refused = |config: XmlCnnConfig, key: &str| {
            let message = config.check().unwrap_err().to_string();
            assert!(message.contains(key), "{message}");
        };
        let default = XmlCnnConfig::default;
        refused(XmlCnnConfig { kernels: vec![], ..default() }, "xml-cnn.kernels");
        refused(XmlCnnConfig { stride: 0, ..default() }, "xml-cnn.stride");
        refused(XmlCnnConfig { pieces: 0, ..default() }, "xml-cnn.pieces");
        refused(XmlCnnConfig { word_dropout: 1.0, ..default() }, "xml-cnn.word_dropout");
    }
}
