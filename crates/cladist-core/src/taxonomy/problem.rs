//! What can be wrong with a taxonomy, and where.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a statement about a label was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file, if it came from one. Shared: a large file makes many statements.
    pub path: Option<Arc<PathBuf>>,
    /// The line, from 1; 0 if unknown.
    pub line: usize,
}

impl Origin {
    /// A line of a file.
    #[must_use]
    pub fn new(path: &Arc<PathBuf>, line: usize) -> Self {
        Self { path: Some(Arc::clone(path)), line }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.line) {
            (Some(path), 0) => write!(f, "{}", path.display()),
            (Some(path), line) => write!(f, "{}:{line}", path.display()),
            (None, 0) => f.write_str("taxonomy"),
            (None, line) => write!(f, "line {line}"),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it was found.
    pub origin: Origin,
    /// What it is.
    pub kind: ProblemKind,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.kind)
    }
}

/// The ways a taxonomy can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Labels above each other; the first is repeated at the end.
    #[error("the labels form a cycle: {}", path_text(.0))]
    Cycle(Vec<String>),
    /// A parent that no line declares.
    #[error("unknown parent `{parent}` of `{child}`")]
    UnknownParent {
        /// The name that nothing declares.
        parent: String,
        /// The label that names it.
        child: String,
    },
    /// The artificial root below a label.
    #[error("the root, `ROOT`, is a child of `{parent}` here; it is no label")]
    RootAsChild {
        /// The label above it.
        parent: String,
    },
    /// An id declared twice.
    #[error("duplicate id `{id}`, first declared at {first}")]
    DuplicateId {
        /// The id.
        id: String,
        /// Its first declaration.
        first: Origin,
    },
    /// Two different names for one id.
    #[error("`{id}` is called `{name}` here and `{first}` before")]
    ConflictingName {
        /// The id.
        id: String,
        /// The name in this line.
        name: String,
        /// The name before.
        first: String,
    },
    /// A line that does not have the form its format asks for.
    #[error("expected {expected}, found {found}")]
    Malformed {
        /// The form.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// Something the parser of the file's language cannot read.
    #[error("invalid {language}: {message}")]
    Syntax {
        /// `JSON`, `Turtle`, `RDF/XML`.
        language: &'static str,
        /// What the parser says.
        message: String,
    },
    /// Bytes that are no text.
    #[error("not UTF-8 at byte {byte} of the line")]
    NotUtf8 {
        /// The first such byte, from 1.
        byte: usize,
    },
    /// An id without a character.
    #[error("empty label id")]
    EmptyId,
    /// A file without a label.
    #[error("no label found in the file")]
    Empty,
}

fn path_text(path: &[String]) -> String {
    const SHOWN: usize = 12;
    if path.len() <= SHOWN {
        return path.join(" → ");
    }
    let (head, tail) = (&path[..SHOWN - 2], &path[path.len() - 1]);
    format!("{} → … ({} more) → {tail}", head.join(" → "), path.len() - SHOWN + 1)
}

/// Every problem of a taxonomy, in file order where known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        for (n, problem) in self.0.iter().take(SHOWN).enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            1 => f.write_str("\n… and 1 more problem"),
            more => write!(f, "\n… and {more} more problems"),
        }
    }
}

impl std::error::Error for Problems {}
