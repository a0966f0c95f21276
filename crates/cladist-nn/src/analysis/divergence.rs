//! Distances between vectors, and between distributions in nats.

use std::f64::consts::PI;

/// Added inside logarithms, so that a key without attention has one.
pub const EPSILON: f64 = 1e-12;

/// arccos(cos(a, b))/π: 0 for the same direction, 0.5 at a right angle, 1 for opposite directions. A vector of zeros
/// has no direction and counts as at a right angle to all.
///
/// ```
/// use cladist_nn::analysis::divergence::angular_distance;
///
/// assert!((angular_distance(&[1.0, 0.0], &[1.0, 1.0]) - 0.25).abs() < 1e-12);
/// ```
#[must_use]
pub fn angular_distance(a: &[f32], b: &[f32]) -> f64 {
    let product =
        |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum() };
    let norms = (product(a, a) * product(b, b)).sqrt();
    let cosine = if norms == 0.0 { 0.0 } else { product(a, b) / norms };
    cosine.clamp(-1.0, 1.0).acos() / PI
}

/// KL(p ‖ q) = Σ p·(ln(p + ε) − ln(q + ε)), with ε = [`EPSILON`].
///
/// ```
/// use cladist_nn::analysis::divergence::kl_divergence;
///
/// let (p, q) = ([0.7, 0.2, 0.1], [0.4, 0.4, 0.2]);
/// assert!((kl_divergence(&p, &q) - 0.1837869).abs() < 1e-7);
/// assert!((kl_divergence(&q, &p) - 0.1920420).abs() < 1e-7);
/// ```
#[must_use]
pub fn kl_divergence(p: &[f64], q: &[f64]) -> f64 {
    kl_of_logs(p, &logs(p), &logs(q))
}

/// −Σ p·ln(p + ε), with ε = [`EPSILON`].
///
/// ```
/// use cladist_nn::analysis::divergence::entropy;
///
/// assert!((entropy(&[0.7, 0.2, 0.1]) - 0.8018186).abs() < 1e-7);
/// ```
#[must_use]
pub fn entropy(p: &[f64]) -> f64 {
    entropy_of_logs(p, &logs(p))
}

/// Averages the attention of a query's heads: the mean goes to `mean`, its logarithms to `mean_logs`. Returns the mean
/// of KL(p_g ‖ p_h) over ordered pairs of distinct heads, 0 for a single head.
///
/// All pairs cost no more than all heads: Σ_g Σ_h KL(p_g ‖ p_h) = H·Σ_h Σ_k p_hk·ln p_hk − Σ_k (Σ_h p_hk)·(Σ_h ln p_hk).
pub(super) fn average_heads<'a>(
    heads: impl ExactSizeIterator<Item = &'a [f32]>,
    mean: &mut [f64],
    mean_logs: &mut [f64],
) -> f64 {
    let n_heads = heads.len() as f64;
    mean.fill(0.0);
    mean_logs.fill(0.0);
    let mut own = 0.0;
    for head in heads {
        for ((&p, sum), log_sum) in head.iter().zip(mean.iter_mut()).zip(mean_logs.iter_mut()) {
            let p = f64::from(p);
            let log = (p + EPSILON).ln();
            *sum += p;
            *log_sum += log;
            own += p * log;
        }
    }
    let crossed: f64 = mean.iter().zip(mean_logs.iter()).map(|(sum, log_sum)| sum * log_sum).sum();
    for (mean, log) in mean.iter_mut().zip(mean_logs) {
        *mean /= n_heads;
        *log = (*mean + EPSILON).ln();
    }
    if n_heads > 1.0 { (n_heads * own - crossed) / (n_heads * (n_heads - 1.0)) } else { 0.0 }
}

fn logs(p: &[f64]) -> Vec<f64> {
    p.iter().map(|p| (p + EPSILON).ln()).collect()
}

pub(super) fn kl_of_logs(p: &[f64], log_p: &[f64], log_q: &[f64]) -> f64 {
    p.iter().zip(log_p).zip(log_q).map(|((p, log_p), log_q)| p * (log_p - log_q)).sum()
}

pub(super) fn entropy_of_logs(p: &[f64], log_p: &[f64]) -> f64 {
    -p.iter().zip(log_p).map(|(p, log)| p * log).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn directions_have_the_distances_of_their_angles() {
        for (b, expected) in [([1.0, 1.0], 0.25), ([0.0, 3.0], 0.5), ([-2.0, 0.0], 1.0), ([5.0, 0.0], 0.0)] {
            assert!((angular_distance(&[1.0, 0.0], &b) - expected).abs() < 1e-9, "{b:?}");
        }
        assert_eq!(angular_distance(&[0.0, 0.0], &[1.0, 0.0]), 0.5);
        // Rounding must not carry the cosine out of the range of arccos.
        let long = [0.1f32; 1000];
        assert!(angular_distance(&long, &long).abs() < 1e-7);
        assert!(angular_distance(&[f32::NAN], &[1.0]).is_nan());
    }

    #[test]
    fn divergences_and_entropies_are_in_nats() {
        let (p, q) = ([0.7, 0.2, 0.1], [0.4, 0.4, 0.2]);
        assert!((kl_divergence(&p, &q) - 0.183_786_9).abs() < 1e-7);
        assert!((kl_divergence(&q, &p) - 0.192_042_0).abs() < 1e-7);
        assert_eq!(kl_divergence(&p, &p), 0.0);
        assert!((entropy(&p) - 0.801_818_6).abs() < 1e-7);
        assert!((entropy(&[0.25; 4]) - 4f64.ln()).abs() < 1e-9);
        // A key that only one of them looks at is far away, not infinitely far.
        assert!((kl_divergence(&[1.0, 0.0], &[0.0, 1.0]) + EPSILON.ln()).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_short_way_over_pairs_of_heads_is_the_long_one(
            weights in prop::collection::vec(prop::collection::vec(0.0f32..1.0, 5), 1..6),
        ) {
            let heads: Vec<Vec<f32>> = (weights.iter())
                .map(|row| {
                    let sum = row.iter().sum::<f32>() + 1e-3;
                    row.iter().map(|weight| (weight + 2e-4) / sum).collect()
                })
                .collect();
            let (mut mean, mut logs) = ([9.0; 5], [9.0; 5]);
            let found = average_heads(heads.iter().map(Vec::as_slice), &mut mean, &mut logs);
            let wide: Vec<Vec<f64>> =
                heads.iter().map(|head| head.iter().map(|&p| f64::from(p)).collect()).collect();
            let pairs: Vec<f64> = (0..wide.len())
                .flat_map(|g| (0..wide.len()).filter(move |&h| h != g).map(move |h| (g, h)))
                .map(|(g, h)| kl_divergence(&wide[g], &wide[h]))
                .collect();
            let expected = pairs.iter().sum::<f64>() / pairs.len().max(1) as f64;
            prop_assert!((found - expected).abs() < 1e-9, "{} instead of {}", found, expected);
            for key in 0..5 {
                let expected = wide.iter().map(|head| head[key]).sum::<f64>() / wide.len() as f64;
                prop_assert!((mean[key] - expected).abs() < 1e-12);
                prop_assert!((logs[key] - (expected + EPSILON).ln()).abs() < 1e-12);
            }
        }
    }
}
