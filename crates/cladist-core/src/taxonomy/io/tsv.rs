//! `parent TAB child [TAB name of the child]`, one edge per line.

use std::io::Write;

use super::edges::{self, Edge};
use super::source::{Source, wrong_columns};
use super::write::{plain_id, plain_text};
use super::{Format, ReadOptions, Reading, WriteError};
use crate::taxonomy::Taxonomy;

pub(super) fn read(source: &Source<'_>, _: &ReadOptions, reading: &mut Reading) {
    let builder = &mut reading.builder;
    let mut edges = Vec::new();
    let mut names = Vec::new();
    for (line, text) in source.lines(builder) {
        let mut columns = text.split('\t');
        let (Some(parent), Some(child), name, None) =
            (columns.next(), columns.next(), columns.next(), columns.next())
        else {
            builder.problem(&source.origin(line), wrong_columns("parent TAB child [TAB name]", text));
            continue;
        };
        edges.push(Edge { parent, child, line });
        if let Some(name) = name.filter(|name| !name.is_empty() && !child.is_empty()) {
            names.push((child, name, line));
        }
    }
    edges::add(source, &edges, builder);
    for (child, name, line) in names {
        builder.name(child, name, &source.origin(line));
    }
}

pub(super) fn write(taxonomy: &Taxonomy, out: &mut dyn Write) -> Result<(), WriteError> {
    let root = edges::root_marker(taxonomy, "ROOT").ok_or(WriteError::NoRoot(Format::Tsv))?;
    let named = taxonomy.labels().any(|label| taxonomy.label(label).name.is_some());
    for label in taxonomy.labels() {
        let id = plain_id(taxonomy, label, Format::Tsv)?;
        let name = plain_text(taxonomy.label(label).name.as_deref().unwrap_or_default());
        let parents = taxonomy.parents(label).iter().map(|&parent| taxonomy.id(parent));
        for parent in taxonomy.is_root_child(label).then_some(root).into_iter().chain(parents) {
            if named {
                writeln!(out, "{parent}\t{id}\t{name}")?;
            } else {
                writeln!(out, "{parent}\t{id}")?;
            }
        }
    }
    Ok(())
}
