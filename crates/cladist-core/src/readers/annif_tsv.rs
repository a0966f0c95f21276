//! Annif's short-text corpora: `text TAB <uri> <uri> …`. There are no ids.

use std::path::PathBuf;
use std::sync::Arc;

use super::bad_line::Fault;
use super::lines::{LineFormat, LineRecords};
use super::write::{self, Reason, WriteOptions};
use super::{BadKind, Parsed, ReadOptions, Records, Stream};
use crate::document::Document;

pub(super) fn open(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    LineRecords::boxed(path, stream, options.max_record, AnnifTsv(options.clone()))
}

struct AnnifTsv(ReadOptions);

/// A subject without its angle brackets.
pub(super) fn subject(written: &str) -> &str {
    written.strip_prefix('<').and_then(|uri| uri.strip_suffix('>')).unwrap_or(written)
}

impl LineFormat for AnnifTsv {
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault> {
        let Some((text, subjects)) = line.split_once('\t') else {
            let kind =
                BadKind::Malformed { expected: "text TAB <uri> …".to_owned(), found: write::excerpt(line) };
            return Err(Fault::at(line, line.len(), kind));
        };
        let labels: Vec<String> = subjects.split_whitespace().map(|uri| subject(uri).to_owned()).collect();
        if labels.iter().any(String::is_empty) {
            return Err(Fault::at(line, text.len() + 1, BadKind::EmptyLabel));
        }
        let id = self.0.id_of_line(number);
        Ok(Parsed::Document(Document { id, text: text.to_owned(), labels, features: None }))
    }
}

pub(super) fn write(document: &Document, options: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Reason> {
    if document.features.is_some() {
        return Err(Reason::Features);
    }
    let text = write::one_line(&document.text);
    if document.labels.is_empty() && text.trim().is_empty() {
        return Err(Reason::Blank);
    }
    out.extend_from_slice(text.as_bytes());
    for (n, label) in document.labels.iter().enumerate() {
        out.push(if n == 0 { b'\t' } else { b' ' });
        let label = write::spaceless(label, options)?;
        out.push(b'<');
        out.extend_from_slice(label.as_bytes());
        out.push(b'>');
    }
    if document.labels.is_empty() {
        out.push(b'\t');
    }
    out.push(b'\n');
    Ok(())
}
