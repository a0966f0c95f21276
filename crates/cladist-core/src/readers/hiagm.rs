//! JSON lines of HiAGM (`token`, `label`) and of NeuralClassifier (`doc_token`, `doc_label`).
//!
//! Tokens are joined by spaces; a string of text is taken as it is. `label` holds label ids as they are.
//! `doc_label` holds paths: `A--B--C` says that the labels A, B and C apply, the names of the nodes in the
//! `.taxonomy` file, so each node of a path becomes a label, once.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::bad_line::Fault;
use super::lines::{LineFormat, LineRecords};
use super::value::{Found, Line, fields};
use super::write::{self, Reason, WriteOptions};
use super::{BadKind, Parsed, ReadOptions, Records, Stream, indicator};
use crate::document::Document;

/// Between the nodes of a NeuralClassifier path.
const PATH: &str = "--";

const FIELDS: [&str; 5] = ["id", "token", "label", "doc_token", "doc_label"];

pub(super) fn open(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    LineRecords::boxed(path, stream, options.max_record, Hiagm(options.clone()))
}

struct Hiagm(ReadOptions);

impl LineFormat for Hiagm {
    fn parse(&mut self, text: &str, number: usize) -> Result<Parsed, Fault> {
        let mut names = Vec::new();
        let fields = fields(text, |key| FIELDS.contains(&key), &mut names)
            .map_err(|error| Fault::json(text, &error))?;
        let find = |name: &str, whole_numbers: bool| match (Line { text, language: None, whole_numbers })
            .find(name, &fields)?
        {
            Found::Values(values) => Ok::<_, Fault>(Some(values)),
            Found::Absent | Found::Null | Found::OtherLanguage => Ok(None),
        };
        let tokens = match find("token", false)? {
            Some(tokens) => Some(tokens),
            None => find("doc_token", false)?,
        };
        let Some(tokens) = tokens else {
            let (wanted, found) = ("token`, `doc_token".to_owned(), write::quoted(&names));
            return Err(BadKind::MissingField { wanted, found }.into());
        };
        let mut labels = Vec::new();
        if self.0.reads_labels() {
            labels = find("label", true)?.unwrap_or_default();
            for path in find("doc_label", true)?.unwrap_or_default() {
                for node in path.split(PATH) {
                    if !labels.iter().any(|label| label == node) {
                        labels.push(node.to_owned());
                    }
                }
            }
        }
        indicator::check(&labels)?;
        let id = find("id", false)?.and_then(|ids| ids.into_iter().next()).filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| self.0.id_of_line(number));
        Ok(Parsed::Document(Document { id, text: tokens.join(" "), labels, features: None }))
    }
}

#[derive(Serialize)]
struct Written<'a> {
    id: &'a str,
    token: Vec<&'a str>,
    label: &'a [String],
}

pub(super) fn write(document: &Document, _: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Reason> {
    let Document { id, text, labels, features } = document;
    if features.is_some() {
        return Err(Reason::Features);
    }
    write::full_labels(labels)?;
    let line = Written { id, token: text.split_whitespace().collect(), label: labels };
    serde_json::to_writer(&mut *out, &line).map_err(|e| Reason::Json(e.to_string()))?;
    out.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::readers::{Format, ReadOptions, Reader};

    #[test]
    fn every_node_of_a_path_is_a_label_once() {
        let line = r#"{"doc_label": ["A--B", "A--C"], "doc_token": ["two", "words"], "doc_topic": []}"#;
        let mut reader =
            Reader::stream("x", line.as_bytes(), Some(Format::Hiagm), &ReadOptions::default()).unwrap();
        let document = reader.next().unwrap().unwrap();
        assert_eq!(document.labels, ["A", "B", "C"]);
        assert_eq!((document.text.as_str(), document.id.as_str()), ("two words", "line-1"));
    }

    #[test]
    fn label_ids_keep_their_dashes() {
        let line = r#"{"token": "some text", "label": ["A--B"]}"#;
        let mut reader =
            Reader::stream("x", line.as_bytes(), Some(Format::Hiagm), &ReadOptions::default()).unwrap();
        let document = reader.next().unwrap().unwrap();
        assert_eq!((document.labels, document.text.as_str()), (vec!["A--B".to_owned()], "some text"));
    }
}
