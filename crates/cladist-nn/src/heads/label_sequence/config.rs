//! Settings.

use serde::{Deserialize, Serialize};

/// The order in which gold labels are learnt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By their number of training documents, most first.
    #[default]
    Frequency,
    /// Through the taxonomy from the root, branch by branch.
    DepthFirst,
}

/// Where scores come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoresFrom {
    /// The highest probability of a label over the steps of the greedy sequence.
    #[default]
    Steps,
    /// The best sequence of the beam: its labels have ½ + ½·(probability at their step), all others 0.
    Beam,
}

/// Which labels may follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constrain {
    /// All that have not come yet.
    #[default]
    None,
    /// Those at the top of the taxonomy, and those with a parent that has come.
    Taxonomy,
}

/// Settings of the label-sequence head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabelSequenceConfig {
    /// The order of labels: `frequency` or `depth-first`.
    pub order: Order,
    /// What scores are made of: `steps` of the greedy sequence, or the best sequence of the `beam`.
    pub scores: ScoresFrom,
    /// Hypotheses of beam search.
    pub beam: usize,
    /// Labels of a sequence at least.
    pub min_labels: usize,
    /// Labels of a sequence at most.
    pub max_labels: usize,
    /// Which labels may follow: `none` has no rule but that a label comes once, `taxonomy` wants a parent first.
    pub constrain: Constrain,
    /// Compare hypotheses by Σ ln P divided by their length.
    pub length_normalisation: bool,
    /// Feed the decoder the context of the step before, as the paper's algorithm is printed.
    pub lagged_context: bool,
    /// Take labels that came before out of the softmax in training too.
    pub mask_in_training: bool,
    /// Divide attention scores by the square root of the width.
    pub scale_attention: bool,
    /// Count the step that ends the sequence among the steps of a label's probability.
    pub pool_eos_step: bool,
}

impl Default for LabelSequenceConfig {
    fn default() -> Self {
        Self {
            order: Order::default(),
            scores: ScoresFrom::default(),
            beam: 5,
            min_labels: 0,
            max_labels: 30,
            constrain: Constrain::default(),
            length_normalisation: false,
            lagged_context: false,
            mask_in_training: false,
            scale_attention: false,
            pool_eos_step: true,
        }
    }
}
