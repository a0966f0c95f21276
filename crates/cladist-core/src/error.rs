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
    /// A corpus file has a record that cannot be read.
    #[error(transparent)]
    BadLine(Box<crate::readers::BadLine>),
    /// A document does not fit the format it is to be written in.
    #[error(transparent)]
    Unwritable(#[from] Box<crate::readers::Unwritable>),
    /// A corpus is incomplete, or breaks a policy.
    #[error(transparent)]
    Corpus(#[from] crate::corpus::CorpusError),
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
