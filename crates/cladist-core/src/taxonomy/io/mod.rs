//! Reading and writing vocabularies: one file per format, and a table of them ([`FORMATS`]).
//!
//! Every reader takes the whole file, tolerates a byte order mark, CRLF and blank lines, and collects all problems
//! with file and line before anything fails. There are no comment lines: an id may start with `#`.

mod edges;
mod format;
mod icd9;
mod json;
mod lines;
mod list;
mod mesh;
mod options;
mod rdfxml;
mod skos;
mod source;
mod tsv;
mod turtle;
mod warning;
mod write;

pub use format::{FORMATS, Format, FormatInfo, UnknownFormat, sniff};
pub use json::{from_json, to_json};
pub use options::{IdStyle, ReadOptions};
pub use warning::Warning;
pub use write::{WriteError, write};

use std::path::Path;

use super::{Builder, OnCycle, Origin, ProblemKind, Problems, Taxonomy};
use crate::error::Result;
use crate::files;
use crate::job::Cancel;
use source::Source;

/// A taxonomy, and what its reader passed over.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The taxonomy.
    pub taxonomy: Taxonomy,
    /// What was odd but not fatal, each kind once with a count.
    pub warnings: Vec<Warning>,
}

/// Reads a vocabulary file. Its format is the one asked for, or sniffed from its name and content.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Loaded> {
    read_vocabulary(Some(path), None, options, &Cancel::default())
}

/// Reads the vocabulary of a corpus: a `hierarchy`, or `names` (id TAB name TAB description), or both.
///
/// With both, `names` are given to the labels of the hierarchy and win over the names it has; rows for other
/// labels are counted. With `names` alone they are the labels. `names` may also come with the options. Waiting for a pipe
/// ends when it is cancelled.
pub fn read_vocabulary(
    hierarchy: Option<&Path>,
    names: Option<&Path>,
    options: &ReadOptions,
    cancel: &Cancel,
) -> Result<Loaded> {
    let names = names.or(options.names.as_deref());
    let mut reading = Reading::default();
    let mut on_cycle = options.on_cycle.unwrap_or_default();
    if let Some(path) = hierarchy {
        let bytes = files::read(path, cancel)?;
        let format = options.format.unwrap_or_else(|| sniff(path, &bytes));
        on_cycle = options.on_cycle.unwrap_or(format.info().on_cycle);
        reading.hierarchy(&Source::new(&bytes, Some(path)), format, options);
    }
    if let Some(path) = names {
        let bytes = files::read(path, cancel)?;
        let source = Source::new(&bytes, Some(path));
        if hierarchy.is_some() {
            list::apply(&source, &mut reading);
        } else {
            reading.hierarchy(&source, Format::List, options);
        }
    }
    if hierarchy.is_none() && names.is_none() {
        reading.builder.problem(&Origin::default(), ProblemKind::Empty);
    }
    Ok(reading.finish(on_cycle)?)
}

/// Reads a vocabulary from memory. `options.format` and `options.names` do not count here.
pub fn parse(bytes: &[u8], format: Format, options: &ReadOptions) -> Result<Loaded, Problems> {
    let mut reading = Reading::default();
    reading.hierarchy(&Source::new(bytes, None), format, options);
    reading.finish(options.on_cycle.unwrap_or(format.info().on_cycle))
}

/// What the readers fill.
#[derive(Debug, Default)]
struct Reading {
    builder: Builder,
    warnings: Vec<Warning>,
}

impl Reading {
    fn hierarchy(&mut self, source: &Source<'_>, format: Format, options: &ReadOptions) {
        let before = self.builder.n_problems();
        (format.info().read)(source, options, self);
        if self.builder.is_empty() && self.builder.n_problems() == before {
            self.builder.problem(&source.origin(0), ProblemKind::Empty);
        }
    }

    fn finish(mut self, on_cycle: OnCycle) -> Result<Loaded, Problems> {
        self.builder.on_cycle(on_cycle);
        let (taxonomy, broken) = self.builder.build_reporting()?;
        if let Some((parent, child)) = broken.first() {
            self.warnings.push(Warning::BrokenCycles {
                count: broken.len(),
                parent: parent.clone(),
                child: child.clone(),
            });
        }
        Ok(Loaded { taxonomy, warnings: self.warnings })
    }
}

#[cfg(test)]
mod tests;
