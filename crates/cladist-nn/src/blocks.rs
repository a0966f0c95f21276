//! Blocks that several heads use.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use cladist_kernels::dropout::Dropout;
use rand_chacha::ChaCha8Rng;

use crate::encoder::{linear, normalise};
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
    pub(crate) fn new(inputs: usize, outputs: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
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

    /// `x [n, in]` → `[n, out]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        linear(x, self.weight.val(), self.bias.val())
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

/// Layer normalisation of each row, with gain and bias.
#[derive(Module, Debug)]
pub struct Norm {
    gain: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
}

impl Norm {
    /// A new block that changes neither scale nor place.
    pub(crate) fn new(width: usize, device: &Device) -> Self {
        let row = |value: f32| Param::from_data(TensorData::new(vec![value; width], [width]), device);
        Self { gain: row(1.0), bias: row(0.0) }
    }

    /// `x [n, width]`, each row with mean 0 and variance 1, scaled and moved.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        normalise(x, self.gain.val(), self.bias.val(), 1e-12)
    }
}

/// The recurrent half of an LSTM cell; what its inputs add to the gates comes from outside, so that all steps' inputs
/// can be multiplied at once.
#[derive(Module, Debug)]
pub struct Lstm {
    recurrent: Linear,
}

impl Lstm {
    /// A new cell with a forget bias of 1.
    pub(crate) fn new(hidden: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
        let mut recurrent = Linear::new(hidden, 4 * hidden, random, device);
        let bias: Vec<f32> = (0..4 * hidden).map(|n| if n / hidden == 1 { 1.0 } else { 0.0 }).collect();
        recurrent.bias = Param::from_data(TensorData::new(bias, [4 * hidden]), device);
        Self { recurrent }
    }

    /// One step from `(state, memory) [n, hidden]` with `input [n, 4·hidden]`, the input's share of the gates in the
    /// order in, forget, new, out.
    pub fn step(&self, input: Tensor<2>, state: Tensor<2>, memory: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let [n, hidden] = state.dims();
        let gates = input + self.recurrent.forward(state);
        let gate = |number: usize| gates.clone().slice([0..n, number * hidden..(number + 1) * hidden]);
        let kept = activation::sigmoid(gate(1)) * memory;
        let memory = kept + activation::sigmoid(gate(0)) * gate(2).tanh();
        (activation::sigmoid(gate(3)) * memory.clone().tanh(), memory)
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
    let mut factors = vec![0.0f32; rows * columns];
    for (number, row) in factors.chunks_exact_mut(columns.max(1)).enumerate() {
        dropout.factors((first + number) as u64, row);
    }
    let factors = Tensor::from_data(TensorData::new(factors, [rows, columns]), &x.device());
    x * factors
}
