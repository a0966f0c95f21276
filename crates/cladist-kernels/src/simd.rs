//! The vector instructions the kernels need, and which of them this machine has.
//!
//! Every kernel is written once, generic over [`Simd`], and compiled for each instruction set by [`dispatch`].

/// One instruction set. All methods are `unsafe` because the caller must know that the machine has it, and that
/// pointers are good for `LANES` values.
pub(crate) trait Simd: Copy {
    /// A register of `LANES` values.
    type V: Copy;
    /// Values per register.
    const LANES: usize;
    /// Rows of the matrix-product tile: as many as registers allow beside two columns of registers.
    const ROWS: usize;
    unsafe fn splat(x: f32) -> Self::V;
    unsafe fn load(p: *const f32) -> Self::V;
    unsafe fn store(p: *mut f32, v: Self::V);
    /// a·b + c
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// Nearest whole number.
    unsafe fn round(a: Self::V) -> Self::V;
    /// 2^n for whole n in −126..=127, and 0 for −127.
    unsafe fn exp2i(n: Self::V) -> Self::V;
    /// |a|
    unsafe fn abs(a: Self::V) -> Self::V;
    /// |a| with the sign of b.
    unsafe fn copysign(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sum(a: Self::V) -> f32;
    /// The largest value.
    unsafe fn highest(a: Self::V) -> f32;
}

/// Plain Rust, for machines without the others; the compiler makes what it can of it.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

macro_rules! lanes {
    (|$i:ident| $e:expr) => {{
        let mut out = [0.0; 8];
        for $i in 0..8 {
            out[$i] = $e;
        }
        out
    }};
}

#[rustfmt::skip]
impl Simd for Portable {
    type V = [f32; 8];
    const LANES: usize = 8;
    const ROWS: usize = 4;
    #[inline(always)] unsafe fn splat(x: f32) -> Self::V { [x; 8] }
    #[inline(always)] unsafe fn load(p: *const f32) -> Self::V { unsafe { p.cast::<[f32; 8]>().read_unaligned() } }
    #[inline(always)] unsafe fn store(p: *mut f32, v: Self::V) { unsafe { p.cast::<[f32; 8]>().write_unaligned(v) } }
    #[inline(always)] unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V { lanes!(|i| a[i] * b[i] + c[i]) }
    #[inline(always)] unsafe fn add(a: Self::V, b: Self::V) -> Self::V { lanes!(|i| a[i] + b[i]) }
    #[inline(always)] unsafe fn sub(a: Self::V, b: Self::V) -> Self::V { lanes!(|i| a[i] - b[i]) }
    #[inline(always)] unsafe fn mul(a: Self::V, b: Self::V) -> Self::V { lanes!(|i| a[i] * b[i]) }
    #[inline(always)] unsafe fn div(a: Self::V, b: Self::V) -> Self::V { lanes!(|i| a[i] / b[i]) }
    #[inline(always)] unsafe fn max(a: Self::V, b: Self::V) -> Self::V { lanes!(|i| if a[i] > b[i] { a[i] } else { b[i] }) }
    #[inline(always)] unsafe fn min(a: Self::V, b: Self::V) -> Self::V { lanes!(|i| if a[i] < b[i] { a[i] } else { b[i] }) }
    #[inline(always)] unsafe fn round(a: Self::V) -> Self::V { lanes!(|i| a[i].round_ties_even()) }
    #[inline(always)] unsafe fn exp2i(n: Self::V) -> Self::V { lanes!(|i| f32::from_bits(((n[i] as i32 + 127) as u32) << 23)) }
    #[inline(always)] unsafe fn abs(a: Self::V) -> Self::V { lanes!(|i| a[i].abs()) }
    #[inline(always)] unsafe fn copysign(a: Self::V, b: Self::V) -> Self::V { lanes!(|i| a[i].copysign(b[i])) }
    #[inline(always)] unsafe fn sum(a: Self::V) -> f32 { ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7])) }
    #[inline(always)] unsafe fn highest(a: Self::V) -> f32 { a.into_iter().fold(f32::NEG_INFINITY, f32::max) }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Simd;
    use std::arch::x86_64::*;

    /// 256-bit registers with fused multiply-add.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2;

    #[rustfmt::skip]
    impl Simd for Avx2 {
        type V = __m256;
        const LANES: usize = 8;
        const ROWS: usize = 6;
        #[inline(always)] unsafe fn splat(x: f32) -> Self::V { unsafe { _mm256_set1_ps(x) } }
        #[inline(always)] unsafe fn load(p: *const f32) -> Self::V { unsafe { _mm256_loadu_ps(p) } }
        #[inline(always)] unsafe fn store(p: *mut f32, v: Self::V) { unsafe { _mm256_storeu_ps(p, v) } }
        #[inline(always)] unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V { unsafe { _mm256_fmadd_ps(a, b, c) } }
        #[inline(always)] unsafe fn add(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm256_add_ps(a, b) } }
        #[inline(always)] unsafe fn sub(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm256_sub_ps(a, b) } }
        #[inline(always)] unsafe fn mul(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm256_mul_ps(a, b) } }
        #[inline(always)] unsafe fn div(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm256_div_ps(a, b) } }
        #[inline(always)] unsafe fn max(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm256_max_ps(a, b) } }
        #[inline(always)] unsafe fn min(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm256_min_ps(a, b) } }
        #[inline(always)] unsafe fn round(a: Self::V) -> Self::V { unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) } }
        #[inline(always)] unsafe fn exp2i(n: Self::V) -> Self::V {
            unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)))) }
        }
        #[inline(always)] unsafe fn abs(a: Self::V) -> Self::V { unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), a) } }
        #[inline(always)] unsafe fn copysign(a: Self::V, b: Self::V) -> Self::V {
            unsafe { let sign = _mm256_set1_ps(-0.0); _mm256_or_ps(_mm256_andnot_ps(sign, a), _mm256_and_ps(sign, b)) }
        }
        #[inline(always)] unsafe fn sum(a: Self::V) -> f32 {
            unsafe {
                let q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
                let d = _mm_add_ps(q, _mm_movehl_ps(q, q));
                _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps::<1>(d, d)))
            }
        }
        #[inline(always)] unsafe fn highest(a: Self::V) -> f32 {
            unsafe {
                let q = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
                let d = _mm_max_ps(q, _mm_movehl_ps(q, q));
                _mm_cvtss_f32(_mm_max_ss(d, _mm_shuffle_ps::<1>(d, d)))
            }
        }
    }

    /// 512-bit registers.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512;

    #[rustfmt::skip]
    impl Simd for Avx512 {
        type V = __m512;
        const LANES: usize = 16;
        const ROWS: usize = 14;
        #[inline(always)] unsafe fn splat(x: f32) -> Self::V { unsafe { _mm512_set1_ps(x) } }
        #[inline(always)] unsafe fn load(p: *const f32) -> Self::V { unsafe { _mm512_loadu_ps(p) } }
        #[inline(always)] unsafe fn store(p: *mut f32, v: Self::V) { unsafe { _mm512_storeu_ps(p, v) } }
        #[inline(always)] unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V { unsafe { _mm512_fmadd_ps(a, b, c) } }
        #[inline(always)] unsafe fn add(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm512_add_ps(a, b) } }
        #[inline(always)] unsafe fn sub(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm512_sub_ps(a, b) } }
        #[inline(always)] unsafe fn mul(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm512_mul_ps(a, b) } }
        #[inline(always)] unsafe fn div(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm512_div_ps(a, b) } }
        #[inline(always)] unsafe fn max(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm512_max_ps(a, b) } }
        #[inline(always)] unsafe fn min(a: Self::V, b: Self::V) -> Self::V { unsafe { _mm512_min_ps(a, b) } }
        #[inline(always)] unsafe fn round(a: Self::V) -> Self::V { unsafe { _mm512_roundscale_ps::<0>(a) } }
        #[inline(always)] unsafe fn exp2i(n: Self::V) -> Self::V {
            unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)))) }
        }
        #[inline(always)] unsafe fn abs(a: Self::V) -> Self::V { unsafe { _mm512_abs_ps(a) } }
        #[inline(always)] unsafe fn copysign(a: Self::V, b: Self::V) -> Self::V {
            unsafe {
                let sign = _mm512_set1_epi32(i32::MIN);
                let (a, b) = (_mm512_castps_si512(a), _mm512_castps_si512(b));
                _mm512_castsi512_ps(_mm512_or_si512(_mm512_andnot_si512(sign, a), _mm512_and_si512(sign, b)))
            }
        }
        #[inline(always)] unsafe fn sum(a: Self::V) -> f32 { unsafe { _mm512_reduce_add_ps(a) } }
        #[inline(always)] unsafe fn highest(a: Self::V) -> f32 { unsafe { _mm512_reduce_max_ps(a) } }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Simd;
    use std::arch::aarch64::*;

    /// 128-bit registers, part of every 64-bit ARM.
    #[derive(Clone, Copy)]
    pub(crate) struct Neon;

    #[rustfmt::skip]
    impl Simd for Neon {
        type V = float32x4_t;
        const LANES: usize = 4;
        const ROWS: usize = 8;
        #[inline(always)] unsafe fn splat(x: f32) -> Self::V { unsafe { vdupq_n_f32(x) } }
        #[inline(always)] unsafe fn load(p: *const f32) -> Self::V { unsafe { vld1q_f32(p) } }
        #[inline(always)] unsafe fn store(p: *mut f32, v: Self::V) { unsafe { vst1q_f32(p, v) } }
        #[inline(always)] unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V { unsafe { vfmaq_f32(c, a, b) } }
        #[inline(always)] unsafe fn add(a: Self::V, b: Self::V) -> Self::V { unsafe { vaddq_f32(a, b) } }
        #[inline(always)] unsafe fn sub(a: Self::V, b: Self::V) -> Self::V { unsafe { vsubq_f32(a, b) } }
        #[inline(always)] unsafe fn mul(a: Self::V, b: Self::V) -> Self::V { unsafe { vmulq_f32(a, b) } }
        #[inline(always)] unsafe fn div(a: Self::V, b: Self::V) -> Self::V { unsafe { vdivq_f32(a, b) } }
        #[inline(always)] unsafe fn max(a: Self::V, b: Self::V) -> Self::V { unsafe { vmaxq_f32(a, b) } }
        #[inline(always)] unsafe fn min(a: Self::V, b: Self::V) -> Self::V { unsafe { vminq_f32(a, b) } }
        #[inline(always)] unsafe fn round(a: Self::V) -> Self::V { unsafe { vrndnq_f32(a) } }
        #[inline(always)] unsafe fn exp2i(n: Self::V) -> Self::V {
            unsafe { vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)))) }
        }
        #[inline(always)] unsafe fn abs(a: Self::V) -> Self::V { unsafe { vabsq_f32(a) } }
        #[inline(always)] unsafe fn copysign(a: Self::V, b: Self::V) -> Self::V {
            unsafe { vbslq_f32(vdupq_n_u32(1 << 31), b, a) }
        }
        #[inline(always)] unsafe fn sum(a: Self::V) -> f32 { unsafe { vaddvq_f32(a) } }
        #[inline(always)] unsafe fn highest(a: Self::V) -> f32 { unsafe { vmaxvq_f32(a) } }
    }
}

/// The instruction sets the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Plain Rust.
    Portable,
    /// AVX2 with FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512F.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// NEON.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// The best level of this machine, found once. `CLADIST_SIMD=portable|avx2|avx512|neon` asks for less.
#[must_use]
pub fn level() -> Level {
    static LEVEL: std::sync::OnceLock<Level> = std::sync::OnceLock::new();
    *LEVEL.get_or_init(|| {
        let asked = std::env::var("CLADIST_SIMD").unwrap_or_default();
        if asked == "portable" {
            return Level::Portable;
        }
        #[cfg(target_arch = "x86_64")]
        {
            if asked != "avx2" && is_x86_feature_detected!("avx512f") {
                return Level::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Level::Avx2;
            }
        }
        #[cfg(target_arch = "aarch64")]
        let last = Level::Neon;
        #[cfg(not(target_arch = "aarch64"))]
        let last = Level::Portable;
        last
    })
}

/// A kernel: a struct of arguments with a body generic over the instruction set.
pub(crate) trait Kernel {
    type Output;
    /// # Safety
    /// The machine must have the instruction set `S`.
    unsafe fn run<S: Simd>(self) -> Self::Output;
}

/// Runs plain loops with the best instructions of this machine: the compiler makes vectors of them.
#[inline]
pub(crate) fn vectorised<T>(work: impl FnOnce() -> T) -> T {
    struct Plain<F>(F);
    impl<T, F: FnOnce() -> T> Kernel for Plain<F> {
        type Output = T;
        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> T {
            (self.0)()
        }
    }
    dispatch(Plain(work))
}

/// `target += part`, value by value.
pub(crate) fn add(target: &mut [f32], part: &[f32]) {
    vectorised(|| target.iter_mut().zip(part).for_each(|(target, part)| *target += part));
}

/// Runs a kernel with the best instructions of this machine.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2<K: Kernel>(kernel: K) -> K::Output {
            unsafe { kernel.run::<Avx2>() }
        }
        #[target_feature(enable = "avx512f,avx2,fma")]
        unsafe fn avx512<K: Kernel>(kernel: K) -> K::Output {
            unsafe { kernel.run::<Avx512>() }
        }
        match level() {
            // SAFETY: `level` saw the feature on this machine.
            Level::Avx512 => return unsafe { avx512(kernel) },
            Level::Avx2 => return unsafe { avx2(kernel) },
            Level::Portable => {}
        }
    }
    #[cfg(target_arch = "aarch64")]
    if level() == Level::Neon {
        // SAFETY: NEON is part of the architecture.
        return unsafe { kernel.run::<Neon>() };
    }
    // SAFETY: plain Rust needs nothing.
    unsafe { kernel.run::<Portable>() }
}
