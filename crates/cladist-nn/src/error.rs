//! What can go wrong with encoders, heads and training.

use std::path::PathBuf;

/// A failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A failure of the core crate: files, settings, bundles.
    #[error(transparent)]
    Core(#[from] cladist_core::Error),
    /// A folder does not hold an encoder that can be used.
    #[error("encoder `{}`: {problem}", path.display())]
    Encoder {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it, and what would help.
        problem: String,
    },
    /// Another process trains in the same folder.
    #[error(
        "another training is at work in `{}`{}\nhint: wait for it to end, or choose another folder",
        folder.display(),
        process.map(|id| format!(": process {id}")).unwrap_or_default()
    )]
    Busy {
        /// The run folder.
        folder: PathBuf,
        /// The process, where the lock file tells.
        process: Option<u32>,
    },
    /// A tokenizer cannot be made, or cannot tokenise.
    #[error("tokenizer: {problem}")]
    Tokenizer {
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    /// The process exit code, as [`cladist_core::Error::exit_code`] has it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Core(error) => error.exit_code(),
            Self::Encoder { .. } | Self::Tokenizer { .. } => 65,
            Self::Busy { .. } => 75,
        }
    }
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
