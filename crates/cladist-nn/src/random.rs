//! Numbers for new weights, from an explicit generator.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// A value of the standard normal distribution (Box–Muller).
pub(crate) fn normal(random: &mut ChaCha8Rng) -> f32 {
    let (u, v): (f64, f64) = (random.random(), random.random());
    let radius = (-2.0 * (1.0 - u).ln()).sqrt();
    (radius * (std::f64::consts::TAU * v).cos()) as f32
}

/// `n` values of Xavier's uniform distribution for a matrix of `fan_out` rows and `fan_in` columns.
pub(crate) fn xavier(fan_out: usize, fan_in: usize, random: &mut ChaCha8Rng) -> Vec<f32> {
    let bound = (6.0 / (fan_in + fan_out) as f64).sqrt();
    (0..fan_in * fan_out).map(|_| ((random.random::<f64>() * 2.0 - 1.0) * bound) as f32).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn normal_values_have_mean_zero_and_variance_one() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let values: Vec<f64> = (0..100_000).map(|_| f64::from(normal(&mut random))).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
