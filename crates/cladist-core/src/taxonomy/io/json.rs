//! Our own JSON: everything known of each label, nothing lost.
//!
//! ```json
//! {"format":"cladist-taxonomy","version":1,"labels":[
//! {"id":"animals","name":"Animals","description":"Living things that move."},
//! {"id":"dogs","alternatives":["hounds"],"parents":["animals"],"root":true}
//! ]}
//! ```
//!
//! A label without `parents` hangs under the root; one with parents does too if `root` is true. Only `id` is
//! required. Parents may come after their children. Unknown keys are refused; a later version may have more.

use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::source::Source;
use super::{Format, ReadOptions, Reading, WriteError};
use crate::taxonomy::{Label, ProblemKind, Problems, Taxonomy};

const FORMAT: &str = "cladist-taxonomy";
const VERSION: u32 = 1;

#[derive(Deserialize)]
struct Header {
    format: String,
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u32,
    // Raw, so that one bad label does not hide the others and each has a place in the file.
    #[serde(borrow)]
    labels: Vec<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<S> {
    id: S,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    name: Option<S>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    description: Option<S>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<S>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    parents: Vec<S>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    root: bool,
}

fn none<S>() -> Option<S> {
    None
}

/// A parser's message without its own idea of the line, which is ours to give.
fn syntax(error: &serde_json::Error) -> ProblemKind {
    let message = error.to_string();
    let message = message.rfind(" at line ").map_or(&*message, |end| &message[..end]);
    ProblemKind::Syntax { language: "JSON", message: message.to_owned() }
}

pub(super) fn read(source: &Source<'_>, _: &ReadOptions, reading: &mut Reading) {
    let builder = &mut reading.builder;
    let header = match serde_json::from_slice::<Header>(source.bytes) {
        Ok(header) => header,
        Err(error) => return builder.problem(&source.origin(error.line()), syntax(&error)),
    };
    if header.format != FORMAT || header.version > VERSION || header.version == 0 {
        let expected = format!("`{FORMAT}` of version {VERSION}");
        let found = format!("`{}` of version {}", header.format, header.version);
        return builder.problem(&source.origin(1), ProblemKind::Malformed { expected, found });
    }
    let file: File<'_> = match serde_json::from_slice(source.bytes) {
        Ok(file) => file,
        Err(error) => return builder.problem(&source.origin(error.line()), syntax(&error)),
    };
    builder.require_declared_parents();
    // Labels come in file order, so lines are counted once over the whole file.
    let (mut line, mut counted) = (1, 0);
    let mut hung = Vec::new();
    for raw in file.labels {
        let offset = (raw.get().as_ptr() as usize).saturating_sub(source.bytes.as_ptr() as usize);
        let offset = offset.clamp(counted, source.bytes.len());
        line += source.bytes[counted..offset].iter().filter(|&&byte| byte == b'\n').count();
        counted = offset;
        let entry: Entry<String> = match serde_json::from_str(raw.get()) {
            Ok(entry) => entry,
            Err(error) => {
                builder.problem(&source.origin(line + error.line().saturating_sub(1)), syntax(&error));
                continue;
            }
        };
        let Entry { id, name, description, alternatives, parents, root } = entry;
        hung.push((id.clone(), parents, root, line));
        builder.declare(Label { id, name, description, alternatives }, &source.origin(line));
    }
    // An empty id was a problem when it was declared.
    for (id, parents, root, line) in hung.into_iter().filter(|(id, ..)| !id.is_empty()) {
        let origin = source.origin(line);
        if root {
            builder.edge(None, &id, &origin);
        }
        for parent in parents {
            builder.edge(Some(&parent), &id, &origin);
        }
    }
}

pub(super) fn write(taxonomy: &Taxonomy, out: &mut dyn Write) -> Result<(), WriteError> {
    write!(out, "{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\"labels\":[")?;
    for label in taxonomy.labels() {
        let Label { id, name, description, alternatives } = taxonomy.label(label);
        let parents: Vec<&str> = taxonomy.parents(label).iter().map(|&parent| taxonomy.id(parent)).collect();
        let entry = Entry {
            id: id.as_str(),
            name: name.as_deref(),
            description: description.as_deref(),
            alternatives: alternatives.iter().map(String::as_str).collect(),
            root: taxonomy.is_root_child(label) && !parents.is_empty(),
            parents,
        };
        out.write_all(if label.index() == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &entry).map_err(std::io::Error::from)?;
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}

/// The taxonomy as JSON, the same bytes for the same taxonomy.
#[must_use]
pub fn to_json(taxonomy: &Taxonomy) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Memory does not refuse to be written to.
    let _ = write(taxonomy, &mut bytes);
    bytes
}

/// Reads what [`to_json`] made.
pub fn from_json(bytes: &[u8]) -> Result<Taxonomy, Problems> {
    super::parse(bytes, Format::Json, &ReadOptions::default()).map(|loaded| loaded.taxonomy)
}
