//! Small encoders that start at random: for tests, demos and languages without a pretrained one.

use std::str::FromStr;

use super::EncoderConfig;

/// Sizes of a new encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scratch {
    /// 2 layers of 64, 2 heads: tests.
    Tiny,
    /// 4 layers of 128, 4 heads: demos.
    Mini,
    /// 6 layers of 256, 8 heads.
    Small,
}

impl Scratch {
    /// Pieces of the tokenizer trained with it.
    #[must_use]
    pub fn vocab_size(self) -> usize {
        match self {
            Self::Tiny => 2_000,
            Self::Mini => 6_000,
            Self::Small => 16_000,
        }
    }

    /// The sizes, for a tokenizer that ended up with `vocab_size` pieces.
    #[must_use]
    pub fn config(self, vocab_size: usize) -> EncoderConfig {
        match self {
            Self::Tiny => EncoderConfig::bert(vocab_size, 64, 2, 2),
            Self::Mini => EncoderConfig::bert(vocab_size, 128, 4, 4),
            Self::Small => EncoderConfig::bert(vocab_size, 256, 6, 8),
        }
    }
}

impl FromStr for Scratch {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "tiny" => Ok(Self::Tiny),
            "mini" => Ok(Self::Mini),
            "small" => Ok(Self::Small),
            other => Err(format!("no size `{other}`: scratch:tiny, scratch:mini or scratch:small")),
        }
    }
}
