//! Linear and tree models on sparse features: one-vs-rest SVM, Parabel and Bonsai; and classifiers within groups of
//! labels that a network finds ([`Ranker`]).
//!
//! An SVM is a label tree of depth one. Features come from [`crate::text::tfidf`], trees from
//! [`crate::label_tree`]; [`LinearModel`] is the [`crate::Classifier`].

mod config;
mod forest;
mod model;
mod predict;
mod ranker;
mod solver;
mod store;
mod train;

pub use config::{LinearConfig, LinearHead, LinearTrain, Loss};
pub use model::{LinearModel, LinearRecipe};
pub use ranker::{Matched, Ranker, RankerConfig, hinge_probability};
