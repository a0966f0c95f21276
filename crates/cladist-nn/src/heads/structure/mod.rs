//! Heads in which features of labels travel along the hierarchy.
//!
//! | head | what travels | along |
//! |---|---|---|
//! | `hierarchy-gcn` | features of every label, from the document or from the label | edges between parents and children, by gates |
//! | `hierarchy-gat` | the same | the same edges, by attention |
//! | `hi-match` | the same as `hierarchy-gcn`, and descriptions of labels | the same edges, by gates |
//! | `coding-tree` | features of groups of labels | a tree of groups of groups |

pub mod coding_tree;
pub mod gat;
pub mod gcn;
pub mod hi_match;
mod nodes;
mod propagation;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

pub use nodes::Nodes;
pub use propagation::{Layer, Propagation, Shared, Start, Structure, Variant};

use super::{DROPOUT, setting};
use crate::blocks::dropout_from;
use crate::encoder::place;
use crate::error::Result;

/// Labels up to which `auto` is `full`. Published taxonomies have up to 166; parameters grow with the square of labels.
const FULL_UP_TO: usize = 200;

/// How many parameters a label has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `full` up to 200 labels, of all branches together if there are several, `small` above.
    #[default]
    Auto,
    /// As published: every label has weights on the features of all.
    Full,
    /// Every label has weights on its own features, so that there is room for thousands of them.
    Small,
}

impl Form {
    /// What `auto` is with so many labels.
    fn of(self, n_labels: usize) -> Self {
        if self.is_full(n_labels) { Self::Full } else { Self::Small }
    }

    fn is_full(self, n_labels: usize) -> bool {
        match self {
            Self::Auto => n_labels <= FULL_UP_TO,
            Self::Full => true,
            Self::Small => false,
        }
    }
}

/// Dropout on rows of nodes: so many rows for each document.
#[derive(Debug, Clone, Copy)]
struct Drops {
    seed: Option<u64>,
    /// The number of the first document.
    first: usize,
    /// Rows of a document.
    rows: usize,
}

impl Drops {
    fn on(self, x: Tensor<2>, rate: f64, site: u64) -> Tensor<2> {
        dropout_from(self.first * self.rows, x, rate, self.seed_at(site))
    }

    /// What masks at a place depend on.
    fn seed_at(self, site: u64) -> Option<u64> {
        self.seed.map(|seed| place(seed, DROPOUT + site))
    }

    fn is_active(self, rate: f64) -> bool {
        self.seed.is_some() && rate > 0.0
    }
}

/// Refuses rates that are none, by key.
fn check_rates(rates: &[(&'static str, f64)]) -> Result<()> {
    match rates.iter().find(|(_, rate)| !(0.0..1.0).contains(rate)) {
        Some((key, rate)) => Err(setting(key, "at least 0 and below 1", rate)),
        None => Ok(()),
    }
}

/// Refuses sizes of 0 or beyond what there is room for, by key.
fn check_sizes(sizes: &[(&'static str, usize)]) -> Result<()> {
    match sizes.iter().find(|(_, size)| !(1..=65_536).contains(size)) {
        Some((key, size)) => Err(setting(key, "1 to 65536", size)),
        None => Ok(()),
    }
}

/// Refuses weights below 0, by key.
fn check_weight(key: &'static str, weight: f64) -> Result<()> {
    if weight >= 0.0 && weight.is_finite() { Ok(()) } else { Err(setting(key, "at least 0", weight)) }
}

#[cfg(test)]
mod tests;
