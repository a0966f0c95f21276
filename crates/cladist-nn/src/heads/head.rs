//! What a head and its settings are.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::classifier::LabelSequence;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{HeadContext, HeadInput, LabelBatch, Moment, Objective, Outputs, Pool};
use crate::descriptions::DescriptionConfig;
use crate::encoder::{EncoderConfig, LayerSet};
use crate::error::Result;

/// What is to be predicted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Any number of labels per document: a sigmoid for each.
    #[default]
    MultiLabel,
    /// Exactly one label per document: a softmax over all.
    MultiClass,
}

/// How a head is masked to a branch of the taxonomy, so that it learns and answers for labels of that branch alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Masking {
    /// Not at all.
    Never,
    /// By not having other labels, since none of its own depends on them.
    Alone,
    /// By outputs for labels of the branch alone, in the structure of all labels ([`HeadContext::only`]).
    Among,
}

/// Settings of a head: what it wants of the encoder, and how to build it.
pub trait HeadConfig: Serialize + DeserializeOwned + Default {
    /// The head.
    type Head: Head;
    /// Whether the head reads the pooled `[CLS]` vector.
    fn pooled(&self) -> bool {
        self.pool() == Some(Pool::Pooled)
    }
    /// What it reads of a document, if that is one vector a layer.
    fn pool(&self) -> Option<Pool> {
        None
    }
    /// The same, to be settled.
    fn pool_mut(&mut self) -> Option<&mut Pool> {
        None
    }
    /// Whether the head learns labels of every level, so that gold labels should bring their ancestors.
    fn learns_ancestors(&self) -> bool {
        false
    }
    /// How it is masked to a branch of the taxonomy.
    fn masking(&self) -> Masking {
        Masking::Never
    }
    /// How label descriptions are to be encoded; `None` if the head needs none.
    fn describes(&self) -> Option<DescriptionConfig> {
        None
    }
    /// Whether label representations come from descriptions alone, so that the trained head scores unseen labels (zero-shot).
    fn knows_new_labels(&self) -> bool {
        false
    }
    /// Whether it answers with a set of labels, such as the best sequence of a search: labels above 0.5 are in it. Such scores
    /// are no probabilities to calibrate or to fit thresholds to.
    fn answers_sets(&self) -> bool {
        false
    }
    /// Fills in settings that follow from the number of epochs.
    fn settle(&mut self, _epochs: usize) {}
    /// Fills in settings that follow from how many labels the whole taxonomy has, if there is a head for each of several branches.
    fn fit(&mut self, _n_labels: usize) {}
    /// Fills in settings that follow from the encoder that a new head is made for; they are kept with the model.
    fn suit(&mut self, _encoder: &EncoderConfig) {}
    /// A head with new parameters.
    fn build(&self, context: &HeadContext<'_>) -> Result<Self::Head>;
}

/// Parameters that share a learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The encoder's.
    Encoder,
    /// A head's label embeddings and label structure.
    Labels,
    /// A head's last layers.
    Output,
}

/// From encoder states to losses and scores.
pub trait Head: Module {
    /// The loss of a batch; `gold[i]` are the labels of document i.
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective;

    /// Layers whose states the head reads to answer for these levels of the taxonomy; for all if `None`.
    fn layers(&self, levels: Option<&RangeInclusive<usize>>) -> LayerSet;

    /// A row per document, in any order, of probabilities; the best `top_k` if given. Labels whose layers the
    /// encoder did not run get none.
    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>>;

    /// Logits `[documents, labels]` without dropout and the labels of the columns, if the head has them: what gradients are
    /// taken of.
    fn logits(&self, _input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        None
    }

    /// The likeliest sequences of labels of each document, if the head emits labels in sequence.
    fn sequences(&self, _input: &HeadInput<'_>, _n_best: usize) -> Option<Vec<Vec<LabelSequence>>> {
        None
    }

    /// The weights of each label's output on the states that the head reads, in the order of [`HeadContext::answered`]; `None`
    /// if labels have no outputs of their own.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        None
    }

    /// The labels to encode for a training step, if the head reads descriptions.
    fn label_batch(&self, _gold: &[LabelSet], _moment: &Moment) -> Option<LabelBatch> {
        None
    }

    /// The last layer, if it may have a shortlist.
    fn outputs(&self) -> Option<&Outputs> {
        None
    }

    /// Logits `[documents, groups]` of the groups of a shortlist without dropout, if they are matched.
    fn groups(&self, _input: &HeadInput<'_>) -> Option<Tensor<2>> {
        None
    }

    /// Attention weights of each of these labels on each token, `[documents, labels, longest]`, if the head has label-wise
    /// attention. Padding has 0.
    fn attention(&self, _input: &HeadInput<'_>, _labels: &[LabelId]) -> Option<Tensor<3>> {
        None
    }

    /// The group of a parameter by its name inside the head.
    fn group(&self, _parameter: &str) -> Group {
        Group::Output
    }
}
