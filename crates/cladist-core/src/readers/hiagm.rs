//! JSON lines of HiAGM (`token`, `label`) and of NeuralClassifier (`doc_token`, `doc_label`).
//!
//! Tokens are joined by spaces; a string of text is taken as it is. `label` holds label ids as they are.
//! `doc_label` holds paths: `A--B--C` says that the labels A, B and C apply, the names of the nodes in the
//! `.taxonomy` file, so each node of a path becomes a label, once.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bad_line::Fault;
use super::lines::{LineFormat, LineRecords};
use super::write::{self, Reason, WriteOptions};
use super::{BadKind, Parsed, ReadOptions, Records, Stream};
use crate::document::Document;

/// Between the nodes of a NeuralClassifier path.
const PATH: &str = "--";

pub(super) fn open(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    LineRecords::boxed(path, stream, options.max_record, Hiagm(options.clone()))
}

struct Hiagm(ReadOptions);

#[derive(Deserialize)]
struct Line {
    id: Option<Id>,
    token: Option<Words>,
    label: Option<Words>,
    doc_token: Option<Words>,
    doc_label: Option<Words>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "an id is a string or a number")]
enum Id {
    Text(String),
    Number(serde_json::Number),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
enum Words {
    One(String),
    Many(Vec<String>),
}

impl Words {
    fn text(self) -> String {
        match self {
            Self::One(text) => text,
            Self::Many(tokens) => tokens.join(" "),
        }
    }

    fn list(self) -> Vec<String> {
        match self {
            Self::One(label) => vec![label],
            Self::Many(labels) => labels,
        }
    }
}

impl LineFormat for Hiagm {
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault> {
        let json: Line = serde_json::from_str(line).map_err(|error| Fault::json(line, &error))?;
        let Some(text) = json.token.or(json.doc_token).map(Words::text) else {
            let found = "no `doc_token` either".to_owned();
            return Err(BadKind::MissingField { wanted: "token".to_owned(), found }.into());
        };
        let mut labels = json.label.map(Words::list).unwrap_or_default();
        for path in json.doc_label.map(Words::list).unwrap_or_default() {
            for node in path.split(PATH) {
                if !labels.iter().any(|label| label == node) {
                    labels.push(node.to_owned());
                }
            }
        }
        if labels.iter().any(|label| label.trim().is_empty()) {
            return Err(BadKind::EmptyLabel.into());
        }
        let id = match json.id {
            Some(Id::Text(id)) if !id.is_empty() => id,
            Some(Id::Number(id)) => id.to_string(),
            _ => self.0.id_of_line(number),
        };
        Ok(Parsed::Document(Document { id, text, labels, features: None }))
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
