//! Labels in groups of similar ones, of about equal size.

use std::path::Path;

use super::{LabelTree, TreeConfig, label_features};
use crate::document::Document;
use crate::error::Result;
use crate::job::Job;
use crate::sparse::{Lists, SparseMatrix};
use crate::taxonomy::LabelSet;
use crate::tensors::{self, Array, Arrays};
use crate::text::tfidf::{FeatureConfig, Vectorizer};

/// Features that a label is clustered by at most: memory is bounded, and its rarest words say little.
const KEEP: usize = 128;

/// A label in no group.
const NOWHERE: u32 = u32::MAX;

/// How labels are put into groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionConfig {
    /// Labels of a group at most.
    pub leaf: usize,
    /// Decides the first centres of clusters.
    pub seed: u64,
}

/// Labels in groups. The labels of a group stand together in one order of all, and a label's place in it is its row.
/// Labels without documents are in no group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    order: Vec<u32>,
    /// Where groups start in `order`, and where the last one ends.
    starts: Vec<u32>,
    row_of: Vec<u32>,
}

impl Partition {
    /// Groups of the labels of documents, by balanced 2-means of their TF-IDF features.
    pub fn of_documents(
        documents: &[Document],
        gold: &[LabelSet],
        n_labels: usize,
        config: &PartitionConfig,
        job: &Job,
    ) -> Result<Self> {
        let features = FeatureConfig { word_ngrams: [1, 1], ..FeatureConfig::default() };
        let vectorizer = Vectorizer::fit(&features, documents, job)?;
        let mut rows = SparseMatrix::new(vectorizer.n_features());
        for row in vectorizer.transform_all(documents, job)? {
            rows.push_row(row);
        }
        let labels: Vec<Vec<u32>> =
            gold.iter().map(|labels| labels.iter().map(|label| label.index() as u32).collect()).collect();
        let documents_of = Lists::inverted(labels.iter().map(Vec::as_slice), n_labels);
        let used: Vec<u32> =
            (0..n_labels as u32).filter(|&label| !documents_of.of(label).is_empty()).collect();
        let features = label_features(&rows, &documents_of, KEEP, job)?;
        Self::of_features(&features, used, config, job)
    }

    /// Groups of these labels by their features, rows of a matrix with a row per label.
    pub fn of_features(
        features: &SparseMatrix,
        labels: Vec<u32>,
        config: &PartitionConfig,
        job: &Job,
    ) -> Result<Self> {
        let PartitionConfig { leaf, seed } = *config;
        let tree = TreeConfig { min_split: leaf.max(1) + 1, max_depth: usize::MAX, ..TreeConfig::default() };
        let tree = LabelTree::grow(features, labels, &tree, seed, job)?;
        let mut starts: Vec<u32> = tree.leaves().iter().map(|leaf| leaf.labels.start as u32).collect();
        starts.push(tree.order.len() as u32);
        Ok(Self::new(tree.order, starts, features.n_rows()))
    }

    fn new(order: Vec<u32>, starts: Vec<u32>, n_labels: usize) -> Self {
        let mut row_of = vec![NOWHERE; n_labels];
        for (row, &label) in (0..).zip(&order) {
            row_of[label as usize] = row;
        }
        Self { order, starts, row_of }
    }

    /// Groups.
    #[must_use]
    pub fn n_groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// Labels in groups.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.order.len()
    }

    /// All labels, in a group or not.
    #[must_use]
    pub fn n_labels(&self) -> usize {
        self.row_of.len()
    }

    /// The rows of a group.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn rows(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }

    /// The labels of a group, in the order of their rows.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn labels(&self, group: usize) -> &[u32] {
        &self.order[self.rows(group)]
    }

    /// The label of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn label(&self, row: usize) -> u32 {
        self.order[row]
    }

    /// The row of a label.
    #[must_use]
    pub fn row_of(&self, label: u32) -> Option<u32> {
        self.row_of.get(label as usize).copied().filter(|&row| row != NOWHERE)
    }

    /// The group of a row.
    #[must_use]
    pub fn group_of(&self, row: u32) -> u32 {
        self.starts.partition_point(|&start| start <= row).saturating_sub(1) as u32
    }

    /// Writes a file; the same partition gives the same bytes.
    pub fn write(&self, path: &Path) -> Result<()> {
        tensors::write(path, &[("order", Array::U32(&self.order)), ("starts", Array::U32(&self.starts))])
    }

    /// Reads what [`Partition::write`] wrote, for so many labels.
    pub fn read(path: &Path, n_labels: usize) -> Result<Self> {
        let arrays = Arrays::read(path)?;
        let (order, starts) = (arrays.u32("order")?, arrays.u32("starts")?);
        let mut seen = vec![false; n_labels];
        for &label in &order {
            match seen.get_mut(label as usize) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => return Err(arrays.refuse(format!("label {label} is in two groups"))),
                None => return Err(arrays.refuse(format!("there is no label {label}"))),
            }
        }
        let whole = starts.first() == Some(&0) && starts.last().map(|&end| end as usize) == Some(order.len());
        let ascend =
            starts.windows(2).all(|pair| pair[0] < pair[1]) || (order.is_empty() && starts.len() == 2);
        if !(whole && ascend && starts.len() > 1) {
            return Err(arrays.refuse("groups do not follow each other"));
        }
        Ok(Self::new(order, starts, n_labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taxonomy::Taxonomy;

    fn partition(leaf: usize) -> Partition {
        let taxonomy = Taxonomy::flat((0..9).map(|n| n.to_string()));
        let text = |n: usize| ["gold bar", "wheat field", "interest rate"][n % 3];
        let documents: Vec<Document> = (0..24).map(|n| Document::from_text(n.to_string(), text(n))).collect();
        // Label 8 occurs nowhere; the others by what is spoken of.
        let labels: Vec<_> = taxonomy.labels().collect();
        let gold: Vec<LabelSet> =
            (0..24).map(|n| [labels[n % 3 + n / 3 % 2 * 3]].into_iter().collect()).collect();
        let config = PartitionConfig { leaf, seed: 3 };
        Partition::of_documents(&documents, &gold, 9, &config, &Job::silent()).unwrap()
    }

    #[test]
    fn labels_of_like_documents_share_a_group() {
        let partition = partition(2);
        assert_eq!((partition.n_rows(), partition.n_labels()), (6, 9));
        for group in 0..partition.n_groups() {
            for row in partition.rows(group) {
                assert_eq!(partition.group_of(row as u32) as usize, group);
                assert_eq!(partition.row_of(partition.label(row)), Some(row as u32));
            }
            assert!((1..=2).contains(&partition.rows(group).len()));
        }
        assert_eq!(partition.row_of(8), None);
        assert_eq!(partition.row_of(99), None);
    }

    #[test]
    fn few_labels_are_one_group() {
        assert_eq!(partition(6).n_groups(), 1);
        assert_eq!(partition(5).n_groups(), 2);
    }

    #[test]
    fn it_comes_back_from_its_file_and_nonsense_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("groups");
        let partition = partition(2);
        partition.write(&path).unwrap();
        assert_eq!(Partition::read(&path, 9).unwrap(), partition);
        assert!(Partition::read(&path, 3).is_err());
        for (order, starts) in [
            (vec![0, 0], vec![0, 2]),
            (vec![0, 1], vec![0, 1]),
            (vec![0, 1], vec![0, 2, 2]),
            (vec![0], vec![]),
        ] {
            tensors::write(&path, &[("order", Array::U32(&order)), ("starts", Array::U32(&starts))]).unwrap();
            assert!(Partition::read(&path, 9).is_err(), "{order:?} {starts:?}");
        }
    }
}
