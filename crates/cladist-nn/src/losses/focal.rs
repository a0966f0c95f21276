//! Losses in which easy cells count less than hard ones.

use burn::tensor::{Tensor, activation};

use super::{softplus, targets};

/// The exponent of the focal loss.
const FOCUS: f64 = 2.0;
/// The probability that the asymmetric loss takes off labels that are not there.
const MARGIN: f64 = 0.05;

/// Mean over documents and labels of −(1 − q)²·ln q, where q is the probability given to what is right: p = σ(z) for
/// labels of the document, 1 − p for others (Lin et al. 2017, without the weight α).
///
/// # Shapes
/// `logits [documents, labels]` → `[1]`
pub fn focal(logits: Tensor<2>, gold: &[Vec<u32>], smoothing: f64) -> Tensor<1> {
    let y = targets(logits.dims(), gold, smoothing, &logits.device());
    // −ln q is s = softplus(∓z) and 1 − q is e^(−softplus(±z)), finite for any z.
    let (here, other) = (softplus(-logits.clone()), softplus(logits));
    let there = (other.clone() * -FOCUS).exp() * here.clone();
    let not_there = (here * -FOCUS).exp() * other;
    (y.clone() * there + (-y + 1.0) * not_there).mean()
}

/// Mean over documents and labels of −ln p for labels of the document and −q⁴·ln(1 − q) for others, with p = σ(z)
/// and q = max(p − 0.05, 0) (Ridnik et al. 2021, with the exponents 0 and 4 of that paper).
///
/// # Shapes
/// `logits [documents, labels]` → `[1]`
pub fn asymmetric(logits: Tensor<2>, gold: &[Vec<u32>], smoothing: f64) -> Tensor<1> {
    let y = targets(logits.dims(), gold, smoothing, &logits.device());
    let there = softplus(-logits.clone());
    let q = activation::relu(activation::sigmoid(logits) - MARGIN);
    let square = q.clone() * q.clone();
    let not_there = square.clone() * square * (-q).log1p().neg();
    (y.clone() * there + (-y + 1.0) * not_there).mean()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::super::Loss;
    use super::*;
    use crate::parameters::to_vec;

    const Z: [f64; 5] = [2.0, -1.0, 0.5, 30.0, -30.0];
    /// Labels 0, 3 and 4.
    const Y: [bool; 5] = [true, false, false, true, true];

    fn formula(loss: Loss, z: [f64; 5]) -> f64 {
        let cell = |z: f64, y: bool| {
            let p = 1.0 / (1.0 + (-z).exp());
            match loss {
                Loss::Focal if y => -(1.0 - p).powi(2) * p.ln(),
                Loss::Focal => -p.powi(2) * (1.0 - p).ln(),
                _ if y => -p.ln(),
                _ => {
                    let q = (p - 0.05).max(0.0);
                    -q.powi(4) * (1.0 - q).ln()
                }
            }
        };
        z.iter().zip(Y).map(|(&z, y)| cell(z, y)).sum::<f64>() / 5.0
    }

    #[test]
    fn they_equal_their_formulas_and_slopes() {
        for loss in [Loss::Focal, Loss::Asymmetric] {
            let z: Tensor<2> = Tensor::from_floats([Z.map(|z| z as f32)], &Device::flex().autodiff());
            let z = z.require_grad();
            let (name, value) = loss.terms(z.clone(), &[vec![0, 3, 4]], 0.0).remove(0);
            let got = f64::from(value.clone().inner().into_scalar::<f32>());
            assert!((got - formula(loss, Z)).abs() < 1e-5, "{name}: {got} {}", formula(loss, Z));
            let slopes = to_vec(z.grad(&value.backward()).unwrap());
            for (n, slope) in slopes.into_iter().enumerate() {
                let mut moved = [Z, Z];
                moved[0][n] += 1e-5;
                moved[1][n] -= 1e-5;
                let expected = (formula(loss, moved[0]) - formula(loss, moved[1])) / 2e-5;
                assert!((f64::from(slope) - expected).abs() < 1e-5, "{name} {n}: {slope} {expected}");
            }
        }
    }

    #[test]
    fn what_is_right_counts_less_than_in_cross_entropy() {
        let device = Device::flex();
        let z = || Tensor::from_floats([[3.0f32, -3.0]], &device);
        let value = |loss: Loss| loss.terms(z(), &[vec![0]], 0.0).remove(0).1.into_scalar::<f32>();
        assert!(value(Loss::Focal) < value(Loss::Bce) / 100.0);
        assert!(value(Loss::Asymmetric) < value(Loss::Bce));
    }

    #[test]
    fn both_terms_of_a_sum_are_there() {
        let z = Tensor::from_floats([[0.0f32, 1.0]], &Device::flex());
        let names: Vec<&str> =
            Loss::BceAndF.terms(z, &[vec![0]], 0.0).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["bce", "f-measure"]);
        assert_eq!(serde_json::to_string(&Loss::BceAndF).unwrap(), "\"bce-and-f\"");
        assert_eq!(serde_json::to_string(&Loss::FMeasure).unwrap(), "\"f-measure\"");
    }
}
