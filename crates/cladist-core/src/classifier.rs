//! The one path from documents to scores: linear models, neural models and ensembles are all classifiers.

use crate::document::Document;
use crate::error::Result;
use crate::job::Job;
use crate::scores::Scores;
use crate::taxonomy::Taxonomy;

/// How scores are wanted.
#[derive(Clone)]
pub struct Request<'a> {
    /// Keep at most this many labels per document; `None` leaves it to the classifier.
    pub top_k: Option<usize>,
    /// Where progress goes (one step per document) and when to stop.
    pub job: Job<'a>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self { top_k: None, job: Job::silent() }
    }
}

/// Anything that scores documents. Shared between threads, so that a server can hold one.
pub trait Classifier: Send + Sync {
    /// The labels that scores speak of.
    fn taxonomy(&self) -> &Taxonomy;

    /// One row of probabilities per document, in the order given. A document scores the same alone and in a batch.
    fn score(&self, documents: &[Document], request: &Request) -> Result<Scores>;
}
