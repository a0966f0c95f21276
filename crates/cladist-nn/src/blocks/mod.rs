//! Blocks that several heads use.

mod convolution;
mod perceptron;
mod recurrent;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_kernels::dropout::Dropout;
use rand_chacha::ChaCha8Rng;

pub use convolution::Convolution;
pub use perceptron::Perceptron;
pub use recurrent::{Bidirectional, Cell, Ends, Recurrence};

use crate::encoder::{linear, normalise};
use crate::fused::{self, drop_rows, is_cpu, normalise_rows};
use crate::parameters::to_vec;
use crate::random::{normal, xavier};

/// `x·Wᵀ + b` with `W [out, in]`.
#[derive(Module, Debug)]
pub struct Linear {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Linear {
    /// A new block: W by Xavier's uniform distribution, b = 0.
    pub fn new(inputs: usize, outputs: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
        let weight = TensorData::new(xavier(outputs, inputs, random), [outputs, inputs]);
        Self {
            weight: Param::from_data(weight, device),
            bias: Param::from_data(TensorData::new(vec![0.0f32; outputs], [outputs]), device),
        }
    }

    /// A new block: W by a normal distribution around 0, b = 0.
    pub(crate) fn normal(
        inputs: usize,
        outputs: usize,
        deviation: f32,
        random: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        let weight: Vec<f32> = (0..outputs * inputs).map(|_| normal(random) * deviation).collect();
        Self {
            weight: Param::from_data(TensorData::new(weight, [outputs, inputs]), device),
            bias: Param::from_data(TensorData::new(vec![0.0f32; outputs], [outputs]), device),
        }
    }

    /// The same block with this b.
    ///
    /// # Panics
    /// If there are not as many biases as outputs.
    #[must_use]
    pub fn with_bias(self, bias: Vec<f32>) -> Self {
        let shape = self.bias.dims();
        assert_eq!([bias.len()], shape, "a bias for each output");
        let bias = Param::from_data(TensorData::new(bias, shape), &self.weight.device());
        Self { bias, ..self }
    }

    /// `x [n, in]` → `[n, out]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let linear = if is_cpu(&x.device()) { fused::linear } else { linear };
        linear(x, self.weight.val(), self.bias.val())
    }

    /// A block with these values.
    #[cfg(test)]
    pub(crate) fn of(weight: Tensor<2>, bias: Tensor<1>, device: &Device) -> Self {
        let [n] = bias.dims();
        let bias = Param::from_data(TensorData::new(to_vec(bias), [n]), device);
        Self { weight: Matrix::of(weight, device).weight, bias }
    }

    /// W.
    pub(crate) fn weight(&self) -> Tensor<2> {
        self.weight.val()
    }

    /// b.
    pub(crate) fn bias(&self) -> Tensor<1> {
        self.bias.val()
    }

    /// The rows of `W`.
    pub(crate) fn outputs(&self) -> Vec<SparseRow> {
        sparse_rows(self.weight.val())
    }

    /// W and b side by side: `[out, in + 1]`.
    pub(crate) fn rows(&self) -> Tensor<2> {
        Tensor::cat(vec![self.weight.val(), self.bias.val().unsqueeze_dim(1)], 1)
    }
}

/// `x·Wᵀ` with `W [out, in]`.
#[derive(Module, Debug)]
pub struct Matrix {
    weight: Param<Tensor<2>>,
}

impl Matrix {
    /// A new matrix by Xavier's uniform distribution.
    pub(crate) fn new(inputs: usize, outputs: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
        let weight = TensorData::new(xavier(outputs, inputs, random), [outputs, inputs]);
        Self { weight: Param::from_data(weight, device) }
    }

    /// A matrix of given rows.
    pub(crate) fn of(rows: Tensor<2>, device: &Device) -> Self {
        let shape = rows.dims();
        Self { weight: Param::from_data(TensorData::new(to_vec(rows), shape), device) }
    }

    /// The rows of `W`.
    pub(crate) fn outputs(&self) -> Vec<SparseRow> {
        sparse_rows(self.weight.val())
    }

    /// W.
    pub(crate) fn weight(&self) -> Tensor<2> {
        self.weight.val()
    }

    /// `x [n, in]` → `[n, out]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight.val().transpose())
    }

    /// The rows of `W` with these numbers: `[n, in]`.
    pub fn rows(&self, numbers: &[u32]) -> Tensor<2> {
        let numbers: Vec<i64> = numbers.iter().map(|&number| i64::from(number)).collect();
        let shape = [numbers.len()];
        let weight = self.weight.val();
        let numbers = Tensor::<1, Int>::from_data(TensorData::new(numbers, shape), &weight.device());
        weight.select(0, numbers)
    }
}

fn sparse_rows(matrix: Tensor<2>) -> Vec<SparseRow> {
    let [_, width] = matrix.dims();
    let row = |values: &[f32]| (0..).zip(values.iter().copied()).collect();
    to_vec(matrix).chunks_exact(width.max(1)).map(row).collect()
}

/// Normalisation of each row to mean 0 and variance 1, then a gain and a bias for each column.
#[derive(Module, Debug)]
pub struct LayerNorm {
    gain: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
}

impl LayerNorm {
    /// Added to the variance.
    const EPSILON: f32 = 1e-12;

    /// A new block: gain 1, bias 0.
    pub(crate) fn new(width: usize, device: &Device) -> Self {
        let filled = |value: f32| Param::from_data(TensorData::new(vec![value; width], [width]), device);
        Self { gain: filled(1.0), bias: filled(0.0) }
    }

    /// `x [n, width]` → `[n, width]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let (gain, bias) = (self.gain.val(), self.bias.val());
        if is_cpu(&x.device()) {
            return normalise_rows(x, gain, bias, Self::EPSILON, false);
        }
        normalise(x, gain, bias, Self::EPSILON)
    }

    /// The same with ReLU after it.
    pub fn rectified(&self, x: Tensor<2>) -> Tensor<2> {
        if is_cpu(&x.device()) {
            return normalise_rows(x, self.gain.val(), self.bias.val(), Self::EPSILON, true);
        }
        activation::relu(self.forward(x))
    }
}

/// Normalisation of several rows at a time to mean 0 and variance 1, over all of their cells, then a gain and a bias for each column: rows
/// that are multiples of each other remain so.
#[derive(Module, Debug)]
pub struct BlockNorm {
    gain: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
}

impl BlockNorm {
    /// Added to the variance.
    const EPSILON: f32 = 1e-5;

    /// A new block: gain 1, bias 0.
    pub(crate) fn new(width: usize, device: &Device) -> Self {
        let LayerNorm { gain, bias } = LayerNorm::new(width, device);
        Self { gain, bias }
    }

    /// `rows` rows at a time, with ReLU after it: `x [n·rows, width]` → the same.
    pub fn rectified(&self, x: Tensor<2>, rows: usize) -> Tensor<2> {
        let [n, width] = x.dims();
        let cells = rows * width;
        let of_cells = |columns: Tensor<1>| columns.unsqueeze::<2>().repeat_dim(0, rows).reshape([cells]);
        let (gain, bias) = (of_cells(self.gain.val()), of_cells(self.bias.val()));
        let x = x.reshape([n / rows.max(1), cells]);
        let normalised = if is_cpu(&x.device()) {
            normalise_rows(x, gain, bias, Self::EPSILON, true)
        } else {
            activation::relu(normalise(x, gain, bias, Self::EPSILON))
        };
        normalised.reshape([n, width])
    }
}

/// Dropout whose mask is a function of the seed alone, so that training can be taken up again exactly.
pub fn dropout(x: Tensor<2>, rate: f64, seed: Option<u64>) -> Tensor<2> {
    dropout_from(0, x, rate, seed)
}

/// The same for rows of which the first has the number `first`.
pub(crate) fn dropout_from(first: usize, x: Tensor<2>, rate: f64, seed: Option<u64>) -> Tensor<2> {
    let Some(seed) = seed.filter(|_| rate > 0.0) else { return x };
    let [rows, columns] = x.dims();
    let dropout = Dropout { rate: rate as f32, seed };
    if is_cpu(&x.device()) {
        return drop_rows(x, dropout, first);
    }
    let mut factors = vec![0.0f32; rows * columns];
    for (number, row) in factors.chunks_exact_mut(columns.max(1)).enumerate() {
        dropout.factors((first + number) as u64, row);
    }
    let factors = Tensor::from_data(TensorData::new(factors, [rows, columns]), &x.device());
    x * factors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_normalised_together_keep_their_scale() {
        let device = Device::flex();
        let x: Tensor<2> = Tensor::from_floats(
            [[1.0, -1.0], [2.0, -2.0], [0.0, 0.0], [4.0, 0.0], [1.0, 0.0], [1.0, 0.0]],
            &device,
        );
        let mut norm = BlockNorm::new(2, &device);
        let got = to_vec(norm.rectified(x.clone(), 3));
        // Mean 0 and variance 10/6; mean 1 and variance 2.
        let (one, other) = ((10.0f32 / 6.0).sqrt(), 2.0f32.sqrt());
        let expected = [1.0 / one, 0.0, 2.0 / one, 0.0, 0.0, 0.0, 3.0 / other, 0.0, 0.0, 0.0, 0.0, 0.0];
        crate::toy::near(&got, &expected, 1e-4);
        norm.gain = Param::from_data(TensorData::new(vec![1.0f32, -2.0], [2]), &device);
        norm.bias = Param::from_data(TensorData::new(vec![0.0f32, 0.5], [2]), &device);
        let got = to_vec(norm.rectified(x.narrow(0, 0, 3), 3));
        crate::toy::near(&got, &[1.0 / one, 2.0 / one + 0.5, 2.0 / one, 4.0 / one + 0.5, 0.0, 0.5], 1e-4);
    }
}
