//! Tables of MeSH descriptors, told by their header.
//!
//! With `mesh_id mesh_name mesh_tree_number` there is a row per tree number, and `C01.2` stands below `C01`: a
//! DAG, since a descriptor has several tree numbers. With `mesh_id mesh_name` it is a list.

use std::collections::HashMap;

use super::source::{Source, wrong_columns};
use super::{ReadOptions, Reading, Warning};
use crate::taxonomy::{Label, ProblemKind};

const TERMS: &str = "mesh_id\tmesh_name";
const TREE: &str = "mesh_id\tmesh_name\tmesh_tree_number";

/// Whether a line is the header of one of the tables.
pub(super) fn is_header(line: &str) -> bool {
    matches!(line.trim(), TERMS | TREE)
}

pub(super) fn read(source: &Source<'_>, _: &ReadOptions, reading: &mut Reading) {
    let lines = source.lines(&mut reading.builder);
    let Some((&(first, header), rows)) = lines.split_first() else { return };
    match header.trim() {
        TERMS => terms(source, rows, reading),
        TREE => tree(source, rows, reading),
        _ => {
            let expected = "the header `mesh_id mesh_name [mesh_tree_number]`";
            reading.builder.problem(&source.origin(first), wrong_columns(expected, header));
        }
    }
}

fn terms(source: &Source<'_>, rows: &[(usize, &str)], reading: &mut Reading) {
    for &(line, text) in rows {
        match text.split_once('\t') {
            Some((id, name)) if !name.contains('\t') => {
                let name = Some(name.to_owned()).filter(|name| !name.is_empty());
                let label = Label { id: id.to_owned(), name, ..Label::default() };
                reading.builder.declare(label, &source.origin(line));
            }
            _ => reading.builder.problem(&source.origin(line), wrong_columns("mesh_id TAB mesh_name", text)),
        }
    }
}

fn tree(source: &Source<'_>, rows: &[(usize, &str)], reading: &mut Reading) {
    let builder = &mut reading.builder;
    let mut owner: HashMap<&str, (&str, usize)> = HashMap::with_capacity(rows.len());
    let mut places = Vec::with_capacity(rows.len());
    for &(line, text) in rows {
        let origin = source.origin(line);
        let columns: Vec<&str> = text.split('\t').collect();
        let &[id, name, number] = &columns[..] else {
            builder.problem(&origin, wrong_columns("mesh_id TAB mesh_name TAB mesh_tree_number", text));
            continue;
        };
        builder.label(id, &origin);
        if id.is_empty() {
            continue;
        }
        builder.name(id, name, &origin);
        // A descriptor may stand outside the trees.
        if number.is_empty() {
            continue;
        }
        match owner.insert(number, (id, line)) {
            Some((first, at)) if first != id => {
                let kind = ProblemKind::DuplicateId { id: number.to_owned(), first: source.origin(at) };
                builder.problem(&origin, kind);
            }
            _ => places.push((id, number, line)),
        }
    }
    let mut missing = Vec::new();
    for (id, number, line) in places {
        let mut above = number;
        let parent = loop {
            let Some((shorter, _)) = above.rsplit_once('.') else { break None };
            above = shorter;
            match owner.get(above) {
                Some((parent, _)) => break Some(*parent),
                None => missing.push(above),
            }
        };
        builder.edge(parent, id, &source.origin(line));
    }
    missing.sort_unstable();
    missing.dedup();
    if let Some(example) = missing.first() {
        let example = (*example).to_owned();
        reading.warnings.push(Warning::MissingTreeNumbers { count: missing.len(), example });
    }
}
