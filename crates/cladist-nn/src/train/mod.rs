//! The training loop and what it stands on.

mod append;
pub mod averaging;
mod beside;
pub mod checkpoint;
pub mod config;
mod epochs;
pub mod exchange;
mod files;
mod frozen;
mod guard;
mod identity;
pub mod journal;
pub(crate) mod labels;
pub mod lock;
pub mod progress;
mod run;
pub mod schedule;
pub mod source;
mod state;
pub mod stopping;
pub mod tensorboard;
mod terms;

pub use crate::examples::Examples;
pub use config::TrainConfig;
pub use run::{Measure, Outcome, Plan, train, train_from};

#[cfg(test)]
pub(crate) mod tests;
