//! Probabilities that are weighted means of others.

use burn::tensor::Tensor;

use crate::losses::softplus;

/// ln(g/(1 − g)) where g = Σ wₖ·σ(zₖ)/Σ wₖ: both logarithms are of sums of exponents, from which Σ wₖ cancels out.
/// `None` without a weight above 0.
pub(super) fn log_odds(parts: &[(Tensor<2>, f64)]) -> Option<Tensor<2>> {
    let side = |sign: f64| {
        let logs: Vec<Tensor<2>> = (parts.iter().filter(|(_, weight)| *weight > 0.0))
            .map(|(logits, weight)| softplus(logits.clone() * -sign).neg() + weight.ln())
            .collect();
        log_sum_exp(&logs)
    };
    Some(side(1.0)? - side(-1.0)?)
}

/// ln Σ e^xₖ, cell by cell; `None` of nothing.
pub(super) fn log_sum_exp(parts: &[Tensor<2>]) -> Option<Tensor<2>> {
    let highest = parts.iter().cloned().reduce(Tensor::max_pair)?.detach();
    let sum = parts.iter().map(|part| (part.clone() - highest.clone()).exp()).reduce(|a, b| a + b)?;
    Some(sum.log() + highest)
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, activation};

    use super::*;
    use crate::parameters::to_vec;

    #[test]
    fn odds_are_those_of_the_mean_probability() {
        let row = |cells: [f32; 4]| Tensor::<2>::from_floats([cells], &Device::flex());
        let (a, b) = ([0.4f32, -1.2, 2.0, 80.0], [-0.6f32, -0.8, 0.5, 90.0]);
        let odds = log_odds(&[(row(a), 0.25), (row(b), 0.75)]).unwrap();
        // Far out, where probabilities are 1 in 32 bits, odds still tell labels apart.
        assert!(to_vec(odds.clone())[3] > 80.0);
        let got = to_vec(activation::sigmoid(odds));
        for ((a, b), got) in a.into_iter().zip(b).zip(got) {
            let sigma = |z: f32| 1.0 / (1.0 + (-f64::from(z)).exp());
            let expected = 0.25 * sigma(a) + 0.75 * sigma(b);
            assert!((f64::from(got) - expected).abs() < 1e-6, "{got} {expected}");
        }
        assert!(log_odds(&[(row(a), 0.0)]).is_none());
        let alone = to_vec(log_odds(&[(row(a), 1.0), (row(b), 0.0)]).unwrap());
        assert!(alone.iter().zip(a).all(|(got, a)| (got - a).abs() < 1e-6), "{alone:?}");
    }
}
