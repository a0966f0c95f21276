//! Platt calibration: a logistic curve on the logit of the score.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Pair;

/// Pairs that are summed in one piece, so that threads do not change the order of additions.
const CHUNK: usize = 1 << 14;
const MAX_STEPS: usize = 100;

/// `p = 1 / (1 + exp(-(slope · logit(score) + intercept)))` with a positive slope.
///
/// Fitted by Newton's method with line search on the cross entropy, against the smoothed targets of Lin, Lin and
/// Weng (2007): `(n₊ + 1) / (n₊ + 2)` for gold and `1 / (n₋ + 2)` for the others, which keeps the fit finite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Platt {
    slope: f64,
    intercept: f64,
}

/// A [`Platt`] as a file has it, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    slope: f64,
    intercept: f64,
}

impl TryFrom<Stored> for Platt {
    type Error = &'static str;

    fn try_from(Stored { slope, intercept }: Stored) -> Result<Self, Self::Error> {
        Self { slope, intercept }
            .if_rising()
            .ok_or("a logistic map that does not rise, or not by finite numbers")
    }
}

fn logit(score: f32) -> f64 {
    const NEAREST: f64 = 1e-7;
    let score = f64::from(score).clamp(NEAREST, 1.0 - NEAREST);
    (score / (1.0 - score)).ln()
}

/// `ln(1 + exp(z))` without overflow.
fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

fn sigmoid(z: f64) -> f64 {
    if z >= 0.0 { 1.0 / (1.0 + (-z).exp()) } else { z.exp() / (1.0 + z.exp()) }
}

impl Platt {
    /// None if the fitted curve does not rise: scores that run against gold are not for a map to repair.
    pub(super) fn fit(pairs: &[Pair]) -> Option<Self> {
        let positives = pairs.iter().filter(|pair| pair.1).count() as f64;
        let negatives = pairs.len() as f64 - positives;
        let (high, low) = ((positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0));
        let target = |gold: bool| if gold { high } else { low };
        let sum = |term: &(dyn Fn(f64, f64) -> [f64; 5] + Sync)| -> [f64; 5] {
            let chunks: Vec<[f64; 5]> = pairs
                .par_chunks(CHUNK)
                .map(|chunk| {
                    chunk.iter().fold([0.0; 5], |total, &(score, gold)| {
                        let terms = term(logit(score), target(gold));
                        std::array::from_fn(|n| total[n] + terms[n])
                    })
                })
                .collect();
            chunks.into_iter().fold([0.0; 5], |total, chunk| std::array::from_fn(|n| total[n] + chunk[n]))
        };
        let loss = |curve: Self| {
            sum(&|x, t| {
                let z = curve.slope * x + curve.intercept;
                [softplus(z) - t * z, 0.0, 0.0, 0.0, 0.0]
            })[0]
        };

        let mut curve = Self { slope: 0.0, intercept: ((positives + 1.0) / (negatives + 1.0)).ln() };
        let mut current = loss(curve);
        for _ in 0..MAX_STEPS {
            let [g_slope, g_intercept, h_ss, h_si, h_ii] = sum(&|x, t| {
                let p = sigmoid(curve.slope * x + curve.intercept);
                let weight = p * (1.0 - p);
                [(p - t) * x, p - t, weight * x * x, weight * x, weight]
            });
            if g_slope.abs().max(g_intercept.abs()) < 1e-9 * pairs.len() as f64 {
                break;
            }
            // A ridge that only matters where all scores are the same; the minimum stays where it is.
            let ridge = 1e-9 * pairs.len() as f64;
            let (h_ss, h_ii) = (h_ss + ridge, h_ii + ridge);
            let determinant = h_ss * h_ii - h_si * h_si;
            let d_slope = -(h_ii * g_slope - h_si * g_intercept) / determinant;
            let d_intercept = -(h_ss * g_intercept - h_si * g_slope) / determinant;
            let descent = g_slope * d_slope + g_intercept * d_intercept;
            if descent.is_nan() || descent >= 0.0 {
                break;
            }
            let mut step = 1.0;
            let improved = loop {
                let next = Self {
                    slope: curve.slope + step * d_slope,
                    intercept: curve.intercept + step * d_intercept,
                };
                let value = loss(next);
                if value < current + 1e-4 * step * descent {
                    break Some((next, value));
                }
                step /= 2.0;
                if step < 1e-10 {
                    break None;
                }
            };
            let Some((next, value)) = improved else { break };
            (curve, current) = (next, value);
        }
        curve.if_rising()
    }

    fn if_rising(self) -> Option<Self> {
        (self.slope > 0.0 && self.slope.is_finite() && self.intercept.is_finite()).then_some(self)
    }

    /// The probability for a score.
    #[must_use]
    pub fn apply(&self, score: f32) -> f32 {
        sigmoid(self.slope * logit(score) + self.intercept) as f32
    }
}
