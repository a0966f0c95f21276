//! An encoder's description, and where it comes from: a Hugging Face `config.json`, or sizes.

use std::path::Path;

use serde_json::{Map, Value};

use super::description::{AttentionSpec, DropoutRates, EmbeddingSpec, MlpSpec, NormSpec, Positions};
use super::families::{Family, bert, words};
use super::fields::Fields;
use crate::error::{Error, Result};

/// What an encoder is: its sizes, its parts and its constants.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderConfig {
    /// The family, whose names its tensors have in files.
    pub family: Family,
    /// Rows of the word table.
    pub vocab_size: usize,
    /// Width of token states.
    pub hidden_size: usize,
    /// Transformer layers.
    pub n_layers: usize,
    /// Layers with parameters of their own: layer i has those of ⌊i·`n_groups`/`n_layers`⌋. As many as layers unless they
    /// share, as ALBERT's do.
    pub n_groups: usize,
    /// Attention heads per layer.
    pub n_heads: usize,
    /// What tokens are before the first layer.
    pub embeddings: EmbeddingSpec,
    /// How tokens attend to each other.
    pub attention: AttentionSpec,
    /// How and where states are normalised.
    pub norm: NormSpec,
    /// The feed-forward half of layers.
    pub mlp: MlpSpec,
    /// Dropout in training.
    pub dropout: DropoutRates,
    /// Standard deviation of new weights.
    pub initializer_range: f32,
    /// The file as it was, for writing it again.
    pub source: Map<String, Value>,
}

impl EncoderConfig {
    /// Reads `config.json` of a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let text = std::fs::read_to_string(&path).map_err(cladist_core::Error::io("read", &path))?;
        let source: Map<String, Value> =
            serde_json::from_str(&text).map_err(|error| Error::encoder_by(&path, error))?;
        Self::parse(source).map_err(|problem| Error::encoder(&path, problem))
    }

    /// Understands the content of `config.json`, or says why not.
    pub fn parse(source: Map<String, Value>) -> Result<Self, String> {
        let fields = Fields(&source);
        let family = Family::parse(&fields.text("model_type")?)?;
        let config = family.describe(&fields)?;
        config.check()?;
        Ok(Self { source, ..config })
    }

    /// The longest sequence, special tokens included.
    #[must_use]
    pub fn max_tokens(&self) -> usize {
        match self.embeddings.positions {
            Positions::None { limit } => limit,
            Positions::Learned { rows, first } => rows - first,
        }
    }

    /// A table of word vectors.
    #[must_use]
    pub fn words(vocab_size: usize, width: usize) -> Self {
        let source = serde_json::json!({
            "model_type": "words",
            "vocab_size": vocab_size,
            "hidden_size": width,
            "hidden_dropout_prob": 0.0,
        });
        let source = source.as_object().cloned().unwrap_or_default();
        Self { source, ..words::sized(vocab_size, width) }
    }

    /// A new BERT with the given sizes.
    #[must_use]
    pub fn bert(vocab_size: usize, hidden_size: usize, n_layers: usize, n_heads: usize) -> Self {
        let mut source = Map::new();
        for (key, value) in [
            ("vocab_size", vocab_size),
            ("hidden_size", hidden_size),
            ("num_hidden_layers", n_layers),
            ("num_attention_heads", n_heads),
            ("intermediate_size", 4 * hidden_size),
            ("max_position_embeddings", 512),
            ("type_vocab_size", 2),
            ("pad_token_id", 0),
        ] {
            source.insert(key.into(), value.into());
        }
        for (key, value) in [
            ("hidden_dropout_prob", 0.1),
            ("attention_probs_dropout_prob", 0.1),
            ("initializer_range", 0.02),
            ("layer_norm_eps", 1e-12),
        ] {
            source.insert(key.into(), value.into());
        }
        for (key, value) in [("model_type", "bert"), ("hidden_act", "gelu")] {
            source.insert(key.into(), value.into());
        }
        source.insert("architectures".into(), Value::from(vec!["BertModel"]));
        Self { source, ..bert::sized(vocab_size, hidden_size, n_layers, n_heads) }
    }
}
