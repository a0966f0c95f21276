//! The training loop and what it stands on.

mod append;
pub mod averaging;
pub mod checkpoint;
pub mod config;
mod documents;
mod epochs;
mod files;
mod frozen;
mod guard;
pub mod journal;
pub(crate) mod labels;
pub mod lock;
pub mod progress;
mod run;
pub mod schedule;
mod state;
pub mod stopping;
pub mod tensorboard;
mod terms;

pub use config::TrainConfig;
pub use run::{Examples, Measure, Outcome, Plan, train};

#[cfg(test)]
pub(crate) mod tests;
