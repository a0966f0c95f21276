//! Writing, and what a format cannot hold.

use std::borrow::Cow;
use std::io::Write;

use super::Format;
use crate::taxonomy::{LabelId, Taxonomy};

/// Why a taxonomy cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A format that is only read.
    #[error("cannot write `{0}`: this format is only read")]
    ReadOnly(Format),
    /// An id with a character that separates ids in the format.
    #[error(
        "cannot write the id {id:?} as `{format}`: it is blank, has a tab or a line break, or starts with a byte order mark"
    )]
    Unwritable {
        /// The id.
        id: String,
        /// The format.
        format: Format,
    },
    /// A label that is called as the root is.
    #[error("cannot write as `{0}`: a label is called `ROOT`, which names the root")]
    NoRoot(Format),
    /// The operating system refused.
    #[error("cannot write the taxonomy: {0}")]
    Io(#[from] std::io::Error),
}

/// Writes a taxonomy in a format that has a writer. Only `json` keeps everything; in the line formats tabs and line
/// breaks in names and descriptions become spaces.
pub fn write(taxonomy: &Taxonomy, format: Format, out: &mut dyn Write) -> Result<(), WriteError> {
    let writer = format.info().write.ok_or(WriteError::ReadOnly(format))?;
    writer(taxonomy, out)
}

/// The id, if it fits between tabs and line breaks.
pub(super) fn plain_id(taxonomy: &Taxonomy, label: LabelId, format: Format) -> Result<&str, WriteError> {
    let id = taxonomy.id(label);
    // At the start of a file a byte order mark would be taken for one, and not for an id.
    if id.contains(['\t', '\n', '\r']) || id.trim().is_empty() || id.starts_with('\u{feff}') {
        return Err(WriteError::Unwritable { id: id.to_owned(), format });
    }
    Ok(id)
}

pub(super) fn plain_text(text: &str) -> Cow<'_, str> {
    if text.contains(['\t', '\n', '\r']) {
        Cow::Owned(text.replace("\r\n", " ").replace(['\t', '\n', '\r'], " "))
    } else {
        Cow::Borrowed(text)
    }
}
