//! The table of heads: what can be trained. Help, errors and the settings of a head derive from it.

use std::sync::LazyLock;

use cladist_core::linear::LinearHead;
use cladist_nn::heads::AnyHeadConfig;

use crate::error::{Error, Result};

/// A head.
#[derive(Debug, Clone, Copy)]
pub struct HeadInfo {
    /// As typed.
    pub name: &'static str,
    /// One line of help.
    pub description: &'static str,
    /// What it is made of.
    pub family: Family,
}

/// Heads that are trained in the same way.
#[derive(Debug, Clone, Copy)]
pub enum Family {
    /// Linear models on TF-IDF features.
    Linear(LinearHead),
    /// Heads on a transformer encoder.
    Neural(fn() -> AnyHeadConfig),
    /// Trained models together.
    Mixed,
}

impl Family {
    /// As listed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear(_) => "linear",
            Self::Neural(_) => "neural",
            Self::Mixed => "ensemble",
        }
    }
}

/// Several models as one.
pub const MIXED: HeadInfo = HeadInfo {
    name: "mixed",
    description: "an ensemble of trained models, by weights fitted on dev",
    family: Family::Mixed,
};

/// The linear heads; those on encoders have a table of their own.
static LINEAR: &[HeadInfo] = &[
    HeadInfo {
        name: "svm",
        description: "one-vs-rest linear SVM on TF-IDF: strong, fast up to some ten thousand labels",
        family: Family::Linear(LinearHead::Svm),
    },
    HeadInfo {
        name: "parabel",
        description: "balanced binary label trees on TF-IDF: for very many labels",
        family: Family::Linear(LinearHead::Parabel),
    },
    HeadInfo {
        name: "bonsai",
        description: "shallow, wide label trees on TF-IDF: for very many labels, better on rare ones",
        family: Family::Linear(LinearHead::Bonsai),
    },
];

static ALL: LazyLock<Vec<HeadInfo>> = LazyLock::new(|| {
    let neural = cladist_nn::heads::HEADS.iter();
    let neural = neural.map(|&(name, description, defaults)| HeadInfo {
        name,
        description,
        family: Family::Neural(defaults),
    });
    LINEAR.iter().copied().chain(neural).chain([MIXED]).collect()
});

/// Every head.
pub fn all() -> impl Iterator<Item = &'static HeadInfo> {
    ALL.iter()
}

/// The name of a linear head.
#[must_use]
pub fn linear_name(head: LinearHead) -> &'static str {
    LINEAR
        .iter()
        .find(|info| matches!(info.family, Family::Linear(other) if other == head))
        .map_or("", |info| info.name)
}

/// Whether a key, or an argument that begins with one, is of the section of another head.
#[must_use]
pub fn is_of_other(key: &str, head: &str) -> bool {
    section(key).is_some_and(|section| section != head)
}

/// The head whose section a key stands in, if it is one of a head.
#[must_use]
pub fn section(key: &str) -> Option<&'static str> {
    let first = key.split(['.', '=']).next().unwrap_or_default().trim();
    all().map(|head| head.name).find(|name| *name == first)
}

/// The head of this name.
pub fn find(name: &str) -> Result<&'static HeadInfo> {
    all().find(|head| head.name == name).ok_or_else(|| {
        let known = all().map(|head| format!("`{}`", head.name)).collect::<Vec<_>>().join(", ");
        Error::UnknownChoice { what: "head", name: name.to_owned(), known }
    })
}
