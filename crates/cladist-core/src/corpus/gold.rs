//! From the labels that documents name to sets of a taxonomy's labels, with everything odd counted.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Ancestors, CorpusError};
use crate::document::Document;
use crate::taxonomy::{Closure, LabelId, LabelSet, Taxonomy};

/// How many unknown labels a report lists.
const SHOWN: usize = 10;

/// Gold labels that the taxonomy does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UnknownReport {
    /// Different labels.
    pub labels: usize,
    /// Documents that have one.
    pub documents: usize,
    /// Labels of documents, counted each time.
    pub occurrences: usize,
    /// The most frequent ones with their documents.
    pub examples: Vec<(String, usize)>,
}

/// Ancestors that gold sets imply and do not name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MissingAncestors {
    /// Documents that lack one.
    pub documents: usize,
    /// Ancestors of documents, counted each time.
    pub labels: usize,
}

/// Turns label ids into sets.
pub(super) struct Gold<'a> {
    taxonomy: &'a Taxonomy,
    closure: Closure<'a>,
    ancestors: Ancestors,
    unknown: BTreeMap<String, usize>,
    unknown_documents: usize,
    pub(super) missing: MissingAncestors,
    /// Labels named twice by a document.
    pub(super) repeated: usize,
}

impl<'a> Gold<'a> {
    pub(super) fn new(taxonomy: &'a Taxonomy, ancestors: Ancestors) -> Self {
        Self {
            taxonomy,
            closure: Closure::new(taxonomy),
            ancestors,
            unknown: BTreeMap::new(),
            unknown_documents: 0,
            missing: MissingAncestors::default(),
            repeated: 0,
        }
    }

    /// The gold set of one document; unknown labels are left out.
    pub(super) fn of(&mut self, document: &Document) -> LabelSet {
        let mut known: Vec<LabelId> = Vec::with_capacity(document.labels.len());
        let mut unknown = Vec::new();
        for label in &document.labels {
            match self.taxonomy.get(label) {
                Some(label) => known.push(label),
                None => unknown.push(label.as_str()),
            }
        }
        if !unknown.is_empty() {
            let named = unknown.len();
            unknown.sort_unstable();
            unknown.dedup();
            self.repeated += named - unknown.len();
            self.unknown_documents += 1;
            for label in unknown {
                match self.unknown.get_mut(label) {
                    Some(count) => *count += 1,
                    None => {
                        self.unknown.insert(label.to_owned(), 1);
                    }
                }
            }
        }
        let named = known.len();
        let gold: LabelSet = known.into_iter().collect();
        self.repeated += named - gold.len();
        if self.taxonomy.n_edges() == 0 {
            return gold;
        }
        let closed = self.closure.upward(&gold);
        let missing = closed.len() - gold.len();
        self.missing.labels += missing;
        self.missing.documents += usize::from(missing > 0);
        match self.ancestors {
            Ancestors::Keep => gold,
            Ancestors::Add => closed,
        }
    }

    /// The unknown labels met so far, in order of id.
    pub(super) fn unknown_labels(&self) -> impl Iterator<Item = &str> {
        self.unknown.keys().map(String::as_str)
    }

    pub(super) fn unknown(&self) -> UnknownReport {
        let mut examples: Vec<(String, usize)> = self.unknown.iter().map(|(l, &n)| (l.clone(), n)).collect();
        examples.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        examples.truncate(SHOWN);
        UnknownReport {
            labels: self.unknown.len(),
            documents: self.unknown_documents,
            occurrences: self.unknown.values().sum(),
            examples,
        }
    }
}

impl UnknownReport {
    /// The error that lists them, if there are any.
    pub(super) fn refuse(&self) -> Result<(), CorpusError> {
        if self.labels == 0 {
            return Ok(());
        }
        let Self { labels, documents, examples, .. } = self;
        Err(CorpusError::UnknownLabels { labels: *labels, documents: *documents, examples: examples.clone() })
    }
}
