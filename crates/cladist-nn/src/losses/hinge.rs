//! What support vector machines learn by.

use burn::tensor::{Tensor, activation};

use super::targets;

/// Mean over documents and columns of max(0, 1 − ŷ·z)² with ŷ = ±1. `gold[i]` lists the columns of document i with +1,
/// each once.
///
/// # Shapes
/// `logits [documents, columns]` → `[1]`
pub fn squared_hinge(logits: Tensor<2>, gold: &[Vec<u32>]) -> Tensor<1> {
    let signs = targets(logits.dims(), gold, 0.0, &logits.device()) * 2.0 - 1.0;
    let short = activation::relu(signs.neg() * logits + 1.0);
    (short.clone() * short).mean()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::to_vec;

    #[test]
    fn it_equals_numbers_by_hand_and_its_slopes() {
        // ŷz = .5, −.5, 1.2, 2, −3, .9: squares .25, 2.25, 0, 0, 16, .01.
        let z: Tensor<2> =
            Tensor::from_floats([[0.5f32, -0.5, 1.2], [-2.0, 3.0, -0.9]], &Device::flex().autodiff());
        let z = z.require_grad();
        let loss = squared_hinge(z.clone(), &[vec![0, 1, 2], vec![]]);
        let value = loss.clone().inner().into_scalar::<f32>();
        assert!((value - 18.51 / 6.0).abs() < 1e-5, "{value}");
        // −2ŷ(1 − ŷz) where that is above 0, over the number of cells.
        let slopes = to_vec(z.grad(&loss.backward()).unwrap());
        for (slope, expected) in slopes.iter().zip([-1.0, -3.0, 0.0, 0.0, 8.0, 0.2]) {
            assert!((slope - expected / 6.0).abs() < 1e-5, "{slopes:?}");
        }
    }
}
