//! The diversity loss of experts, on uncertain tail labels.
//!
//! With p and q the probabilities that two experts give to a gold label with n training documents:
//! ```text
//! L = −Σ λ·KL(p ‖ q)     KL = p·ln(p/q) + (1−p)·ln((1−p)/(1−q))     λ = (1 − max(p, q))/n, a constant
//! ```
//! summed over the gold labels of a document, and the mean over documents and pairs of experts.
//!
//! Binary cross-entropy is a mean over L labels, so that of K experts each is pulled towards a gold label by (1 − p)/(K·L), and a rare
//! label would be driven away from it by more. With u and v the logits and a the weight of the loss, slopes of a·λ·KL stay below the
//! pull as long as
//! ```text
//! λ ≤ 1/(a·K·L·(1 + x))     x = p·(v − u) or 0, whichever is more
//! ```
//! since |∂KL/∂v| = |p − q| is below 1 − q where v is driven down, and |∂KL/∂u| = (1 − p)·x where u is. An expert is in every pair at
//! most, and the loss is a mean over pairs.

use burn::tensor::{Int, Tensor, TensorData, activation};
use serde::{Deserialize, Serialize};

use crate::losses::softplus;

/// The pairs of experts that are compared, each in the direction in which they are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Every two.
    #[default]
    All,
    /// The first with each of the others.
    First,
}

impl Pairs {
    fn of(self, n: usize) -> Vec<(usize, usize)> {
        let firsts = match self {
            Self::All => n,
            Self::First => n.min(1),
        };
        (0..firsts).flat_map(|j| (j + 1..n).map(move |k| (j, k))).collect()
    }
}

/// The diversity loss.
#[derive(Debug, Clone)]
pub(super) struct Diversity {
    pub(super) pairs: Pairs,
    /// The mean of both directions instead of one.
    pub(super) symmetric: bool,
    /// The weight a of the loss if λ is capped by it; as published if `None`.
    pub(super) cap: Option<f64>,
    /// Training documents of each label.
    pub(super) counts: Vec<u32>,
}

/// Difference of logits beyond which the divergence has no gradient: KL has no bound of its own.
const FAR: f64 = 10.0;

impl Diversity {
    /// L, and the mean of KL over documents' gold labels and pairs, where `label` is that of a column of the logits; `None` without pairs or gold labels. Nothing is
    /// made of other labels.
    pub(super) fn of(
        &self,
        logits: &[Tensor<2>],
        gold: &[Vec<u32>],
        label: impl Fn(u32) -> u32,
    ) -> Option<(Tensor<1>, Tensor<1>)> {
        let pairs = self.pairs.of(logits.len());
        let most = gold.iter().map(Vec::len).max().unwrap_or(0);
        if pairs.is_empty() || most == 0 {
            return None;
        }
        let (n, device) = (gold.len(), logits[0].device());
        // 1/(a·K·L·documents), beside shares that are divided by the documents too.
        let cap = self.cap.map(|weight| 1.0 / (weight * (logits.len() * logits[0].dims()[1] * n) as f64));
        let (mut columns, mut shares, mut there) =
            (vec![0i64; n * most], vec![0.0f32; n * most], vec![0.0f32; n * most]);
        for (document, labels) in gold.iter().enumerate() {
            for (place, &column) in (document * most..).zip(labels) {
                columns[place] = i64::from(column);
                let documents = self.counts.get(label(column) as usize).copied().unwrap_or(0).max(1) as usize;
                shares[place] = 1.0 / (documents * n) as f32;
                there[place] = 1.0;
            }
        }
        let shape = [n, most];
        let columns: Tensor<2, Int> = Tensor::from_data(TensorData::new(columns, shape), &device);
        let matrix = |cells: Vec<f32>| Tensor::<2>::from_data(TensorData::new(cells, shape), &device);
        let n_labels: usize = gold.iter().map(Vec::len).sum();
        let (shares, there) = (matrix(shares), matrix(there) / n_labels as f64);
        let logits: Vec<Tensor<2>> =
            logits.iter().map(|logits| logits.clone().gather(1, columns.clone())).collect();
        let of_pair = |&(j, k): &(usize, usize)| {
            let (u, v) = (logits[j].clone(), logits[k].clone());
            // 1 − max(p, q) = σ(−max(u, v))
            let unsure = activation::sigmoid(-u.clone().detach().max_pair(v.clone().detach()));
            let mut weights = unsure * shares.clone();
            if let Some(cap) = cap {
                let (u, v) = (u.clone().detach(), v.clone().detach());
                // Beyond that the gap is a constant, and KL has slopes that drive experts together.
                let near = (u.clone() - v.clone()).abs().lower_elem(FAR).float();
                let mut steep = steepness(u.clone(), v.clone());
                if self.symmetric {
                    steep = steep.max_pair(steepness(v, u));
                }
                weights = weights.min_pair((steep + 1.0).recip() * cap) * near;
            }
            let kl = match self.symmetric {
                false => bernoulli_kl(u, v),
                true => (bernoulli_kl(u.clone(), v.clone()) + bernoulli_kl(v, u)) * 0.5,
            };
            let mean = (kl.clone().detach() * there.clone()).sum();
            ((kl * weights).sum().neg(), mean)
        };
        let n_pairs = pairs.len() as f64;
        let (loss, mean) = pairs.iter().map(of_pair).reduce(|sum, pair| (sum.0 + pair.0, sum.1 + pair.1))?;
        Some((loss / n_pairs, mean / n_pairs))
    }
}

/// What σ(u)·(1 − σ(u))·(v − u), the slope that drives u down, has beside the pull 1 − σ(u).
fn steepness(u: Tensor<2>, v: Tensor<2>) -> Tensor<2> {
    activation::sigmoid(u.clone()) * (v - u).clamp(0.0, FAR)
}

/// KL(σ(u) ‖ σ(v)) = σ(u)·d − softplus(u) + softplus(u − d) with the gap d = u − v, of which no more than [`FAR`] counts.
fn bernoulli_kl(u: Tensor<2>, v: Tensor<2>) -> Tensor<2> {
    let gap = (u.clone() - v).clamp(-FAR, FAR);
    activation::sigmoid(u.clone()) * gap.clone() - softplus(u.clone()) + softplus(u - gap)
}
