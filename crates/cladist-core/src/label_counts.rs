//! How often each label occurs in training: the base of propensities, shot classes and label orders.

use serde::{Deserialize, Serialize};

use crate::taxonomy::{LabelSet, Taxonomy};

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

    /// The counts of `taxonomy` by the labels of another one; labels that it does not have were never seen.
    #[must_use]
    pub fn moved(&self, taxonomy: &Taxonomy, other: &Taxonomy) -> Self {
        let count = |label| {
            let known = taxonomy.get(other.id(label));
            known.and_then(|known| self.counts.get(known.index())).copied().unwrap_or(0)
        };
        Self { n_documents: self.n_documents, counts: other.labels().map(count).collect() }
    }
}
