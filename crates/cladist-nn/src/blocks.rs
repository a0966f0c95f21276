//! Blocks that several heads use.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use cladist_kernels::dropout::Dropout;
use rand_chacha::ChaCha8Rng;

use crate::encoder::linear;
use crate::random::xavier;

/// `x·Wᵀ + b` with `W [out, in]`.
#[derive(Module, Debug)]
pub struct Linear {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Linear {
    /// A new block: W by Xavier's uniform distribution, b = 0.
    pub(crate) fn new(inputs: usize, outputs: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
        let weight = TensorData::new(xavier(outputs, inputs, random), [outputs, inputs]);
        Self {
            weight: Param::from_data(weight, device),
            bias: Param::from_data(TensorData::new(vec![0.0f32; outputs], [outputs]), device),
        }
    }

    /// `x [n, in]` → `[n, out]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        linear(x, self.weight.val(), self.bias.val())
    }
}

/// Dropout whose mask is a function of the seed alone, so that training can be taken up again exactly.
pub fn dropout(x: Tensor<2>, rate: f64, seed: Option<u64>) -> Tensor<2> {
    let Some(seed) = seed.filter(|_| rate > 0.0) else { return x };
    let [rows, columns] = x.dims();
    let dropout = Dropout { rate: rate as f32, seed };
    let mut factors = vec![0.0f32; rows * columns];
    for (number, row) in factors.chunks_exact_mut(columns.max(1)).enumerate() {
        dropout.factors(number as u64, row);
    }
    let factors = Tensor::from_data(TensorData::new(factors, [rows, columns]), &x.device());
    x * factors
}
