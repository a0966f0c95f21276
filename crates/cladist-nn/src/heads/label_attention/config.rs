//! Settings.

use serde::{Deserialize, Serialize};

use crate::descriptions::{DescriptionConfig, DescriptionVector};
use crate::error::Result;
use crate::heads::setting;
use crate::losses::Loss;

/// When descriptions go through the encoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encode {
    /// All of them in every step, and the encoder learns from them.
    #[default]
    EveryStep,
    /// All of them now and then; the encoder does not learn from them.
    EveryN,
    /// In every step the labels of its documents and some others, and the encoder learns from them; the step's loss is
    /// theirs alone.
    Sampled,
    /// Once, at the start: the vectors are then parameters.
    Table,
}

/// What makes a number of what a label has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// One output for all labels, so that it answers for labels it has not met.
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
    /// Updates after which `every-n` reads descriptions again.
    pub refresh: u64,
    /// Labels of a step of `sampled`; more if its documents have more.
    pub sample: usize,
    /// Whether labels start from their descriptions; if not, they are vectors at random that learn.
    pub descriptions: bool,
    /// Put the names of ancestors before each description.
    pub path: bool,
    /// Tokens of a description at most.
    pub max_tokens: usize,
    /// The vector of a description: `cls` or `mean`.
    pub vector: DescriptionVector,
    /// Tokens that a convolution under the attention sees at once: an odd number; 0 has none.
    pub convolution: usize,
    /// Attention heads; 0 has one for each 64 of the encoder's width.
    pub heads: usize,
    /// Blocks on top of each other.
    pub blocks: usize,
    /// Width of the feed-forward layer in multiples of the encoder's; 0 leaves it out.
    pub feed_forward: usize,
    /// Whether the last output is `shared` by all labels or there is one `per-label`.
    pub output: Output,
    /// Dropout inside the blocks.
    pub dropout: f64,
    /// What is minimised with any number of labels: `bce`, `f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
}

impl Default for LabelAttentionConfig {
    fn default() -> Self {
        Self {
            encode: Encode::default(),
            refresh: 50,
            sample: 500,
            descriptions: true,
            path: false,
            max_tokens: 32,
            vector: DescriptionVector::default(),
            convolution: 0,
            heads: 0,
            blocks: 1,
            feed_forward: 4,
            output: Output::default(),
            dropout: 0.1,
            loss: Loss::default(),
        }
    }
}

impl LabelAttentionConfig {
    /// How descriptions are read, if they are.
    pub(super) fn description(&self) -> Option<DescriptionConfig> {
        self.descriptions.then(|| DescriptionConfig {
            path: self.path,
            max_tokens: self.max_tokens,
            vector: self.vector,
            at_start_only: self.encode == Encode::Table,
        })
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
        if !(0.0..1.0).contains(dropout) {
            return Err(setting("label-attention.dropout", "at least 0 and below 1", dropout));
        }
        let n = if *heads == 0 { (hidden / 64).max(1) } else { *heads };
        if hidden.is_multiple_of(n) {
            Ok(n)
        } else {
            Err(setting("label-attention.heads", "a divisor of the encoder's width", n))
        }
    }
}
