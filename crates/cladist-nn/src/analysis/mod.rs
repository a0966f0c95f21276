//! Looking inside trained models.

pub mod divergence;
pub mod layers;
