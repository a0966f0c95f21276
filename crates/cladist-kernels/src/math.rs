//! Elementary functions on registers.
//!
//! What limits them is how long one result waits for another, so terms of polynomials are paired, and the two functions that
//! GELU needs do not share a chain.

use crate::simd::Simd;

/// eˣ to about two units in the last place; exactly 0 below −87.7, where the exponent of the result runs out: numbers
/// too small for it would cost a hundred cycles each.
#[inline(always)]
pub(crate) unsafe fn exp<S: Simd>(x: S::V) -> S::V {
    unsafe {
        let low = S::splat(-88.0);
        let clamped = S::min(S::max(x, low), S::splat(88.0));
        let n = S::round(S::mul(clamped, S::splat(std::f32::consts::LOG2_E)));
        // ln 2 in two parts keeps the remainder exact.
        let r = S::fma(n, S::splat(-0.693_359_4), clamped);
        let r = S::fma(n, S::splat(2.121_944_4e-4), r);
        let square = S::mul(r, r);
        let pair = |high: f32, low: f32| S::fma(S::splat(high), r, S::splat(low));
        // Pairs of terms, not a whole tree: r⁴ of the small r at a row's maximum would be too small to compute with.
        let mut p = pair(1.987_569_1e-4, 1.398_199_9e-3);
        for (high, low) in [(8.333_452e-3, 4.166_579_6e-2), (1.666_666_5e-1, 0.5), (1.0, 1.0)] {
            p = S::fma(p, square, pair(high, low));
        }
        S::mul(p, S::exp2i(n))
    }
}

/// Φ(x), the normal distribution function: ½ + ½·erf(x/√2) with erf as a quotient of polynomials, z·p(z²)/q(z²) for z
/// in [−4, 4]; absolute error below 3e-7.
#[inline(always)]
pub(crate) unsafe fn distribution<S: Simd>(x: S::V) -> S::V {
    const P: [f32; 6] =
        [2.770_681_5e-8, -2.101_024e-6, -5.692_506_2e-5, -7.349_906_4e-4, -2.954_6e-3, -1.609_603_3e-2];
    const Q: [f32; 4] = [-2.133_740_6e-4, -1.682_827e-3, -7.373_329_3e-3, -1.426_473_9e-2];
    unsafe {
        let scaled = S::mul(x, S::splat(std::f32::consts::FRAC_1_SQRT_2));
        let z = S::min(S::max(scaled, S::splat(-4.0)), S::splat(4.0));
        let square = S::mul(z, z);
        let mut p = S::splat(-2.726_142_4e-10);
        for c in P {
            p = S::fma(p, square, S::splat(c));
        }
        let mut q = S::splat(-1.456_607_2e-5);
        for c in Q {
            q = S::fma(q, square, S::splat(c));
        }
        let half = S::splat(0.5);
        S::fma(S::mul(z, S::div(p, q)), half, half)
    }
}

/// φ(x), the normal density.
#[inline(always)]
pub(crate) unsafe fn density<S: Simd>(x: S::V) -> S::V {
    unsafe {
        let e = exp::<S>(S::mul(S::mul(x, x), S::splat(-0.5)));
        S::mul(e, S::splat(0.398_942_3))
    }
}
