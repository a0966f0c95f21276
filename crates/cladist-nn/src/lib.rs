//! Transformer encoders, hierarchy-aware heads and the training loop.
//!
//! documents → [`tokens`] → encoder → head → scores

pub mod error;
pub mod tokens;
pub mod train;

pub use error::{Error, Result};
