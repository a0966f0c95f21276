//! Linear layers on top of each other.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use cladist_core::text::tfidf::SparseRow;
use rand_chacha::ChaCha8Rng;

use super::Linear;

/// Linear layers with a ReLU between each two; without layers, nothing happens.
#[derive(Module, Debug)]
pub struct Perceptron {
    layers: Vec<Linear>,
}

impl Perceptron {
    /// New layers from each of these widths to the next.
    pub(crate) fn new(widths: &[usize], random: &mut ChaCha8Rng, device: &Device) -> Self {
        let layer = |pair: &[usize]| Linear::new(pair[0], pair[1], random, device);
        Self { layers: widths.windows(2).map(layer).collect() }
    }

    /// The same layers, the last of which has this bias.
    pub(crate) fn with_bias(mut self, bias: Vec<f32>) -> Self {
        if let Some(last) = self.layers.pop() {
            self.layers.push(last.with_bias(bias));
        }
        self
    }

    /// Whether there are no layers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// `x [n, first width]` → `[n, last width]`.
    pub fn forward(&self, mut x: Tensor<2>) -> Tensor<2> {
        for (n, layer) in self.layers.iter().enumerate() {
            x = layer.forward(if n > 0 { activation::relu(x) } else { x });
        }
        x
    }

    /// The rows of the last layer's weights.
    pub(crate) fn outputs(&self) -> Vec<SparseRow> {
        self.layers.last().map(Linear::outputs).unwrap_or_default()
    }
}
