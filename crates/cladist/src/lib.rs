//! Hierarchical multi-label text classification: documents to labels of large taxonomies, trees and DAGs alike.
//!
//! Train and save a model:
//!
//! ```
#![doc = include_str!("../examples/train.rs")]
//! ```
//!
//! Open it, label documents and see why:
//!
//! ```
#![doc = include_str!("../examples/predict.rs")]
//! ```
//!
//! Evaluate two models and test their difference:
//!
//! ```
#![doc = include_str!("../examples/compare.rs")]
//! ```
//!
//! Train a head of your own on an encoder. To train it with [`Training`] and keep it in bundles, add it to the table of heads.
//!
//! ```
#![doc = include_str!("../examples/own_head.rs")]
//! ```
//!
//! The library prints nothing and ends no process. What it shares between models is a pool of buffers of the kernels. [`Observer`] hears of progress,
//! [`Cancel`] stops work from any thread, [`Error::kind`] says what a program should make of a failure.
//!
//! Memory comes from the global allocator of the program. Sizes that files and settings ask for are checked before, but where the
//! system has no more to give, Rust aborts the process. A program that wants to end with words of its own installs an allocator
//! that notices, as `cladist` does: `cladist_kernels::process::Checked` (feature `process`) wraps any allocator and calls a function
//! that does not return.

pub mod config;
pub mod corpora;
pub mod demo;
pub mod error;
pub mod figure;
pub mod folders;
pub mod heads;
pub mod html;
pub mod inputs;
pub mod memory;
pub mod model;
pub mod names;
pub mod observe;
pub mod reports;
pub mod results;
pub mod settings;
pub mod threads;
pub mod training;

pub use cladist_core as core;
pub use cladist_core::{Cancel, Document, ErrorKind, Taxonomy, corpus};
pub use cladist_nn as nn;

pub use config::RunConfig;
pub use corpora::{BadLinePolicy, Documents};
pub use error::{Error, Result};
pub use model::{
    DecodeOptions, EvaluateOptions, ExplainMethod, ExplainOptions, Model, OpenOptions, PredictOptions,
    Prediction,
};
pub use observe::{Event, Observer, Work};
pub use results::Evaluation;
pub use training::{Summary, Trained, Training};
