//! How scores become label sets when a trained model answers.

use cladist_core::corpus::Ancestors;
use cladist_core::decode::{ClosureRule, DecodeConfig, Decoder, Rule, Thresholds};

use super::Model;
use crate::error::Result;

/// What is different from the decoding that was chosen in training. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecodeOptions {
    /// The best so many labels of a document, whatever their probability; with a threshold, at most so many.
    pub top_k: Option<usize>,
    /// Only labels with a probability above this.
    pub threshold: Option<f32>,
    /// At least this many labels a document, even below the threshold.
    pub at_least: Option<usize>,
    /// Never a label with this probability or less.
    pub floor: Option<f32>,
    /// Raise each parent's probability to at least its children's.
    pub coherent: bool,
    /// How label sets are made to agree with the taxonomy.
    pub paths: Option<ClosureRule>,
    /// Answer with the deepest ancestor that passes when a label does not.
    pub coarser: bool,
    /// Answer with these labels alone; `ID/**` is a label with all below it.
    pub include: Vec<String>,
    /// Never answer with these labels; `ID/**` is a label with all below it.
    pub exclude: Vec<String>,
}

impl Model {
    /// The decoding settings: what was fitted in training, with the options laid over it.
    #[must_use]
    pub fn decode_config(&self, options: &DecodeOptions) -> DecodeConfig {
        let parts = self.parts();
        let DecodeOptions { top_k, threshold, at_least, floor, coherent, paths, coarser, include, exclude } =
            options;
        let mut config =
            DecodeConfig { threshold: parts.thresholds.clone(), ..parts.config.common.decode.clone() };
        if let Some(threshold) = *threshold {
            config.threshold = Thresholds::One(threshold);
            config.rule = Rule::Threshold;
        }
        if let Some(k) = *top_k {
            config.top_k = Some(k);
            if threshold.is_none() {
                config.at_least = k;
            }
        }
        config.at_least = at_least.unwrap_or(config.at_least);
        config.floor = floor.unwrap_or(config.floor);
        config.coherence |= coherent;
        config.coarser_when_unsure |= coarser;
        config.closure = paths.unwrap_or(config.closure);
        config.include.extend_from_slice(include);
        config.exclude.extend_from_slice(exclude);
        config
    }

    pub(crate) fn decoder(&self, options: &DecodeOptions) -> Result<Decoder<'_>> {
        Ok(self.decode_config(options).build(self.taxonomy())?)
    }

    /// Whether these options rely on probabilities of upper levels that the model has learnt little of: its gold labels
    /// came without their ancestors (`data.ancestors = "keep"`).
    #[must_use]
    pub fn knows_little_of_ancestors(&self, options: &DecodeOptions) -> bool {
        let config = self.decode_config(options);
        let climbs = config.coherence || config.coarser_when_unsure || config.closure == ClosureRule::Prune;
        climbs && self.taxonomy().n_edges() > 0 && self.config().common.data.ancestors == Ancestors::Keep
    }
}
