//! The bytes of a file, as lines with their numbers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::taxonomy::{Builder, Origin, ProblemKind};

/// A file in memory, or bytes without a name.
#[derive(Debug)]
pub(super) struct Source<'a> {
    /// Without a byte order mark.
    pub(super) bytes: &'a [u8],
    path: Option<Arc<PathBuf>>,
}

impl<'a> Source<'a> {
    pub(super) fn new(bytes: &'a [u8], path: Option<&Path>) -> Self {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        Self { bytes, path: path.map(|path| Arc::new(path.to_owned())) }
    }

    /// A line of this file; 0 is the file as a whole.
    pub(super) fn origin(&self, line: usize) -> Origin {
        Origin { path: self.path.clone(), line }
    }

    /// The lines that are not blank, with their numbers. A line that is not UTF-8 becomes a problem.
    pub(super) fn lines(&self, builder: &mut Builder) -> Vec<(usize, &'a str)> {
        let mut lines = Vec::new();
        for (n, line) in self.bytes.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match std::str::from_utf8(line) {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => lines.push((n + 1, line)),
                Err(error) => {
                    let kind = ProblemKind::NotUtf8 { byte: error.valid_up_to() + 1 };
                    builder.problem(&self.origin(n + 1), kind);
                }
            }
        }
        lines
    }
}

/// Says that a line has the wrong number of columns.
pub(super) fn wrong_columns(expected: &str, line: &str) -> ProblemKind {
    const SHOWN: usize = 60;
    let n = line.split('\t').count();
    let start: String = line.chars().take(SHOWN).collect();
    let more = if start.len() < line.len() { "…" } else { "" };
    let columns = if n == 1 { "column" } else { "columns" };
    ProblemKind::Malformed { expected: expected.to_owned(), found: format!("{n} {columns}: `{start}{more}`") }
}
