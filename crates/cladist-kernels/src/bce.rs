//! Sigmoid and binary cross-entropy on logits in one pass, gold labels given sparsely.

use rayon::prelude::*;

use crate::math::exp;
use crate::simd::{Kernel, Simd, dispatch};

/// Σ over all cells of softplus(z) − y·z, and its gradient σ(z) − y times `weight` in place of the logits.
///
/// `logits` is `[documents][n_labels]`; `gold[i]` lists the columns that are 1, each at most once.
///
/// # Panics
/// If the shapes do not fit or a gold column is out of range.
pub fn loss_and_gradient(logits: &mut [f32], n_labels: usize, gold: &[&[u32]], weight: f32) -> f64 {
    assert_eq!(logits.len(), gold.len() * n_labels);
    if n_labels == 0 {
        return 0.0;
    }
    let losses: Vec<f64> = logits
        .par_chunks_exact_mut(n_labels)
        .zip(gold)
        .map(|(row, gold)| {
            let positive: f64 = gold.iter().map(|&label| f64::from(row[label as usize])).sum();
            let loss = dispatch(Row { row, weight }) - positive;
            for &label in *gold {
                row[label as usize] -= weight;
            }
            loss
        })
        .collect();
    losses.iter().sum()
}

struct Row<'a> {
    row: &'a mut [f32],
    weight: f32,
}

impl Kernel for Row<'_> {
    type Output = f64;
    /// Σ softplus(z); `row` becomes weight·σ(z).
    ///
    /// With e = e^(−|z|): softplus = max(z, 0) + ln(1 + e) and σ = 1/(1+e) or e/(1+e). The product of up to eight
    /// factors 1 + e ≤ 2 stays exact enough for one logarithm.
    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f64 {
        let Self { row, weight } = self;
        let lanes = S::LANES;
        let mut total = 0.0;
        let mut buffer = [0.0f32; 16];
        for chunk in row.chunks_mut(8 * lanes) {
            // SAFETY: full registers are inside the chunk; the rest goes through the buffer.
            unsafe {
                let (zero, one, weights) = (S::splat(0.0), S::splat(1.0), S::splat(weight));
                let (mut positive, mut product) = (zero, one);
                let mut cell = |z: S::V| {
                    let e = exp::<S>(S::sub(zero, S::abs(z)));
                    let above = S::add(one, e);
                    positive = S::add(positive, S::max(z, zero));
                    product = S::mul(product, above);
                    let high = S::div(one, above);
                    // σ(z) = ½ + sign(z)·(high − ½)
                    let half = S::splat(0.5);
                    S::mul(S::add(half, S::copysign(S::sub(high, half), z)), weights)
                };
                let mut whole = chunk.chunks_exact_mut(lanes);
                for register in whole.by_ref() {
                    let slope = cell(S::load(register.as_ptr()));
                    S::store(register.as_mut_ptr(), slope);
                }
                let rest = whole.into_remainder();
                if !rest.is_empty() {
                    // e^(−∞) = 0 adds nothing: the padding must be far below 0.
                    buffer = [-1e30; 16];
                    buffer[..rest.len()].copy_from_slice(rest);
                    let slope = cell(S::load(buffer.as_ptr()));
                    S::store(buffer.as_mut_ptr(), slope);
                    rest.copy_from_slice(&buffer[..rest.len()]);
                }
                total += f64::from(S::sum(positive));
                S::store(buffer.as_mut_ptr(), product);
                total += buffer[..lanes].iter().map(|&p| f64::from(p).ln()).sum::<f64>();
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_levels_are_met() {
        // z₁ = [.5, −1], y = [1, 0]: mean .3936693; z₂ = [2, −.3, .1], y = [1, 0, 0]: mean .4752266.
        let mut z = [0.5, -1.0];
        assert!((loss_and_gradient(&mut z, 2, &[&[0]], 1.0) / 2.0 - 0.393_669_3).abs() < 1e-6);
        let mut z = [2.0, -0.3, 0.1];
        assert!((loss_and_gradient(&mut z, 3, &[&[0]], 1.0) / 3.0 - 0.475_226_6).abs() < 1e-6);
    }

    #[test]
    fn loss_and_gradient_equal_the_formula_also_for_large_logits() {
        let n = 1003;
        let z: Vec<f32> = (0..3 * n).map(|i| ((i * 37) % 401) as f32 / 4.0 - 50.0).collect();
        let gold: Vec<Vec<u32>> = vec![vec![0, 5, 1002], vec![], vec![7]];
        let lists: Vec<&[u32]> = gold.iter().map(Vec::as_slice).collect();
        let mut slope = z.clone();
        let loss = loss_and_gradient(&mut slope, n, &lists, 0.25);
        let mut expected = 0.0;
        for (i, (&z, &slope)) in z.iter().zip(&slope).enumerate() {
            let y = f64::from(u8::from(gold[i / n].contains(&((i % n) as u32))));
            let z = f64::from(z);
            expected += z.max(0.0) + (-z.abs()).exp().ln_1p() - y * z;
            let sigmoid = 1.0 / (1.0 + (-z).exp());
            assert!((f64::from(slope) - 0.25 * (sigmoid - y)).abs() < 1e-6, "{z}: {slope}");
        }
        assert!((loss - expected).abs() < 1e-4 * expected.abs(), "{loss} {expected}");
    }
}
