//! Losses as plain functions of logits.

mod coherent;
mod f_measure;
mod focal;
mod hinge;
mod ranking;

use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use serde::{Deserialize, Serialize};

pub use coherent::coherent;
pub(crate) use f_measure::SoftCounts;
pub use f_measure::{f_measure, macro_f_measure};
pub use focal::{asymmetric, focal};
pub use hinge::squared_hinge;
pub use ranking::ranking;

use crate::fused::{self, is_cpu};

/// The loss of documents with any number of labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Binary cross-entropy.
    #[default]
    Bce,
    /// A differentiable F-measure, 1 − ½(F⁺ + F⁻).
    FMeasure,
    /// The same of each label, and the mean over labels.
    MacroFMeasure,
    /// The sum of `bce` and `f-measure`: the second has next to no gradient where probabilities are near 0 or 1.
    BceAndF,
    /// Focal loss: binary cross-entropy that down-weights easy examples.
    Focal,
    /// Asymmetric loss: focal on negatives alone, with probabilities shifted by 0.05.
    Asymmetric,
    /// A pairwise ranking loss of positives above negatives; probabilities are not calibrated.
    Ranking,
    /// The max constraint loss: binary cross-entropy after every label is given its likeliest descendant's probability.
    Coherent,
}

impl Loss {
    /// Whether it is an F-measure alone.
    pub(crate) fn is_f_measure(self) -> bool {
        matches!(self, Self::FMeasure | Self::MacroFMeasure)
    }

    /// The terms, by name, whose sum is the loss. [`Loss::Coherent`] needs the hierarchy, so without one it is `bce`:
    /// see [`coherent()`].
    #[must_use]
    pub fn terms(
        self,
        logits: Tensor<2>,
        gold: &[Vec<u32>],
        smoothing: f64,
    ) -> Vec<(&'static str, Tensor<1>)> {
        let bce = |logits| ("bce", bce_with_logits(logits, gold, smoothing));
        let f = |logits| ("f-measure", f_measure(logits, gold, smoothing));
        match self {
            Self::Bce | Self::Coherent => vec![bce(logits)],
            Self::FMeasure => vec![f(logits)],
            Self::MacroFMeasure => vec![("macro-f-measure", macro_f_measure(logits, gold, smoothing))],
            Self::BceAndF => vec![bce(logits.clone()), f(logits)],
            Self::Focal => vec![("focal", focal(logits, gold, smoothing))],
            Self::Ranking => vec![("ranking", ranking(logits, gold))],
            Self::Asymmetric => vec![("asymmetric", asymmetric(logits, gold, smoothing))],
        }
    }
}

/// Mean over documents and labels of softplus(z) − y·z, the binary cross-entropy of σ(z). `gold[i]` lists the
/// columns of document i that are 1; label smoothing ε moves targets to y·(1 − ε) + ε/2.
///
/// # Shapes
/// `logits [documents, labels]` → `[1]`
pub fn bce_with_logits(logits: Tensor<2>, gold: &[Vec<u32>], smoothing: f64) -> Tensor<1> {
    if smoothing == 0.0 && is_cpu(&logits.device()) {
        return fused::bce(logits, gold.to_vec());
    }
    let targets = targets(logits.dims(), gold, smoothing, &logits.device());
    (softplus(logits.clone()) - targets * logits).mean()
}

/// y·(1 − ε) + ε/2 in every cell.
pub(crate) fn targets(
    [documents, labels]: [usize; 2],
    gold: &[Vec<u32>],
    smoothing: f64,
    device: &Device,
) -> Tensor<2> {
    let mut cells = vec![(smoothing / 2.0) as f32; documents * labels];
    for (document, gold) in gold.iter().enumerate() {
        for &label in gold {
            cells[document * labels + label as usize] += (1.0 - smoothing) as f32;
        }
    }
    Tensor::from_data(TensorData::new(cells, [documents, labels]), device)
}

/// ln(1 + e^z) = max(z, 0) + ln(1 + e^(−|z|)), which is −ln(1 − σ(z)).
pub(crate) fn softplus(z: Tensor<2>) -> Tensor<2> {
    activation::relu(z.clone()) + z.abs().neg().exp().log1p()
}

/// Mean over documents of −ln of the gold label in softmax(z); label smoothing ε gives every label ε/labels.
///
/// # Shapes
/// `logits [documents, labels]` → `[1]`
pub fn cross_entropy(logits: Tensor<2>, gold: &[u32], smoothing: f64) -> Tensor<1> {
    let [documents, _] = logits.dims();
    let device = logits.device();
    let rows: Vec<i64> = gold.iter().map(|&label| i64::from(label)).collect();
    let gold: Tensor<2, Int> = Tensor::from_data(TensorData::new(rows, [documents, 1]), &device);
    let log = activation::log_softmax(logits, 1);
    let hit = log.clone().gather(1, gold).mean().neg();
    if smoothing == 0.0 { hit } else { hit * (1.0 - smoothing) - log.mean() * smoothing }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn logits(device: &Device) -> Tensor<2> {
        Tensor::from_data([[2.0f32, -1.0, 0.5], [-3.0, 40.0, -40.0]], device)
    }

    fn value(loss: &Tensor<1>) -> f64 {
        f64::from(loss.clone().into_scalar::<f32>())
    }

    #[test]
    fn bce_equals_the_formula_and_survives_large_logits() {
        let z = [[2.0f64, -1.0, 0.5], [-3.0, 40.0, -40.0]];
        let y = [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]];
        for smoothing in [0.0, 0.1] {
            let mut expected = 0.0;
            for (z, y) in z.iter().flatten().zip(y.iter().flatten()) {
                let target = y * (1.0 - smoothing) + smoothing / 2.0;
                expected += z.max(0.0) + (-z.abs()).exp().ln_1p() - target * z;
            }
            let loss = bce_with_logits(logits(&Device::flex()), &[vec![0], vec![1, 2]], smoothing);
            assert!((value(&loss) - expected / 6.0).abs() < 1e-5, "{} {}", value(&loss), expected / 6.0);
        }
    }

    #[test]
    fn the_fused_gradient_equals_the_plain_one() {
        let device = Device::flex().autodiff();
        let gold = [vec![0], vec![1, 2]];
        let z = logits(&device).require_grad();
        let fused = z.grad(&bce_with_logits(z.clone(), &gold, 0.0).backward()).unwrap();
        let z = logits(&device).require_grad();
        let plain = z.grad(&bce_with_logits(z.clone(), &gold, 1e-12).backward()).unwrap();
        let difference = (fused - plain).abs().max().into_scalar::<f32>();
        assert!(difference < 1e-6, "{difference}");
    }

    #[test]
    fn cross_entropy_equals_the_formula() {
        let z = [[2.0f64, -1.0, 0.5], [-3.0, 40.0, -40.0]];
        for smoothing in [0.0, 0.2] {
            let mut expected = 0.0;
            for (z, gold) in z.iter().zip([2usize, 1]) {
                let normaliser = z.iter().map(|z| (z - 40.0).exp()).sum::<f64>().ln() + 40.0;
                let uniform = z.iter().map(|z| normaliser - z).sum::<f64>() / 3.0;
                expected += (1.0 - smoothing) * (normaliser - z[gold]) + smoothing * uniform;
            }
            let loss = cross_entropy(logits(&Device::flex()), &[2, 1], smoothing);
            assert!((value(&loss) - expected / 2.0).abs() < 1e-4, "{} {}", value(&loss), expected / 2.0);
        }
    }
}
