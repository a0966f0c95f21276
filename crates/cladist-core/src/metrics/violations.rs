//! How often scores contradict the hierarchy: a label is at least as likely as anything below it.

use serde::{Deserialize, Serialize};

use crate::scores::Scores;
use crate::taxonomy::{LabelId, Taxonomy};

/// Edges of the taxonomy with both ends scored, over all documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// All of them.
    pub pairs: u64,
    /// Those of which the child's score is above the parent's.
    pub violated: u64,
}

impl Violations {
    /// Counts over all documents. Scores that [`crate::decode::make_coherent`] made have none.
    #[must_use]
    pub fn count(scores: &Scores, taxonomy: &Taxonomy) -> Self {
        let mut counter = Counter::new(taxonomy);
        let mut total = Self::default();
        for row in scores.rows() {
            total.add(counter.count(row));
        }
        total
    }

    /// The share of pairs; none without pairs.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        (self.pairs > 0).then(|| self.violated as f64 / self.pairs as f64)
    }

    /// Adds those of other documents.
    pub fn add(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.violated += other.violated;
    }
}

/// Counts documents one by one, with scratch space for one taxonomy.
pub(crate) struct Counter<'a> {
    taxonomy: &'a Taxonomy,
    /// The document (from 1) in which a label was last scored, and its score there.
    scored_in: Vec<(u64, f32)>,
    document: u64,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(taxonomy: &'a Taxonomy) -> Self {
        Self { taxonomy, scored_in: vec![(0, 0.0); taxonomy.n_labels()], document: 0 }
    }

    pub(crate) fn count(&mut self, row: &[(LabelId, f32)]) -> Violations {
        self.document += 1;
        for &(label, score) in row {
            self.scored_in[label.index()] = (self.document, score);
        }
        let mut found = Violations::default();
        for &(label, score) in row {
            for parent in self.taxonomy.parents(label) {
                let (document, above) = self.scored_in[parent.index()];
                if document == self.document {
                    found.add(Violations { pairs: 1, violated: u64::from(score > above) });
                }
            }
        }
        found
    }
}
