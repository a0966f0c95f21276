//! Documents without labels: a line of text each, or `id TAB text`, or a whole file.

use std::path::PathBuf;
use std::sync::Arc;

use super::bad_line::Fault;
use super::lines::{LineFormat, LineRecords};
use super::{BadLine, Parsed, ReadOptions, Records, Stream, folder};
use crate::document::Document;
use crate::taxonomy::Origin;

pub(super) fn open_text(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    LineRecords::boxed(path, stream, options.max_record, Plain { options: options.clone(), with_ids: false })
}

pub(super) fn open_id_text(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    LineRecords::boxed(path, stream, options.max_record, Plain { options: options.clone(), with_ids: true })
}

struct Plain {
    options: ReadOptions,
    with_ids: bool,
}

impl LineFormat for Plain {
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault> {
        let document = match line.split_once('\t').filter(|_| self.with_ids) {
            Some((id, text)) => Document::from_text(id, text),
            // A line without a tab is a text without an id.
            None => Document::from_text(self.options.id_of_line(number), line),
        };
        Ok(Parsed::Document(document))
    }
}

pub(super) fn open_document(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    Box::new(Whole { path, stream: Some(stream), max_record: options.max_record })
}

/// One document, called after its file.
struct Whole {
    path: Arc<PathBuf>,
    stream: Option<Stream>,
    max_record: usize,
}

impl Records for Whole {
    fn next_record(&mut self) -> Option<Result<Parsed, BadLine>> {
        let mut stream = self.stream.take()?;
        let text = folder::text(&self.path, &mut stream, self.max_record);
        let id = self.path.display().to_string();
        Some(text.map(|text| Parsed::Document(Document::from_text(id, text))))
    }

    fn origin(&self) -> Origin {
        Origin::new(&self.path, 0)
    }
}
