//! fastText's supervised format: words that start with `__label__` are labels, the others are the text.
//! There are no ids.

use std::path::PathBuf;
use std::sync::Arc;

use super::bad_line::Fault;
use super::lines::{LineFormat, LineRecords};
use super::write::{self, Reason, WriteOptions};
use super::{BadKind, Parsed, ReadOptions, Records, Stream};
use crate::document::Document;

pub(super) fn open(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    LineRecords::boxed(path, stream, options.max_record, Fasttext(options.clone()))
}

struct Fasttext(ReadOptions);

fn has_label_inside(text: &str, prefix: &str) -> bool {
    text.contains(prefix) && text.split_whitespace().any(|word| word.starts_with(prefix))
}

impl LineFormat for Fasttext {
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault> {
        let prefix = self.0.label_prefix.as_str();
        let mut labels = Vec::new();
        let mut text = line;
        while let Some(rest) = text.strip_prefix(prefix) {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            labels.push(rest[..end].to_owned());
            let mut after = rest[end..].chars();
            after.next();
            text = after.as_str();
        }
        let text = if has_label_inside(text, prefix) {
            let mut words = Vec::new();
            for word in text.split_whitespace() {
                match word.strip_prefix(prefix) {
                    Some(label) => labels.push(label.to_owned()),
                    None => words.push(word),
                }
            }
            words.join(" ")
        } else {
            text.to_owned()
        };
        if labels.iter().any(String::is_empty) {
            return Err(BadKind::EmptyLabel.into());
        }
        let id = self.0.id_of_line(number);
        Ok(Parsed::Document(Document { id, text, labels, features: None }))
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
    if has_label_inside(&text, &options.label_prefix) {
        return Err(Reason::PrefixInText(options.label_prefix.clone()));
    }
    for label in &document.labels {
        out.extend_from_slice(options.label_prefix.as_bytes());
        out.extend_from_slice(write::spaceless(label, options)?.as_bytes());
        out.push(b' ');
    }
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
    Ok(())
}
