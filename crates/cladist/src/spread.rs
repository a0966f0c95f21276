//! What several runs come to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Mean and standard deviation (of a sample) over runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// √(Σ(x − mean)² / (n − 1)); 0 for one run.
    pub std: f64,
}

impl Spread {
    /// Of values, of which there is at least one.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, std: if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 } }
    }

    /// Of each metric over runs that have it.
    #[must_use]
    pub fn by_metric<'a>(runs: impl IntoIterator<Item = &'a BTreeMap<String, f64>>) -> BTreeMap<String, Self> {
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, value) in runs.into_iter().flatten() {
            values.entry(name.clone()).or_default().push(*value);
        }
        values.into_iter().map(|(name, values)| (name, Self::of(&values))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(Spread::of(&[2.0]), Spread { mean: 2.0, std: 0.0 });
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0]);
        assert!((spread.mean - 2.5).abs() < 1e-12 && (spread.std - 1.290_994_448_735_805_6).abs() < 1e-12);
    }
}
