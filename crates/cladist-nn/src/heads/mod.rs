//! Heads: from the states of an encoder to losses and scores.
//!
//! A new head is a file beside this one and a line in the table at the end.

pub mod aplc;
pub mod attention_xml;
pub mod biforest;
pub mod branches;
mod context;
mod document;
pub mod enc_dec;
pub mod experts;
pub mod flat;
pub mod hilap;
pub mod hmcn;
mod input;
pub mod label_attention;
pub mod label_pooling;
pub mod label_sequence;
mod labelwise;
pub mod layer_guided;
mod levels;
pub mod light_xml;
mod mixture;
mod objective;
mod outputs;
pub mod sgm;
pub mod structure;
pub mod text_cnn;
pub mod xml_cnn;

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::classifier::LabelSequence;
use cladist_core::scores::keep_top;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use context::HeadContext;
pub use document::Pool;
pub use input::{HeadInput, LabelBatch, LabelStates, Moment};
pub use objective::Objective;
pub use outputs::{Listed, Outputs, Vectors};

pub(crate) use crate::seeds::DROPOUT;
pub(crate) use document::DocumentVector;
pub(crate) use labelwise::{Labelwise, select_columns};
pub(crate) use outputs::rows_of;

use crate::descriptions::DescriptionConfig;
use crate::encoder::LayerSet;
use crate::error::{Error, Result};
use label_pooling::{caml, laat, lwan};
use structure::{coding_tree, gat, gcn, hi_match};

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
    fn pooled(&self) -> bool;
    /// Whether the head learns labels of every level, so that gold labels should bring their ancestors.
    fn learns_ancestors(&self) -> bool {
        false
    }
    /// How it is masked to a branch of the taxonomy.
    fn masking(&self) -> Masking {
        Masking::Never
    }
    /// How descriptions of labels are to be read; `None` if the head needs none.
    fn describes(&self) -> Option<DescriptionConfig> {
        None
    }
    /// Whether nothing but descriptions tells labels apart, so that the trained head answers for labels that it has not met.
    fn knows_new_labels(&self) -> bool {
        false
    }
    /// Fills in settings that follow from the number of epochs.
    fn settle(&mut self, _epochs: usize) {}
    /// Fills in settings that follow from how many labels all heads have, if this is one for each of several branches.
    fn fit(&mut self, _n_labels: usize) {}
    /// A head with new parameters.
    fn build(&self, context: &HeadContext<'_>) -> Result<Self::Head>;
}

/// Parameters that share a learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The encoder's.
    Encoder,
    /// A head's knowledge of labels or of their structure.
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

    /// How much each of these labels looks at each token, `[documents, labels, longest]`, if the head looks at tokens
    /// label by label. Padding has 0.
    fn attention(&self, _input: &HeadInput<'_>, _labels: &[LabelId]) -> Option<Tensor<3>> {
        None
    }

    /// The group of a parameter by its name inside the head.
    fn group(&self, _parameter: &str) -> Group {
        Group::Output
    }
}

/// Rows of `(label, probability)` from a matrix `[documents, labels]`.
pub(crate) fn rows(
    probabilities: Tensor<2>,
    labels: &[LabelId],
    top_k: Option<usize>,
) -> Vec<Vec<(LabelId, f32)>> {
    let values = crate::parameters::to_vec(probabilities);
    let row = |values: &[f32]| {
        let mut row: Vec<(LabelId, f32)> = labels.iter().copied().zip(values.iter().copied()).collect();
        if let Some(k) = top_k {
            keep_top(&mut row, k);
        }
        row
    };
    values.chunks_exact(labels.len().max(1)).map(row).collect()
}

/// Columns of gold labels.
pub(crate) fn columns(gold: &[LabelSet]) -> Vec<Vec<u32>> {
    gold.iter().map(|labels| labels.iter().map(|label| label.index() as u32).collect()).collect()
}

/// Makes the one enum of heads, their settings by name, and what depends on which head it is.
macro_rules! heads {
    ($($(#[$doc:meta])* $variant:ident { $name:literal, $module:ident::$config:ident => $head:ident };)+) => {
        /// Any head.
        #[derive(Module, Debug)]
        #[expect(clippy::large_enum_variant, reason = "a model has one")]
        pub enum AnyHead {
            $($(#[$doc])* $variant($module::$head),)+
            /// One of them for each branch of the taxonomy.
            Branches(branches::Branched),
        }

        /// Settings of any head.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyHeadConfig {
            $($(#[$doc])* $variant($module::$config),)+
        }

        /// All heads: their names as users write them, a line of help, and their default settings.
        pub const HEADS: &[(&str, &str, fn() -> AnyHeadConfig)] =
            &[$(($name, $module::ABOUT, || AnyHeadConfig::$variant($module::$config::default())),)+];

        impl AnyHeadConfig {
            /// The settings of a head from its section; unknown keys are refused.
            pub fn parse<'de, D: serde::Deserializer<'de>>(name: &str, section: D) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some($module::$config::deserialize(section).map(Self::$variant)),)+
                    _ => None,
                }
            }

            /// The head's name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            /// The section as it is written.
            pub fn serialize_section<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$variant(config) => config.serialize(serializer),)+ }
            }

            /// See [`HeadConfig::pooled`].
            #[must_use]
            pub fn pooled(&self) -> bool {
                match self { $(Self::$variant(config) => config.pooled(),)+ }
            }

            /// See [`HeadConfig::learns_ancestors`].
            #[must_use]
            pub fn learns_ancestors(&self) -> bool {
                match self { $(Self::$variant(config) => config.learns_ancestors(),)+ }
            }

            /// See [`HeadConfig::masking`].
            #[must_use]
            pub fn masking(&self) -> Masking {
                match self { $(Self::$variant(config) => config.masking(),)+ }
            }

            /// See [`HeadConfig::describes`].
            #[must_use]
            pub fn describes(&self) -> Option<DescriptionConfig> {
                match self { $(Self::$variant(config) => config.describes(),)+ }
            }

            /// See [`HeadConfig::knows_new_labels`].
            #[must_use]
            pub fn knows_new_labels(&self) -> bool {
                match self { $(Self::$variant(config) => config.knows_new_labels(),)+ }
            }

            /// See [`HeadConfig::settle`].
            pub fn settle(&mut self, epochs: usize) {
                match self { $(Self::$variant(config) => config.settle(epochs),)+ }
            }

            /// See [`HeadConfig::fit`].
            pub fn fit(&mut self, n_labels: usize) {
                match self { $(Self::$variant(config) => config.fit(n_labels),)+ }
            }

            /// See [`HeadConfig::build`].
            pub fn build(&self, context: &HeadContext<'_>) -> Result<AnyHead> {
                match self { $(Self::$variant(config) => Ok(AnyHead::$variant(config.build(context)?)),)+ }
            }
        }

        impl AnyHead {
            /// See [`Head::objective`].
            #[must_use]
            pub fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
                match self {
                    $(Self::$variant(head) => head.objective(input, gold, moment),)+
                    Self::Branches(heads) => heads.objective(input, gold, moment),
                }
            }

            /// See [`Head::layers`].
            #[must_use]
            pub fn layers(&self, levels: Option<&RangeInclusive<usize>>) -> LayerSet {
                match self {
                    $(Self::$variant(head) => head.layers(levels),)+
                    Self::Branches(heads) => heads.layers(levels),
                }
            }

            /// See [`Head::score`].
            #[must_use]
            pub fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
                match self {
                    $(Self::$variant(head) => head.score(input, top_k),)+
                    Self::Branches(heads) => heads.score(input, top_k),
                }
            }

            /// See [`Head::logits`].
            #[must_use]
            pub fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
                match self {
                    $(Self::$variant(head) => head.logits(input),)+
                    Self::Branches(heads) => heads.logits(input),
                }
            }

            /// See [`Head::sequences`].
            #[must_use]
            pub fn sequences(&self, input: &HeadInput<'_>, n_best: usize) -> Option<Vec<Vec<LabelSequence>>> {
                match self {
                    $(Self::$variant(head) => head.sequences(input, n_best),)+
                    Self::Branches(heads) => heads.sequences(input, n_best),
                }
            }

            /// See [`Head::label_vectors`].
            #[must_use]
            pub fn label_vectors(&self) -> Option<Vec<SparseRow>> {
                match self {
                    $(Self::$variant(head) => head.label_vectors(),)+
                    Self::Branches(heads) => heads.label_vectors(),
                }
            }

            /// See [`Head::label_batch`].
            #[must_use]
            pub fn label_batch(&self, gold: &[LabelSet], moment: &Moment) -> Option<LabelBatch> {
                match self {
                    $(Self::$variant(head) => head.label_batch(gold, moment),)+
                    Self::Branches(heads) => heads.label_batch(gold, moment),
                }
            }

            /// See [`Head::outputs`].
            #[must_use]
            pub fn outputs(&self) -> Option<&Outputs> {
                match self {
                    $(Self::$variant(head) => head.outputs(),)+
                    Self::Branches(_) => None,
                }
            }

            /// See [`Head::groups`].
            #[must_use]
            pub fn groups(&self, input: &HeadInput<'_>) -> Option<Tensor<2>> {
                match self {
                    $(Self::$variant(head) => head.groups(input),)+
                    Self::Branches(_) => None,
                }
            }

            /// See [`Head::attention`].
            #[must_use]
            pub fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
                match self {
                    $(Self::$variant(head) => head.attention(input, labels),)+
                    Self::Branches(heads) => heads.attention(input, labels),
                }
            }

            /// See [`Head::group`].
            #[must_use]
            pub fn group(&self, parameter: &str) -> Group {
                match self {
                    $(Self::$variant(head) => head.group(parameter),)+
                    Self::Branches(heads) => heads.group(parameter),
                }
            }
        }
    };
}

heads! {
    /// Labels in clusters by frequency.
    Aplc { "aplc", aplc::AplcConfig => Aplc };
    /// Labels that look at the states of a BiLSTM.
    AttentionXml { "attention-xml", attention_xml::AttentionXmlConfig => AttentionXml };
    /// Labels that weigh n-grams.
    Biforest { "biforest", biforest::BiforestConfig => Biforest };
    /// Labels that weigh the words after a convolution.
    Caml { "caml", caml::CamlConfig => LabelPooling };
    /// Features of labels summed up a tree of groups of labels.
    CodingTree { "coding-tree", coding_tree::CodingTreeConfig => TreeNetwork };
    /// Labels one after the other, from a GRU on word vectors.
    EncDec { "enc-dec", enc_dec::EncDecConfig => LabelSequencer };
    /// Experts on several layers.
    Experts { "experts", experts::ExpertsConfig => Experts };
    /// One output per label on the document vector.
    Flat { "flat", flat::FlatConfig => Flat };
    /// Documents and labels in one space.
    HiMatch { "hi-match", hi_match::HiMatchConfig => HiMatch };
    /// Features of labels that travel along the hierarchy by attention.
    HierarchyGat { "hierarchy-gat", gat::HierarchyGatConfig => Propagation };
    /// Features of labels that travel along the hierarchy through gates.
    HierarchyGcn { "hierarchy-gcn", gcn::HierarchyGcnConfig => Propagation };
    /// Labels assigned by walks through the taxonomy.
    Hilap { "hilap", hilap::HilapConfig => Hilap };
    /// A layer for each level of the taxonomy.
    Hmcn { "hmcn", hmcn::HmcnConfig => Hmcn };
    /// Labels that weigh the words through a hidden layer.
    Laat { "laat", laat::LaatConfig => LabelPooling };
    /// Labels that look at tokens with what their descriptions say.
    LabelAttention { "label-attention", label_attention::LabelAttentionConfig => LabelAttention };
    /// Labels one after the other.
    LabelSequence { "label-sequence", label_sequence::LabelSequenceConfig => LabelSequencer };
    /// Levels of the taxonomy on layers of the encoder.
    LayerGuided { "layer-guided", layer_guided::LayerGuidedConfig => LayerGuided };
    /// `[CLS]` of several layers side by side.
    LightXml { "light-xml", light_xml::LightXmlConfig => LightXml };
    /// Labels that weigh the words.
    Lwan { "lwan", lwan::LwanConfig => LabelPooling };
    /// Labels one after the other, from a BiLSTM on word vectors.
    Sgm { "sgm", sgm::SgmConfig => LabelSequencer };
    /// Convolutions over words.
    TextCnn { "text-cnn", text_cnn::TextCnnConfig => TextCnn };
    /// Convolutions over words with dynamic pooling.
    XmlCnn { "xml-cnn", xml_cnn::XmlCnnConfig => XmlCnn };
}

/// The error for a setting of a head.
pub(crate) fn setting(key: &'static str, expected: &'static str, value: impl ToString) -> Error {
    cladist_core::Error::setting(key, expected, value).into()
}

#[cfg(test)]
mod tests;
