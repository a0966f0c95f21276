//! Elementary functions on registers.

use crate::simd::Simd;

/// eˣ to about two units in the last place; 0 below −87.
#[inline(always)]
pub(crate) unsafe fn exp<S: Simd>(x: S::V) -> S::V {
    unsafe {
        let low = S::splat(-87.336_54);
        let clamped = S::min(S::max(x, low), S::splat(88.0));
        let n = S::round(S::mul(clamped, S::splat(std::f32::consts::LOG2_E)));
        // ln 2 in two parts keeps the remainder exact.
        let r = S::fma(n, S::splat(-0.693_359_4), clamped);
        let r = S::fma(n, S::splat(2.121_944_4e-4), r);
        let mut p = S::splat(1.987_569_1e-4);
        for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5, 1.0, 1.0] {
            p = S::fma(p, r, S::splat(c));
        }
        S::mul(p, S::exp2i(n))
    }
}

/// Φ(x), the normal distribution function, and φ(x), its density, sharing one exponential.
///
/// 1 − Φ(|x|) = ½·poly(t)·e^(−x²/2) with t = 1 / (1 + 0.3275911·|x|/√2): absolute error below 1e-7.
#[inline(always)]
pub(crate) unsafe fn normal<S: Simd>(x: S::V) -> (S::V, S::V) {
    unsafe {
        let one = S::splat(1.0);
        let z = S::mul(S::abs(x), S::splat(std::f32::consts::FRAC_1_SQRT_2));
        let t = S::div(one, S::fma(z, S::splat(0.327_591_1), one));
        let e = exp::<S>(S::sub(S::splat(0.0), S::mul(z, z)));
        let mut p = S::splat(1.061_405_4);
        for c in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
            p = S::fma(p, t, S::splat(c));
        }
        // erf(z), then Φ = ½ + ½·erf with the sign of x.
        let erf = S::sub(one, S::mul(S::mul(p, t), e));
        let half = S::splat(0.5);
        let cdf = S::fma(S::copysign(erf, x), half, half);
        // The tail through the complement, so that gelu(−5) keeps its digits.
        (cdf, S::mul(e, S::splat(0.398_942_3)))
    }
}
