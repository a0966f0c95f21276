//! Flags of heads on encoders.

use anyhow::bail;
use clap::Args;

use crate::error::ConfigError;
use crate::heads::{Family, HeadInfo};
use crate::settings::Settings;

/// Flags of heads on encoders; each is a setting too.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Encoder and training")]
pub struct NeuralArgs {
    /// Pretrained encoder: a Hugging Face folder or name, `scratch:tiny|mini|small`,
    /// or word vectors: `words:300` for new ones, `words:FILE`
    #[arg(long, value_name = "ENCODER")]
    pub encoder: Option<String>,
    /// Times that every training document is seen
    #[arg(long, value_name = "N")]
    pub epochs: Option<u32>,
    /// Documents of a batch
    #[arg(long, value_name = "N")]
    pub batch_size: Option<u32>,
    /// Learning rate of the encoder
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// Longest sequence of tokens; the rest of a document is cut off
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u32>,
}

impl NeuralArgs {
    /// As settings; those of encoders are refused for other heads.
    pub fn apply(&self, settings: &mut Settings, head: &HeadInfo) -> anyhow::Result<()> {
        if let Some(epochs) = self.epochs {
            settings.set("train.epochs", i64::from(epochs))?;
        }
        let encoder = self.encoder.as_ref().map(|encoder| ("--encoder", "encoder", encoder.as_str().into()));
        let whole = |n: Option<u32>| n.map(|n| toml::Value::from(i64::from(n)));
        let flags = [
            whole(self.batch_size).map(|n| ("--batch-size", "train.batch_size", n)),
            self.learning_rate.map(|rate| ("--learning-rate", "train.learning_rate", rate.into())),
            whole(self.max_tokens).map(|n| ("--max-tokens", "tokens.max_tokens", n)),
        ];
        for (flag, key, value) in [encoder].into_iter().chain(flags).flatten() {
            if !matches!(head.family, Family::Neural(_)) {
                bail!(ConfigError::Missing(format!("`{flag}` has no effect on the head `{}`", head.name)));
            }
            settings.set(key, value)?;
        }
        Ok(())
    }
}
