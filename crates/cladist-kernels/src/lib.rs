//! Fused CPU operations for transformer encoders, forward and backward.
//!
//! The only crate of Cladist with `unsafe`: vector instructions and pointers into slices whose bounds were checked
//! by the safe functions around them.

pub mod gemm;
mod simd;

pub use simd::{Level, level};
