//! `parent TAB child TAB child …`, one parent per line, as in `.taxonomy` files.

use std::io::Write;

use super::edges::{self, Edge};
use super::source::{Source, wrong_columns};
use super::write::plain_id;
use super::{Format, ReadOptions, Reading, WriteError};
use crate::taxonomy::Taxonomy;

pub(super) fn read(source: &Source<'_>, _: &ReadOptions, reading: &mut Reading) {
    let builder = &mut reading.builder;
    let mut edges = Vec::new();
    for (line, text) in source.lines(builder) {
        // Some files end every line with a tab.
        let Some((parent, children)) = text.trim_end_matches('\t').split_once('\t') else {
            builder.problem(&source.origin(line), wrong_columns("parent TAB child [TAB child …]", text));
            continue;
        };
        edges.extend(children.split('\t').map(|child| Edge { parent, child, line }));
    }
    edges::add(source, &edges, builder);
}

pub(super) fn write(taxonomy: &Taxonomy, out: &mut dyn Write) -> Result<(), WriteError> {
    let root = edges::root_marker(taxonomy, "Root").ok_or(WriteError::NoRoot(Format::Taxonomy))?;
    for (parent, children) in taxonomy.sibling_sets() {
        write!(out, "{}", parent.map_or(root, |parent| taxonomy.id(parent)))?;
        for &child in children {
            write!(out, "\t{}", plain_id(taxonomy, child, Format::Taxonomy)?)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
