//! Settings of heads that emit labels in sequence.

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

/// How labels are emitted, whatever the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Emission {
    pub(crate) order: Order,
    pub(crate) scores: ScoresFrom,
    pub(crate) beam: usize,
    pub(crate) min_labels: usize,
    pub(crate) max_labels: usize,
    pub(crate) constrain: Constrain,
    pub(crate) length_normalisation: bool,
    pub(crate) mask_in_training: bool,
    pub(crate) pool_eos_step: bool,
}

/// Settings of a head that emits labels: those of [`Emission`], and what its network has beside them.
macro_rules! emitting {
    (
        $(#[$about:meta])*
        $config:ident of $name:literal {
            $($(#[$doc:meta])* $field:ident: $kind:ty = $default:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $config {
            /// The order of labels: `frequency` or `depth-first`.
            pub order: $crate::heads::label_sequence::Order,
            /// What scores are made of: `steps` of the greedy sequence, or the best sequence of the `beam`.
            pub scores: $crate::heads::label_sequence::ScoresFrom,
            /// Hypotheses of beam search.
            pub beam: usize,
            /// Labels of a sequence at least.
            pub min_labels: usize,
            /// Labels of a sequence at most.
            pub max_labels: usize,
            /// Which labels may follow: `none` has no rule but that a label comes once, `taxonomy` wants a parent first.
            pub constrain: $crate::heads::label_sequence::Constrain,
            /// Compare hypotheses by Σ ln P divided by their length.
            pub length_normalisation: bool,
            /// Take labels that came before out of the softmax in training too.
            pub mask_in_training: bool,
            /// Count the step that ends the sequence among the steps of a label's probability.
            pub pool_eos_step: bool,
            $($(#[$doc])* pub $field: $kind,)*
        }

        impl Default for $config {
            fn default() -> Self {
                Self {
                    order: Default::default(),
                    scores: Default::default(),
                    beam: 5,
                    min_labels: 0,
                    max_labels: 30,
                    constrain: Default::default(),
                    length_normalisation: false,
                    mask_in_training: false,
                    pool_eos_step: true,
                    $($field: $default,)*
                }
            }
        }

        impl $config {
            /// The settings of emission, checked.
            fn emission(&self) -> $crate::error::Result<$crate::heads::label_sequence::Emission> {
                let wrong = |key, expected, value: usize| Err($crate::heads::settings::setting(key, expected, value));
                if !(1..=100).contains(&self.beam) {
                    return wrong(concat!($name, ".beam"), "1 to 100", self.beam);
                }
                if self.max_labels == 0 {
                    return wrong(concat!($name, ".max_labels"), "at least 1", self.max_labels);
                }
                if self.min_labels > self.max_labels {
                    return wrong(concat!($name, ".min_labels"), "at most `max_labels`", self.min_labels);
                }
                Ok($crate::heads::label_sequence::Emission {
                    order: self.order,
                    scores: self.scores,
                    beam: self.beam,
                    min_labels: self.min_labels,
                    max_labels: self.max_labels,
                    constrain: self.constrain,
                    length_normalisation: self.length_normalisation,
                    mask_in_training: self.mask_in_training,
                    pool_eos_step: self.pool_eos_step,
                })
            }
        }
    };
}
pub(crate) use emitting;
