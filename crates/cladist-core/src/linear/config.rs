//! What can be chosen about linear models.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::label_tree::TreeConfig;

/// The linear heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinearHead {
    /// One classifier per label, each label against all others.
    Svm,
    /// Balanced binary label trees (Prabhu et al. 2018).
    Parabel,
    /// Shallow label trees of high arity (Khandagale et al. 2020).
    Bonsai,
}

/// What a classifier is punished for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// max(0, 1 − ys)².
    #[default]
    SquaredHinge,
    /// ln(1 + e^−ys).
    Logistic,
}

/// The model: the `[linear]` section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinearConfig {
    /// What classifiers are trained with.
    pub loss: Loss,
    /// The weight of the loss against ½‖w‖².
    pub c: f32,
    /// A classifier is done when its projected gradients span no more than this.
    pub epsilon: f32,
    /// Weights this small or smaller are dropped.
    pub prune: f32,
    /// Label trees, averaged; without effect on `svm`.
    pub n_trees: usize,
    /// Nodes with fewer labels are not split; without effect on `svm`.
    pub min_branch_size: usize,
    /// Classifiers from the root to a label at most. Preset: 20 for `parabel`, 3 for `bonsai`, always 1 for `svm`.
    pub max_depth: Option<usize>,
    /// Clusters that a node is split into. Preset: 2 for `parabel`, which splits into halves of equal size if this
    /// is 2; 100 for `bonsai`; without effect on `svm`.
    pub k: Option<usize>,
    /// Clustering stops when the mean similarity to the own centre grows by less.
    pub cluster_epsilon: f32,
    /// Nodes kept per level of a tree when scoring.
    pub beam: usize,
}

impl Default for LinearConfig {
    fn default() -> Self {
        Self {
            loss: Loss::SquaredHinge,
            c: 1.0,
            epsilon: 0.1,
            prune: 0.05,
            n_trees: 3,
            min_branch_size: 100,
            max_depth: None,
            k: None,
            cluster_epsilon: 1e-4,
            beam: 10,
        }
    }
}

impl LinearConfig {
    /// How the labels of a head are clustered.
    pub(crate) fn tree(&self, head: LinearHead) -> TreeConfig {
        let (max_depth, k) = match head {
            LinearHead::Svm => (1, 2),
            LinearHead::Parabel => (20, 2),
            LinearHead::Bonsai => (3, 100),
        };
        TreeConfig {
            k: self.k.unwrap_or(k),
            balanced: head == LinearHead::Parabel,
            min_split: self.min_branch_size,
            max_depth: self.max_depth.unwrap_or(max_depth),
            epsilon: self.cluster_epsilon,
        }
    }

    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        let positive = |value: f32| value > 0.0 && value.is_finite();
        if !positive(self.c) {
            return Err(Error::setting("linear.c", "a number above 0", self.c));
        }
        if !positive(self.epsilon) {
            return Err(Error::setting("linear.epsilon", "a number above 0", self.epsilon));
        }
        if !(self.prune >= 0.0 && self.prune.is_finite()) {
            return Err(Error::setting("linear.prune", "0 or a number above", self.prune));
        }
        if self.n_trees == 0 || self.n_trees > 1000 {
            return Err(Error::setting("linear.n_trees", "1 to 1000", self.n_trees));
        }
        if self.min_branch_size < 2 {
            return Err(Error::setting("linear.min_branch_size", "at least 2", self.min_branch_size));
        }
        if self.max_depth == Some(0) {
            return Err(Error::setting("linear.max_depth", "at least 1", 0));
        }
        if let Some(k) = self.k
            && !(2..=10_000).contains(&k)
        {
            return Err(Error::setting("linear.k", "2 to 10000", k));
        }
        if !positive(self.cluster_epsilon) {
            return Err(Error::setting("linear.cluster_epsilon", "a number above 0", self.cluster_epsilon));
        }
        if !(1..=1_000_000).contains(&self.beam) {
            return Err(Error::setting("linear.beam", "1 to 1000000", self.beam));
        }
        Ok(())
    }
}

/// The training run: what of the `[train]` section concerns linear models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinearTrain {
    /// Passes over the documents of a classifier at most.
    pub epochs: usize,
    /// Decides the order of documents and the first centres of clusters.
    pub seed: u64,
}

impl Default for LinearTrain {
    fn default() -> Self {
        Self { epochs: 20, seed: 42 }
    }
}

impl LinearTrain {
    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        if self.epochs == 0 {
            return Err(Error::setting("train.epochs", "at least 1", self.epochs));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_sense_are_refused_by_name() {
        let default = LinearConfig::default;
        default().validate().unwrap();
        for (key, config) in [
            ("linear.c", LinearConfig { c: 0.0, ..default() }),
            ("linear.epsilon", LinearConfig { epsilon: f32::NAN, ..default() }),
            ("linear.prune", LinearConfig { prune: -0.1, ..default() }),
            ("linear.n_trees", LinearConfig { n_trees: 0, ..default() }),
            ("linear.min_branch_size", LinearConfig { min_branch_size: 1, ..default() }),
            ("linear.max_depth", LinearConfig { max_depth: Some(0), ..default() }),
            ("linear.k", LinearConfig { k: Some(1), ..default() }),
            ("linear.cluster_epsilon", LinearConfig { cluster_epsilon: -1.0, ..default() }),
            ("linear.beam", LinearConfig { beam: 0, ..default() }),
        ] {
            let error = config.validate().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{key}` must be ")), "{error}");
            assert_eq!(error.kind(), crate::ErrorKind::Setting);
        }
        assert!(LinearTrain { epochs: 0, ..LinearTrain::default() }.validate().is_err());
    }

    #[test]
    fn depth_and_arity_of_trees_follow_the_head_unless_set() {
        let shape = |config: &LinearConfig, head| {
            let TreeConfig { k, balanced, max_depth, .. } = config.tree(head);
            (k, balanced, max_depth)
        };
        let default = LinearConfig::default();
        assert_eq!(shape(&default, LinearHead::Svm).2, 1);
        assert_eq!(shape(&default, LinearHead::Parabel), (2, true, 20));
        assert_eq!(shape(&default, LinearHead::Bonsai), (100, false, 3));
        let set = LinearConfig { max_depth: Some(2), k: Some(4), ..default };
        assert_eq!(shape(&set, LinearHead::Bonsai), (4, false, 2));
    }

    #[test]
    fn keys_and_values_are_words_of_the_configuration() {
        let config: LinearConfig = serde_json::from_str(r#"{"loss": "logistic", "k": 16}"#).unwrap();
        assert_eq!(config, LinearConfig { loss: Loss::Logistic, k: Some(16), ..LinearConfig::default() });
        assert!(serde_json::from_str::<LinearConfig>(r#"{"C": 1}"#).is_err());
        assert_eq!(serde_json::to_string(&LinearHead::Svm).unwrap(), r#""svm""#);
    }
}
