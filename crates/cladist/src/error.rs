//! What can go wrong when models are opened, used and trained, and of what kind it is.

use std::path::{Path, PathBuf};

use cladist_core::ErrorKind;
use cladist_core::corpus::SplitName;

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong in this crate. [`Error::kind`] says what a program should make of it; the sources of
/// other crates are kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Corpora, taxonomies, bundles, metrics, linear models.
    #[error(transparent)]
    Core(#[from] cladist_core::Error),
    /// Encoders, heads and their training.
    #[error(transparent)]
    Network(cladist_nn::Error),
    /// A settings file is not TOML; the source says where and why.
    #[error("`{}` is not valid TOML", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A setting without a value.
    #[error("`{0}` has no value: settings are written `key=value`")]
    NoValue(String),
    /// A key with an empty part.
    #[error("`{0}` is not the name of a setting")]
    Key(String),
    /// A value that holds more than one line: what follows the first would be lost.
    #[error("the value of `{0}` has more than one line")]
    Lines(String),
    /// A key below something that is not a section.
    #[error("`{0}` cannot be set: what stands above it is a value, not a section")]
    NotASection(String),
    /// A value or key that the head's settings do not have.
    #[error("unusable setting{}: {problem}", named(.key.as_deref()))]
    Refused {
        /// The key with its section, or the section alone; none where the settings as a whole are meant.
        key: Option<String>,
        /// What is wrong.
        problem: String,
    },
    /// A setting that has no effect, or that is missing, together with the others.
    #[error("`{key}` {problem}")]
    Setting {
        /// The key, with its section.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// A choice that is not in a table.
    #[error("unknown {what} `{name}`: one of {known}")]
    UnknownChoice {
        /// What was chosen: `head`, `split`, `corpus format`, …
        what: &'static str,
        /// As given.
        name: String,
        /// All choices.
        known: String,
    },
    /// A head on an encoder without one.
    #[error("the head `{head}` needs an encoder")]
    NoEncoder {
        /// The head.
        head: &'static str,
    },
    /// A run folder or bundle that is not there.
    #[error("`{}` does not exist", .0.display())]
    NoRun(PathBuf),
    /// A folder without an unfinished run.
    #[error("`{}` has no run to resume", .0.display())]
    NothingToResume(PathBuf),
    /// An unfinished run was begun with other settings than it is to go on with.
    #[error("the run in `{}` was begun with other settings: {difference}", path.display())]
    OtherSettings {
        /// The run folder.
        path: PathBuf,
        /// The first setting that differs, with both values.
        difference: String,
    },
    /// A place that is taken.
    #[error("`{}` already exists", .0.display())]
    Exists(PathBuf),
    /// A place with a run that can go on.
    #[error("`{}` has an unfinished run", .0.display())]
    Unfinished(PathBuf),
    /// A place that holds something else than a run, which is not replaced.
    #[error("`{}` is not a run folder, so it is not replaced", .0.display())]
    NotARun(PathBuf),
    /// A run folder with files that no training wrote, which are not removed.
    #[error("`{}` holds what is not part of its run: `{files}`", path.display())]
    Foreign {
        /// The run folder.
        path: PathBuf,
        /// The files.
        files: String,
    },
    /// Training has nowhere to write to.
    #[error("no run folder given")]
    NoFolder,
    /// Neither files nor documents were given.
    #[error("no corpus given")]
    NoCorpus,
    /// A split that is needed for a purpose.
    #[error("the corpus has no {split} split {purpose}")]
    NoSplit {
        /// The split.
        split: SplitName,
        /// What it is needed for.
        purpose: &'static str,
    },
    /// A model reads text, and the documents are features, or the other way round.
    #[error("{model} reads {reads}, but the documents are {given}")]
    Documents {
        /// Which model.
        model: String,
        /// `text` or `features`.
        reads: &'static str,
        /// The other.
        given: &'static str,
    },
    /// An ensemble of fewer than two.
    #[error("an ensemble has at least two members")]
    TooFewMembers,
    /// A member that was trained on what members are weighed on.
    #[error("`{}` was trained on dev, on which ensemble weights are fitted", .0.display())]
    MemberSawDev(PathBuf),
    /// A member that held out other documents for dev than those on which the ensemble is weighed.
    #[error("`{}` held out other documents for dev than the ensemble does", .0.display())]
    MemberHeldOut(PathBuf),
    /// A setting that parameters depend on.
    #[error(
        "`{change}` cannot be changed after training: only settings of `{head}`, `tokens` and `shortlist` can, except `shortlist.match_only`"
    )]
    Fixed {
        /// As given.
        change: String,
        /// The model's head.
        head: &'static str,
    },
    /// An ensemble has no settings once its weights are fitted.
    #[error(
        "`{0}` cannot be changed after training: an ensemble has no settings but those its weights were fitted by"
    )]
    FixedEnsemble(String),
    /// New labels for a model that cannot score them.
    #[error("`{head}` has an output for each label of its training, and none for new ones")]
    NoNewLabels {
        /// The head.
        head: &'static str,
    },
    /// There is nothing to add.
    #[error("the model knows all {labels} labels already: there is nothing to add")]
    NothingToAdd {
        /// Labels of the vocabulary.
        labels: usize,
    },
    /// Levels that the taxonomy does not have.
    #[error("levels begin at {first}, but the taxonomy has {n_levels} levels")]
    NoSuchLevel {
        /// The first level asked for.
        first: usize,
        /// The depth of the taxonomy.
        n_levels: usize,
    },
    /// What a model is asked for is not in it.
    #[error("`{head}` {problem}")]
    Unsupported {
        /// The model's head.
        head: &'static str,
        /// What it cannot do.
        problem: &'static str,
    },
    /// Two models that are compared read different documents, labels or gold.
    #[error("the runs {0}")]
    NotComparable(&'static str),
    /// A number of threads that makes no sense.
    #[error("cannot start {n} threads: choose 1 to {most}")]
    Threads {
        /// How many.
        n: usize,
        /// The most that can be asked for.
        most: usize,
    },
    /// The operating system starts no more threads.
    #[error("cannot start {}: {source}", threads(*n))]
    NoThreads {
        /// How many.
        n: usize,
        /// The system's answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Training was stopped; the run folder can be resumed.
    #[error("training was stopped; the run in `{}` can be resumed", .0.display())]
    Stopped(PathBuf),
    /// A file of a run folder that should be ours is damaged.
    #[error("cannot use `{}`: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
        /// The error that says so, where there is one; `reason` has its words.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A fault of this crate: what it holds cannot be written.
    #[error("cannot serialise {what}")]
    Serialise {
        /// What.
        what: &'static str,
        /// The serialiser's words.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// What a program should make of it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Core(error) => error.kind(),
            Self::Network(error) => error.kind(),
            Self::NoRun(_) | Self::NothingToResume(_) => ErrorKind::NotFound,
            Self::Damaged { .. } => ErrorKind::Bundle,
            Self::NoThreads { .. } => ErrorKind::Io,
            Self::Stopped(_) => ErrorKind::Cancelled,
            Self::Serialise { .. } => ErrorKind::Internal,
            Self::Syntax { .. }
            | Self::NoValue(_)
            | Self::Key(_)
            | Self::Lines(_)
            | Self::NotASection(_)
            | Self::Refused { .. }
            | Self::Setting { .. }
            | Self::UnknownChoice { .. }
            | Self::NoEncoder { .. }
            | Self::OtherSettings { .. }
            | Self::Exists(_)
            | Self::Unfinished(_)
            | Self::NotARun(_)
            | Self::Foreign { .. }
            | Self::NoFolder
            | Self::NoCorpus
            | Self::NoSplit { .. }
            | Self::Documents { .. }
            | Self::TooFewMembers
            | Self::MemberSawDev(_)
            | Self::MemberHeldOut(_)
            | Self::Fixed { .. }
            | Self::FixedEnsemble(_)
            | Self::NoNewLabels { .. }
            | Self::NothingToAdd { .. }
            | Self::NoSuchLevel { .. }
            | Self::Unsupported { .. }
            | Self::NotComparable(_)
            | Self::Threads { .. } => ErrorKind::Setting,
        }
    }

    /// What would help, in terms of settings and files, where the crates below know; a front end adds its own words.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Core(error) => error.remedy(),
            Self::Network(error) => error.remedy(),
            _ => None,
        }
    }

    /// Whether work ended because it was asked to.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.kind() == ErrorKind::Cancelled
    }

    /// A setting that does not go together with the others.
    pub(crate) fn setting(key: &str, problem: impl Into<String>) -> Self {
        Self::Setting { key: key.to_owned(), problem: problem.into() }
    }

    /// A file of a run folder that does not say what it should; the error is kept.
    #[must_use]
    pub fn damaged(path: &Path, error: serde_json::Error) -> Self {
        Self::Damaged { path: path.to_owned(), reason: error.to_string(), source: Some(error.into()) }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let wrap = cladist_core::Error::io(action, path);
        move |source| Self::Core(wrap(source))
    }
}

fn named(key: Option<&str>) -> String {
    key.map(|key| format!(" `{key}`")).unwrap_or_default()
}

fn threads(n: usize) -> String {
    if n == 1 { "a thread".to_owned() } else { format!("{n} threads") }
}

impl From<cladist_nn::Error> for Error {
    fn from(error: cladist_nn::Error) -> Self {
        match error {
            cladist_nn::Error::Core(error) => Self::Core(error),
            other => Self::Network(other),
        }
    }
}

impl From<cladist_core::bundle::BundleError> for Error {
    fn from(error: cladist_core::bundle::BundleError) -> Self {
        Self::Core(error.into())
    }
}

impl From<cladist_core::corpus::CorpusError> for Error {
    fn from(error: cladist_core::corpus::CorpusError) -> Self {
        Self::Core(error.into())
    }
}

impl From<crate::html::PageError> for Error {
    fn from(error: crate::html::PageError) -> Self {
        Self::Serialise { what: "a page", source: error.into() }
    }
}

impl From<toml::ser::Error> for Error {
    fn from(error: toml::ser::Error) -> Self {
        Self::Serialise { what: "settings", source: error.into() }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Serialise { what: "JSON", source: error.into() }
    }
}
