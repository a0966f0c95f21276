//! Lines that cannot be read: where, why, and what becomes of them.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A record that is not a document of its format.
#[derive(Debug)]
pub struct BadLine {
    /// The file, or a name such as `-` for a stream.
    pub path: Arc<PathBuf>,
    /// The line where the record starts, from 1; 0 if the file as a whole is meant.
    pub line: usize,
    /// The character in that line, from 1, where known.
    pub column: Option<usize>,
    /// What is wrong.
    pub kind: BadKind,
    /// The record as it stands in the file; bytes that are not UTF-8 are replaced, overlong lines are cut.
    pub content: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl std::error::Error for BadLine {}

impl BadLine {
    /// What would help.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self.kind {
            BadKind::CarriageReturns => Some("save the file with line feeds (`\\n`) at the ends of lines"),
            BadKind::Indicator { .. } | BadKind::Indicators => {
                Some("list the ids or names of the labels that apply, as in `[\"a\", \"b\"]`")
            }
            _ => None,
        }
    }

    /// Whether nothing after this line can be read, so that skipping it would hide the rest of the file.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self.kind {
            BadKind::Unreadable(_)
            | BadKind::Header(_)
            | BadKind::AbsentField { .. }
            | BadKind::Indicators
            | BadKind::Endless { .. }
            | BadKind::ArrayEnd
            | BadKind::CarriageReturns => true,
            BadKind::InvalidUtf8
            | BadKind::Nul
            | BadKind::TooLong { .. }
            | BadKind::Json(_)
            | BadKind::MissingField { .. }
            | BadKind::NullText { .. }
            | BadKind::Malformed { .. }
            | BadKind::Columns { .. }
            | BadKind::UnclosedQuote
            | BadKind::EmptyLabel
            | BadKind::Indicator { .. }
            | BadKind::DuplicateFeature { .. }
            | BadKind::OutOfRange { .. }
            | BadKind::DocumentCount { .. } => false,
        }
    }
}

impl From<BadLine> for Error {
    fn from(bad: BadLine) -> Self {
        match bad.kind {
            BadKind::Unreadable(source) => Self::io("read", &bad.path)(source),
            _ => Self::BadLine(Box::new(bad)),
        }
    }
}

/// The ways a record can be wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadKind {
    /// Bytes that are no text.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// A line without a character that can be seen.
    #[error("nothing but NUL bytes")]
    Nul,
    /// More than a record may hold.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The most that is read into memory.
        limit: usize,
    },
    /// A record that goes on and on, as binary data without line ends does.
    #[error("a record of more than {limit} bytes has no end: this is no file of records")]
    Endless {
        /// After how many bytes reading stopped.
        limit: usize,
    },
    /// A file whose lines end in carriage returns alone, so that all of them are one.
    #[error("lines end in carriage returns alone")]
    CarriageReturns,
    /// A JSON array that is cut off.
    #[error("not valid JSON: the file ends before its array does")]
    ArrayEnd,
    /// JSON that does not parse, or a field of another type than asked for.
    #[error("{0}")]
    Json(String),
    /// A document without text.
    #[error("no field `{wanted}`; there is {found}")]
    MissingField {
        /// The field asked for.
        wanted: String,
        /// The fields there are.
        found: String,
    },
    /// A field of the text that is there and says nothing.
    #[error("the text is null: field `{field}`")]
    NullText {
        /// The field.
        field: String,
    },
    /// A field that was asked for by name and is in no record of the file.
    #[error("no record has a field `{wanted}`; there is {found}")]
    AbsentField {
        /// The field asked for.
        wanted: String,
        /// Fields that there are.
        found: String,
    },
    /// A line that does not have the form its format asks for.
    #[error("expected {expected}, found `{found}`")]
    Malformed {
        /// The form.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A row with other columns than the header.
    #[error("expected {expected} columns, found {found}")]
    Columns {
        /// Columns of the header.
        expected: usize,
        /// Columns of this row.
        found: usize,
    },
    /// A quoted field without an end.
    #[error("a quote that opens in this record is never closed")]
    UnclosedQuote,
    /// A label id without a character.
    #[error("empty label id")]
    EmptyLabel,
    /// Numbers for all labels in the place of the labels that apply.
    #[error("labels are a number for each label: `{found}`")]
    Indicator {
        /// The numbers.
        found: String,
    },
    /// A file of nothing but such labels.
    #[error("the labels of every record are `[0, 1]` or `[1, 0]`: a number for each label")]
    Indicators,
    /// A header or first line that makes the whole file unreadable.
    #[error("{0}")]
    Header(String),
    /// A feature mentioned twice.
    #[error("feature {index} occurs twice")]
    DuplicateFeature {
        /// Its index.
        index: u32,
    },
    /// A number beyond what the header announced.
    #[error("{what} {index} is not below {limit}, the number in the header")]
    OutOfRange {
        /// `feature` or `label`.
        what: &'static str,
        /// The number.
        index: u64,
        /// What the header says.
        limit: u64,
    },
    /// A header that announced another number of documents.
    #[error("the header announces {announced} documents, the file has {found}")]
    DocumentCount {
        /// What the header says.
        announced: u64,
        /// Documents in the file.
        found: u64,
    },
    /// The disk or the decompressor gave up.
    #[error("cannot read: {0}")]
    Unreadable(io::Error),
}

/// What a parser knows of a bad record; the reader adds file, line and content.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) column: Option<usize>,
    pub(super) kind: BadKind,
}

impl From<BadKind> for Fault {
    fn from(kind: BadKind) -> Self {
        Self { column: None, kind }
    }
}

impl Fault {
    /// A fault at a byte of the line; the column counts characters.
    pub(super) fn at(line: &str, byte: usize, kind: BadKind) -> Self {
        let byte = byte.min(line.len());
        let column = line.char_indices().take_while(|&(n, _)| n < byte).count() + 1;
        Self { column: Some(column), kind }
    }

    /// What serde_json says of one line.
    pub(super) fn json(line: &str, error: &serde_json::Error) -> Self {
        Self::at(line, error.column().saturating_sub(1), BadKind::Json(json_message(error)))
    }
}

/// The message without its position, which the reader reports in its own way.
pub(super) fn json_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
    if error.is_data() { message.to_owned() } else { format!("not valid JSON: {message}") }
}

/// What becomes of bad lines.
pub enum BadLines<'a> {
    /// The first one ends the reading with an error.
    Stop,
    /// Each one is handed over, counted as rejected, and reading goes on.
    Skip(&'a mut dyn FnMut(BadLine) -> Result<()>),
}

impl BadLines<'_> {
    pub(crate) fn take(&mut self, bad: BadLine) -> Result<()> {
        match self {
            Self::Skip(sink) if !bad.is_fatal() => sink(bad),
            _ => Err(bad.into()),
        }
    }
}

/// One line of `rejects.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    /// The file the record came from.
    pub path: String,
    /// The line where it starts.
    pub line: usize,
    /// The character, where known.
    pub column: Option<usize>,
    /// What is wrong.
    pub reason: String,
    /// The record itself.
    pub content: String,
}

impl From<&BadLine> for Reject {
    fn from(bad: &BadLine) -> Self {
        Self {
            path: bad.path.display().to_string(),
            line: bad.line,
            column: bad.column,
            reason: bad.kind.to_string(),
            content: bad.content.clone(),
        }
    }
}

impl Reject {
    /// Writes the record as one line of JSON.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut out, self)?;
        out.write_all(b"\n")
    }
}

/// How many records a reader met; `read = kept + rejected + dropped` always holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Records in the file; blank lines and headers are none.
    pub read: usize,
    /// Records that became documents.
    pub kept: usize,
    /// Records that could not be read.
    pub rejected: usize,
    /// Documents left out on request: by `drop_field`, or for want of the language asked for.
    pub dropped: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.kept += other.kept;
        self.rejected += other.rejected;
        self.dropped += other.dropped;
    }
}
