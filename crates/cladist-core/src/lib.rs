//! Everything of Cladist that is not a tensor: corpora, taxonomies, scores, decoding, metrics and linear models.
//!
//! The flow is documents → scores → decoded label sets → metrics. [`Taxonomy`] is built once from whatever
//! format a vocabulary comes in; every classifier returns [`Scores`]; decoding and metrics know nothing else.

pub mod bundle;
pub mod calibrate;
pub mod classifier;
pub mod corpus;
pub mod decode;
pub mod document;
pub mod error;
pub mod explain;
pub mod files;
pub mod job;
pub mod label_tree;
pub mod linear;
pub mod metrics;
pub mod mixed;
pub mod pipeline;
pub mod project;
pub mod readers;
pub mod scores;
mod seeds;
pub mod sparse;
pub mod taxonomy;
mod tensors;
pub mod text;

pub use classifier::{Classifier, Request};
pub use document::Document;
pub use error::{Error, ErrorKind, Result};
pub use job::{Cancel, Job, Progress};
pub use scores::Scores;
pub use taxonomy::{LabelCounts, LabelId, LabelSet, Taxonomy};
