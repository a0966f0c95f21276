//! Values of JSON fields as strings: text, ids and labels.
//!
//! Values are kept as they are written until they are wanted, so that fields nobody asks for are never built and
//! integers of any size keep their digits.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::bad_line::{Fault, json_message};
use super::{BadKind, write};

/// The fields of an object, some of them: name and value as written.
pub(super) type Fields<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// What stands in a field.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The field is not there.
    Absent,
    Null,
    Values(Vec<String>),
    /// There are texts, in other languages than the one asked for.
    OtherLanguage,
}

/// The rest of a wanted name inside the field `key`: `Some("")` if it is the field itself.
pub(super) fn inside<'a>(wanted: &'a str, key: &str) -> Option<&'a str> {
    let rest = wanted.strip_prefix(key)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('.') }
}

/// Reads the fields of an object that `keeps` says yes to; `names` gets the first few names of all of them.
pub(super) fn fields<'a>(
    json: &'a str,
    keeps: impl Fn(&str) -> bool,
    names: &mut Vec<String>,
) -> serde_json::Result<Fields<'a>> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let fields = deserializer.deserialize_map(Pick { keeps, names })?;
    deserializer.end()?;
    Ok(fields)
}

/// A field's name, borrowed from the line where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

struct Pick<'n, K> {
    keeps: K,
    names: &'n mut Vec<String>,
}

impl<'de, K: Fn(&str) -> bool> Visitor<'de> for Pick<'_, K> {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        const SHOWN: usize = 8;
        let mut fields: Fields<'de> = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            if self.names.len() < SHOWN {
                self.names.push(key.to_string());
            }
            if !(self.keeps)(&key) {
                map.next_value::<serde::de::IgnoredAny>()?;
                continue;
            }
            if fields.iter().any(|(known, _)| *known == key) {
                return Err(A::Error::custom(format_args!("field `{key}` occurs twice")));
            }
            fields.push((key, map.next_value()?));
        }
        Ok(fields)
    }
}

/// Values of one line of JSON, with faults at their place in the line.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    pub(super) language: Option<&'a str>,
    /// Whether a number must be whole: a label `0.5` is a score, not an id.
    pub(super) whole_numbers: bool,
}

impl<'a> Line<'a> {
    /// The field `wanted` of an object of this line. The depth is that of the name, not of the data.
    pub(super) fn find(self, wanted: &str, fields: &Fields<'a>) -> Result<Found, Fault> {
        let inner = fields.iter().find_map(|(key, value)| inside(wanted, key).map(|rest| (*value, rest)));
        match inner {
            None => Ok(Found::Absent),
            Some((value, "")) => self.values(value),
            Some((value, _)) if value.get() == "null" => Ok(Found::Null),
            Some((value, rest)) => {
                let expected = || format!("an object with `{rest}`");
                self.find(rest, &self.object(value, expected, |key| inside(rest, key).is_some())?)
            }
        }
    }

    /// Whether the field `wanted` says `true`; no, if it is not there.
    pub(super) fn find_bool(self, wanted: &str, fields: &Fields<'a>) -> Result<bool, Fault> {
        let Some((_, value)) = fields.iter().find(|(key, _)| key == wanted) else { return Ok(false) };
        match value.get() {
            "true" => Ok(true),
            "false" | "null" => Ok(false),
            other => {
                let (expected, found) = ("`true` or `false`".to_owned(), write::excerpt(other));
                Err(self.fault(value, BadKind::Malformed { expected, found }))
            }
        }
    }

    /// A string, a number or a list of them; with a language, the one under its name in an object.
    fn values(self, value: &'a RawValue) -> Result<Found, Fault> {
        let written = value.get();
        if written.starts_with('{') {
            let Some(language) = self.language else {
                let message = "found an object; name a field inside it, as in `text.en`, or set a language";
                return Err(self.fault(value, BadKind::Json(message.to_owned())));
            };
            let texts = self.object(value, || "an object".to_owned(), |key| key == language)?;
            // A language with nothing in it is not there.
            let Some((_, value)) = texts.first().filter(|(_, value)| value.get() != "null") else {
                return Ok(Found::OtherLanguage);
            };
            return Line { language: None, ..self }.values(value);
        }
        if written == "null" {
            return Ok(Found::Null);
        }
        if written.starts_with('[') {
            let list: Vec<&'a RawValue> =
                serde_json::from_str(written).map_err(|error| self.inner_fault(value, &error))?;
            let scalars = list.into_iter().map(|value| self.scalar(value, "a string or a number"));
            return scalars.collect::<Result<_, _>>().map(Found::Values);
        }
        let scalar = self.scalar(value, "a string, a number or a list of them")?;
        Ok(Found::Values(vec![scalar]))
    }

    fn scalar(self, value: &'a RawValue, expected: &str) -> Result<String, Fault> {
        let written = value.get();
        match written.as_bytes().first() {
            Some(b'"') => serde_json::from_str(written).map_err(|error| self.inner_fault(value, &error)),
            Some(b'-' | b'0'..=b'9') if !written.contains(['.', 'e', 'E']) => Ok(written.to_owned()),
            Some(b'-' | b'0'..=b'9') if self.whole_numbers => {
                Err(self.fault(value, BadKind::Indicator { found: write::excerpt(written) }))
            }
            Some(b'-' | b'0'..=b'9') => {
                let number: f64 =
                    serde_json::from_str(written).map_err(|error| self.inner_fault(value, &error))?;
                Ok(number.to_string())
            }
            _ => {
                let (expected, found) = (expected.to_owned(), write::excerpt(written));
                Err(self.fault(value, BadKind::Malformed { expected, found }))
            }
        }
    }

    fn object(
        self,
        value: &'a RawValue,
        expected: impl Fn() -> String,
        keeps: impl Fn(&str) -> bool,
    ) -> Result<Fields<'a>, Fault> {
        if !value.get().starts_with('{') {
            let found = write::excerpt(value.get());
            return Err(self.fault(value, BadKind::Malformed { expected: expected(), found }));
        }
        fields(value.get(), keeps, &mut Vec::new()).map_err(|error| self.inner_fault(value, &error))
    }

    fn fault(self, value: &RawValue, kind: BadKind) -> Fault {
        Fault::at(self.text, self.offset(value), kind)
    }

    fn inner_fault(self, value: &RawValue, error: &serde_json::Error) -> Fault {
        let at = self.offset(value) + error.column().saturating_sub(1);
        Fault::at(self.text, at, BadKind::Json(json_message(error)))
    }

    /// Values are slices of the line.
    fn offset(self, value: &RawValue) -> usize {
        (value.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }
}
