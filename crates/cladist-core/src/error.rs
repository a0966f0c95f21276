//! One error type for the crate; each module keeps its own variants beside the code that can fail.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::bundle::BundleError;
use crate::files::{FETCH_LFS, NotText};

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as a front end needs to know it: an exit code, a status of HTTP, an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file or a document does not hold what it should.
    Data,
    /// A file or folder is not there.
    NotFound,
    /// A bundle or run folder is damaged, incomplete or not ours.
    Bundle,
    /// A setting has a value that makes no sense, or none that fits the others.
    Setting,
    /// An encoder or tokenizer cannot be used.
    Encoder,
    /// The operating system refused to read, to write or to start a thread.
    Io,
    /// Another process is at work: try again.
    Busy,
    /// The work was asked to stop.
    Cancelled,
    /// A fault of this program.
    Internal,
}

/// Everything that can go wrong in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried: `read`, `write`, `create`, …
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A taxonomy file is unusable.
    #[error(transparent)]
    Taxonomy(#[from] crate::taxonomy::Problems),
    /// A taxonomy cannot be written in the format asked for.
    #[error(transparent)]
    TaxonomyWrite(#[from] crate::taxonomy::WriteError),
    /// A bundle or run folder is damaged, incomplete or not ours.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A setting has a value that makes no sense.
    #[error("`{key}` must be {expected}: {value}")]
    Setting {
        /// The key, with its section.
        key: Cow<'static, str>,
        /// What would do.
        expected: Cow<'static, str>,
        /// What was given.
        value: String,
    },
    /// Two lists that speak of the same documents differ in length.
    #[error("{n_left} {left} but {n_right} {right}")]
    Mismatch {
        /// What the first list holds.
        left: &'static str,
        /// Its length.
        n_left: usize,
        /// What the second list holds.
        right: &'static str,
        /// Its length.
        n_right: usize,
    },
    /// Two runs to be compared were judged by different gold labels.
    #[error("the runs have different gold labels for document {document}")]
    DifferentGold {
        /// The first such document, from 1.
        document: usize,
    },
    /// A setting names a label that the taxonomy does not have.
    #[error("unknown label in {place}: `{id}`")]
    UnknownLabel {
        /// Where it is named.
        place: &'static str,
        /// The name.
        id: String,
    },
    /// No term of the training documents passes the feature settings.
    #[error("no feature is left: no term is in {min_df} training documents")]
    NoFeatures {
        /// The setting.
        min_df: usize,
    },
    /// No training document has both a feature and a label.
    #[error(
        "there is nothing to learn from: none of the {n_documents} training documents has text and a label"
    )]
    NothingToLearn {
        /// How many there were.
        n_documents: usize,
    },
    /// A corpus file has a record that cannot be read.
    #[error(transparent)]
    BadLine(Box<crate::readers::BadLine>),
    /// A document does not fit the format it is to be written in.
    #[error(transparent)]
    Unwritable(#[from] Box<crate::readers::Unwritable>),
    /// A corpus is incomplete, or breaks a policy.
    #[error(transparent)]
    Corpus(#[from] crate::corpus::CorpusError),
    /// A classifier of another crate failed; its own error is the source.
    #[error("{source}")]
    Classifier {
        /// What kind of error it is there.
        kind: ErrorKind,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The work was asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Wraps an I/O error with what was tried and where: `.map_err(Error::io("read", path))`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        // A reader of this crate that was asked to stop can only say so as an error of input.
        move |source| source.downcast::<Self>().unwrap_or_else(|source| Self::Io { action, path, source })
    }

    /// A setting that makes no sense: its key with section, what would do, and what was given.
    pub fn setting(
        key: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
        value: impl ToString,
    ) -> Self {
        Self::Setting { key: key.into(), expected: expected.into(), value: value.to_string() }
    }

    /// The failure of a classifier that another crate implements, for [`crate::Classifier`].
    pub fn classifier(kind: ErrorKind, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Classifier { kind, source: Box::new(source) }
    }

    /// What would help, in terms of settings and files; a front end adds its own words.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Io { source, .. } => source.get_ref()?.downcast_ref::<NotText>()?.remedy(),
            Self::Bundle(BundleError::LfsPointer(_)) => Some(FETCH_LFS),
            Self::Bundle(BundleError::Newer { .. }) => Some("update Cladist to the version that wrote it"),
            Self::NoFeatures { .. } => Some("lower `features.min_df` or give more documents"),
            Self::BadLine(line) => line.remedy(),
            Self::Corpus(corpus) => corpus.remedy(),
            _ => None,
        }
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        use io::ErrorKind as Io;
        match self {
            Self::Io { action: "read", source, .. } => match source.kind() {
                Io::NotFound | Io::IsADirectory | Io::NotADirectory => ErrorKind::NotFound,
                // A file that is cut off or not what it says it is.
                Io::UnexpectedEof | Io::InvalidData | Io::InvalidInput => ErrorKind::Data,
                _ => ErrorKind::Io,
            },
            Self::Io { .. } | Self::TaxonomyWrite(crate::taxonomy::WriteError::Io(_)) => ErrorKind::Io,
            Self::Classifier { kind, .. } => *kind,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Setting { .. } | Self::UnknownLabel { .. } => ErrorKind::Setting,
            Self::Bundle(_) => ErrorKind::Bundle,
            Self::Taxonomy(_)
            | Self::TaxonomyWrite(_)
            | Self::Mismatch { .. }
            | Self::DifferentGold { .. }
            | Self::NoFeatures { .. }
            | Self::NothingToLearn { .. }
            | Self::BadLine(_)
            | Self::Unwritable(_)
            | Self::Corpus(_) => ErrorKind::Data,
        }
    }
}

#[cfg(test)]
mod tests;
