//! The F-measure as a loss.

use burn::tensor::{Tensor, activation};

use super::targets;
use crate::parameters::to_vec;

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

/// The mean over labels of [`f_measure`] of each, so that rare labels weigh as much as frequent ones.
///
/// # Shapes
/// `logits [documents, labels]` → `[1]`
pub fn macro_f_measure(logits: Tensor<2>, gold: &[Vec<u32>], smoothing: f64) -> Tensor<1> {
    let y = targets(logits.dims(), gold, smoothing, &logits.device());
    let p = activation::sigmoid(logits);
    let f = |p: Tensor<2>, y: Tensor<2>| {
        (p.clone() * y.clone()).sum_dim(0) * 2.0 / (p.sum_dim(0) + y.sum_dim(0) + EPSILON)
    };
    let there = f(p.clone(), y.clone());
    let not_there = f(-p + 1.0, -y + 1.0);
    (there + not_there).mean() * -0.5 + 1.0
}

/// What an F-measure is made of, so that batches can be added up: an F-measure of all documents is not the mean of those of
/// batches.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SoftCounts {
    /// Of all labels together, or of each label.
    of: Vec<Counts>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    /// Σ p·y
    both: f64,
    /// Σ p
    predicted: f64,
    /// Σ y
    gold: f64,
    cells: f64,
}

impl SoftCounts {
    /// Counts a batch, each label by itself or all together.
    pub(crate) fn new(logits: Tensor<2>, gold: &[Vec<u32>], smoothing: f64, by_label: bool) -> Self {
        let [_, n_labels] = logits.dims();
        let y = targets(logits.dims(), gold, smoothing, &logits.device());
        let (z, y) = (to_vec(logits), to_vec(y));
        let mut of = vec![Counts::default(); if by_label { n_labels } else { 1 }];
        for (n, (z, y)) in z.into_iter().zip(y).enumerate() {
            let (p, y) = (1.0 / (1.0 + (-f64::from(z)).exp()), f64::from(y));
            let counts = &mut of[if by_label { n % n_labels } else { 0 }];
            counts.both += p * y;
            counts.predicted += p;
            counts.gold += y;
            counts.cells += 1.0;
        }
        Self { of }
    }

    /// Adds those of other documents.
    pub(crate) fn add(&mut self, other: &Self) {
        for (own, more) in self.of.iter_mut().zip(&other.of) {
            own.both += more.both;
            own.predicted += more.predicted;
            own.gold += more.gold;
            own.cells += more.cells;
        }
    }

    /// 1 − ½(F⁺ + F⁻), or its mean over labels.
    pub(crate) fn loss(&self) -> f64 {
        let loss = |counts: &Counts| {
            let Counts { both, predicted, gold, cells } = *counts;
            let neither = cells - predicted - gold + both;
            let there = 2.0 * both / (predicted + gold + EPSILON);
            let not_there = 2.0 * neither / (2.0 * cells - predicted - gold + EPSILON);
            1.0 - 0.5 * (there + not_there)
        };
        self.of.iter().map(loss).sum::<f64>() / self.of.len().max(1) as f64
    }
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
        let got = to_vec(z.grad(&gradients).unwrap());
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

    #[test]
    fn it_is_flat_at_the_base_rate_where_bce_pulls_twice_as_hard() {
        // Two of fifteen labels: π = .133. All p at π are no worse than F⁻ = 1 with F⁺ = 0 would be, and better than all at 0.
        let (labels, gold) = (15, [vec![0, 1]]);
        let share = 2.0 / 15.0f64;
        let device = Device::flex().autodiff();
        let at = |p: f64| {
            let z = vec![(p / (1.0 - p)).ln() as f32; labels];
            Tensor::<2>::from_data(burn::tensor::TensorData::new(z, [1, labels]), &device).require_grad()
        };
        let loss = |p: f64| f64::from(f_measure(at(p), &gold, 0.0).into_scalar::<f32>());
        assert!((loss(share) - 0.5).abs() < 1e-6, "{}", loss(share));
        // 1 − ½·F⁻ with F⁻ = 2(1 − π)/(2 − π).
        assert!((loss(1e-9) - 0.5357143).abs() < 1e-6, "{}", loss(1e-9));
        let gradient = |loss: fn(Tensor<2>, &[Vec<u32>], f64) -> Tensor<1>| {
            let z = at(share);
            to_vec(z.grad(&loss(z.clone(), &gold, 0.0).backward()).unwrap())
        };
        let (f, bce) = (gradient(f_measure), gradient(super::super::bce_with_logits));
        for (f, bce) in f.into_iter().zip(bce) {
            assert!((f / bce - 0.5).abs() < 1e-4, "{f} {bce}");
        }
    }

    #[test]
    fn the_macro_form_is_the_mean_over_labels() {
        let device = Device::flex();
        let z: Tensor<2> = Tensor::from_floats([[0.3, -1.2, 2.0], [-0.7, 0.4, -2.0]], &device);
        let gold = [vec![0, 2], vec![1]];
        let column = |n: usize| z.clone().narrow(1, n, 1);
        let of = |n: usize| {
            let gold: Vec<Vec<u32>> =
                gold.iter().map(|row| row.iter().filter(|&&l| l == n as u32).map(|_| 0).collect()).collect();
            f64::from(f_measure(column(n), &gold, 0.1).into_scalar::<f32>())
        };
        let expected = (0..3).map(of).sum::<f64>() / 3.0;
        let got = f64::from(macro_f_measure(z.clone(), &gold, 0.1).into_scalar::<f32>());
        assert!((got - expected).abs() < 1e-6, "{got} {expected}");
        assert!((SoftCounts::new(z, &gold, 0.1, true).loss() - expected).abs() < 1e-6);
    }

    #[test]
    fn counts_of_batches_add_up_to_those_of_all() {
        let device = Device::flex();
        let z: Tensor<2> =
            Tensor::from_floats([[0.3, -1.2, 2.0], [-0.7, 0.4, -2.0], [1.0, 1.5, -0.5]], &device);
        let gold = [vec![0, 2], vec![1], vec![]];
        for by_label in [false, true] {
            let all = SoftCounts::new(z.clone(), &gold, 0.0, by_label).loss();
            let mut sum = SoftCounts::new(z.clone().narrow(0, 0, 1), &gold[..1], 0.0, by_label);
            sum.add(&SoftCounts::new(z.clone().narrow(0, 1, 2), &gold[1..], 0.0, by_label));
            assert!((sum.loss() - all).abs() < 1e-12);
            let loss = if by_label { macro_f_measure } else { f_measure };
            let loss = f64::from(loss(z.clone(), &gold, 0.0).into_scalar::<f32>());
            assert!((loss - all).abs() < 1e-6, "{loss} {all}");
        }
    }
}
