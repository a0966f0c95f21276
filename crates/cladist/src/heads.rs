//! The table of heads: what `train --head` accepts. Help, errors and the settings of a head derive from it.

use cladist_core::linear::LinearHead;

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
}

impl Family {
    /// As listed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear(_) => "linear",
        }
    }
}

/// Every head.
pub static HEADS: &[HeadInfo] = &[
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

/// The head of this name.
pub fn find(name: &str) -> anyhow::Result<&'static HeadInfo> {
    HEADS.iter().find(|head| head.name == name).ok_or_else(|| {
        let known = HEADS.iter().map(|head| format!("`{}`", head.name)).collect::<Vec<_>>().join(", ");
        crate::error::ConfigError::UnknownHead { name: name.to_owned(), known }.into()
    })
}
