//! The table of heads, and what derives from it.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::classifier::LabelSequence;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use serde::{Deserialize, Serialize};

use super::label_pooling::{caml, laat, lwan};
use super::structure::{coding_tree, gat, gcn, hi_match};
use super::{
    Group, Head, HeadConfig, HeadContext, HeadInput, LabelBatch, Masking, Moment, Objective, Outputs, Pool,
    aplc, attention_xml, biforest, branches, enc_dec, experts, flat, hilap, hmcn, label_attention,
    label_sequence, layer_guided, light_xml, sgm, text_cnn, xml_cnn,
};
use crate::descriptions::DescriptionConfig;
use crate::encoder::{EncoderConfig, LayerSet, Pooling};
use crate::error::Result;

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

            /// See [`HeadConfig::answers_sets`].
            #[must_use]
            pub fn answers_sets(&self) -> bool {
                match self { $(Self::$variant(config) => config.answers_sets(),)+ }
            }

            /// See [`HeadConfig::settle`].
            pub fn settle(&mut self, epochs: usize) {
                match self { $(Self::$variant(config) => config.settle(epochs),)+ }
            }

            /// See [`HeadConfig::pool`].
            #[must_use]
            pub fn pool(&self) -> Option<Pool> {
                match self { $(Self::$variant(config) => config.pool(),)+ }
            }

            /// Reads documents as the encoder was pretrained, unless settings say how.
            pub fn settle_pool(&mut self, pretrained: Pooling) {
                let pool = match self { $(Self::$variant(config) => config.pool_mut(),)+ };
                if let Some(pool) = pool {
                    pool.settle(pretrained);
                }
            }

            /// See [`HeadConfig::fit`].
            pub fn fit(&mut self, n_labels: usize) {
                match self { $(Self::$variant(config) => config.fit(n_labels),)+ }
            }

            /// See [`HeadConfig::suit`].
            pub fn suit(&mut self, encoder: &EncoderConfig) {
                match self { $(Self::$variant(config) => config.suit(encoder),)+ }
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
    /// Probabilistic label clusters by frequency.
    Aplc { "aplc", aplc::AplcConfig => Aplc };
    /// Label-wise attention over a BiLSTM.
    AttentionXml { "attention-xml", attention_xml::AttentionXmlConfig => AttentionXml };
    /// Label-wise attention over n-grams.
    Biforest { "biforest", biforest::BiforestConfig => Biforest };
    /// Label-wise attention over a convolution.
    Caml { "caml", caml::CamlConfig => LabelPooling };
    /// Message passing up a coding tree.
    CodingTree { "coding-tree", coding_tree::CodingTreeConfig => TreeNetwork };
    /// Sequence generation by a GRU encoder-decoder.
    EncDec { "enc-dec", enc_dec::EncDecConfig => LabelSequencer };
    /// Mixture of experts on several layers.
    Experts { "experts", experts::ExpertsConfig => Experts };
    /// A linear output layer on the document vector.
    Flat { "flat", flat::FlatConfig => Flat };
    /// A joint embedding space of documents and labels.
    HiMatch { "hi-match", hi_match::HiMatchConfig => HiMatch };
    /// Message passing along the hierarchy by graph attention.
    HierarchyGat { "hierarchy-gat", gat::HierarchyGatConfig => Propagation };
    /// Message passing along the hierarchy by gated graph convolution.
    HierarchyGcn { "hierarchy-gcn", gcn::HierarchyGcnConfig => Propagation };
    /// Labels assigned by a policy that walks the taxonomy.
    Hilap { "hilap", hilap::HilapConfig => Hilap };
    /// A layer for each level of the taxonomy.
    Hmcn { "hmcn", hmcn::HmcnConfig => Hmcn };
    /// Label-wise attention through a hidden layer.
    Laat { "laat", laat::LaatConfig => LabelPooling };
    /// Cross-attention from encoded label descriptions to tokens.
    LabelAttention { "label-attention", label_attention::LabelAttentionConfig => LabelAttention };
    /// Sequence generation by an LSTM decoder on the encoder.
    LabelSequence { "label-sequence", label_sequence::LabelSequenceConfig => LabelSequencer };
    /// Levels of the taxonomy on layers of the encoder.
    LayerGuided { "layer-guided", layer_guided::LayerGuidedConfig => LayerGuided };
    /// Concatenated `[CLS]` of several layers.
    LightXml { "light-xml", light_xml::LightXmlConfig => LightXml };
    /// Label-wise attention over tokens.
    Lwan { "lwan", lwan::LwanConfig => LabelPooling };
    /// Sequence generation by a BiLSTM encoder and an LSTM decoder.
    Sgm { "sgm", sgm::SgmConfig => LabelSequencer };
    /// Convolutions over words.
    TextCnn { "text-cnn", text_cnn::TextCnnConfig => TextCnn };
    /// Convolutions over words with dynamic pooling.
    XmlCnn { "xml-cnn", xml_cnn::XmlCnnConfig => XmlCnn };
}
