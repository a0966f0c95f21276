//! Labels by level, each level with columns of its own.

use cladist_core::{LabelId, LabelSet};

/// The level and the column there of each label, both from 0.
#[derive(Debug, Clone)]
pub(super) struct LevelColumns {
    of_labels: Vec<(u32, u32)>,
    n_levels: usize,
}

impl LevelColumns {
    /// From the labels of each level, in the order of their columns.
    pub(super) fn new(levels: &[Vec<LabelId>], n_labels: usize) -> Self {
        let mut of_labels = vec![(0, 0); n_labels];
        for (level, labels) in (0u32..).zip(levels) {
            for (column, label) in (0u32..).zip(labels) {
                of_labels[label.index()] = (level, column);
            }
        }
        Self { of_labels, n_levels: levels.len() }
    }

    /// The columns of gold labels, level by level and there document by document.
    pub(super) fn of(&self, gold: &[LabelSet]) -> Vec<Vec<Vec<u32>>> {
        let mut columns = vec![vec![Vec::new(); gold.len()]; self.n_levels];
        for (document, labels) in gold.iter().enumerate() {
            for label in labels {
                let (level, column) = self.of_labels[label.index()];
                columns[level as usize][document].push(column);
            }
        }
        columns
    }
}
