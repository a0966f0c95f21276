//! Fused CPU operations for transformer encoders, forward and backward.
//!
//! The only crate of Cladist with `unsafe`: vector instructions and pointers into slices whose bounds were checked
//! by the safe functions around them.

pub mod activation;
pub mod attention;
pub mod dropout;
pub mod gemm;
mod math;
pub mod norm;
mod simd;

pub use simd::{Level, level};
