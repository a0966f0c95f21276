//! Transformer encoders, hierarchy-aware heads and the training loop.
//!
//! documents → [`tokens`] → [`encoder`] → [`heads`] → scores; [`model`] joins them into a classifier, [`train`]
//! fits it; [`analysis`] looks inside.

pub mod analysis;
pub mod blocks;
pub mod counts;
pub mod descriptions;
pub mod device;
pub mod encoder;
pub mod error;
pub mod examples;
mod fused;
pub mod heads;
#[cfg(feature = "hub")]
mod hub;
pub mod losses;
pub mod model;
pub mod optim;
mod parameters;
mod random;
pub mod ranker;
mod seeds;
pub mod shortlist;
pub mod source;
pub mod tokens;
#[cfg(test)]
mod toy;
pub mod train;
pub mod vectors;

pub use error::{Error, Result};
