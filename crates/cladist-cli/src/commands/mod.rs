//! One file per command.

mod add_labels;
pub mod analyze;
pub mod compare;
pub mod completions;
pub mod data;
pub mod demo;
pub mod evaluate;
pub mod experiment;
pub mod explain;
pub mod heads;
pub mod metrics;
pub mod predict;
pub mod taxonomy;
pub mod train;
pub mod tune;
