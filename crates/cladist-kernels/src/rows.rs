//! One vector against many rows of weights, each with a bias at its end.

use crate::simd::{Kernel, Simd, dispatch};

/// `out[i] = wᵢ·x + bᵢ`, where row i is wᵢ and then bᵢ. A row's product does not depend on how many there are.
///
/// # Panics
/// If `rows` is not as long as `out` times the length of `x` and a bias.
pub fn outputs(rows: &[f32], x: &[f32], out: &mut [f32]) {
    assert_eq!(rows.len(), out.len() * (x.len() + 1));
    dispatch(Outputs { rows, x, out });
}

struct Outputs<'a> {
    rows: &'a [f32],
    x: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Outputs<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { rows, x, out } = self;
        let n = x.len();
        for (row, out) in rows.chunks_exact(n + 1).zip(out) {
            let (w, x) = (row.as_ptr(), x.as_ptr());
            // SAFETY: every load is of `LANES` values below `n`, and both have `n`.
            unsafe {
                // Several sums at once: one would wait for its own additions.
                let mut sums = [S::splat(0.0); 4];
                let mut at = 0;
                while at + 4 * S::LANES <= n {
                    for (k, sum) in sums.iter_mut().enumerate() {
                        let at = at + k * S::LANES;
                        *sum = S::fma(S::load(w.add(at)), S::load(x.add(at)), *sum);
                    }
                    at += 4 * S::LANES;
                }
                while at + S::LANES <= n {
                    sums[0] = S::fma(S::load(w.add(at)), S::load(x.add(at)), sums[0]);
                    at += S::LANES;
                }
                let mut sum = S::sum(S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3])));
                for i in at..n {
                    sum += *w.add(i) * *x.add(i);
                }
                *out = sum + row[n];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::values;

    #[test]
    fn outputs_equal_the_formula_in_f64_whatever_the_width() {
        for n in [0, 1, 7, 16, 63, 64, 65, 200, 768] {
            let rows = values(5 * (n + 1), 1, 1.0);
            let x = values(n, 2, 1.0);
            let mut out = [0.0; 5];
            outputs(&rows, &x, &mut out);
            for (row, out) in rows.chunks_exact(n + 1).zip(out) {
                let product: f64 = row.iter().zip(&x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
                let expected = product + f64::from(row[n]);
                assert!((f64::from(out) - expected).abs() < 1e-4, "{n}: {out} {expected}");
                let mut alone = [0.0];
                outputs(row, &x, &mut alone);
                assert_eq!(alone[0], out);
            }
        }
    }
}
