//! JSON lines: one object per line, its fields chosen by name; or all objects in one array.
//!
//! Only the fields asked for are built; the others are skipped as they are parsed. A field `a.b` is `b` inside the
//! object `a`. Ids and labels may be whole numbers; labels may be one value or a list, and no labels are an empty list.
//! MultiEURLEX reads with `id_field = "celex_id"`, `labels_field = "eurovoc_concepts.all_levels"`,
//! `language = "en"`.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::bad_line::Fault;
use super::indicator::{self, Indicators};
use super::json_array::ArrayRecords;
use super::lines::{LineFormat, LineRecords};
use super::options::TextFields;
use super::value::{Fields, Found, Line, fields, inside};
use super::write::{self, Reason, WriteOptions};
use super::{BadKind, Parsed, ReadOptions, Records, Stream};
use crate::document::Document;

pub(super) fn open(path: Arc<PathBuf>, mut stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    // A stream that cannot be read says so again, to the reader of lines.
    let start = stream.fill_buf().unwrap_or_default();
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    let is_array = start.trim_ascii_start().first() == Some(&b'[');
    let format = Jsonl::new(options);
    if is_array {
        ArrayRecords::boxed(path, stream, options.max_record, format)
    } else {
        LineRecords::boxed(path, stream, options.max_record, format)
    }
}

struct Jsonl {
    options: ReadOptions,
    id: Named,
    labels: Named,
    text: TextFields,
    /// Which of the text fields were in a record.
    text_met: Vec<bool>,
    /// Whether a record has become a document.
    made: bool,
    /// Names of the first document's fields, for messages.
    names: Vec<String>,
    indicators: Indicators,
}

/// Fields of which the first that is there counts.
struct Named {
    names: Vec<String>,
    /// Whether a file without them is refused.
    required: bool,
    met: bool,
}

impl Named {
    fn new((names, required): (Vec<String>, bool)) -> Self {
        Self { names, required, met: false }
    }

    /// The values of the first field that is there and not null.
    fn take<'a>(&mut self, line: Line<'a>, fields: &Fields<'a>) -> Result<Option<Vec<String>>, Fault> {
        for name in &self.names {
            let found = line.find(name, fields)?;
            self.met |= found != Found::Absent;
            if let Found::Values(values) = found {
                return Ok(Some(values));
            }
        }
        Ok(None)
    }
}

impl Jsonl {
    fn new(options: &ReadOptions) -> Self {
        let text = options.text_fields();
        Self {
            id: Named::new(options.id_fields()),
            labels: Named::new(options.labels_fields()),
            text_met: vec![false; text.names.len()],
            text,
            made: false,
            names: Vec::new(),
            indicators: Indicators::default(),
            options: options.clone(),
        }
    }

    fn keeps(&self, key: &str) -> bool {
        let names = self.id.names.iter().chain(&self.text.names).chain(&self.labels.names);
        names.map(String::as_str).chain(self.options.drop_field()).any(|name| inside(name, key).is_some())
    }

    fn drops<'a>(&self, line: Line<'a>, fields: &Fields<'a>) -> Result<bool, Fault> {
        let Some(name) = self.options.drop_field() else { return Ok(false) };
        line.find_bool(name, fields)
    }

    /// The text, or nothing if it is in other languages.
    fn text<'a>(
        &mut self,
        line: Line<'a>,
        fields: &Fields<'a>,
        names: &[String],
    ) -> Result<Option<String>, Fault> {
        let has = |name: &str, null: bool| {
            fields.iter().any(|(key, value)| key == name && (value.get() == "null") == null)
        };
        let mut parts = Vec::new();
        for n in self.text.choose(|n| self.text.chosen || has(&self.text.names[n], false)) {
            let found = line.find(&self.text.names[n], fields)?;
            self.text_met[n] |= found != Found::Absent;
            match found {
                Found::Values(values) => parts.push(values.join("\n")),
                Found::OtherLanguage => return Ok(None),
                Found::Absent | Found::Null => {}
            }
        }
        if !parts.is_empty() {
            return Ok(Some(parts.join("\n")));
        }
        if let Some(field) = self.text.names.iter().find(|name| has(name, true)) {
            return Err(BadKind::NullText { field: field.clone() }.into());
        }
        let wanted = if self.text.chosen { self.text.names.join("`, `") } else { "text".to_owned() };
        Err(BadKind::MissingField { wanted, found: write::quoted(names) }.into())
    }
}

impl LineFormat for Jsonl {
    fn parse(&mut self, text: &str, number: usize) -> Result<Parsed, Fault> {
        let mut names = Vec::new();
        let fields =
            fields(text, |key| self.keeps(key), &mut names).map_err(|error| Fault::json(text, &error))?;
        let language = self.options.language.clone();
        let line = Line { text, language: language.as_deref(), whole_numbers: false };
        if self.drops(line, &fields)? {
            return Ok(Parsed::Dropped);
        }
        let Some(text) = self.text(line, &fields, &names)? else { return Ok(Parsed::Dropped) };
        let labels = self.labels.take(Line { whole_numbers: true, ..line }, &fields)?.unwrap_or_default();
        indicator::check(&labels)?;
        self.indicators.see(&labels);
        let id = match self.id.take(line, &fields)?.map(<[String; 1]>::try_from) {
            None => None,
            Some(Ok([id])) => Some(id).filter(|id| !id.is_empty()),
            Some(Err(_)) => {
                return Err(BadKind::Json("an id is one string or number".to_owned()).into());
            }
        };
        let id = id.unwrap_or_else(|| self.options.id_of_line(number));
        if !self.made {
            (self.made, self.names) = (true, names);
        }
        Ok(Parsed::Document(Document { id, text, labels, features: None }))
    }

    fn end(&mut self) -> Result<(), (usize, BadKind)> {
        // Without a document there is nothing to miss.
        if !self.made {
            return Ok(());
        }
        let text = self.text.names.iter().zip(&self.text_met).find(|(_, met)| self.text.chosen && !**met);
        let named = [&self.id, &self.labels].into_iter().find(|named| named.required && !named.met);
        let absent = text.map(|(name, _)| name).or_else(|| named.and_then(|named| named.names.first()));
        if let Some(wanted) = absent {
            let found = write::quoted(&self.names);
            return Err((0, BadKind::AbsentField { wanted: wanted.clone(), found }));
        }
        self.indicators.end().map_err(|kind| (0, kind))
    }

    fn text_fields(&self) -> Vec<String> {
        let names = self.text.names.iter().zip(&self.text_met);
        names.filter(|(_, met)| **met).map(|(name, _)| name.clone()).collect()
    }
}

#[derive(Serialize)]
struct Written<'a> {
    id: &'a str,
    text: &'a str,
    labels: &'a [String],
}

pub(super) fn write(document: &Document, _: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Reason> {
    let Document { id, text, labels, features } = document;
    if features.is_some() {
        return Err(Reason::Features);
    }
    write::full_labels(labels)?;
    serde_json::to_writer(&mut *out, &Written { id, text, labels })
        .map_err(|e| Reason::Json(e.to_string()))?;
    out.push(b'\n');
    Ok(())
}
