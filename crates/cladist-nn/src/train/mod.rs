//! The training loop and what it stands on.

mod append;
pub mod averaging;
pub mod checkpoint;
pub mod journal;
pub mod lock;
pub mod progress;
pub mod schedule;
pub mod stopping;
pub mod tensorboard;
