//! A convolution over the tokens of each document.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use super::Linear;
use crate::encoder::Packing;

/// An output for each token from it and its neighbours; beyond the ends of a document there are zeros.
#[derive(Module, Debug)]
pub struct Convolution {
    /// On the states of all places side by side, the leftmost first.
    linear: Linear,
    #[module(skip)]
    kernel: usize,
}

impl Convolution {
    /// A new convolution over `kernel` places, as many to both sides if they are odd, by Xavier's uniform distribution.
    pub(crate) fn new(
        width: usize,
        filters: usize,
        kernel: usize,
        random: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        Self { linear: Linear::new(kernel * width, filters, random, device), kernel }
    }

    /// `[tokens, width]` → `[tokens, filters]`
    pub(crate) fn forward(&self, states: Tensor<2>, packing: &Packing) -> Tensor<2> {
        let [tokens, width] = states.dims();
        let device = states.device();
        // Row `tokens` is the one of zeros.
        let states = Tensor::cat(vec![states, Tensor::zeros([1, width], &device)], 0);
        let reach = self.kernel / 2;
        let mut rows = Vec::with_capacity(tokens * self.kernel);
        for sequence in 0..packing.n_sequences() {
            let span = packing.offsets[sequence]..packing.offsets[sequence + 1];
            for token in span.clone() {
                let places = (token..token + self.kernel).map(|place| place.checked_sub(reach));
                rows.extend(places.map(|place| match place {
                    Some(place) if span.contains(&place) => place as i64,
                    _ => tokens as i64,
                }));
            }
        }
        let rows: Tensor<1, Int> = Tensor::from_data(TensorData::new(rows, [tokens * self.kernel]), &device);
        self.linear.forward(states.select(0, rows).reshape([tokens, self.kernel * width]))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use rand::SeedableRng;

    use super::*;
    use crate::parameters::to_vec;

    #[test]
    fn a_window_ends_where_the_document_ends() {
        let device = Device::flex();
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let convolution = Convolution::new(2, 3, 3, &mut random, &device);
        let states = [[1.0f32, 2.0], [-1.0, 0.5], [3.0, 0.0], [0.0, 7.0], [0.2, 0.1]];
        let weights = to_vec(convolution.linear.rows());
        let got =
            to_vec(convolution.forward(Tensor::from_floats(states, &device), &Packing::new(&[0, 3, 5])));
        for (token, got) in got.chunks_exact(3).enumerate() {
            let document = if token < 3 { 0..3 } else { 3..5 };
            for (filter, got) in got.iter().enumerate() {
                let mut expected = 0.0;
                for place in 0..3 {
                    let Some(neighbour) = (token + place).checked_sub(1) else { continue };
                    if document.contains(&neighbour) {
                        for (n, state) in states[neighbour].iter().enumerate() {
                            // Six weights and a bias for each filter.
                            expected += weights[filter * 7 + place * 2 + n] * state;
                        }
                    }
                }
                assert!((got - expected).abs() < 1e-5, "{token} {filter}: {got} {expected}");
            }
        }
    }
}
