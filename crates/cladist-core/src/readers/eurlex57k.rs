//! EURLEX57K: a folder with a JSON file per act. The text is the header (the title where there is none), the
//! recitals, the main body and the attachments, joined by new lines; the labels are the concepts.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::bad_line::json_message;
use super::folder::{self, FolderRecords};
use super::{BadKind, BadLine, ReadOptions, Records};
use crate::document::Document;
use crate::error::Result;

pub(super) fn open(folder: &Path, options: &ReadOptions) -> Result<Box<dyn Records>> {
    FolderRecords::open(folder, "json", options, parse)
}

fn parse(path: &Path, stem: &str, options: &ReadOptions) -> Result<Document, BadLine> {
    let json = folder::text(path, options)?;
    let bad = |line: usize, column: Option<usize>, kind: BadKind| BadLine {
        path: Arc::new(path.to_owned()),
        line,
        column,
        kind,
        content: json.clone(),
    };
    let act: serde_json::Map<String, Value> = serde_json::from_str(&json).map_err(|error| {
        bad(error.line(), Some(error.column().max(1)), BadKind::Json(json_message(&error)))
    })?;
    let strings = |name: &str| {
        let value = act.get(name).unwrap_or(&Value::Null);
        strings(value).ok_or_else(|| {
            let message = format!("field `{name}` is not a string or a list of strings");
            bad(1, None, BadKind::Json(message))
        })
    };
    let mut parts = strings("header")?;
    if parts.is_empty() {
        parts = strings("title")?;
    }
    for name in ["recitals", "main_body", "attachments"] {
        parts.extend(strings(name)?);
    }
    if parts.is_empty() {
        let found = match act.keys().take(8).map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => "no field".to_owned(),
            names => format!("`{}`", names.join("`, `")),
        };
        return Err(bad(1, None, BadKind::MissingField { wanted: "main_body".to_owned(), found }));
    }
    let labels = strings(options.labels_field.as_deref().unwrap_or("concepts"))?;
    if labels.iter().any(|label| label.trim().is_empty()) {
        return Err(bad(1, None, BadKind::EmptyLabel));
    }
    let id = strings(options.id_field.as_deref().unwrap_or("celex_id"))?.into_iter().next();
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| stem.to_owned());
    Ok(Document { id, text: parts.join("\n"), labels, features: None })
}

/// A string, a number or a list of them; nothing for null.
fn strings(value: &Value) -> Option<Vec<String>> {
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(values) => values.iter().map(scalar).collect(),
        other => scalar(other).map(|text| vec![text]),
    }
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
