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

    /// How likely each of `n_labels` labels is before anything is read, as a logarithm of odds:
    /// ln((n + ½) / (N − n + ½)), so that labels in no document or in all have finite ones. 0 without documents.
    ///
    /// ```
    /// # use cladist_core::LabelCounts;
    /// let counts = LabelCounts { n_documents: 3, counts: vec![0, 3] };
    /// assert_eq!(counts.log_odds(2), [-(7.0f32.ln()), 7.0f32.ln()]);
    /// ```
    #[must_use]
    pub fn log_odds(&self, n_labels: usize) -> Vec<f32> {
        if self.n_documents == 0 {
            return vec![0.0; n_labels];
        }
        let of = |label: usize| {
            let with = f64::from(self.counts.get(label).copied().unwrap_or(0));
            let without = (self.n_documents as f64 - with).max(0.0);
            ((with + 0.5) / (without + 0.5)).ln() as f32
        };
        (0..n_labels).map(of).collect()
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
