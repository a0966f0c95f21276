//! Structure heads: message passing between label representations along the hierarchy.
//!
//! | head | node features | message passing |
//! |---|---|---|
//! | `hierarchy-gcn` | of every label, from the document or from the label | gated graph convolution along edges between parents and children |
//! | `hierarchy-gat` | the same | graph attention along the same edges |
//! | `hi-match` | those of `hierarchy-gcn`, and encoded label descriptions | gated graph convolution along the same edges |
//! | `coding-tree` | of labels and of groups of labels | sums up a coding tree of groups of groups |

pub mod coding_tree;
mod config;
pub mod gat;
pub mod gcn;
pub mod hi_match;
mod nodes;
mod propagation;

use burn::tensor::Tensor;

pub use config::Form;
pub use nodes::Nodes;
pub use propagation::{Layer, Propagation, Shared, Start, Structure, Variant};

use super::DROPOUT;
use crate::blocks::dropout_from;
use crate::encoder::place;

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

#[cfg(test)]
mod tests;
