//! Linear and tree models on sparse features: one-vs-rest SVM, Parabel and Bonsai.
//!
//! An SVM is a label tree of depth one. Features come from [`crate::text::tfidf`], trees from
//! [`crate::label_tree`]; [`LinearModel`] is the [`crate::Classifier`].

mod config;
mod forest;
mod model;
mod predict;
mod solver;
mod store;
mod train;

pub use config::{LinearConfig, LinearHead, LinearTrain, Loss};
pub use model::{LinearModel, LinearRecipe};
