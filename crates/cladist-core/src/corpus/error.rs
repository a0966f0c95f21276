//! What can be wrong with a corpus as a whole.

use std::path::PathBuf;

use super::SplitName;
use super::gold::UnknownLabel;
use super::report::RepeatedId;

/// A corpus that is incomplete, or breaks a policy of its [`super::DataConfig`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// A folder without a corpus.
    #[error("no train, dev or test file in `{}`", .0.display())]
    NoSplit(PathBuf),
    /// A path that neither JSON nor TOML can hold, so that a run could not remember its corpus.
    #[error("the path `{}` is not UTF-8", .0.display())]
    PathNotUtf8(PathBuf),
    /// Two candidates for one part of a corpus.
    #[error("two files for {what}: `{}` and `{}`", first.display(), second.display())]
    TwoFiles {
        /// The split, or `taxonomy`.
        what: String,
        /// One candidate.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A taxonomy of which no level is left.
    #[error("no level is left: the taxonomy has {levels}")]
    NothingLeft {
        /// Levels before.
        levels: usize,
    },
    /// A split that is asked for and not there.
    #[error("the corpus has no {0} split")]
    MissingSplit(SplitName),
    /// A name that is no split.
    #[error("unknown split `{0}`; the splits are train, dev and test")]
    UnknownSplit(String),
    /// A split without a document.
    #[error("no document in the {0} split")]
    EmptySplit(SplitName),
    /// Training documents without labels.
    #[error("none of the {documents} documents in the {split} split has a label")]
    NoLabels {
        /// The split.
        split: SplitName,
        /// Its documents.
        documents: usize,
    },
    /// Gold labels that the taxonomy does not have.
    #[error(
        "{labels} gold labels in {documents} documents are not in the taxonomy: {}",
        list(.examples, *.labels)
    )]
    UnknownLabels {
        /// Different labels.
        labels: usize,
        /// Documents that have one.
        documents: usize,
        /// The most frequent ones.
        examples: Vec<UnknownLabel>,
    },
    /// Gold sets that are not one for each document.
    #[error("the {split} split has {documents} documents and {gold} gold sets")]
    GoldSets {
        /// The split.
        split: SplitName,
        /// Its documents.
        documents: usize,
        /// Its gold sets.
        gold: usize,
    },
    /// A gold label of another taxonomy.
    #[error(
        "document `{document}` of the {split} split has gold label {label} of a taxonomy with {labels} labels"
    )]
    ForeignLabel {
        /// The split.
        split: SplitName,
        /// The id of the document.
        document: String,
        /// The number of the label, from 0.
        label: usize,
        /// Labels in the taxonomy.
        labels: usize,
    },
    /// An id twice in a split.
    #[error(
        "{}: id `{}` occurs twice in the {split} split, first at {}",
        .repeated.place, .repeated.id, .repeated.first
    )]
    DuplicateId {
        /// The id, and where it is.
        repeated: RepeatedId,
        /// The split.
        split: SplitName,
    },
}

impl CorpusError {
    /// What would help, in terms of settings and files.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::PathNotUtf8(_) => "rename the file or folder",
            Self::NothingLeft { .. } => "lower `data.drop_top_levels`",
            Self::NoLabels { .. } => "name the field with `data.labels_field`",
            Self::UnknownLabels { .. } => {
                "give the taxonomy they are from, or set `data.unknown_labels` to `drop` or `add`"
            }
            Self::DuplicateId { .. } => {
                "set `data.duplicate_ids` to `rename` or `drop`, or name another field with `data.id_field`"
            }
            _ => return None,
        })
    }
}

fn list(examples: &[UnknownLabel], labels: usize) -> String {
    let one = |UnknownLabel { id, documents, first }: &UnknownLabel| match first {
        Some(first) => format!("`{id}` ({documents}) from {first}"),
        None => format!("`{id}` ({documents})"),
    };
    let shown: Vec<String> = examples.iter().map(one).collect();
    let more = if labels > examples.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
