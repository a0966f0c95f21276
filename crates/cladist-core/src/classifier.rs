//! The one path from documents to scores: linear models, neural models and ensembles are all classifiers.

use std::ops::RangeInclusive;

use crate::document::Document;
use crate::error::Result;
use crate::job::Job;
use crate::scores::{Scores, keep_top};
use crate::taxonomy::{LabelId, Taxonomy};
use crate::text::tfidf::SparseRow;

/// How scores are wanted.
#[derive(Clone)]
pub struct Request<'a> {
    /// Keep at most this many labels per document; `None` leaves it to the classifier.
    pub top_k: Option<usize>,
    /// Score labels of these levels alone, from 1; `None` for all. Some classifiers save work by it.
    pub levels: Option<RangeInclusive<usize>>,
    /// Where progress goes (one step per document) and when to stop.
    pub job: Job<'a>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self { top_k: None, levels: None, job: Job::silent() }
    }
}

impl Request<'_> {
    /// Leaves of a row, in any order, what is wanted: labels of the levels, and the best `top_k` of those.
    pub fn narrow(&self, row: &mut Vec<(LabelId, f32)>, taxonomy: &Taxonomy) {
        if let Some(levels) = &self.levels {
            row.retain(|(label, _)| levels.contains(&taxonomy.level(*label)));
        }
        if let Some(k) = self.top_k {
            keep_top(row, k);
        }
    }
}

/// Labels in the order in which a model emits them.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelSequence {
    /// The labels.
    pub labels: Vec<LabelId>,
    /// ln P of the whole sequence, its end included.
    pub log_probability: f64,
}

/// Anything that scores documents. Shared between threads, so that a server can hold one.
pub trait Classifier: Send + Sync {
    /// The labels that scores speak of.
    fn taxonomy(&self) -> &Taxonomy;

    /// One row of probabilities per document, in the order given. A document scores the same alone and in a batch.
    fn score(&self, documents: &[Document], request: &Request) -> Result<Scores>;

    /// The `n_best` likeliest sequences of labels of each document, the likeliest first; `None` if the classifier does
    /// not emit labels in sequence.
    fn sequences(
        &self,
        _documents: &[Document],
        _n_best: usize,
        _request: &Request,
    ) -> Result<Option<Vec<Vec<LabelSequence>>>> {
        Ok(None)
    }

    /// The weights of each label's output on what the classifier makes of a document, by [`LabelId::index`]; `None` if
    /// labels have no outputs of their own on one and the same thing.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        None
    }
}
