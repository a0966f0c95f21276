//! What a reader passed over: odd, but no reason to stop.

use std::fmt;

use serde::Serialize;

/// Something odd in a vocabulary, counted, with one example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// Edges that closed a cycle and were dropped.
    BrokenCycles {
        /// How many edges.
        count: usize,
        /// The parent of the first.
        parent: String,
        /// The child of the first.
        child: String,
    },
    /// SKOS relations to something that is no concept of the file.
    OutsideConcepts {
        /// How many relations.
        count: usize,
        /// A concept.
        concept: String,
        /// What it is related to.
        other: String,
    },
    /// Deprecated SKOS resources that are no longer concepts.
    Deprecated {
        /// How many.
        count: usize,
    },
    /// Concepts that keep their whole IRI as id, because their local names are not unique.
    SharedLocalNames {
        /// How many concepts.
        count: usize,
        /// One of them.
        example: String,
    },
    /// Rows of names for labels that the hierarchy does not have.
    ExtraNames {
        /// How many rows.
        count: usize,
        /// The id of the first.
        example: String,
    },
    /// Names of the hierarchy that the file of names replaced.
    ReplacedNames {
        /// How many.
        count: usize,
        /// The id of the first.
        example: String,
    },
    /// MeSH tree numbers without the one directly above.
    MissingTreeNumbers {
        /// How many.
        count: usize,
        /// The first that is missing.
        example: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BrokenCycles { count, parent, child } => {
                write!(
                    f,
                    "dropped {count} edges that closed a cycle, the first from `{parent}` down to `{child}`"
                )
            }
            Self::OutsideConcepts { count, concept, other } => {
                write!(
                    f,
                    "ignored {count} relations to what is no concept of the file, the first of `{concept}` to `{other}`"
                )
            }
            Self::Deprecated { count } => write!(f, "skipped {count} deprecated entries"),
            Self::SharedLocalNames { count, example } => {
                write!(
                    f,
                    "kept the whole IRI of {count} concepts whose local names are not unique: `{example}`, …"
                )
            }
            Self::ExtraNames { count, example } => {
                write!(f, "ignored the names of {count} labels that are not in the hierarchy: `{example}`, …")
            }
            Self::ReplacedNames { count, example } => {
                write!(f, "replaced {count} names of the hierarchy by the file of names: `{example}`, …")
            }
            Self::MissingTreeNumbers { count, example } => {
                write!(f, "passed over {count} missing tree numbers: `{example}`, …")
            }
        }
    }
}
