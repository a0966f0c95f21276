//! [`Scores`]: what every classifier returns.

use std::cmp::Ordering;

use crate::taxonomy::LabelId;

/// Sparse scores of documents: for each document the labels that got one, best first.
///
/// Scores are probabilities in `[0, 1]`. A label that is absent from a row was not scored: metrics rank it after
/// every scored label and decoding never chooses it. Rows are ordered by descending score, ties by ascending
/// label, so that every ranking is deterministic.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    entries: Vec<(LabelId, f32)>,
    ends: Vec<usize>,
    /// How many labels each document should have, if the classifier says; for all documents or none.
    counts: Vec<u32>,
}

impl Default for Scores {
    fn default() -> Self {
        Self::new()
    }
}

impl Scores {
    /// Scores of no document.
    #[must_use]
    pub fn new() -> Self {
        Self { entries: Vec::new(), ends: Vec::new(), counts: Vec::new() }
    }

    /// Appends a document's scores, given in any order. NaN counts as 0.
    pub fn push_row(&mut self, mut row: Vec<(LabelId, f32)>) {
        for (_, score) in &mut row {
            if score.is_nan() {
                *score = 0.0;
            }
        }
        row.sort_unstable_by(by_rank);
        self.entries.extend_from_slice(&row);
        self.ends.push(self.entries.len());
    }

    /// Collects rows given in any order.
    pub fn from_rows(rows: impl IntoIterator<Item = Vec<(LabelId, f32)>>) -> Self {
        let mut scores = Self::new();
        for row in rows {
            scores.push_row(row);
        }
        scores
    }

    /// The same with what the classifier says of how many labels each document has.
    #[must_use]
    pub fn with_counts(mut self, counts: Vec<u32>) -> Self {
        self.counts = counts;
        self
    }

    /// How many labels each document should have; empty if the classifier does not say.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Appends another batch of documents.
    pub fn append(&mut self, other: Self) {
        self.counts.extend(other.counts);
        let shift = self.entries.len();
        self.entries.extend(other.entries);
        self.ends.extend(other.ends.iter().map(|end| end + shift));
    }

    /// The number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The scored labels of a document, best first.
    ///
    /// # Panics
    /// If `document` is not below [`Scores::len`].
    #[must_use]
    pub fn row(&self, document: usize) -> &[(LabelId, f32)] {
        let start = if document == 0 { 0 } else { self.ends[document - 1] };
        &self.entries[start..self.ends[document]]
    }

    /// All rows in document order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[(LabelId, f32)]> + Clone {
        (0..self.len()).map(|document| self.row(document))
    }

    /// Leaves the entries of which `keep(label, score)` is true.
    #[must_use]
    pub fn retain(mut self, keep: impl Fn(LabelId, f32) -> bool) -> Self {
        let (mut kept, mut start) = (0, 0);
        for end in &mut self.ends {
            for at in start..*end {
                let entry = self.entries[at];
                if keep(entry.0, entry.1) {
                    self.entries[kept] = entry;
                    kept += 1;
                }
            }
            start = std::mem::replace(end, kept);
        }
        self.entries.truncate(kept);
        self
    }

    /// Leaves the `most` best entries of each document.
    #[must_use]
    pub fn keep_best(mut self, most: usize) -> Self {
        let (mut kept, mut start) = (0, 0);
        for end in &mut self.ends {
            let n = (*end - start).min(most);
            self.entries.copy_within(start..start + n, kept);
            kept += n;
            start = std::mem::replace(end, kept);
        }
        self.entries.truncate(kept);
        self
    }

    /// Replaces each score by `f(label, score)` and restores the order of the rows.
    #[must_use]
    pub fn map(mut self, f: impl Fn(LabelId, f32) -> f32) -> Self {
        let mut start = 0;
        for &end in &self.ends {
            let row = &mut self.entries[start..end];
            for (label, score) in row.iter_mut() {
                *score = f(*label, *score);
            }
            row.sort_unstable_by(by_rank);
            start = end;
        }
        self
    }
}

/// Rank order: higher score first, then the smaller label.
#[must_use]
pub fn by_rank(a: &(LabelId, f32), b: &(LabelId, f32)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

/// Keeps the `k` best entries of an unordered row, in any order, in linear time.
pub fn keep_top(row: &mut Vec<(LabelId, f32)>, k: usize) {
    if k < row.len() {
        if k > 0 {
            row.select_nth_unstable_by(k - 1, by_rank);
        }
        row.truncate(k);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taxonomy::Taxonomy;

    #[test]
    fn what_is_kept_of_each_row_stays_with_its_document() {
        let taxonomy = Taxonomy::flat(["a", "b", "c"]);
        let label = |id: &str| taxonomy.get(id).unwrap();
        let scores = Scores::from_rows([
            vec![(label("a"), 0.1), (label("b"), 0.3), (label("c"), 0.2)],
            vec![],
            vec![(label("b"), 0.9)],
        ])
        .with_counts(vec![1, 0, 2]);
        let rows =
            |scores: &Scores| -> Vec<Vec<(LabelId, f32)>> { scores.rows().map(<[_]>::to_vec).collect() };
        let best = scores.clone().keep_best(2);
        let expected = [vec![(label("b"), 0.3), (label("c"), 0.2)], vec![], vec![(label("b"), 0.9)]];
        assert_eq!((rows(&best), best.counts()), (expected.to_vec(), scores.counts()));
        let without = scores.retain(|other, score| other != label("b") && score < 0.2);
        assert_eq!(rows(&without), [vec![(label("a"), 0.1)], vec![], vec![]]);
    }
}
