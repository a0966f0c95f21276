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
        self.forward_by(1, states, packing).0
    }

    /// The same at the first token of each document and every `stride`th after it, and where these lie.
    pub(crate) fn forward_by(
        &self,
        stride: usize,
        states: Tensor<2>,
        packing: &Packing,
    ) -> (Tensor<2>, Packing) {
        let [tokens, width] = states.dims();
        let device = states.device();
        // Row `tokens` is the one of zeros.
        let states = Tensor::cat(vec![states, Tensor::zeros([1, width], &device)], 0);
        let reach = self.kernel / 2;
        let mut rows = Vec::with_capacity(tokens.div_ceil(stride) * self.kernel);
        let mut offsets = vec![0];
        for sequence in 0..packing.n_sequences() {
            let span = packing.offsets[sequence]..packing.offsets[sequence + 1];
            for token in span.clone().step_by(stride) {
                let places = (token..token + self.kernel).map(|place| place.checked_sub(reach));
                rows.extend(places.map(|place| match place {
                    Some(place) if span.contains(&place) => place as i64,
                    _ => tokens as i64,
                }));
            }
            offsets.push(rows.len() / self.kernel);
        }
        let n = rows.len() / self.kernel;
        let rows: Tensor<1, Int> = Tensor::from_data(TensorData::new(rows, [n * self.kernel]), &device);
        let seen = states.select(0, rows).reshape([n, self.kernel * width]);
        (self.linear.forward(seen), Packing::new(&offsets))
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

    #[test]
    fn a_stride_leaves_places_out() {
        let device = Device::flex();
        let convolution = Convolution::new(2, 3, 4, &mut ChaCha8Rng::seed_from_u64(1), &device);
        let states: Tensor<2> = Tensor::from_floats(
            [[1.0, 2.0], [-1.0, 0.5], [3.0, 0.0], [0.0, 7.0], [0.2, 0.1], [4.0, -1.0]],
            &device,
        );
        let packing = Packing::new(&[0, 3, 4, 6]);
        let all = to_vec(convolution.forward(states.clone(), &packing));
        let (some, places) = convolution.forward_by(2, states, &packing);
        assert_eq!(&places.offsets[..], [0, 2, 3, 4]);
        let expected: Vec<f32> =
            [0, 2, 3, 4].into_iter().flat_map(|token| all[token * 3..][..3].to_vec()).collect();
        assert_eq!(to_vec(some), expected);
    }
}
