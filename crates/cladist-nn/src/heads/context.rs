//! What heads are built from.

use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use cladist_core::taxonomy::CodingTrees;
use cladist_core::{LabelCounts, LabelId, Taxonomy};
use rand_chacha::ChaCha8Rng;

use super::Task;
use crate::blocks::Linear;
use crate::shortlist::Shortlist;

/// What a head is built from.
#[derive(Clone, Copy)]
pub struct HeadContext<'a> {
    /// The labels.
    pub taxonomy: &'a Taxonomy,
    /// Those that are to be answered for, ascending, if not all are; the others are there for the structure alone.
    pub only: Option<&'a [LabelId]>,
    /// How often training documents have each label.
    pub label_counts: &'a LabelCounts,
    /// Width of the encoder's states.
    pub hidden_size: usize,
    /// Layers of the encoder.
    pub n_layers: usize,
    /// What is to be predicted.
    pub task: Task,
    /// Share of the target given to all labels alike.
    pub label_smoothing: f64,
    /// Whether output biases are initialised to the label prior's log-odds.
    pub prior_bias: bool,
    /// Vectors of label descriptions, for a new head that starts from them.
    pub labels: Option<&'a Tensor<2>>,
    /// Groups of labels, if not all are to be learnt and scored at a time.
    pub shortlist: Option<&'a Arc<Shortlist>>,
    /// Coding trees of the labels.
    pub trees: &'a CodingTrees,
    /// Where parameters live.
    pub device: &'a Device,
    /// Seed of new parameters.
    pub seed: u64,
}

impl HeadContext<'_> {
    /// The labels that are to be answered for, ascending.
    #[must_use]
    pub fn answered(&self) -> Vec<LabelId> {
        self.only.map_or_else(|| self.taxonomy.labels().collect(), <[LabelId]>::to_vec)
    }

    /// How many of them there are.
    pub(crate) fn n_answered(&self) -> usize {
        self.only.map_or_else(|| self.taxonomy.n_labels(), <[LabelId]>::len)
    }

    /// Initial output biases of [`HeadContext::answered`]: the label prior's log-odds (its logarithm for a softmax), or 0.
    ///
    /// An output that starts at even odds spends hundreds of updates on learning that its label is rare, by weights that
    /// have better to do.
    #[must_use]
    pub fn biases(&self) -> Vec<f32> {
        let all = self.biases_of_all();
        self.only.map_or_else(|| all.clone(), |only| only.iter().map(|label| all[label.index()]).collect())
    }

    fn biases_of_all(&self) -> Vec<f32> {
        let n_labels = self.taxonomy.n_labels();
        match self.task {
            _ if !self.prior_bias => vec![0.0; n_labels],
            Task::MultiLabel => self.label_counts.log_odds(n_labels),
            Task::MultiClass => self.label_counts.log_shares(n_labels),
        }
    }

    /// The same for an output that all labels share: the mean.
    #[must_use]
    pub fn shared_bias(&self) -> f32 {
        let biases = self.biases();
        (biases.iter().map(|&bias| f64::from(bias)).sum::<f64>() / biases.len().max(1) as f64) as f32
    }

    /// A new output for each of [`HeadContext::answered`] on vectors of this width.
    pub(crate) fn outputs(&self, inputs: usize, random: &mut ChaCha8Rng) -> Linear {
        let biases = self.biases();
        Linear::new(inputs, biases.len(), random, self.device).with_bias(biases)
    }

    /// A new output for each of these labels.
    pub(crate) fn outputs_of(&self, inputs: usize, labels: &[LabelId], random: &mut ChaCha8Rng) -> Linear {
        let biases = self.biases_of_all();
        let biases = labels.iter().map(|label| biases[label.index()]).collect();
        Linear::new(inputs, labels.len(), random, self.device).with_bias(biases)
    }

    /// Biases of the groups of a shortlist: the log-odds of any label of a group, at most even. Where groups learn by the
    /// hinge, −1, what it wants of groups that a document is not in.
    pub(crate) fn group_biases(&self, shortlist: &Shortlist) -> Vec<f32> {
        let n_groups = shortlist.partition.n_groups();
        if !self.prior_bias {
            return vec![0.0; n_groups];
        }
        if shortlist.config.match_only {
            return vec![-1.0; n_groups];
        }
        let log_odds = |share: f64| (share / (1.0 - share)).ln() as f32;
        (0..n_groups).map(|group| log_odds(shortlist.group_share(group, self.label_counts))).collect()
    }
}
