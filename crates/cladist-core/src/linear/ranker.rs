//! Labels of groups that something else has found: the ranker of X-Transformer (Chang et al. 2020).
//!
//! A matcher names the groups a document's labels may be in; within them, each label has a linear classifier on the
//! document's TF-IDF features and, as further columns, its vector. A classifier learns what it will be asked: of the
//! documents with a label of its group, and of those for which the matcher takes the group for one of the best. With its
//! raw score v and the score g of the group,
//! ```text
//! score(label) = exp(−max(0, 1 − v)³) · g
//! ```
//! The classifiers of a group are a leaf of a [`Forest`] whose root stands for the matcher and knows nothing itself.

use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::config::{LinearConfig, LinearTrain};
use super::forest::Forest;
use super::predict::told_apart;
use super::solver::Classifier;
use super::train::{settings, train_node};
use crate::bundle::{self, Writer};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::label_tree::Partition;
use crate::seeds::seed_of;
use crate::sparse::{ColumnPlaces, Lists, SparseMatrix};
use crate::taxonomy::LabelSet;
use crate::text::tfidf::{FeatureConfig, SparseRow, Vectorizer};

const FILE: &str = "ranker.safetensors";

/// The `[ranker]` section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RankerConfig {
    /// Whether there is one.
    pub on: bool,
    /// The weight of the loss against ½‖w‖².
    pub c: f32,
    /// Weights this small or smaller are dropped.
    pub prune: f32,
    /// The length of a document's vector beside its TF-IDF features, whose length is 1; 0 leaves it out.
    pub vector_weight: f32,
    /// From text to TF-IDF features.
    pub features: FeatureConfig,
}

impl Default for RankerConfig {
    fn default() -> Self {
        Self { on: false, c: 1.0, prune: 0.01, vector_weight: 1.0, features: FeatureConfig::default() }
    }
}

impl RankerConfig {
    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        let Self { on: _, c, prune, vector_weight, ref features } = *self;
        if !(c > 0.0 && c.is_finite()) {
            return Err(Error::setting("ranker.c", "a number above 0", c));
        }
        for (key, value) in [("ranker.prune", prune), ("ranker.vector_weight", vector_weight)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::setting(key, "0 or a number above", value));
            }
        }
        features.validate()
    }
}

/// Documents to learn from, as a matcher sees them.
#[derive(Debug, Clone, Copy)]
pub struct Matched<'a> {
    /// The documents.
    pub documents: &'a [Document],
    /// The labels of each.
    pub gold: &'a [LabelSet],
    /// The vectors of all, of equal width, one after the other.
    pub vectors: &'a [f32],
    /// The groups that the matcher takes for the best of each.
    pub groups: &'a [Vec<u32>],
}

/// A linear classifier per label, asked group by group.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranker {
    vectorizer: Vectorizer,
    vector_weight: f32,
    forest: Forest,
}

impl Ranker {
    /// Trains the classifiers of all labels in groups. The same input gives the same ranker, on any number of threads.
    ///
    /// # Panics
    /// If a document is matched with a group, or has a label, that the partition does not know.
    pub fn train(
        config: &RankerConfig,
        examples: &Matched,
        partition: &Partition,
        seed: u64,
        job: &Job,
    ) -> Result<Self> {
        config.validate()?;
        let &Matched { documents, gold, vectors, groups } = examples;
        let width = vectors.len() / documents.len().max(1);
        let vectorizer = Vectorizer::fit(&config.features, documents, job)?;
        let mut rows = SparseMatrix::new(vectorizer.n_features() + width);
        let features = vectorizer.transform_all(documents, job)?;
        for (n, row) in features.into_iter().enumerate() {
            let vector = &vectors[n * width..][..width];
            rows.push_row(joined(row, vector, vectorizer.n_features(), config.vector_weight));
        }

        let labels: Vec<Vec<u32>> =
            gold.iter().map(|labels| labels.iter().map(|label| label.index() as u32).collect()).collect();
        let documents_of = Lists::inverted(labels.iter().map(Vec::as_slice), partition.n_labels());
        let matched_with = Lists::inverted(groups.iter().map(Vec::as_slice), partition.n_groups());
        let linear = LinearConfig { c: config.c, prune: config.prune, ..LinearConfig::default() };
        job.progress.stage("train the ranker", partition.n_rows() as u64);
        let trained: Vec<(Vec<Classifier>, Vec<u32>)> = (0..partition.n_groups())
            .into_par_iter()
            .with_max_len(1)
            .map_init(ColumnPlaces::default, |places, group| {
                let labels = partition.labels(group);
                let mut documents = documents_of.union(labels);
                documents.extend_from_slice(matched_with.of(group as u32));
                documents.sort_unstable();
                documents.dedup();
                let settings = settings(&linear, &LinearTrain::default(), documents.len(), rows.n_rows());
                let outputs: Vec<&[u32]> = labels.chunks(1).collect();
                let seed = seed_of(&[seed, group as u64]);
                train_node(&rows, &documents, &outputs, &documents_of, &settings, seed, places, job)
            })
            .collect::<Result<_>>()?;

        let mut forest = Forest::new(rows.n_columns(), partition.n_labels());
        forest.roots.push(0);
        let nothing = vec![Classifier::default(); trained.len()];
        forest.push_node(false, 1..=trained.len() as u32, &nothing, &[]);
        for (group, (classifiers, features)) in trained.into_iter().enumerate() {
            forest.push_node(true, partition.labels(group).iter().copied(), &classifiers, &features);
        }
        forest.index();
        Ok(Self { vectorizer, vector_weight: config.vector_weight, forest })
    }

    /// The labels of some groups of a document, given the groups with their scores: those whose score is above 0, in no
    /// order. Where scores saturate, labels are told apart by their raw ones, by a thousandth at most.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn score(&self, document: &Document, vector: &[f32], groups: &[(u32, f32)]) -> Vec<(u32, f32)> {
        let features = self.vectorizer.transform(document);
        let row = joined(features, vector, self.vectorizer.n_features(), self.vector_weight);
        let mut raw = Vec::new();
        let mut scores = Vec::new();
        for &(group, share) in groups {
            let node = group as usize + 1;
            self.forest.raw_scores(node, &row, &mut raw);
            scores.extend(self.forest.targets_of(node).iter().zip(&raw).filter_map(|(&label, &raw)| {
                let probability = f64::from(share) * hinge_probability(raw);
                Some((label, told_apart(probability, f64::from(raw))?))
            }));
        }
        scores
    }

    /// The number of weights kept after pruning.
    #[must_use]
    pub fn n_weights(&self) -> usize {
        self.forest.weights.len()
    }

    /// Writes `ranker.safetensors` and the files of its TF-IDF features into a bundle. The configuration and the groups are
    /// the caller's to keep.
    pub fn save(&self, writer: &Writer) -> Result<()> {
        self.vectorizer.save(writer)?;
        self.forest.write(&writer.path(FILE))
    }

    /// Reads what [`Ranker::save`] wrote, for these groups and vectors of this width.
    pub fn load(folder: &Path, config: &RankerConfig, partition: &Partition, width: usize) -> Result<Self> {
        config.validate()?;
        let path = folder.join(FILE);
        let vectorizer = Vectorizer::load(folder, config.features.clone())?;
        let forest = Forest::read(&path, vectorizer.n_features() + width, partition.n_labels())?;
        let fits = |group: usize| {
            forest.is_leaf(group + 1) && forest.targets_of(group + 1) == partition.labels(group)
        };
        if forest.n_nodes() != partition.n_groups() + 1 || !(0..partition.n_groups()).all(fits) {
            return Err(bundle::content(&path, "it is of other groups of labels"));
        }
        Ok(Self { vectorizer, vector_weight: config.vector_weight, forest })
    }
}

/// A raw score as a number from 0 to 1, by the hinge to the third power: exp(−max(0, 1 − v)³).
#[must_use]
pub fn hinge_probability(raw: f32) -> f64 {
    (-(1.0 - f64::from(raw)).max(0.0).powi(3)).exp()
}

/// Features, and behind them a vector scaled to a length.
fn joined(mut features: SparseRow, vector: &[f32], n_features: usize, length: f32) -> SparseRow {
    let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 && norm > 0.0 && norm.is_finite() {
        let scale = f64::from(length) / norm;
        let columns = n_features as u32..;
        features
            .extend(columns.zip(vector).map(|(column, &value)| (column, (f64::from(value) * scale) as f32)));
    }
    features
}

#[cfg(test)]
mod tests;
