//! What researchers call: experiments of the literature, tuning over settings, and studies of trained models.
//!
//! Everything goes through the [`cladist`] library. Nothing here prints: results are data, figures and pages.
//!
//! Experiments and tuning reset the peak memory of the process before each run ([`cladist::memory::forget_peak`]), so that
//! every summary has the peak of its own run. A program that counts the peak itself has to read it before.

pub mod analyze;
pub mod error;
pub mod experiment;
pub mod experiments;
pub mod spec;
pub mod trials;
pub mod tune;

pub use error::{LabError, Result};
pub use spec::Spec;
