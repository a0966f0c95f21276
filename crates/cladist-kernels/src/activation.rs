//! GELU in its exact form, x·Φ(x), the logistic function and tanh, over slices.

use crate::math::{density, distribution, exp};
use crate::simd::{Kernel, Simd, dispatch};

/// `y = gelu(x)`.
pub fn gelu(x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len());
    dispatch(Forward { x, y });
}

struct Forward<'a> {
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Forward<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut x = self.x.chunks_exact(S::LANES);
        let mut y = self.y.chunks_exact_mut(S::LANES);
        for (x, y) in x.by_ref().zip(y.by_ref()) {
            // SAFETY: both chunks hold a register.
            unsafe {
                let v = S::load(x.as_ptr());
                S::store(y.as_mut_ptr(), S::mul(v, distribution::<S>(v)));
            }
        }
        for (&x, y) in x.remainder().iter().zip(y.into_remainder()) {
            // SAFETY: a register filled with one value.
            *y = unsafe { x * S::sum(distribution::<S>(S::splat(x))) / S::LANES as f32 };
        }
    }
}

/// `d *= gelu'(x)`, where gelu' = Φ + x·φ, and `x = gelu(x)`: what backward needs of a stored pre-activation.
pub fn gelu_backward(x: &mut [f32], d: &mut [f32]) {
    assert_eq!(x.len(), d.len());
    dispatch(Backward { x, d });
}

struct Backward<'a> {
    x: &'a mut [f32],
    d: &'a mut [f32],
}

impl Kernel for Backward<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let lanes = S::LANES;
        let whole = self.x.len() / lanes * lanes;
        for i in (0..whole).step_by(lanes) {
            // SAFETY: i + LANES is within both slices.
            unsafe {
                let x = self.x.as_mut_ptr().add(i);
                let v = S::load(x);
                let cdf = distribution::<S>(v);
                S::store(x, S::mul(v, cdf));
                let slope = S::fma(v, density::<S>(v), cdf);
                let d = self.d.as_mut_ptr().add(i);
                S::store(d, S::mul(S::load(d), slope));
            }
        }
        for i in whole..self.x.len() {
            let x = self.x[i];
            // SAFETY: registers filled with one value.
            let (cdf, density) = unsafe {
                let v = S::splat(x);
                (S::sum(distribution::<S>(v)) / lanes as f32, S::sum(density::<S>(v)) / lanes as f32)
            };
            self.x[i] = x * cdf;
            self.d[i] *= cdf + x * density;
        }
    }
}

/// `x = σ(x)`.
pub fn sigmoid(x: &mut [f32]) {
    dispatch(Squash { x, steepness: 1.0, height: 1.0 });
}

/// `x = tanh(x)`, which is 2σ(2x) − 1.
pub fn tanh(x: &mut [f32]) {
    dispatch(Squash { x, steepness: 2.0, height: 2.0 });
}

/// `x = height·(σ(steepness·x) − 1) + 1`.
struct Squash<'a> {
    x: &'a mut [f32],
    steepness: f32,
    height: f32,
}

impl Kernel for Squash<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { x, steepness, height } = self;
        // SAFETY: registers, and chunks that hold one.
        unsafe {
            let one = S::splat(1.0);
            let squash = |v: S::V| {
                let e = exp::<S>(S::mul(v, S::splat(-steepness)));
                // 1 − height + height/(1 + e)
                S::add(S::sub(one, S::splat(height)), S::div(S::splat(height), S::add(one, e)))
            };
            let mut whole = x.chunks_exact_mut(S::LANES);
            for x in whole.by_ref() {
                S::store(x.as_mut_ptr(), squash(S::load(x.as_ptr())));
            }
            let rest = whole.into_remainder();
            if !rest.is_empty() {
                let mut buffer = [0.0f32; 16];
                buffer[..rest.len()].copy_from_slice(rest);
                S::store(buffer.as_mut_ptr(), squash(S::load(buffer.as_ptr())));
                rest.copy_from_slice(&buffer[..rest.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// erf by its series and continued fraction, in f64.
    fn erf(x: f64) -> f64 {
        let z = x.abs();
        let value = if z < 3.0 {
            let (mut sum, mut term, mut n) = (z, z, 0.0);
            while term.abs() > 1e-17 {
                n += 1.0;
                term *= -z * z / n;
                sum += term / (2.0 * n + 1.0);
            }
            sum * 2.0 / std::f64::consts::PI.sqrt()
        } else {
            let mut fraction = 0.0;
            for n in (1..60).rev() {
                fraction = f64::from(n) / 2.0 / (z + fraction);
            }
            1.0 - (-z * z).exp() / (z + fraction) / std::f64::consts::PI.sqrt()
        };
        value.copysign(x)
    }

    #[test]
    fn gelu_and_its_slope_are_exact_to_f32() {
        let x: Vec<f32> = (-1200..=1200).map(|i| i as f32 / 100.0).collect();
        let (mut y, mut again) = (vec![0.0; x.len()], x.clone());
        let mut slope = vec![1.0; x.len()];
        gelu(&x, &mut y);
        gelu_backward(&mut again, &mut slope);
        assert_eq!(y, again);
        for ((&x, &y), &slope) in x.iter().zip(&y).zip(&slope) {
            let v = f64::from(x);
            let cdf = 0.5 * (1.0 + erf(v / std::f64::consts::SQRT_2));
            let density = (-v * v / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            assert!((f64::from(y) - v * cdf).abs() < 1e-6, "{x}: {y}");
            assert!((f64::from(slope) - (cdf + v * density)).abs() < 1e-6, "{x}: {slope}");
        }
    }

    #[test]
    fn logistic_function_and_tanh_equal_the_formulas_also_far_out() {
        let x: Vec<f32> = (0..403).map(|i| i as f32 / 2.0 - 100.0).chain([1e-4, -1e30, 1e30]).collect();
        let (mut a, mut b) = (x.clone(), x.clone());
        sigmoid(&mut a);
        tanh(&mut b);
        for ((&x, a), b) in x.iter().zip(a).zip(b) {
            let x = f64::from(x);
            assert!((f64::from(a) - 1.0 / (1.0 + (-x).exp())).abs() < 3e-7, "{x}: {a}");
            assert!((f64::from(b) - x.tanh()).abs() < 3e-7, "{x}: {b}");
        }
    }
}
