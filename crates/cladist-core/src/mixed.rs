//! A classifier made of classifiers: the weighted mean of their probabilities.
//!
//! p = Σ wᵢ·pᵢ with Σ wᵢ = 1; a label that a member does not score counts as 0 there. Weights are fitted on dev, for all
//! labels alike or for classes of labels apart.

mod fit;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use fit::{Fitted, MemberScores, MixedConfig, fit};

use crate::classifier::{Classifier, Request};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::scores::Scores;
use crate::taxonomy::LabelCounts;
use crate::taxonomy::{LabelId, Taxonomy};

/// What each member counts, by class of labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Of each class, the weights of the members.
    pub weights: Vec<Vec<f64>>,
    /// The class of each label, by [`LabelId::index`].
    pub labels: Vec<u8>,
}

impl Weights {
    /// One class of all labels in which all members count the same.
    #[must_use]
    pub fn even(n_members: usize, n_labels: usize) -> Self {
        Self {
            classes: vec!["all".to_owned()],
            weights: vec![vec![1.0 / n_members.max(1) as f64; n_members]],
            labels: vec![0; n_labels],
        }
    }

    /// Classes by training documents: at most `few`, at most `medium`, more.
    #[must_use]
    pub fn by_frequency(n_members: usize, counts: &LabelCounts, few: u32, medium: u32) -> Self {
        let class = |&n: &u32| u8::from(n > few) + u8::from(n > medium);
        let even = Self::even(n_members, 0).weights;
        Self {
            classes: ["few", "medium", "many"].map(str::to_owned).to_vec(),
            weights: even.into_iter().cycle().take(3).collect(),
            labels: counts.counts.iter().map(class).collect(),
        }
    }

    fn of(&self, label: LabelId) -> &[f64] {
        &self.weights[usize::from(self.labels[label.index()])]
    }

    /// Whether they fit so many members and labels, those of a class adding up to 1.
    #[must_use]
    pub fn are_sound(&self, n_members: usize, n_labels: usize) -> bool {
        self.labels.len() == n_labels
            && self.classes.len() == self.weights.len()
            && self.labels.iter().all(|&class| usize::from(class) < self.weights.len())
            && self.weights.iter().all(|weights| {
                let sum: f64 = weights.iter().sum();
                weights.len() == n_members
                    && weights.iter().all(|weight| (0.0..=1.0).contains(weight))
                    && (weights.is_empty() || (sum - 1.0).abs() < 1e-6)
            })
    }
}

/// One of the classifiers.
struct Member {
    classifier: Arc<dyn Classifier>,
    /// Our label of each of its labels.
    labels: Vec<LabelId>,
}

/// Several classifiers as one.
pub struct Mixed {
    taxonomy: Taxonomy,
    members: Vec<Member>,
    weights: Weights,
}

impl std::fmt::Debug for Mixed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mixed").field("weights", &self.weights.weights).finish_non_exhaustive()
    }
}

impl Mixed {
    /// Members that know labels of this taxonomy alone, all counting the same.
    pub fn new(members: Vec<Arc<dyn Classifier>>, taxonomy: Taxonomy) -> Result<Self> {
        let members: Vec<Member> =
            members.into_iter().map(|classifier| member(classifier, &taxonomy)).collect::<Result<_>>()?;
        let weights = Weights::even(members.len(), taxonomy.n_labels());
        Ok(Self { taxonomy, members, weights })
    }

    /// The same with other weights.
    pub fn with_weights(self, weights: Weights) -> Result<Self> {
        if weights.are_sound(self.members.len(), self.taxonomy.n_labels()) {
            Ok(Self { weights, ..self })
        } else {
            Err(Error::setting("mixed.weights", "a weight for each member", "others"))
        }
    }

    /// What each member counts.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The scores of each member, in labels of this taxonomy.
    pub fn member_scores(&self, documents: &[Document], request: &Request) -> Result<Vec<Scores>> {
        let last = self.members.len().saturating_sub(1);
        self.members
            .iter()
            .enumerate()
            .map(|(n, member)| {
                // A document counts once for progress, however many members look at it.
                let job = if n == last {
                    request.job.clone()
                } else {
                    Job { cancel: request.job.cancel.clone(), ..Job::silent() }
                };
                // What is best of all is known only in the end.
                let scores =
                    member.classifier.score(documents, &Request { top_k: None, job, ..request.clone() })?;
                let ours = |row: &[(LabelId, f32)]| {
                    row.iter().map(|&(label, score)| (member.labels[label.index()], score)).collect()
                };
                Ok(Scores::from_rows(scores.rows().map(ours)))
            })
            .collect()
    }

    /// The weighted mean of members' scores.
    #[must_use]
    pub fn mean(&self, members: &[Scores], request: &Request) -> Scores {
        let n = members.first().map_or(0, Scores::len);
        let mut sums = vec![0.0f64; self.taxonomy.n_labels()];
        let mut scores = Scores::new();
        for document in 0..n {
            let mut touched: Vec<LabelId> = Vec::new();
            for (number, member) in members.iter().enumerate() {
                for &(label, score) in member.row(document) {
                    sums[label.index()] += self.weights.of(label)[number] * f64::from(score);
                    touched.push(label);
                }
            }
            touched.sort_unstable();
            touched.dedup();
            let take = |label: LabelId| (label, std::mem::take(&mut sums[label.index()]) as f32);
            let mut row: Vec<(LabelId, f32)> = touched.into_iter().map(take).collect();
            request.narrow(&mut row, &self.taxonomy);
            scores.push_row(row);
        }
        scores
    }
}

fn member(classifier: Arc<dyn Classifier>, taxonomy: &Taxonomy) -> Result<Member> {
    let theirs = classifier.taxonomy();
    let labels = theirs
        .labels()
        .map(|label| {
            taxonomy.get(theirs.id(label)).ok_or_else(|| {
                Error::setting("mixed.members", "models of labels of this corpus", theirs.id(label))
            })
        })
        .collect::<Result<_>>()?;
    Ok(Member { labels, classifier })
}

impl Classifier for Mixed {
    fn taxonomy(&self) -> &Taxonomy {
        &self.taxonomy
    }

    fn score(&self, documents: &[Document], request: &Request) -> Result<Scores> {
        Ok(self.mean(&self.member_scores(documents, request)?, request))
    }
}

#[cfg(test)]
mod tests;
