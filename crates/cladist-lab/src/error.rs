//! What can go wrong with experiments, tuning and studies.

use std::path::PathBuf;

use cladist::ErrorKind;
use cladist::corpus::SplitName;

/// A result with this crate's [`LabError`].
pub type Result<T, E = LabError> = std::result::Result<T, E>;

/// Everything that can go wrong in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Training, opening and evaluating models.
    #[error(transparent)]
    Cladist(cladist::Error),
    /// A variant of an experiment that cannot be trained.
    #[error("variant `{name}`")]
    Variant {
        /// The variant.
        name: &'static str,
        /// Why.
        source: Box<LabError>,
    },
    /// An axis without values.
    #[error("`{0}` has no values to try")]
    Axis(String),
    /// Nobody will wait for so many.
    #[error("more than {0} combinations: try fewer values")]
    TooMany(usize),
    /// The head of an experiment's variants was given.
    #[error("the head cannot be chosen: every variant has its own")]
    HeadChosen,
    /// An ensemble without one of its members.
    #[error("variant `{variant}` is made of `{member}`, which is not among the variants chosen")]
    NoMember {
        /// The ensemble.
        variant: &'static str,
        /// What it needs.
        member: &'static str,
    },
    /// An ensemble whose member failed.
    #[error("`{variant}` needs a run of `{member}` with seed {seed}, and there is none")]
    NoMemberRun {
        /// The ensemble.
        variant: &'static str,
        /// What it needs.
        member: &'static str,
        /// The seed.
        seed: u64,
    },
    /// A setting of a head that no variant has.
    #[error("`{key}` has no effect: no variant has the head `{head}`")]
    NoEffect {
        /// The setting.
        key: String,
        /// Its head.
        head: &'static str,
    },
    /// A number of seeds or draws below 1.
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
    /// Several combinations and nothing to choose by.
    #[error("there is no dev split to choose settings on")]
    NoDevToChooseOn,
    /// A run without a figure on dev.
    #[error("`{0}` has no value on dev to choose by")]
    NothingToChooseBy(String),
    /// A folder that holds something else.
    #[error("`{}` already exists and is no folder of an experiment", .0.display())]
    NotAnExperiment(PathBuf),
    /// A folder that holds another experiment.
    #[error("`{}` holds an experiment with {difference}", path.display())]
    OtherPlan {
        /// The folder.
        path: PathBuf,
        /// What differs.
        difference: String,
    },
    /// A run that should be finished.
    #[error("the run in `{}` is not finished", .0.display())]
    Unfinished(PathBuf),
    /// A study of no model.
    #[error("no bundle given")]
    NoBundle,
    /// A linear model has no layers.
    #[error("`{}` is a linear model (`{head}`) and has no layers", path.display())]
    NoLayers {
        /// The model.
        path: PathBuf,
        /// Its head.
        head: &'static str,
    },
    /// A model whose labels have no vectors.
    #[error("`{}` (`{head}`) has no vectors of labels: {reason}", path.display())]
    NoVectors {
        /// The model.
        path: PathBuf,
        /// Its head.
        head: &'static str,
        /// Why, and where there are some.
        reason: String,
    },
    /// A model whose training diverged.
    #[error("`{}` has weights that are no numbers: train it again with a lower learning rate", .0.display())]
    NotFinite(PathBuf),
    /// Too few labels for a plane.
    #[error("`{}` has {trained} trained labels of {all}, and a plane needs at least {fewest}", path.display())]
    TooFewLabels {
        /// The model.
        path: PathBuf,
        /// Labels with weights.
        trained: usize,
        /// All labels.
        all: usize,
        /// What would do.
        fewest: usize,
    },
    /// A zero-shot study of a model that knows every label.
    #[error("the model was trained with every label of the corpus")]
    NothingHeldOut,
    /// No document to study.
    #[error("no document of {0} has a label that was held out")]
    NoUnseenDocument(SplitName),
    /// Stopped; it can go on.
    #[error("stopped")]
    Stopped,
}

impl LabError {
    /// What a program should make of it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Cladist(error) => error.kind(),
            Self::Variant { source, .. } => source.kind(),
            Self::NotFinite(_) => ErrorKind::Bundle,
            Self::NoUnseenDocument(_) => ErrorKind::Data,
            Self::Unfinished(_) => ErrorKind::NotFound,
            Self::Stopped => ErrorKind::Cancelled,
            Self::Axis(_)
            | Self::TooMany(_)
            | Self::HeadChosen
            | Self::NoMember { .. }
            | Self::NoMemberRun { .. }
            | Self::NoEffect { .. }
            | Self::Zero(_)
            | Self::NoDevToChooseOn
            | Self::NothingToChooseBy(_)
            | Self::NotAnExperiment(_)
            | Self::OtherPlan { .. }
            | Self::NoBundle
            | Self::NoLayers { .. }
            | Self::NoVectors { .. }
            | Self::TooFewLabels { .. }
            | Self::NothingHeldOut => ErrorKind::Setting,
        }
    }

    pub(crate) fn io(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let wrap = cladist_core::Error::io(action, path);
        move |source| wrap(source).into()
    }

    pub(crate) fn of_variant(name: &'static str) -> impl FnOnce(Self) -> Self {
        move |source| Self::Variant { name, source: Box::new(source) }
    }
}

/// Everything that the library's error is made of.
macro_rules! from_library {
    ($($error:ty),+ $(,)?) => {$(
        impl From<$error> for LabError {
            fn from(error: $error) -> Self {
                Self::Cladist(error.into())
            }
        }
    )+};
}

from_library!(
    cladist::Error,
    cladist_core::Error,
    cladist_core::corpus::CorpusError,
    cladist_nn::Error,
    cladist::html::PageError,
    serde_json::Error,
);
