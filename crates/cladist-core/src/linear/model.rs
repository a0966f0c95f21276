//! The linear classifier: vectorizer and forest, trained, saved and loaded together.

use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::config::{LinearConfig, LinearHead, LinearTrain};
use super::forest::Forest;
use super::predict::Scoring;
use super::train::{self, Examples};
use crate::bundle::{self, BundleError, Writer};
use crate::classifier::{Classifier, Request};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::scores::Scores;
use crate::sparse::SparseMatrix;
use crate::taxonomy::{LabelId, LabelSet, Taxonomy};
use crate::text::tfidf::{FeatureConfig, SparseRow, Vectorizer};

const RECIPE: &str = "linear.json";
const MODEL: &str = "model.safetensors";

/// Up to this many labels, an SVM scores all of them unless asked for fewer.
const ALL_LABELS: usize = 5_000;

/// Documents that are scored together at most.
const CHUNK: usize = 256;

/// Labels per document otherwise.
const SOME_LABELS: usize = 200;

/// All that decides what a linear model becomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearRecipe {
    /// Which model.
    pub head: LinearHead,
    /// From text to features.
    #[serde(default)]
    pub features: FeatureConfig,
    /// The model.
    #[serde(default)]
    pub linear: LinearConfig,
    /// The training run.
    #[serde(default)]
    pub train: LinearTrain,
}

impl LinearRecipe {
    /// The head's preset.
    #[must_use]
    pub fn new(head: LinearHead) -> Self {
        Self {
            head,
            features: FeatureConfig::default(),
            linear: LinearConfig::default(),
            train: LinearTrain::default(),
        }
    }

    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        let Self { head: _, features, linear, train } = self;
        features.validate()?;
        linear.validate()?;
        train.validate()
    }
}

/// What `linear.json` holds: the recipe, and the labels that the forest's numbers stand for.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    recipe: LinearRecipe,
    labels: String,
}

/// A trained linear model.
#[derive(Debug, Clone)]
pub struct LinearModel {
    recipe: LinearRecipe,
    taxonomy: Taxonomy,
    vectorizer: Vectorizer,
    forest: Forest,
}

impl LinearModel {
    /// Trains on documents and their gold labels, one set per document. The same input gives the same model, on any
    /// number of threads. Documents without a known term are left out.
    pub fn train(
        recipe: &LinearRecipe,
        documents: &[Document],
        gold: &[LabelSet],
        taxonomy: Taxonomy,
        job: &Job,
    ) -> Result<Self> {
        recipe.validate()?;
        let vectorizer = Vectorizer::fit(&recipe.features, documents, job)?;
        let rows = vectorizer.transform_all(documents, job)?;
        let mut matrix = SparseMatrix::new(vectorizer.n_features());
        let mut labels: Vec<Vec<u32>> = Vec::new();
        for (row, gold) in rows.into_iter().zip(gold).filter(|(row, _)| !row.is_empty()) {
            matrix.push_row(row);
            labels.push(gold.iter().map(|label| label.index() as u32).collect());
        }
        if vectorizer.n_features() == 0 && documents.iter().any(|document| !document.is_empty()) {
            return Err(Error::NoFeatures { min_df: recipe.features.min_df });
        }
        if labels.iter().all(Vec::is_empty) {
            return Err(Error::NothingToLearn { n_documents: documents.len() });
        }
        let examples = Examples { rows: &matrix, labels: &labels, n_labels: taxonomy.n_labels() };
        let forest = train::train(&examples, recipe.head, &recipe.linear, &recipe.train, job)?;
        Ok(Self { recipe: recipe.clone(), taxonomy, vectorizer, forest })
    }

    /// How the model was made.
    #[must_use]
    pub fn recipe(&self) -> &LinearRecipe {
        &self.recipe
    }

    /// The features that the model looks at.
    #[must_use]
    pub fn vectorizer(&self) -> &Vectorizer {
        &self.vectorizer
    }

    /// The number of weights kept after pruning.
    #[must_use]
    pub fn n_weights(&self) -> usize {
        self.forest.weights.len()
    }

    /// Writes `linear.json`, `model.safetensors` and the vectorizer's files into a bundle. The taxonomy is the
    /// caller's to keep.
    pub fn save(&self, writer: &Writer) -> Result<()> {
        let card = Card { recipe: self.recipe.clone(), labels: fingerprint(&self.taxonomy) };
        let json = serde_json::to_vec_pretty(&card)
            .map_err(|error| Error::io("write", &writer.path(RECIPE))(std::io::Error::other(error)))?;
        writer.write(RECIPE, &json)?;
        self.vectorizer.save(writer)?;
        self.forest.write(&writer.path(MODEL))
    }

    /// Reads what [`LinearModel::save`] wrote. The taxonomy must have the labels that the model was trained for.
    pub fn load(folder: &Path, taxonomy: Taxonomy) -> Result<Self> {
        let path = folder.join(RECIPE);
        let card: Card = bundle::read_json(&path)?;
        card.recipe.validate().map_err(|error| BundleError::content_by(&path, error))?;
        if card.labels != fingerprint(&taxonomy) {
            return Err(bundle::content(&path, "the model was trained for other labels"));
        }
        let vectorizer = Vectorizer::load(folder, card.recipe.features.clone())?;
        let forest = Forest::read(&folder.join(MODEL), vectorizer.n_features(), taxonomy.n_labels())?;
        Ok(Self { recipe: card.recipe, taxonomy, vectorizer, forest })
    }
}

/// A hash of the labels in their order: what the numbers in a model stand for.
fn fingerprint(taxonomy: &Taxonomy) -> String {
    let mut hasher = blake3::Hasher::new();
    for label in taxonomy.labels() {
        let id = taxonomy.id(label);
        hasher.update(&(id.len() as u64).to_le_bytes());
        hasher.update(id.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

impl Classifier for LinearModel {
    fn taxonomy(&self) -> &Taxonomy {
        &self.taxonomy
    }

    fn score(&self, documents: &[Document], request: &Request) -> Result<Scores> {
        let svm = self.recipe.head == LinearHead::Svm;
        let preset = if svm && self.taxonomy.n_labels() <= ALL_LABELS { usize::MAX } else { SOME_LABELS };
        let wanted = Request { top_k: Some(request.top_k.unwrap_or(preset)), ..request.clone() };
        let LinearConfig { loss, beam, .. } = self.recipe.linear;
        let scoring = Scoring { head: self.recipe.head, loss, beam };
        let chunk = documents.len().div_ceil(4 * rayon::current_num_threads()).clamp(1, CHUNK);
        let chunks: Vec<Scores> = documents
            .par_chunks(chunk)
            .map(|documents| {
                request.job.cancel.check()?;
                let rows: Vec<SparseRow> = documents.iter().map(|d| self.vectorizer.transform(d)).collect();
                let scored = self.forest.score(&scoring, &rows).into_iter().map(|row| {
                    let known = |(label, score)| Some((self.taxonomy.at(label as usize)?, score));
                    let mut row: Vec<(LabelId, f32)> = row.into_iter().filter_map(known).collect();
                    wanted.narrow(&mut row, &self.taxonomy);
                    row
                });
                let scores = Scores::from_rows(scored);
                request.job.progress.advance(documents.len() as u64);
                Ok(scores)
            })
            .collect::<Result<_>>()?;
        let mut scores = Scores::new();
        for chunk in chunks {
            scores.append(chunk);
        }
        Ok(scores)
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        self.forest.label_vectors()
    }
}

#[cfg(test)]
mod tests;
