//! How to read a vocabulary.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Format;
use crate::taxonomy::OnCycle;

/// What becomes the id of a label that is an IRI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdStyle {
    /// The whole IRI.
    #[default]
    Iri,
    /// What follows the last `/` or `#`, unless two labels would share it.
    Local,
}

/// How to read a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadOptions {
    /// The format; sniffed if not given.
    pub format: Option<Format>,
    /// The language of names and descriptions where a vocabulary has several. If a label has none in it, the one
    /// without a language is taken, then English, then the first language in sort order.
    pub language: String,
    /// What to do with cycles; the format decides if not given.
    pub on_cycle: Option<OnCycle>,
    /// What becomes the id of a SKOS concept.
    pub id_style: IdStyle,
    /// A file of names and descriptions: id TAB name TAB description.
    pub names: Option<PathBuf>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { format: None, language: "en".to_owned(), on_cycle: None, id_style: IdStyle::Iri, names: None }
    }
}
