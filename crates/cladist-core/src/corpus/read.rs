//! One split's documents, streamed, with the policies that look at one document at a time.

use std::collections::HashMap;
use std::path::Path;

use super::{
    CorpusError, CorpusSource, DataConfig, DuplicateIds, KeepOrDrop, RepeatedId, SplitName, SplitReport,
};
use crate::document::Document;
use crate::error::Result;
use crate::job::Job;
use crate::readers::{BadLines, ReadOptions, Reader};
use crate::taxonomy::Origin;

/// Hands each document of a split to `each`, with its file and line: normalised, which no one need do again, and after
/// the policies on empty and unlabelled documents and on duplicate ids. Only ids are remembered.
pub fn each_document(
    source: &CorpusSource,
    split: SplitName,
    config: &DataConfig,
    bad_lines: &mut BadLines<'_>,
    job: &Job<'_>,
    mut each: impl FnMut(Document, &Origin) -> Result<()>,
) -> Result<SplitReport> {
    source.require(split)?;
    job.progress.stage(&format!("read {split}"), 0);
    let mut admission = Admission::new(config, split);
    let files = source.files(split);
    for path in files {
        let mut reader =
            Reader::open(path, config.format, &read_options(config, path, files.len() > 1, job))?;
        admission.report.format.get_or_insert(reader.format());
        while let Some(document) = reader.next_document(bad_lines)? {
            job.cancel.check()?;
            job.progress.advance(1);
            let origin = reader.origin();
            if let Some(document) = admission.admit(document, &origin)? {
                each(document, &origin)?;
            }
        }
        for field in reader.text_fields() {
            if !admission.report.text_fields.contains(&field) {
                admission.report.text_fields.push(field);
            }
        }
        admission.report.files.push(path.display().to_string());
        admission.report.tally += reader.tally();
    }
    Ok(admission.report)
}

/// Documents without ids are called after their file too if there are several, so that the names differ.
fn read_options(config: &DataConfig, path: &Path, several: bool, job: &Job<'_>) -> ReadOptions {
    let mut options = ReadOptions { cancel: job.cancel.clone(), ..config.read_options() };
    if let (true, Some(name)) = (several, path.file_name()) {
        options.missing_id = format!("{}-{}", name.to_string_lossy(), options.missing_id);
    }
    options
}

/// The policies that look at one document at a time, and what they count.
pub(super) struct Admission<'a> {
    config: &'a DataConfig,
    seen: HashMap<String, Seen>,
    pub(super) report: SplitReport,
}

/// An id that was met.
struct Seen {
    times: usize,
    first: Origin,
}

impl<'a> Admission<'a> {
    pub(super) fn new(config: &'a DataConfig, split: SplitName) -> Self {
        Self { config, seen: HashMap::new(), report: SplitReport::new(split) }
    }

    /// The document as it goes on, or nothing.
    pub(super) fn admit(&mut self, mut document: Document, origin: &Origin) -> Result<Option<Document>> {
        let DataConfig { normalise, empty_documents, unlabelled_documents, duplicate_ids, .. } = self.config;
        normalise.document(&mut document);
        let mut drops = false;
        if document.is_empty() {
            self.report.empty_documents += 1;
            drops |= *empty_documents == KeepOrDrop::Drop;
        }
        if document.labels.is_empty() {
            self.report.unlabelled_documents += 1;
            drops |= *unlabelled_documents == KeepOrDrop::Drop;
        }
        if let Some(seen) = self.seen.get_mut(&document.id) {
            seen.times += 1;
            let (times, first) = (seen.times, seen.first.clone());
            self.report.duplicate_ids += 1;
            let repeated = || RepeatedId {
                id: document.id.clone(),
                place: origin.to_string(),
                first: first.to_string(),
            };
            if self.report.duplicate_id.is_none() {
                self.report.duplicate_id = Some(repeated());
            }
            match duplicate_ids {
                DuplicateIds::Error => {
                    return Err(
                        CorpusError::DuplicateId { repeated: repeated(), split: self.report.name }.into()
                    );
                }
                DuplicateIds::Drop => drops = true,
                DuplicateIds::Rename => self.rename(&mut document, times, origin),
            }
        } else {
            self.seen.insert(document.id.clone(), Seen { times: 1, first: origin.clone() });
        }
        if drops {
            self.report.dropped += 1;
            return Ok(None);
        }
        self.report.documents += 1;
        Ok(Some(document))
    }

    /// Calls the second `x` `x#2`, or by the next number that is free.
    fn rename(&mut self, document: &mut Document, mut times: usize, origin: &Origin) {
        let mut renamed = format!("{}#{times}", document.id);
        while self.seen.contains_key(&renamed) {
            times += 1;
            renamed = format!("{}#{times}", document.id);
        }
        if let Some(seen) = self.seen.get_mut(&document.id) {
            seen.times = times;
        }
        self.seen.insert(renamed.clone(), Seen { times: 1, first: origin.clone() });
        document.id = renamed;
    }
}
