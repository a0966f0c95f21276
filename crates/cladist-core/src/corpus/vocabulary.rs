//! The labels of a corpus: from its files, or from its documents.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{CorpusSource, DataConfig};
use crate::document::Document;
use crate::error::Result;
use crate::job::Job;
use crate::taxonomy::{Taxonomy, io};

/// What a vocabulary came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VocabularyReport {
    /// The file it is from, or that it was in memory; `None` if the labels are those of the documents.
    pub path: Option<String>,
    /// Labels.
    pub labels: usize,
    /// Levels; 1 if there is no hierarchy.
    pub levels: usize,
    /// Edges between labels.
    pub edges: usize,
    /// What its reader passed over.
    pub warnings: Vec<String>,
}

impl VocabularyReport {
    pub(super) fn count(&mut self, taxonomy: &Taxonomy) {
        self.labels = taxonomy.n_labels();
        self.levels = taxonomy.n_levels();
        self.edges = taxonomy.n_edges();
    }
}

/// Reads the vocabulary files of a corpus; `None` if it has none.
pub(super) fn read(
    source: &CorpusSource,
    config: &DataConfig,
    report: &mut VocabularyReport,
    job: &Job<'_>,
) -> Result<Option<Taxonomy>> {
    let (hierarchy, names) = (source.taxonomy.as_deref(), source.names.as_deref());
    let Some(path) = hierarchy.or(names) else { return Ok(None) };
    let mut options = source.vocabulary.clone();
    if let Some(language) = &config.language {
        options.language.clone_from(language);
    }
    let loaded = io::read_vocabulary(hierarchy, names, &options, &job.cancel)?;
    report.path = Some(path.display().to_string());
    report.warnings = loaded.warnings.iter().map(ToString::to_string).collect();
    report.count(&loaded.taxonomy);
    Ok(Some(loaded.taxonomy))
}

/// The labels that documents have, without a hierarchy.
pub(super) fn of_documents<'a>(documents: impl Iterator<Item = &'a Document>) -> Taxonomy {
    let labels: BTreeSet<&str> = documents.flat_map(|d| d.labels.iter().map(String::as_str)).collect();
    Taxonomy::flat(labels)
}
