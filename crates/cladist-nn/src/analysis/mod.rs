//! Looking inside trained models.

pub mod attention;
pub mod attribution;
pub mod divergence;
pub mod layers;
pub mod nearest;
