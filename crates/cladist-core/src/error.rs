//! One error type for the crate; each module keeps its own variants beside the code that can fail.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

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
        source: std::io::Error,
    },
    /// A taxonomy file is unusable.
    #[error(transparent)]
    Taxonomy(#[from] crate::taxonomy::Problems),
    /// A taxonomy cannot be written in the format asked for.
    #[error(transparent)]
    TaxonomyWrite(#[from] crate::taxonomy::WriteError),
    /// A bundle or run folder is damaged, incomplete or not ours.
    #[error(transparent)]
    Bundle(#[from] crate::bundle::BundleError),
    /// A setting has a value that makes no sense.
    #[error("`{key}` must be {expected}: {value}")]
    Setting {
        /// The key, with its section.
        key: &'static str,
        /// What would do.
        expected: &'static str,
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
    /// A file or setting names a label that the taxonomy does not have.
    #[error("unknown label in {place}: `{id}`")]
    UnknownLabel {
        /// Where it is named.
        place: &'static str,
        /// The name.
        id: String,
    },
    /// No term of the training documents passes the feature settings.
    #[error(
        "no feature is left: no term is in {min_df} training documents\nhint: lower `features.min_df` or give more documents"
    )]
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
    /// A model of another crate cannot be used.
    #[error("the model cannot be used: {reason}")]
    Model {
        /// Why.
        reason: String,
    },
    /// The work was asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Wraps an I/O error with what was tried and where: `.map_err(Error::io("read", path))`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// A setting that makes no sense: its key with section, what would do, and what was given.
    pub fn setting(key: &'static str, expected: &'static str, value: impl ToString) -> Self {
        Self::Setting { key, expected, value: value.to_string() }
    }

    /// The process exit code of the sysexits family: 65 bad data, 66 no input, 74 disk, 75 try again, 78 settings.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io { action: "read", source, .. } => match source.kind() {
                ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory => 66,
                // A file that is cut off or not what it says it is.
                ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => 65,
                _ => 74,
            },
            Self::Io { .. } | Self::TaxonomyWrite(crate::taxonomy::WriteError::Io(_)) => 74,
            Self::Cancelled => 75,
            Self::Setting { .. } => 78,
            _ => 65,
        }
    }
}
