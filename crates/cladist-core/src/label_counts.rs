//! How often each label occurs in training: the base of propensities, shot classes and label orders.

use serde::{Deserialize, Serialize};

use crate::taxonomy::LabelSet;

/// Training counts of one taxonomy's labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelCounts {
    /// Training documents in all.
    pub n_documents: usize,
    /// Documents of each label, by [`crate::LabelId::index`].
    pub counts: Vec<u32>,
}

impl LabelCounts {
    /// Counts the gold sets of training documents.
    #[must_use]
    pub fn of(gold: &[LabelSet], n_labels: usize) -> Self {
        let mut counts = vec![0; n_labels];
        for label in gold.iter().flatten() {
            counts[label.index()] += 1;
        }
        Self { n_documents: gold.len(), counts }
    }
}
