//! Flags of heads on encoders.

use clap::Args;

/// A heading for the whole command would stay in force for the flags that follow these.
const HEADING: &str = "Encoder and training";

/// Flags of heads on encoders; each is a setting too.
#[derive(Debug, Clone, Default, Args)]
pub struct NeuralArgs {
    /// Pretrained encoder: a Hugging Face folder or name, `scratch:tiny|mini|small`,
    /// or word vectors: `words:300` for new ones, `words:FILE`
    #[arg(long, help_heading = HEADING, value_name = "ENCODER")]
    pub encoder: Option<String>,
    /// Training epochs
    #[arg(long, help_heading = HEADING, value_name = "N")]
    pub epochs: Option<u32>,
    /// Batch size, in documents
    #[arg(long, help_heading = HEADING, value_name = "N")]
    pub batch_size: Option<u32>,
    /// Learning rate of the encoder
    #[arg(long, help_heading = HEADING, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// Longest sequence of tokens; the rest of a document is cut off
    #[arg(long, help_heading = HEADING, value_name = "N")]
    pub max_tokens: Option<u32>,
}

impl NeuralArgs {
    /// Each flag that was given, with its key and value.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, &'static str, toml::Value)> {
        let whole = |n: Option<u32>| n.map(|n| toml::Value::from(i64::from(n)));
        let text = |text: &Option<String>| text.as_deref().map(toml::Value::from);
        let flags = [
            text(&self.encoder).map(|value| ("--encoder", "encoder", value)),
            whole(self.epochs).map(|n| ("--epochs", "train.epochs", n)),
            whole(self.batch_size).map(|n| ("--batch-size", "train.batch_size", n)),
            self.learning_rate.map(|rate| ("--learning-rate", "train.learning_rate", rate.into())),
            whole(self.max_tokens).map(|n| ("--max-tokens", "tokens.max_tokens", n)),
        ];
        flags.into_iter().flatten().collect()
    }
}
