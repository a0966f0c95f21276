//! Fused CPU operations for transformer encoders and recurrent layers, forward and backward.
//!
//! The only crate of Cladist with `unsafe`: vector instructions and pointers into slices whose bounds were checked
//! by the safe functions around them; files as memory; and what a program cannot ask of its process safely.

pub mod activation;
pub mod adamw;
pub mod attention;
pub mod bce;
pub mod dropout;
pub mod embedding;
pub mod gemm;
pub mod graph;
pub mod layer;
pub mod mapped;
mod math;
pub mod norm;
pub mod pool;
#[cfg(feature = "process")]
pub mod process;
#[cfg(test)]
mod random;
pub mod recurrent;
pub mod rows;
mod simd;

pub use simd::{Level, level};
