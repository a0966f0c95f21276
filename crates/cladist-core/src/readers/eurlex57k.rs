//! EURLEX57K: a folder with a JSON file per act. The text is the header (the title where there is none), the
//! recitals, the main body and the attachments, joined by new lines; the labels are the concepts.

use std::path::Path;
use std::sync::Arc;

use super::bad_line::{Fault, json_message};
use super::folder::{self, FolderRecords};
use super::value::{Found, Line, fields};
use super::{BadKind, BadLine, ReadOptions, Records, indicator, write};
use crate::document::Document;
use crate::error::Result;

pub(super) fn open(folder: &Path, options: &ReadOptions) -> Result<Box<dyn Records>> {
    FolderRecords::open(folder, "json", options, parse)
}

fn parse(path: &Path, stem: &str, options: &ReadOptions) -> Result<Document, BadLine> {
    let json = folder::file_text(path, options)?;
    let bad = |line: usize, column: Option<usize>, kind: BadKind| BadLine {
        path: Arc::new(path.to_owned()),
        line,
        column,
        kind,
        content: json.clone(),
    };
    let mut names = Vec::new();
    let act = fields(&json, |_| true, &mut names).map_err(|error| {
        bad(error.line(), Some(error.column().max(1)), BadKind::Json(json_message(&error)))
    })?;
    let read = |name: &str, whole_numbers: bool| {
        let line = Line { text: &json, language: None, whole_numbers };
        match line.find(name, &act) {
            Ok(Found::Values(values)) => Ok(values),
            Ok(_) => Ok(Vec::new()),
            Err(Fault { kind: kind @ BadKind::Indicator { .. }, .. }) => Err(bad(1, None, kind)),
            Err(_) => {
                let message = format!("field `{name}` is not a string or a list of strings");
                Err(bad(1, None, BadKind::Json(message)))
            }
        }
    };
    let strings = |name: &str| read(name, false);
    let mut parts = strings("header")?;
    if parts.is_empty() {
        parts = strings("title")?;
    }
    for name in ["recitals", "main_body", "attachments"] {
        parts.extend(strings(name)?);
    }
    if parts.is_empty() {
        let (wanted, found) = ("main_body".to_owned(), write::quoted(&names));
        return Err(bad(1, None, BadKind::MissingField { wanted, found }));
    }
    let labels = if options.reads_labels() {
        read(options.labels_field.as_deref().unwrap_or("concepts"), true)?
    } else {
        Vec::new()
    };
    indicator::check(&labels).map_err(|kind| bad(1, None, kind))?;
    let id = strings(options.id_field.as_deref().unwrap_or("celex_id"))?.into_iter().next();
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| stem.to_owned());
    Ok(Document { id, text: parts.join("\n"), labels, features: None })
}

#[cfg(test)]
mod tests {
    use crate::readers::{Format, ReadOptions, Reader};

    #[test]
    fn the_sections_of_an_act_make_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "31958R0001.json",
            r#"{"celex_id": "31958R0001", "title": "T", "header": "H", "recitals": "R",
                "main_body": ["A1", "A2"], "attachments": "X", "concepts": ["100", 200]}"#,
        );
        write("b.json", "{\"main_body\": [\n  17,,\n]}");
        write("c.json", r#"{"title": "only a title", "concepts": []}"#);
        let reader = Reader::open(folder.path(), None, &ReadOptions::default()).unwrap();
        assert_eq!(reader.format(), Format::Eurlex57k);
        let records: Vec<_> = reader.collect();
        let first = records[0].as_ref().unwrap();
        assert_eq!((first.id.as_str(), first.text.as_str()), ("31958R0001", "H\nR\nA1\nA2\nX"));
        assert_eq!(first.labels, ["100", "200"]);
        let bad = records[1].as_ref().unwrap_err();
        assert_eq!((bad.line, bad.column), (2, Some(6)));
        let third = records[2].as_ref().unwrap();
        assert_eq!((third.id.as_str(), third.text.as_str()), ("c", "only a title"));
    }
}
