//! What can be wrong with a command line or a configuration, and which exit code says so.

use std::path::PathBuf;

use cladist_core::ErrorKind;

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not TOML.
    #[error("`{}` is not valid TOML: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The parser's words.
        reason: String,
    },
    /// A `--set` without `=`.
    #[error("`--set {0}` has no value\nhint: write `--set key=value`, such as `--set train.seed=7`")]
    Argument(String),
    /// A key with an empty part.
    #[error("`{0}` is not the name of a setting")]
    Key(String),
    /// A key below something that is not a section.
    #[error("`{key}` cannot be set: what stands above it is a value, not a section")]
    NotASection {
        /// The key.
        key: String,
    },
    /// A value or key that the head's settings do not have.
    #[error("unusable setting: {0}\nhint: `--print-config` shows every setting of the head")]
    Refused(String),
    /// A head that is not in the table.
    #[error("unknown head `{name}`\nhint: one of {known}")]
    UnknownHead {
        /// As typed.
        name: String,
        /// All heads.
        known: String,
    },
    /// A choice that is not in a table.
    #[error("unknown {what} `{name}`\nhint: one of {known}")]
    UnknownChoice {
        /// What was chosen: `corpus format`, …
        what: &'static str,
        /// As typed.
        name: String,
        /// All choices.
        known: String,
    },
    /// A flag that only makes sense with another.
    #[error("{0}")]
    Missing(String),
    /// A corpus that did not pass its check.
    #[error("the corpus has problems")]
    Unclean,
    /// A run folder that is not there.
    #[error("{0}")]
    NoRun(String),
    /// A place that is taken.
    #[error("`{}` already exists\nhint: choose another place, or pass `--overwrite`", .0.display())]
    Exists(PathBuf),
}

/// The exit code of a kind of error, of the sysexits family: 65 bad data, 66 no input, 74 disk, 75 try again, 78 settings.
fn code_of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Data | ErrorKind::Bundle | ErrorKind::Encoder => 65,
        ErrorKind::NotFound => 66,
        ErrorKind::Io => 74,
        ErrorKind::Busy | ErrorKind::Cancelled => 75,
        ErrorKind::Setting => 78,
        _ => 70,
    }
}

/// The exit code of an error: the first cause that has one decides.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    };
    // Whoever reads has seen enough.
    if error.chain().any(broken_pipe) {
        return 0;
    }
    for cause in error.chain() {
        if let Some(core) = cause.downcast_ref::<cladist_core::Error>() {
            return code_of(core.kind());
        }
        if let Some(neural) = cause.downcast_ref::<cladist_nn::Error>() {
            return code_of(neural.kind());
        }
        if let Some(config) = cause.downcast_ref::<ConfigError>() {
            return match config {
                ConfigError::NoRun(_) => 66,
                ConfigError::Unclean => 65,
                _ => 78,
            };
        }
        if cause.is::<std::io::Error>() {
            return 74;
        }
    }
    70
}
