//! Dropout from a hash of position: nothing is stored, backward draws the same mask again, and the mask does not
//! depend on how work is split between threads.

use rayon::prelude::*;

use crate::simd::{Kernel, Simd, dispatch, vectorised};

/// Dropout of one place in a network: its rate, and a seed that changes with step, layer and place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// Share of values that become 0.
    pub rate: f32,
    /// Seed of this place in this step.
    pub seed: u64,
}

impl Dropout {
    /// No dropout.
    pub const NONE: Self = Self { rate: 0.0, seed: 0 };

    /// Whether anything is dropped.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.rate > 0.0
    }

    /// The factors of a row: 0 or 1 / (1 − rate).
    pub fn factors(self, row: u64, out: &mut [f32]) {
        let mixed = (self.seed ^ row.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let key = (mixed ^ (mixed >> 31)) as u32;
        let threshold = (f64::from(self.rate) * f64::from(u32::MAX)) as u32;
        dispatch(Factors { key, threshold, keep: 1.0 / (1.0 - self.rate), out });
    }

    /// `out = x` times the factors, row by row; the first row has the number `first`.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn on_rows(self, first: usize, x: &[f32], width: usize, out: &mut [f32]) {
        /// Rows that are worth a task of their own.
        const ROWS: usize = 16;
        assert_eq!(x.len(), out.len());
        if width == 0 {
            return;
        }
        let some = out.par_chunks_mut(ROWS * width).zip(x.par_chunks(ROWS * width)).enumerate();
        some.for_each(|(n, (out, x))| {
            for (row, (out, x)) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)).enumerate() {
                self.factors((first + n * ROWS + row) as u64, out);
                vectorised(|| out.iter_mut().zip(x).for_each(|(out, x)| *out *= x));
            }
        });
    }
}

struct Factors<'a> {
    key: u32,
    threshold: u32,
    keep: f32,
    out: &'a mut [f32],
}

impl Kernel for Factors<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // A 32-bit finaliser with two multiplications; the compiler makes vectors of this loop.
        for (i, out) in self.out.iter_mut().enumerate() {
            let mut h = self.key.wrapping_add((i as u32).wrapping_mul(0x9e37_79b9));
            h = (h ^ (h >> 16)).wrapping_mul(0x7feb_352d);
            h = (h ^ (h >> 15)).wrapping_mul(0x846c_a68b);
            h ^= h >> 16;
            *out = if h < self.threshold { 0.0 } else { self.keep };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_zeros_is_the_rate_and_rows_differ() {
        let dropout = Dropout { rate: 0.1, seed: 7 };
        let mut rows = vec![vec![0.0; 1000]; 200];
        for (row, out) in rows.iter_mut().enumerate() {
            dropout.factors(row as u64, out);
        }
        let zeros = rows.iter().flatten().filter(|&&x| x == 0.0).count() as f64 / 200_000.0;
        assert!((zeros - 0.1).abs() < 0.003, "{zeros}");
        assert!(rows.iter().flatten().all(|&x| x == 0.0 || (x - 1.0 / 0.9).abs() < 1e-6));
        assert_ne!(rows[0], rows[1]);
        let mut again = vec![0.0; 1000];
        dropout.factors(0, &mut again);
        assert_eq!(again, rows[0]);
        Dropout { rate: 0.1, seed: 8 }.factors(0, &mut again);
        assert_ne!(again, rows[0]);
    }
    #[test]
    fn rows_are_multiplied_by_their_factors() {
        let (dropout, width) = (Dropout { rate: 0.3, seed: 3 }, 7);
        let x: Vec<f32> = (0..50 * width).map(|n| n as f32 + 1.0).collect();
        let mut out = vec![9.0; x.len()];
        dropout.on_rows(4, &x, width, &mut out);
        for (row, (out, x)) in out.chunks(width).zip(x.chunks(width)).enumerate() {
            let mut factors = vec![0.0; width];
            dropout.factors(row as u64 + 4, &mut factors);
            let expected: Vec<f32> = factors.iter().zip(x).map(|(factor, x)| factor * x).collect();
            assert_eq!(out, expected);
        }
    }
}
