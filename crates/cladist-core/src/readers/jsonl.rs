//! JSON lines: one object per line, its fields chosen by name.
//!
//! Only the fields asked for are built; the others are skipped as they are parsed. A field `a.b` is `b` inside the
//! object `a`. Ids and labels may be numbers; labels may be one value or a list, and no labels are an empty list.
//! MultiEURLEX reads with `id_field = "celex_id"`, `labels_field = "eurovoc_concepts.all_levels"`,
//! `language = "en"`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::bad_line::Fault;
use super::lines::{LineFormat, LineRecords};
use super::write::{self, Reason, WriteOptions};
use super::{BadKind, Parsed, ReadOptions, Records, Stream};
use crate::document::Document;

pub(super) fn open(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    LineRecords::boxed(path, stream, options.max_record, Jsonl::new(options))
}

struct Jsonl {
    fields: Fields,
    options: ReadOptions,
}

impl Jsonl {
    fn new(options: &ReadOptions) -> Self {
        let fields = Fields {
            id: options.id_fields(),
            text: options.text_fields(),
            labels: options.labels_fields(),
            drop: options.drop_field.clone(),
            language: options.language.clone(),
        };
        Self { fields, options: options.clone() }
    }
}

impl LineFormat for Jsonl {
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault> {
        let mut json = serde_json::Deserializer::from_str(line);
        let object = self
            .fields
            .deserialize(&mut json)
            .and_then(|object| json.end().map(|()| object))
            .map_err(|error| Fault::json(line, &error))?;
        if object.drop || object.other_language {
            return Ok(Parsed::Dropped);
        }
        if object.text.iter().all(Option::is_none) {
            let wanted = self.fields.text.last().cloned().unwrap_or_default();
            let found = match object.names.as_slice() {
                [] => "no field".to_owned(),
                names => format!("`{}`", names.join("`, `")),
            };
            return Err(BadKind::MissingField { wanted, found }.into());
        }
        let labels = object.labels.into_iter().flatten().next().unwrap_or_default();
        if labels.iter().any(|label| label.trim().is_empty()) {
            return Err(BadKind::EmptyLabel.into());
        }
        let id = object.id.filter(|id| !id.is_empty()).unwrap_or_else(|| self.options.id_of_line(number));
        let text = object.text.into_iter().flatten().collect::<Vec<_>>().join("\n");
        Ok(Parsed::Document(Document { id, text, labels, features: None }))
    }
}

/// The fields to pick, and the seed that picks them.
struct Fields {
    id: Vec<String>,
    text: Vec<String>,
    labels: Vec<String>,
    drop: Option<String>,
    language: Option<String>,
}

#[derive(Default)]
struct Object {
    id: Option<String>,
    /// One entry per text field asked for.
    text: Vec<Option<String>>,
    /// One entry per label field asked for; the first one there counts.
    labels: Vec<Option<Vec<String>>>,
    drop: bool,
    other_language: bool,
    /// The fields of the line, a few of them, for messages.
    names: Vec<String>,
}

/// The rest of a wanted name inside the field `key`: `Some("")` if it is the field itself.
fn inside<'a>(wanted: &'a str, key: &str) -> Option<&'a str> {
    let rest = wanted.strip_prefix(key)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('.') }
}

fn position<'a>(wanted: &'a [String], key: &str) -> Option<(usize, &'a str)> {
    wanted.iter().enumerate().find_map(|(n, name)| inside(name, key).map(|rest| (n, rest)))
}

impl<'de> DeserializeSeed<'de> for &Fields {
    type Value = Object;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Object, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &Fields {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        const SHOWN: usize = 8;
        let mut object = Object {
            text: vec![None; self.text.len()],
            labels: vec![None; self.labels.len()],
            ..Object::default()
        };
        while let Some(Key(key)) = map.next_key()? {
            let twice = || A::Error::custom(format_args!("field `{key}` occurs twice"));
            let value = |path| Values { path, language: self.language.as_deref() };
            if let Some((n, path)) = position(&self.text, &key) {
                if object.text[n].is_some() {
                    return Err(twice());
                }
                match map.next_value_seed(value(path))? {
                    Found::Values(strings) => object.text[n] = Some(strings.join("\n")),
                    Found::Null => {}
                    Found::OtherLanguage => object.other_language = true,
                }
            } else if let Some((n, path)) = position(&self.labels, &key) {
                if object.labels[n].is_some() {
                    return Err(twice());
                }
                if let Found::Values(labels) = map.next_value_seed(value(path))? {
                    object.labels[n] = Some(labels);
                }
            } else if let Some((_, path)) = position(&self.id, &key) {
                if object.id.is_some() {
                    return Err(twice());
                }
                if let Found::Values(mut ids) = map.next_value_seed(value(path))? {
                    match (ids.pop(), ids.is_empty()) {
                        (Some(id), true) => object.id = Some(id),
                        _ => return Err(A::Error::custom("an id is one string or number")),
                    }
                }
            } else if self.drop.as_deref() == Some(key.as_ref()) {
                object.drop = map.next_value::<Option<bool>>()?.unwrap_or(false);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
            if object.names.len() < SHOWN {
                object.names.push(key.into_owned());
            }
        }
        Ok(object)
    }
}

/// A field's name, borrowed from the line where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

/// What stands in a field.
pub(super) enum Found {
    Null,
    Values(Vec<String>),
    OtherLanguage,
}

/// Takes a string, a number or a list of them, at the end of a path of field names.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) path: &'a str,
    pub(super) language: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = Found;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Found, D::Error> {
        json.deserialize_any(self)
    }
}

fn one<E>(value: impl ToString) -> Result<Found, E> {
    Ok(Found::Values(vec![value.to_string()]))
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str("a string, a number or a list of them")
        } else {
            write!(f, "an object with `{}`", self.path)
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Found, E> {
        one(value)
    }

    fn visit_string<E>(self, value: String) -> Result<Found, E> {
        Ok(Found::Values(vec![value]))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Found, E> {
        one(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Found, E> {
        one(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Found, E> {
        one(value)
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Scalar)? {
            values.push(value);
        }
        Ok(Found::Values(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let (wanted, is_language) = match (self.path, self.language) {
            ("", Some(language)) => (language, true),
            ("", None) => {
                return Err(A::Error::custom(
                    "found an object; name a field inside it, as in `text.en`, or set a language",
                ));
            }
            (path, _) => (path, false),
        };
        let mut found = if is_language { Found::OtherLanguage } else { Found::Null };
        while let Some(Key(key)) = map.next_key()? {
            match inside(wanted, &key) {
                Some(path) => match map.next_value_seed(Values { path, language: self.language })? {
                    // A language with nothing in it is not there.
                    Found::Null if is_language => {}
                    value => found = value,
                },
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

/// A string or a number, as a string.
struct Scalar;

impl<'de> DeserializeSeed<'de> for Scalar {
    type Value = String;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<String, D::Error> {
        json.deserialize_any(self)
    }
}

impl Visitor<'_> for Scalar {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
    }

    fn visit_str<E>(self, value: &str) -> Result<String, E> {
        Ok(value.to_owned())
    }

    fn visit_u64<E>(self, value: u64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_i64<E>(self, value: i64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_f64<E>(self, value: f64) -> Result<String, E> {
        Ok(value.to_string())
    }
}

#[derive(Serialize)]
struct Line<'a> {
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
    serde_json::to_writer(&mut *out, &Line { id, text, labels }).map_err(|e| Reason::Json(e.to_string()))?;
    out.push(b'\n');
    Ok(())
}
