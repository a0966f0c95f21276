//! A corpus in memory, by the same policies as one in files.

use std::path::PathBuf;
use std::sync::Arc;

use super::assemble::arrange;
use super::gold::LabelOrigins;
use super::read::Admission;
use super::{Corpus, CorpusError, DataConfig, DataReport, Documents, Split, SplitName, settle};
use crate::error::Result;
use crate::job::Job;
use crate::taxonomy::{Origin, Taxonomy};

/// Takes a corpus that is in memory as [`super::load`] takes one in files: texts are normalised, dev is held out, and
/// every policy on documents and labels holds.
///
/// Gold sets say which labels documents have, whatever labels the documents name. Gold sets that are not one for each
/// document, and labels that the taxonomy does not have, are errors.
pub fn adopt(corpus: Corpus, config: &DataConfig, job: &Job<'_>) -> Result<(Corpus, DataReport)> {
    config.validate()?;
    let Corpus { taxonomy, train, dev, test } = corpus;
    let mut report = DataReport::default();
    report.vocabulary.path = Some("in memory".to_owned());
    let mut splits: Vec<Documents> = Vec::new();
    for (name, split) in [(SplitName::Train, train), (SplitName::Dev, dev), (SplitName::Test, test)] {
        if let Some(split) = split {
            check(name, &split, &taxonomy)?;
            splits.push((name, admit(name, split, &taxonomy, config, &mut report, job)?));
        }
    }
    let splits = arrange(splits, config, &mut report, &job.cancel)?;
    let corpus = settle(taxonomy, splits, config, &mut report, &LabelOrigins::default())?;
    Ok((corpus, report))
}

/// Refuses gold that does not fit documents or taxonomy.
fn check(name: SplitName, split: &Split, taxonomy: &Taxonomy) -> Result<(), CorpusError> {
    let (documents, gold) = (split.documents.len(), split.gold.len());
    if documents != gold {
        return Err(CorpusError::GoldSets { split: name, documents, gold });
    }
    let labels = taxonomy.n_labels();
    for (document, gold) in split.documents.iter().zip(&split.gold) {
        if let Some(label) = gold.iter().map(|label| label.index()).find(|&label| label >= labels) {
            let document = document.id.clone();
            return Err(CorpusError::ForeignLabel { split: name, document, label, labels });
        }
    }
    Ok(())
}

/// The documents of a split that policies leave, with the labels of their gold sets.
fn admit(
    name: SplitName,
    split: Split,
    taxonomy: &Taxonomy,
    config: &DataConfig,
    report: &mut DataReport,
    job: &Job<'_>,
) -> Result<Vec<crate::Document>> {
    let mut admission = Admission::new(config, name);
    admission.report.in_memory = true;
    let place = Arc::new(PathBuf::from("in memory"));
    let mut documents = Vec::with_capacity(split.documents.len());
    for (n, (mut document, gold)) in split.documents.into_iter().zip(split.gold).enumerate() {
        job.cancel.check()?;
        document.labels = gold.iter().map(|&label| taxonomy.id(label).to_owned()).collect();
        documents.extend(admission.admit(document, &Origin::new(&place, n + 1))?);
    }
    report.splits.push(admission.report);
    Ok(documents)
}

#[cfg(test)]
mod tests;
