//! One error type for the crate; each module keeps its own variants beside the code that can fail.

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
    /// A bundle or run folder is damaged, incomplete or not ours.
    #[error(transparent)]
    Bundle(#[from] crate::bundle::BundleError),
    /// A setting has a value without sense.
    #[error("`{key}` cannot be {value}: {expected}")]
    Setting {
        /// The key as written in a configuration: `linear.c`.
        key: &'static str,
        /// The value given.
        value: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// No training document has both a feature and a label.
    #[error(
        "there is nothing to learn from: none of the {n_documents} training documents has text and a label"
    )]
    NothingToLearn {
        /// How many there were.
        n_documents: usize,
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

    /// A setting that was refused; `expected` says what would be accepted.
    pub(crate) fn setting(key: &'static str, value: impl ToString, expected: &'static str) -> Self {
        Self::Setting { key, value: value.to_string(), expected }
    }

    /// The process exit code of the sysexits family: 65 bad data, 74 disk, 75 try again.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => 66,
            Self::Io { .. } => 74,
            Self::Cancelled => 75,
            _ => 65,
        }
    }
}
