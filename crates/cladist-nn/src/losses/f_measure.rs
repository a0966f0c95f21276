//! The F-measure as a loss.

use burn::tensor::{Tensor, activation};

use super::targets;

/// Keeps the quotients finite when there is nothing to count.
const EPSILON: f64 = 1e-8;

/// 1 − ½·(2·tp/(2·tp + fp + fn) + 2·tn/(2·tn + fp + fn)), counted softly over all documents and labels together:
/// tp = Σ p·y, fp = Σ p·(1 − y), fn = Σ (1 − p)·y, tn = Σ (1 − p)·(1 − y) with p = σ(z). Label smoothing moves y
/// as it does in [`bce_with_logits`](super::bce_with_logits).
///
/// # Shapes
/// `logits [documents, labels]` → `[1]`
pub fn f_measure(logits: Tensor<2>, gold: &[Vec<u32>], smoothing: f64) -> Tensor<1> {
    let y = targets(logits.dims(), gold, smoothing, &logits.device());
    let p = activation::sigmoid(logits);
    // 2·tp + fp + fn = Σp + Σy, and the same of what is not there.
    let f = |p: Tensor<2>, y: Tensor<2>| (p.clone() * y.clone()).sum() * 2.0 / (p.sum() + y.sum() + EPSILON);
    let there = f(p.clone(), y.clone());
    let not_there = f(-p + 1.0, -y + 1.0);
    (there + not_there) * -0.5 + 1.0
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    const P: [f64; 4] = [0.8, 0.3, 0.6, 0.1];

    /// Labels 0 and 3 of one document with four.
    fn gold() -> Vec<Vec<u32>> {
        vec![vec![0, 3]]
    }

    fn logits(p: [f64; 4], device: &Device) -> Tensor<2> {
        Tensor::from_floats([p.map(|p| (p / (1.0 - p)).ln() as f32)], device)
    }

    fn formula(p: [f64; 4]) -> f64 {
        let y = [1.0, 0.0, 0.0, 1.0];
        let sum = |f: fn(f64, f64) -> f64| p.iter().zip(y).map(|(&p, y)| f(p, y)).sum::<f64>();
        let (tp, fp) = (sum(|p, y| p * y), sum(|p, y| p * (1.0 - y)));
        let (fun, tn) = (sum(|p, y| (1.0 - p) * y), sum(|p, y| (1.0 - p) * (1.0 - y)));
        1.0 - 0.5 * (2.0 * tp / (2.0 * tp + fp + fun) + 2.0 * tn / (2.0 * tn + fp + fun))
    }

    #[test]
    fn it_is_one_minus_the_mean_of_both_measures() {
        let loss = f_measure(logits(P, &Device::flex()), &gold(), 0.0).into_scalar::<f32>();
        assert!((f64::from(loss) - 0.5012531).abs() < 1e-6, "{loss}");
        assert!((formula(P) - 0.5012531).abs() < 1e-7);
    }

    #[test]
    fn its_gradient_is_the_one_worked_out_by_hand() {
        let z = logits(P, &Device::flex().autodiff()).require_grad();
        let gradients = f_measure(z.clone(), &gold(), 0.0).backward();
        let got = crate::parameters::to_vec(z.grad(&gradients).unwrap());
        let by_p = [-0.2631893, 0.2380638, 0.2380638, -0.2631893];
        for (n, expected) in by_p.into_iter().enumerate() {
            let mut moved = [P, P];
            moved[0][n] += 1e-6;
            moved[1][n] -= 1e-6;
            let difference = (formula(moved[0]) - formula(moved[1])) / 2e-6;
            assert!((difference - expected).abs() < 1e-6, "{difference} {expected}");
            let slope = expected * P[n] * (1.0 - P[n]);
            assert!((f64::from(got[n]) - slope).abs() < 1e-6, "{} {slope}", got[n]);
        }
    }

    #[test]
    fn it_is_0_if_all_is_right_1_if_all_is_wrong_and_finite_with_nothing_there() {
        let device = Device::flex();
        let loss = |z: [f32; 4], gold: &[u32]| {
            f_measure(Tensor::from_floats([z], &device), &[gold.to_vec()], 0.0).into_scalar::<f32>()
        };
        assert!(loss([90.0, -90.0, -90.0, 90.0], &[0, 3]).abs() < 1e-6);
        assert!((loss([-90.0, 90.0, 90.0, -90.0], &[0, 3]) - 1.0).abs() < 1e-6);
        assert!(loss([-200.0; 4], &[]).is_finite() && loss([200.0; 4], &[0, 1, 2, 3]).is_finite());
    }
}
