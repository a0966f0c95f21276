//! Documents with their labels.

use cladist_core::{Document, LabelSet};

/// Documents with their labels.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// The documents.
    pub documents: &'a [Document],
    /// The labels of each.
    pub gold: &'a [LabelSet],
}
