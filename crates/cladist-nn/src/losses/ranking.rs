//! A loss that orders labels, whatever their probabilities come to (log-sum-exp pairwise, Li et al. 2017; ML-NET, Du et
//! al. 2019).

use burn::tensor::Tensor;

use super::{softplus, targets};

/// What is outside a sum of exponentials.
const OUTSIDE: f64 = -1e30;

/// Mean over documents of ln(1 + Σ e^(z_n − z_p)) over all pairs of a label n that a document does not have and a label p
/// that it has. The sum over pairs is the product of two sums, so that none has to be left out. A document that has no
/// labels, or all, has no pairs and no loss.
///
/// # Shapes
/// `logits [documents, labels]` → `[1]`
pub fn ranking(logits: Tensor<2>, gold: &[Vec<u32>]) -> Tensor<1> {
    let y = targets(logits.dims(), gold, 0.0, &logits.device());
    let absent = log_sum_exp(logits.clone(), -y.clone() + 1.0);
    let present = log_sum_exp(-logits, y);
    softplus(absent + present).mean()
}

/// ln Σ e^x over the columns with 1 in the mask: `[documents, 1]`. Very low where there are none.
fn log_sum_exp(x: Tensor<2>, mask: Tensor<2>) -> Tensor<2> {
    let x = x + (mask - 1.0) * -OUTSIDE;
    let highest = x.clone().max_dim(1).detach();
    (x - highest.clone()).exp().sum_dim(1).log() + highest
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn it_is_the_sum_over_pairs() {
        let device = Device::flex();
        let value = |z: Tensor<2>, gold: &[Vec<u32>]| f64::from(ranking(z, gold).into_scalar::<f32>());
        let one = value(Tensor::from_floats([[2.0, 1.0, 0.5]], &device), &[vec![0]]);
        assert!((one - 0.4643688).abs() < 1e-6, "{one}");
        // Two of each: four pairs; the second document has no labels.
        let z = [2.0f64, -1.0, 0.5, 3.0];
        let pairs = [(1, 0), (1, 2), (3, 0), (3, 2)].map(|(n, p): (usize, usize)| (z[n] - z[p]).exp());
        let expected = (1.0 + pairs.iter().sum::<f64>()).ln() / 2.0;
        let rows = [z.map(|z| z as f32), [9.0, -9.0, 0.0, 1.0]];
        let two = value(Tensor::from_floats(rows, &device), &[vec![0, 2], vec![]]);
        assert!((two - expected).abs() < 1e-5, "{two} {expected}");
        assert!(value(Tensor::from_floats([[500.0, -500.0]], &device), &[vec![1]]).is_finite());
    }

    #[test]
    fn its_gradient_is_that_of_differences() {
        let z = [0.4f32, -1.2, 0.9, 0.1];
        let gold = [vec![0, 1]];
        let value = |z: [f32; 4]| {
            f64::from(ranking(Tensor::from_floats([z], &Device::flex()), &gold).into_scalar::<f32>())
        };
        let tensor = Tensor::<2>::from_floats([z], &Device::flex().autodiff()).require_grad();
        let gradients = ranking(tensor.clone(), &gold).backward();
        let got = crate::parameters::to_vec(tensor.grad(&gradients).unwrap());
        for n in 0..4 {
            let (mut up, mut down) = (z, z);
            up[n] += 1e-2;
            down[n] -= 1e-2;
            let expected = (value(up) - value(down)) / 2e-2;
            assert!((f64::from(got[n]) - expected).abs() < 1e-3, "{n}: {} {expected}", got[n]);
        }
    }
}
