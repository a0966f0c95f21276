//! The table of ICD-9-CM codes, without a header: code, whether it is a leaf, short name, long name, code and name
//! of its category, name of its section, name of its chapter.
//!
//! Chapters stand above sections, sections above categories, and a code comes under the longest code of its
//! category that it starts with. Chapters and sections have no code: their ids are made of their names.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, wrong_columns};
use super::{ReadOptions, Reading};
use crate::taxonomy::{Label, ProblemKind};

#[derive(Debug)]
struct Row<'a> {
    line: usize,
    code: &'a str,
    short: &'a str,
    long: &'a str,
    category: &'a str,
    category_name: &'a str,
    section: &'a str,
    chapter: &'a str,
}

fn is_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

/// Whether a line looks like one of the table.
pub(super) fn is_row(line: &str) -> bool {
    let columns: Vec<&str> = line.split('\t').collect();
    columns.len() == 8 && is_boolean(columns[1])
}

fn rows<'a>(source: &Source<'a>, reading: &mut Reading) -> Vec<Row<'a>> {
    const EXPECTED: &str = "code, true or false, short name, long name, category, its name, section, chapter";
    let mut rows = Vec::new();
    for (line, text) in source.lines(&mut reading.builder) {
        let columns: Vec<&str> = text.split('\t').collect();
        let &[code, leaf, short, long, category, category_name, section, chapter] = &columns[..] else {
            reading.builder.problem(&source.origin(line), wrong_columns(EXPECTED, text));
            continue;
        };
        if !is_boolean(leaf) {
            let expected = "`True` or `False` in the second column".to_owned();
            let found = format!("`{leaf}`");
            reading.builder.problem(&source.origin(line), ProblemKind::Malformed { expected, found });
            continue;
        }
        if [code, category, section, chapter].contains(&"") {
            reading.builder.problem(&source.origin(line), ProblemKind::EmptyId);
            continue;
        }
        rows.push(Row { line, code, short, long, category, category_name, section, chapter });
    }
    rows
}

/// Ids for things that only have names: a prefix, the name's words, and a number if need be.
struct Ids<'a> {
    taken: BTreeSet<String>,
    of: BTreeMap<(&'a str, &'a str), String>,
}

impl<'a> Ids<'a> {
    /// The id for `name` inside `place`, and whether it is new.
    fn get(&mut self, prefix: &str, place: &'a str, name: &'a str) -> (String, bool) {
        if let Some(id) = self.of.get(&(place, name)) {
            return (id.clone(), false);
        }
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let stem = format!("{prefix}:{}", words.map(str::to_lowercase).collect::<Vec<_>>().join("-"));
        let numbered = (2..).map(|n: u64| format!("{stem}-{n}"));
        let free = std::iter::once(stem.clone()).chain(numbered).find(|id| !self.taken.contains(id));
        let id = free.unwrap_or(stem);
        self.taken.insert(id.clone());
        self.of.insert((place, name), id.clone());
        (id, true)
    }
}

pub(super) fn read(source: &Source<'_>, _: &ReadOptions, reading: &mut Reading) {
    let rows = rows(source, reading);
    let builder = &mut reading.builder;
    let codes: BTreeSet<&str> = rows.iter().map(|row| row.code).collect();
    let taken: BTreeSet<String> =
        rows.iter().flat_map(|row| [row.code, row.category]).map(str::to_owned).collect();
    let mut ids = Ids { taken, of: BTreeMap::new() };
    let named = |id: &str, name: &str, alternatives: Vec<String>| Label {
        id: id.to_owned(),
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        description: None,
        alternatives,
    };
    for row in &rows {
        let short = Some(row.short).filter(|short| !short.is_empty() && *short != row.long);
        let alternatives = short.map(str::to_owned).into_iter().collect();
        builder.declare(named(row.code, row.long, alternatives), &source.origin(row.line));
    }
    for row in &rows {
        let origin = source.origin(row.line);
        // No chapter is called "", so chapters do not mix with sections.
        let (chapter, new) = ids.get("ch", "", row.chapter);
        if new {
            builder.declare(named(&chapter, row.chapter, Vec::new()), &origin);
            builder.edge(None, &chapter, &origin);
        }
        let (section, new) = ids.get("sec", row.chapter, row.section);
        if new {
            builder.declare(named(&section, row.section, Vec::new()), &origin);
            builder.edge(Some(&chapter), &section, &origin);
        }
        if row.code == row.category {
            builder.edge(Some(&section), row.code, &origin);
            continue;
        }
        if !codes.contains(row.category) && !builder.contains(row.category) {
            builder.declare(named(row.category, row.category_name, Vec::new()), &origin);
            builder.edge(Some(&section), row.category, &origin);
        }
        let longest = (row.category.len() + 1..row.code.len())
            .rev()
            .filter_map(|end| row.code.get(..end))
            .take_while(|_| row.code.starts_with(row.category))
            .find(|prefix| codes.contains(prefix));
        builder.edge(Some(longest.unwrap_or(row.category)), row.code, &origin);
    }
}
