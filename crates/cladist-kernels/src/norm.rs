//! Layer normalisation of rows, forward and backward.

use crate::simd::{Kernel, Simd, dispatch};

/// Mean and reciprocal standard deviation of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: f32,
    /// 1 / √(variance + ε).
    pub rstd: f32,
}

/// `y = (x − mean) · rstd · gain + bias`, and the moments of the row.
#[must_use]
pub fn normalise(x: &[f32], gain: &[f32], bias: &[f32], epsilon: f32, y: &mut [f32]) -> Moments {
    assert!(x.len() == y.len() && gain.len() == x.len() && bias.len() == x.len());
    dispatch(Row { x, gain, bias, epsilon, y })
}

struct Row<'a> {
    x: &'a [f32],
    gain: &'a [f32],
    bias: &'a [f32],
    epsilon: f32,
    y: &'a mut [f32],
}

impl Kernel for Row<'_> {
    type Output = Moments;
    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Moments {
        let Self { x, gain, bias, epsilon, y } = self;
        let n = x.len() as f32;
        let mean = sum::<S>(x, |v| v) / n;
        // Two passes: the row is in cache, and the difference of squares would lose digits.
        let variance = sum::<S>(x, |v| (v - mean) * (v - mean)) / n;
        let rstd = 1.0 / (variance + epsilon).sqrt();
        for (((y, &x), &gain), &bias) in y.iter_mut().zip(x).zip(gain).zip(bias) {
            *y = (x - mean) * rstd * gain + bias;
        }
        Moments { mean, rstd }
    }
}

/// A sum in `LANES` parts, which the compiler keeps in registers, in an order that does not depend on the machine's
/// mood.
#[inline(always)]
fn sum<S: Simd>(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut parts = [0.0f32; 32];
    let mut chunks = x.chunks_exact(32);
    for chunk in chunks.by_ref() {
        for (part, &value) in parts.iter_mut().zip(chunk) {
            *part += f(value);
        }
    }
    for (part, &value) in parts.iter_mut().zip(chunks.remainder()) {
        *part += f(value);
    }
    for half in [16, 8, 4, 2, 1] {
        for i in 0..half {
            parts[i] += parts[i + half];
        }
    }
    parts[0]
}

/// The gradient of one row of [`normalise`].
///
/// With x̂ the normalised row and g = dy·gain: `dx = rstd · (g − mean(g) − x̂ · mean(g·x̂))`; `dgain += dy·x̂`,
/// `dbias += dy`. `dy` becomes `dx`.
pub fn normalise_backward(
    x: &[f32],
    moments: Moments,
    gain: &[f32],
    dy: &mut [f32],
    dgain: &mut [f32],
    dbias: &mut [f32],
) {
    let n = x.len();
    assert!(gain.len() == n && dy.len() == n && dgain.len() == n && dbias.len() == n);
    dispatch(RowBackward { x, moments, gain, dy, dgain, dbias });
}

struct RowBackward<'a> {
    x: &'a [f32],
    moments: Moments,
    gain: &'a [f32],
    dy: &'a mut [f32],
    dgain: &'a mut [f32],
    dbias: &'a mut [f32],
}

impl Kernel for RowBackward<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { x, moments: Moments { mean, rstd }, gain, dy, dgain, dbias } = self;
        let n = x.len() as f32;
        for i in 0..x.len() {
            let normalised = (x[i] - mean) * rstd;
            dgain[i] += dy[i] * normalised;
            dbias[i] += dy[i];
            dy[i] *= gain[i];
        }
        let mean_g = sum::<S>(dy, |g| g) / n;
        let mut parts = [0.0f32; 32];
        for (dy, x) in dy.chunks(32).zip(x.chunks(32)) {
            for ((part, &g), &x) in parts.iter_mut().zip(dy).zip(x) {
                *part += g * (x - mean) * rstd;
            }
        }
        let mean_gx = sum::<S>(&parts, |v| v) / n;
        for (dy, &x) in dy.iter_mut().zip(x) {
            *dy = rstd * (*dy - mean_g - (x - mean) * rstd * mean_gx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_row_is_normalised() {
        let mut y = [0.0; 3];
        let _ = normalise(&[1.5, 1.0, 2.0], &[1.0; 3], &[0.0; 3], 0.0, &mut y);
        for (y, expected) in y.iter().zip([0.0, -1.224_744_9, 1.224_744_9]) {
            assert!((y - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn backward_agrees_with_finite_differences() {
        let n = 37;
        let x: Vec<f32> = (0..n).map(|i| ((i * 7) % 11) as f32 / 5.0 - 1.0).collect();
        let gain: Vec<f32> = (0..n).map(|i| 0.5 + (i % 5) as f32 / 4.0).collect();
        let bias: Vec<f32> = (0..n).map(|i| i as f32 / 50.0).collect();
        let dy: Vec<f32> = (0..n).map(|i| ((i * 3) % 7) as f32 - 3.0).collect();
        let loss = |x: &[f32], gain: &[f32], bias: &[f32]| -> f64 {
            let mut y = vec![0.0; n];
            let _ = normalise(x, gain, bias, 1e-5, &mut y);
            y.iter().zip(&dy).map(|(y, d)| f64::from(*y) * f64::from(*d)).sum()
        };
        let mut y = vec![0.0; n];
        let moments = normalise(&x, &gain, &bias, 1e-5, &mut y);
        let (mut dx, mut dgain, mut dbias) = (dy.clone(), vec![0.0; n], vec![0.0; n]);
        normalise_backward(&x, moments, &gain, &mut dx, &mut dgain, &mut dbias);
        let h = 1e-2;
        for i in 0..n {
            let slope = |values: &[f32], f: &dyn Fn(&[f32]) -> f64| {
                let (mut up, mut down) = (values.to_vec(), values.to_vec());
                up[i] += h;
                down[i] -= h;
                (f(&up) - f(&down)) / f64::from(2.0 * h)
            };
            let close =
                |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 2e-3 * (1.0 + b.abs()), "{i}: {a} {b}");
            close(dx[i], slope(&x, &|x| loss(x, &gain, &bias)));
            close(dgain[i], slope(&gain, &|gain| loss(&x, gain, &bias)));
            close(dbias[i], slope(&bias, &|bias| loss(&x, &gain, bias)));
        }
    }
}
