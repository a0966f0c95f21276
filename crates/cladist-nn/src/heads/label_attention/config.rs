//! Settings.

use serde::{Deserialize, Serialize};

use crate::descriptions::{DescriptionConfig, DescriptionVector, MAX_TOKENS};
use crate::encoder::EncoderConfig;
use crate::error::Result;
use crate::heads::BCE_EPOCHS;
use crate::heads::settings::{check_rates, setting};
use crate::losses::Loss;

/// When descriptions go through the encoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encode {
    /// All of them in every step, with gradients.
    #[default]
    EveryStep,
    /// All of them every so many updates, without gradients.
    EveryN,
    /// Negative sampling: in every step the labels of its documents and random others, with gradients; the step's loss is of
    /// these alone.
    Sampled,
    /// Once, at the start: the vectors then are label embeddings that are trained.
    Table,
}

/// From what attention gives for a label to its logit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// One output layer for all labels, so that unseen labels are scored too.
    #[default]
    Shared,
    /// An output for each label.
    PerLabel,
}

/// Settings of the label-attention head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabelAttentionConfig {
    /// When descriptions go through the encoder: `every-step`, `every-n`, `sampled` or `table`.
    pub encode: Encode,
    /// Updates after which `every-n` encodes descriptions again.
    pub refresh: u64,
    /// Labels of a step of `sampled`, gold ones and negatives; more if its documents have more.
    pub sample: usize,
    /// Whether queries are encoded descriptions; if not, they are label embeddings at random.
    pub descriptions: bool,
    /// Put the names of ancestors before each description.
    pub path: bool,
    /// Tokens of a description at most.
    pub max_tokens: usize,
    /// The vector of a description: `cls` or `mean`.
    pub vector: DescriptionVector,
    /// Tokens that a convolution under the attention sees at once: an odd number; 0 has none.
    pub convolution: usize,
    /// Attention heads; 0 has as many as the encoder's own layers.
    pub heads: usize,
    /// Blocks on top of each other.
    pub blocks: usize,
    /// Width of the feed-forward layer in multiples of the encoder's; 0 leaves it out.
    pub feed_forward: usize,
    /// Whether the last output is `shared` by all labels or there is one `per-label`.
    pub output: Output,
    /// Dropout inside the blocks.
    pub dropout: f64,
    /// The loss of any number of labels: `bce`, `f-measure`, `macro-f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
    /// Epochs that `f-measure` and `macro-f-measure` learn as `bce` first, from when the encoder learns.
    pub bce_epochs: usize,
}

impl Default for LabelAttentionConfig {
    fn default() -> Self {
        Self {
            encode: Encode::default(),
            refresh: 50,
            sample: 500,
            descriptions: true,
            path: false,
            max_tokens: MAX_TOKENS,
            vector: DescriptionVector::default(),
            convolution: 0,
            heads: 0,
            blocks: 1,
            feed_forward: 4,
            output: Output::default(),
            dropout: 0.1,
            loss: Loss::default(),
            bce_epochs: BCE_EPOCHS,
        }
    }
}

impl LabelAttentionConfig {
    /// How descriptions are encoded, if they are.
    pub(super) fn description(&self) -> Option<DescriptionConfig> {
        self.descriptions.then(|| DescriptionConfig {
            path: self.path,
            max_tokens: self.max_tokens,
            vector: self.vector,
            at_start_only: self.encode == Encode::Table,
        })
    }

    /// As many attention heads as the encoder's layers have, if nobody says how many; word vectors have no layers.
    pub(super) fn take_heads(&mut self, encoder: &EncoderConfig) {
        if self.heads == 0 && encoder.n_layers > 0 {
            self.heads = encoder.n_heads;
        }
    }

    /// The number of attention heads for an encoder of this width, if all is well.
    pub(super) fn checked_heads(&self, hidden: usize) -> Result<usize> {
        let Self { refresh, sample, convolution, heads, blocks, feed_forward, dropout, .. } = self;
        if self.loss == Loss::Coherent && self.encode == Encode::Sampled {
            return Err(setting(
                "label-attention.loss",
                "another loss with `encode = \"sampled\"`",
                "coherent",
            ));
        }
        if *refresh == 0 {
            return Err(setting("label-attention.refresh", "at least 1", refresh));
        }
        if *sample == 0 {
            return Err(setting("label-attention.sample", "at least 1", sample));
        }
        if *convolution > 0 && convolution.is_multiple_of(2) || *convolution > 99 {
            return Err(setting("label-attention.convolution", "0, or an odd number up to 99", convolution));
        }
        if !(1..=12).contains(blocks) {
            return Err(setting("label-attention.blocks", "1 to 12", blocks));
        }
        if *feed_forward > 16 {
            return Err(setting("label-attention.feed_forward", "0 to 16", feed_forward));
        }
        check_rates(&[("label-attention.dropout", *dropout)])?;
        // What 0 meant before models kept the number, and means for word vectors.
        let n = if *heads == 0 { (hidden / 64).max(1) } else { *heads };
        if hidden.is_multiple_of(n) {
            Ok(n)
        } else {
            Err(setting("label-attention.heads", "a divisor of the encoder's width", n))
        }
    }
}
