//! Writing documents in a format they can be read from again.
//!
//! Where a format has no way to write something, this is the rule:
//!
//! | format | ids | white space in the text | white space in a label |
//! |---|---|---|---|
//! | jsonl, csv, tsv-columns | kept | kept | kept (csv: not at the ends, no separator) |
//! | hiagm | kept | runs become one space | kept |
//! | libmultilabel | kept | tabs and new lines become spaces | refused, or `_` if asked |
//! | annif-tsv, fasttext | lost | tabs and new lines become spaces | refused, or `_` if asked |
//! | xmc, libsvm | lost | features only | refused |

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Format, FormatInfo};
use crate::document::Document;
use crate::error::{Error, Result};

/// Appends one record.
pub(super) type Write1 = fn(&Document, &WriteOptions, &mut Vec<u8>) -> Result<(), Reason>;

/// How to write a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteOptions {
    /// Between the labels in a cell of csv and tsv-columns.
    pub label_separator: String,
    /// Before each label in fastText files.
    pub label_prefix: String,
    /// Write `_` for white space in label ids where the format cannot hold it, rather than refuse the document.
    pub replace_spaces: bool,
    /// The numbers in the header of an xmc file, which must be known before the first document.
    pub shape: Option<Shape>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        let read = super::ReadOptions::default();
        Self {
            label_separator: read.label_separator,
            label_prefix: read.label_prefix,
            replace_spaces: false,
            shape: None,
        }
    }
}

/// The header of an xmc file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    /// Documents in the file.
    pub n_documents: u64,
    /// Feature indices are below this.
    pub n_features: u64,
    /// Label numbers are below this.
    pub n_labels: u64,
}

impl Shape {
    /// Counts one more document, for a first pass over a corpus. Labels that are no numbers do not count.
    pub fn add(&mut self, document: &Document) {
        self.n_documents += 1;
        if let Some(&(last, _)) = document.features.as_deref().and_then(<[_]>::last) {
            self.n_features = self.n_features.max(u64::from(last) + 1);
        }
        for number in document.labels.iter().filter_map(|label| label.parse::<u64>().ok()) {
            self.n_labels = self.n_labels.max(number.saturating_add(1));
        }
    }
}

/// A document that a format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("document `{id}` cannot be written as {format}: {reason}")]
pub struct Unwritable {
    /// The document.
    pub id: String,
    /// The format.
    pub format: Format,
    /// Why not.
    pub reason: Reason,
}

/// Why a document does not fit a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Features where a format wants text.
    #[error("it has features, not text; xmc and libsvm hold features")]
    Features,
    /// Text where a format wants features.
    #[error("it has text, not features")]
    NoFeatures,
    /// Neither text nor labels, in a format where that is a blank line.
    #[error("it has neither text nor labels, and a blank line is no document")]
    Blank,
    /// An id that would break the line.
    #[error("its id is empty or holds a tab or a line break")]
    Id,
    /// A label that would read as something else.
    #[error("label `{label}` is empty or holds {problem}")]
    Label {
        /// The label.
        label: String,
        /// What it must not hold.
        problem: &'static str,
    },
    /// A label that is no number, in a format of numbers.
    #[error("label `{label}` is not a number below {limit}")]
    LabelNumber {
        /// The label.
        label: String,
        /// Labels in the header.
        limit: u64,
    },
    /// Text that would read as a label.
    #[error("a word of its text starts with `{0}` and would read as a label")]
    PrefixInText(String),
    /// A feature that is no number.
    #[error("feature {0} is not finite")]
    NotFinite(u32),
    /// The header of an xmc file does not cover the document.
    #[error("the header does not cover it")]
    Shape,
    /// JSON that cannot be written.
    #[error("{0}")]
    Json(String),
    /// A format that only reads.
    #[error("the format can only be read")]
    ReadOnly,
}

/// Writes documents one by one; memory is bounded by one document.
pub struct Writer<W: Write> {
    out: W,
    path: PathBuf,
    info: &'static FormatInfo,
    options: WriteOptions,
    record: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a file; `path` stands for it in messages. xmc needs [`WriteOptions::shape`].
    pub fn new(format: Format, mut out: W, path: &Path, options: &WriteOptions) -> Result<Self> {
        let header = match format {
            Format::Csv => "id,labels,text\n".to_owned(),
            Format::TsvColumns => "id\tlabels\ttext\n".to_owned(),
            Format::Xmc => {
                let Some(Shape { n_documents, n_features, n_labels }) = options.shape else {
                    let reason = Reason::Shape;
                    return Err(Box::new(Unwritable { id: String::new(), format, reason }).into());
                };
                format!("{n_documents} {n_features} {n_labels}\n")
            }
            _ => String::new(),
        };
        out.write_all(header.as_bytes()).map_err(Error::io("write", path))?;
        let (info, options) = (format.info(), options.clone());
        Ok(Self { out, path: path.to_owned(), info, options, record: Vec::new() })
    }

    /// Writes one document, or nothing of it if the format cannot hold it.
    pub fn write(&mut self, document: &Document) -> Result<()> {
        self.record.clear();
        let write = self.info.write.unwrap_or(|_, _, _| Err(Reason::ReadOnly));
        write(document, &self.options, &mut self.record).map_err(|reason| {
            let id = document.id.clone();
            Error::from(Box::new(Unwritable { id, format: self.info.format, reason }))
        })?;
        self.out.write_all(&self.record).map_err(Error::io("write", &self.path))
    }

    /// Flushes and hands back what was written to.
    pub fn finish(mut self) -> Result<W> {
        self.out.flush().map_err(Error::io("write", &self.path))?;
        Ok(self.out)
    }
}

/// The start of a line, for messages.
pub(super) fn excerpt(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Names of fields or columns, for messages.
pub(super) fn quoted(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) }
}

fn breaks_line(c: char) -> bool {
    // A byte order mark at the start of a file would vanish on reading.
    matches!(c, '\t' | '\n' | '\r' | '\u{feff}')
}

/// The text with a space for each tab and line break.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(breaks_line) { Cow::Owned(text.replace(breaks_line, " ")) } else { Cow::Borrowed(text) }
}

/// An id that can stand in a column of its own.
pub(super) fn plain_id(id: &str) -> Result<&str, Reason> {
    if id.trim().is_empty() || id.contains(breaks_line) { Err(Reason::Id) } else { Ok(id) }
}

/// Labels that a reader would not refuse.
pub(super) fn full_labels(labels: &[String]) -> Result<(), Reason> {
    match labels.iter().find(|label| label.trim().is_empty()) {
        Some(label) => Err(Reason::Label { label: label.clone(), problem: "nothing but white space" }),
        None => Ok(()),
    }
}

/// A label that can stand among others, separated by spaces.
pub(super) fn spaceless<'a>(label: &'a str, options: &WriteOptions) -> Result<Cow<'a, str>, Reason> {
    let spaced = |c: char| c.is_whitespace() || c == '\u{feff}';
    if label.is_empty() || (label.contains(spaced) && !options.replace_spaces) {
        return Err(Reason::Label { label: label.to_owned(), problem: "white space" });
    }
    Ok(if label.contains(spaced) { Cow::Owned(label.replace(spaced, "_")) } else { Cow::Borrowed(label) })
}
