//! From the labels that documents name to sets of a taxonomy's labels, with everything odd counted.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{Ancestors, CorpusError};
use crate::document::Document;
use crate::taxonomy::{Closure, LabelId, LabelSet, Origin, Taxonomy};

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
    /// The most frequent ones.
    pub examples: Vec<UnknownLabel>,
}

/// A gold label that the taxonomy does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownLabel {
    /// Its id, as documents name it.
    pub id: String,
    /// Documents that have it.
    pub documents: usize,
    /// File and line of the first document that has it.
    pub first: Option<String>,
}

/// Where each label was met first.
#[derive(Debug, Default)]
pub(super) struct LabelOrigins(HashMap<String, Origin>);

impl LabelOrigins {
    /// Looks at one document, in the order of the files.
    pub(super) fn see(&mut self, document: &Document, origin: &Origin) {
        for label in &document.labels {
            if !self.0.contains_key(label) {
                self.0.insert(label.clone(), origin.clone());
            }
        }
    }
}

/// Ancestors that gold sets imply and do not name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MissingAncestors {
    /// Documents that lack one.
    pub documents: usize,
    /// Ancestors of documents, counted each time.
    pub labels: usize,
    /// Whether they were added.
    pub added: bool,
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
            missing: MissingAncestors { added: ancestors == Ancestors::Add, ..MissingAncestors::default() },
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

    /// Unknown labels of documents so far, counted each time.
    pub(super) fn occurrences(&self) -> usize {
        self.unknown.values().sum()
    }

    /// The unknown labels met so far, in order of id.
    pub(super) fn unknown_labels(&self) -> impl Iterator<Item = &str> {
        self.unknown.keys().map(String::as_str)
    }

    pub(super) fn unknown(&self, origins: &LabelOrigins) -> UnknownReport {
        let mut frequent: Vec<(&String, usize)> = self.unknown.iter().map(|(id, &n)| (id, n)).collect();
        frequent.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let examples = frequent.into_iter().take(SHOWN).map(|(id, documents)| UnknownLabel {
            id: id.clone(),
            documents,
            first: origins.0.get(id).map(ToString::to_string),
        });
        UnknownReport {
            labels: self.unknown.len(),
            documents: self.unknown_documents,
            occurrences: self.occurrences(),
            examples: examples.collect(),
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
