//! AdamW in one pass over flat buffers: decay, both moments and the update while a value is in a register.

use rayon::prelude::*;

use crate::simd::{Kernel, Simd, dispatch};

/// What a step needs beside the buffers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Learning rate of this step.
    pub rate: f32,
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Keeps the division finite.
    pub epsilon: f32,
    /// Decoupled weight decay; 0 for biases and normalisation gains.
    pub decay: f32,
    /// The number of this step, from 1.
    pub number: u64,
    /// Gradients are multiplied by this first: global clipping, accumulation.
    pub scale: f32,
}

/// `m = β₁m + (1−β₁)g`, `v = β₂v + (1−β₂)g²`, `p −= rate·decay·p + rate·m̂ / (√v̂ + ε)` with bias-corrected m̂, v̂.
///
/// # Panics
/// If the buffers differ in length.
pub fn step(step: Step, parameters: &mut [f32], gradients: &[f32], first: &mut [f32], second: &mut [f32]) {
    let n = parameters.len();
    assert!(gradients.len() == n && first.len() == n && second.len() == n);
    // Large enough that starting a task does not show, small enough to share between cores.
    const CHUNK: usize = 1 << 15;
    parameters
        .par_chunks_mut(CHUNK)
        .zip(gradients.par_chunks(CHUNK))
        .zip(first.par_chunks_mut(CHUNK))
        .zip(second.par_chunks_mut(CHUNK))
        .for_each(|(((parameters, gradients), first), second)| {
            dispatch(Chunk { step, parameters, gradients, first, second });
        });
}

struct Chunk<'a> {
    step: Step,
    parameters: &'a mut [f32],
    gradients: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl Kernel for Chunk<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Step { rate, beta1, beta2, epsilon, decay, number, scale } = self.step;
        let correct1 = (1.0 - f64::from(beta1).powf(number as f64)) as f32;
        let correct2 = (1.0 - f64::from(beta2).powf(number as f64)) as f32;
        let (size, root) = (rate / correct1, 1.0 / correct2.sqrt());
        let keep = 1.0 - rate * decay;
        let values = self.parameters.iter_mut().zip(self.gradients).zip(self.first).zip(self.second);
        for (((p, &g), m), v) in values {
            let g = g * scale;
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *p = *p * keep - size * *m / (v.sqrt() * root + epsilon);
        }
    }
}

/// Σ g², in a fixed order whatever the number of threads: for clipping by global norm.
#[must_use]
pub fn square_sum(gradients: &[f32]) -> f64 {
    const CHUNK: usize = 1 << 15;
    let parts: Vec<f64> = gradients
        .par_chunks(CHUNK)
        .map(|chunk| {
            let mut lanes = [0.0f64; 8];
            for values in chunk.chunks(8) {
                for (lane, &g) in lanes.iter_mut().zip(values) {
                    *lane += f64::from(g) * f64::from(g);
                }
            }
            lanes.iter().sum::<f64>()
        })
        .collect();
    parts.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_equal_the_formula_worked_in_f64() {
        let (rate, beta1, beta2, epsilon, decay) = (0.1, 0.9, 0.99, 1e-8, 0.01);
        let n = 100_003;
        let mut p: Vec<f32> = (0..n).map(|i| (i % 17) as f32 / 8.0 - 1.0).collect();
        let (mut m, mut v) = (vec![0.0; n], vec![0.0; n]);
        let mut expected: Vec<(f64, f64, f64)> = p.iter().map(|&p| (f64::from(p), 0.0, 0.0)).collect();
        for number in 1..=2 {
            let g: Vec<f32> = (0..n).map(|i| ((i * number) % 13) as f32 / 6.0 - 1.0).collect();
            let settings = Step {
                rate: rate as f32,
                beta1: beta1 as f32,
                beta2: beta2 as f32,
                epsilon: epsilon as f32,
                decay: decay as f32,
                number: number as u64,
                scale: 0.5,
            };
            step(settings, &mut p, &g, &mut m, &mut v);
            for ((p, m, v), &g) in expected.iter_mut().zip(&g) {
                let g = f64::from(g) * 0.5;
                *m = beta1 * *m + (1.0 - beta1) * g;
                *v = beta2 * *v + (1.0 - beta2) * g * g;
                let (mh, vh) =
                    (*m / (1.0 - beta1.powi(number as i32)), *v / (1.0 - beta2.powi(number as i32)));
                *p -= rate * decay * *p + rate * mh / (vh.sqrt() + epsilon);
            }
        }
        for (p, (expected, _, _)) in p.iter().zip(&expected) {
            assert!((f64::from(*p) - expected).abs() < 1e-5, "{p} {expected}");
        }
    }

    #[test]
    fn the_square_sum_is_exact_enough_to_clip_by() {
        let g: Vec<f32> = (0..100_000).map(|i| (i % 7) as f32).collect();
        let expected: f64 = g.iter().map(|&g| f64::from(g * g)).sum();
        assert!((square_sum(&g) - expected).abs() < 1e-6 * expected);
    }
}
