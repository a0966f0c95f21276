//! What can go wrong with encoders, heads and training.

use std::path::PathBuf;

use cladist_core::ErrorKind;

/// The error behind another.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A failure of the core crate: files, settings, bundles.
    #[error(transparent)]
    Core(cladist_core::Error),
    /// A folder does not hold an encoder that can be used.
    #[error("encoder `{}`: {problem}", path.display())]
    Encoder {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What would help.
        remedy: Option<&'static str>,
        /// The error that says so, where there is one; `problem` has its words.
        source: Option<Cause>,
    },
    /// Another process trains in the same folder.
    #[error(
        "another training is at work in `{}`{}",
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
    /// The loss was not finite too many times in a row.
    #[error(
        "the loss is not finite at step {step}, {in_a_row} times in a row; the last batch: {}",
        ids.join(", ")
    )]
    Diverged {
        /// The step that was tried.
        step: u64,
        /// Bad batches.
        in_a_row: usize,
        /// Documents of the last one.
        ids: Vec<String>,
    },
    /// A softmax needs one label per document.
    #[error("document `{id}` has {n_labels} labels, but the task `multi-class` needs exactly one")]
    NotOneLabel {
        /// The document.
        id: String,
        /// Its labels.
        n_labels: usize,
    },
    /// A head does not fit the encoder or the labels.
    #[error("{problem}")]
    Head {
        /// What does not fit.
        problem: String,
        /// What would help.
        remedy: &'static str,
    },
    /// Parameters that were kept do not fit the network they are put back into.
    #[error("the parameters that were kept do not fit the network: {problem}")]
    Parameters {
        /// Which does not, and why.
        problem: String,
    },
    /// A study of no documents.
    #[error("there is no document to look at")]
    NothingToStudy,
    /// A checkpoint is of a run with other settings or documents.
    #[error(
        "the checkpoint `{}` is of a run with other settings or documents: {}",
        path.display(),
        differences.join(", ")
    )]
    OtherRun {
        /// The checkpoint.
        path: PathBuf,
        /// What differs: settings by key with what they were and are, or which documents.
        differences: Vec<String>,
    },
    /// A checkpoint whose bytes are as written, by a version that kept another state.
    #[error("the checkpoint `{}` was saved by another version of Cladist: {reason}", path.display())]
    OtherVersion {
        /// The checkpoint.
        path: PathBuf,
        /// What of its state is not understood.
        reason: String,
    },
}

impl Error {
    /// As an error of the core crate, for its traits; [`From`] gives the same error back.
    #[must_use]
    pub fn into_core(self) -> cladist_core::Error {
        match self {
            Self::Core(error) => error,
            other => cladist_core::Error::classifier(other.kind(), other),
        }
    }

    /// What would help, in terms of settings and files; a front end adds its own words.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Core(error) => error.remedy(),
            Self::Encoder { remedy, .. } => *remedy,
            Self::Head { remedy, .. } => Some(remedy),
            Self::Busy { .. } => Some("wait for it to end, or choose another folder"),
            Self::Diverged { .. } => Some(
                "lower `train.learning_rate` or raise `train.schedule.warmup`; the last checkpoint is kept",
            ),
            Self::NotOneLabel { .. } => Some("use the task `multi-label`"),
            Self::OtherVersion { .. } => {
                Some("train again from the start, or go on with the version that began the run")
            }
            _ => None,
        }
    }

    /// An encoder that cannot be used: where, and why.
    pub(crate) fn encoder(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::Encoder { path: path.into(), problem: problem.into(), remedy: None, source: None }
    }

    /// The same by an error, which is kept.
    pub(crate) fn encoder_by(path: impl Into<PathBuf>, source: impl Into<Cause>) -> Self {
        let source = source.into();
        Self::Encoder { path: path.into(), problem: source.to_string(), remedy: None, source: Some(source) }
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Core(error) => error.kind(),
            Self::Encoder { .. } | Self::Tokenizer { .. } => ErrorKind::Encoder,
            Self::Busy { .. } => ErrorKind::Busy,
            Self::OtherRun { .. } | Self::Head { .. } => ErrorKind::Setting,
            Self::Parameters { .. } => ErrorKind::Internal,
            Self::OtherVersion { .. } => ErrorKind::Bundle,
            Self::Diverged { .. } | Self::NotOneLabel { .. } | Self::NothingToStudy => ErrorKind::Data,
        }
    }
}

impl From<cladist_core::Error> for Error {
    fn from(error: cladist_core::Error) -> Self {
        match error {
            cladist_core::Error::Classifier { kind, source } => match source.downcast::<Self>() {
                Ok(own) => *own,
                Err(source) => Self::Core(cladist_core::Error::Classifier { kind, source }),
            },
            other => Self::Core(other),
        }
    }
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests;
