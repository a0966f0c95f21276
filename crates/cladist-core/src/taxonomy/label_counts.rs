//! How often each label occurs in training: the base of propensities, shot classes and label orders.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bundle;
use crate::error::Result;
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

    /// Reads the counts of a bundle, one for each label of its taxonomy.
    pub fn read(path: &Path, taxonomy: &Taxonomy) -> Result<Self> {
        let read: Self = bundle::read_json(path)?;
        let (n_counts, n_labels) = (read.counts.len(), taxonomy.n_labels());
        if n_counts != n_labels {
            return Err(bundle::content(path, format!("{n_counts} counts for {n_labels} labels")));
        }
        let n_documents = read.n_documents;
        match taxonomy.labels().zip(&read.counts).find(|&(_, &count)| count as usize > n_documents) {
            Some((label, count)) => {
                let id = taxonomy.id(label);
                Err(bundle::content(path, format!("label `{id}` is in {count} of {n_documents} documents")))
            }
            None => Ok(read),
        }
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

    /// The logarithm of each label's share of all label occurrences, ln((n + ½) / Σ (n + ½)): the prior of a softmax, where
    /// every document has one label. 0 without documents.
    ///
    /// ```
    /// # use cladist_core::LabelCounts;
    /// let counts = LabelCounts { n_documents: 3, counts: vec![0, 3] };
    /// assert_eq!(counts.log_shares(2), [0.125f32.ln(), 0.875f32.ln()]);
    /// ```
    #[must_use]
    pub fn log_shares(&self, n_labels: usize) -> Vec<f32> {
        if self.n_documents == 0 {
            return vec![0.0; n_labels];
        }
        let with = |label: usize| f64::from(self.counts.get(label).copied().unwrap_or(0)) + 0.5;
        let all: f64 = (0..n_labels).map(with).sum();
        (0..n_labels).map(|label| (with(label) / all).ln() as f32).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Thresholds;
    use crate::taxonomy::{Builder, Origin};

    #[test]
    fn counts_and_thresholds_that_do_not_fit_the_labels_are_refused_with_the_name_of_the_file() {
        let mut builder = Builder::new();
        builder.edge(Some("a"), "b", &Origin::default());
        let taxonomy = builder.build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.json");
        let counts = |json: &str| {
            std::fs::write(&path, json).unwrap();
            LabelCounts::read(&path, &taxonomy).map_err(|error| error.to_string())
        };
        counts(r#"{"n_documents": 2, "counts": [2, 0]}"#).unwrap();
        for (json, reason) in [
            (r#"{"n_documents": 2, "counts": [2]}"#, "1 counts for 2 labels"),
            (r#"{"n_documents": 2, "counts": [1, 3]}"#, "label `b` is in 3 of 2 documents"),
            (r#"{"n_documents": -2, "counts": [1, 1]}"#, "invalid value"),
        ] {
            let message = counts(json).unwrap_err();
            assert!(message.contains("file.json") && message.contains(reason), "{message}");
        }
        let thresholds = |json: &str| {
            std::fs::write(&path, json).unwrap();
            Thresholds::read(&path, &taxonomy)
        };
        thresholds(r#"{"default": 0.5, "labels": {"a": 0.1}}"#).unwrap();
        for json in ["1.5", "-0.1", "[]", "null", "1e39", r#"{"default": 0.5, "labels": {"z": 0.1}}"#] {
            let error = thresholds(json).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Bundle, "{json}: {error}");
            assert!(error.to_string().contains("file.json"), "{error}");
        }
    }
}
