//! What researchers call: experiments of the literature, tuning over settings, and studies of trained models.
//!
//! Everything goes through the [`cladist`] library. Nothing here prints: results are data, figures and pages.

pub mod analyze;
pub mod error;
pub mod experiment;
pub mod experiments;
pub mod spec;
pub mod trials;
pub mod tune;

pub use error::{LabError, Result};
pub use spec::Spec;
