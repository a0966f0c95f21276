//! Looking inside trained models.

pub mod attribution;
pub mod divergence;
pub mod layers;
pub mod nearest;
