//! `id [TAB name [TAB description]]`, one label per line: a label list, or the names of a hierarchy's labels.

use std::io::Write;

use super::edges::is_root_marker;
use super::source::{Source, wrong_columns};
use super::write::{plain_id, plain_text};
use super::{Format, ReadOptions, Reading, Warning, WriteError};
use crate::taxonomy::{Builder, Label, Taxonomy};

/// The rows of a file; a first line `id TAB name` is a header.
fn rows(source: &Source<'_>, builder: &mut Builder) -> Vec<(usize, Label)> {
    let mut rows = Vec::new();
    for (n, (line, text)) in source.lines(builder).into_iter().enumerate() {
        if n == 0 && is_header(text) {
            continue;
        }
        let mut columns = text.split('\t');
        let (Some(id), name, description, None) =
            (columns.next(), columns.next(), columns.next(), columns.next())
        else {
            builder.problem(&source.origin(line), wrong_columns("id [TAB name [TAB description]]", text));
            continue;
        };
        let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let (name, description) = (given(name), given(description));
        rows.push((line, Label { id: id.to_owned(), name, description, alternatives: Vec::new() }));
    }
    rows
}

fn is_header(line: &str) -> bool {
    let mut columns = line.split('\t').map(str::trim);
    columns.next().is_some_and(|id| id.eq_ignore_ascii_case("id"))
        && columns
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("name") || name.eq_ignore_ascii_case("label"))
}

pub(super) fn read(source: &Source<'_>, _: &ReadOptions, reading: &mut Reading) {
    for (line, label) in rows(source, &mut reading.builder) {
        reading.builder.declare(label, &source.origin(line));
    }
}

/// Gives names and descriptions to the labels that a hierarchy has.
pub(super) fn apply(source: &Source<'_>, reading: &mut Reading) {
    let (mut extra, mut replaced) = (Vec::new(), Vec::new());
    // Ids twice in this file are found as they are in a list.
    let mut seen = Builder::new();
    for (line, label) in rows(source, &mut reading.builder) {
        seen.declare(Label { id: label.id.clone(), ..Label::default() }, &source.origin(line));
        let known = reading.builder.known(&label.id).and_then(|known| known.name.as_ref());
        if known.is_some() && label.name.is_some() && known != label.name.as_ref() {
            replaced.push(label.id.clone());
        }
        let id = label.id.clone();
        // Some files name the root too.
        if !reading.builder.describe(label) && !id.is_empty() && !is_root_marker(&id) {
            extra.push(id);
        }
    }
    reading.builder.take_problems(seen);
    if let Some(example) = extra.first().cloned() {
        reading.warnings.push(Warning::ExtraNames { count: extra.len(), example });
    }
    if let Some(example) = replaced.first().cloned() {
        reading.warnings.push(Warning::ReplacedNames { count: replaced.len(), example });
    }
}

pub(super) fn write(taxonomy: &Taxonomy, out: &mut dyn Write) -> Result<(), WriteError> {
    for label in taxonomy.labels() {
        write!(out, "{}", plain_id(taxonomy, label, Format::List)?)?;
        let Label { name, description, .. } = taxonomy.label(label);
        if name.is_some() || description.is_some() {
            write!(out, "\t{}", plain_text(name.as_deref().unwrap_or_default()))?;
        }
        if let Some(description) = description {
            write!(out, "\t{}", plain_text(description))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
