//! Dropout from a hash of position: nothing is stored, backward draws the same mask again, and the mask does not
//! depend on how work is split between threads.

use crate::simd::{Kernel, Simd, dispatch};

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
}
