//! What a Hugging Face `config.json` says about an encoder.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Families of encoders: which names their tensors have and how positions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// BERT and everything trained with its code: MiniLM, SciBERT, BioBERT, LegalBERT, …
    Bert,
    /// RoBERTa, XLM-R, CamemBERT: positions start after the padding id.
    Roberta,
    /// DistilBERT: no token types, no pooler.
    Distilbert,
    /// A vector for each word and no layer: what networks were built on before transformers.
    Words,
}

/// Sizes and constants of an encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderConfig {
    /// The family.
    pub family: Family,
    /// Rows of the word table.
    pub vocab_size: usize,
    /// Width of token states.
    pub hidden_size: usize,
    /// Transformer layers.
    pub n_layers: usize,
    /// Attention heads per layer.
    pub n_heads: usize,
    /// Width of the middle of the feed-forward part.
    pub intermediate_size: usize,
    /// Rows of the position table.
    pub max_positions: usize,
    /// Rows of the token-type table; 0 if there is none.
    pub type_vocab_size: usize,
    /// Position of the first token.
    pub first_position: usize,
    /// ε of every normalisation.
    pub epsilon: f32,
    /// Dropout on embeddings and on the output of both halves of a layer.
    pub hidden_dropout: f32,
    /// Dropout on attention probabilities.
    pub attention_dropout: f32,
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
        let refuse = |problem: String| Error::Encoder { path: path.clone(), problem };
        let source: Map<String, Value> =
            serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        Self::parse(source).map_err(refuse)
    }

    /// Understands the content of `config.json`, or says why not.
    pub fn parse(source: Map<String, Value>) -> Result<Self, String> {
        let fields = Fields(&source);
        let kind = fields.text("model_type")?;
        if kind == "words" {
            let (vocab_size, width) = (fields.size("vocab_size")?, fields.size("hidden_size")?);
            if width == 0 {
                return Err("`hidden_size` must be at least 1".to_owned());
            }
            let dropout = fields.number_or("hidden_dropout_prob", 0.0)?;
            return Ok(Self { hidden_dropout: dropout as f32, source, ..Self::words(vocab_size, width) });
        }
        let family = match kind.as_str() {
            "bert" => Family::Bert,
            "roberta" | "xlm-roberta" | "camembert" => Family::Roberta,
            "distilbert" => Family::Distilbert,
            other => {
                return Err(format!(
                    "unknown `model_type`: {other}; one of bert, roberta, xlm-roberta, camembert, distilbert, words is needed"
                ));
            }
        };
        let distil = family == Family::Distilbert;
        let pick = |bert: &'static str, distilbert: &'static str| if distil { distilbert } else { bert };
        let activation = fields.text_or(pick("hidden_act", "activation"), "gelu")?;
        if activation != "gelu" {
            return Err(format!("activation `{activation}` is not supported; only the exact `gelu` is"));
        }
        let positions = fields.text_or("position_embedding_type", "absolute")?;
        if positions != "absolute" {
            return Err(format!("position embeddings of type `{positions}` are not supported"));
        }
        let config = Self {
            family,
            vocab_size: fields.size("vocab_size")?,
            hidden_size: fields.size(pick("hidden_size", "dim"))?,
            n_layers: fields.size(pick("num_hidden_layers", "n_layers"))?,
            n_heads: fields.size(pick("num_attention_heads", "n_heads"))?,
            intermediate_size: fields.size(pick("intermediate_size", "hidden_dim"))?,
            max_positions: fields.size("max_position_embeddings")?,
            type_vocab_size: if distil { 0 } else { fields.size_or("type_vocab_size", 2)? },
            first_position: if family == Family::Roberta {
                fields.size_or("pad_token_id", 1)? + 1
            } else {
                0
            },
            epsilon: if distil { 1e-12 } else { fields.number_or("layer_norm_eps", 1e-12)? as f32 },
            hidden_dropout: fields.share(pick("hidden_dropout_prob", "dropout"))?,
            attention_dropout: fields.share(pick("attention_probs_dropout_prob", "attention_dropout"))?,
            initializer_range: fields.number_or("initializer_range", 0.02)? as f32,
            source: source.clone(),
        };
        if config.n_heads == 0
            || !config.hidden_size.is_multiple_of(config.n_heads)
            || config.hidden_size == 0
        {
            return Err(format!(
                "a width of {} cannot be split among {} heads",
                config.hidden_size, config.n_heads
            ));
        }
        if config.max_positions <= config.first_position {
            return Err(format!("`max_position_embeddings` leaves no room: {}", config.max_positions));
        }
        Ok(config)
    }

    /// The longest sequence, special tokens included.
    #[must_use]
    pub fn max_tokens(&self) -> usize {
        self.max_positions - self.first_position
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
        Self {
            family: Family::Words,
            vocab_size,
            hidden_size: width,
            n_layers: 0,
            n_heads: 1,
            intermediate_size: 0,
            // No table limits it; a document of more words would not fit into memory with its activations.
            max_positions: 1 << 16,
            type_vocab_size: 0,
            first_position: 0,
            epsilon: 0.0,
            hidden_dropout: 0.0,
            attention_dropout: 0.0,
            initializer_range: 0.1,
            source: source.as_object().cloned().unwrap_or_default(),
        }
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
        Self {
            family: Family::Bert,
            vocab_size,
            hidden_size,
            n_layers,
            n_heads,
            intermediate_size: 4 * hidden_size,
            max_positions: 512,
            type_vocab_size: 2,
            first_position: 0,
            epsilon: 1e-12,
            hidden_dropout: 0.1,
            attention_dropout: 0.1,
            initializer_range: 0.02,
            source,
        }
    }
}

/// Typed access to a JSON object with messages that name the key.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn present(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<String, String> {
        let value = self.present(key).ok_or_else(|| format!("`{key}` is missing"))?;
        Ok(value.as_str().ok_or_else(|| format!("`{key}` must be a string: {value}"))?.to_owned())
    }

    fn text_or(&self, key: &str, default: &str) -> Result<String, String> {
        if self.present(key).is_some() { self.text(key) } else { Ok(default.to_owned()) }
    }

    fn size(&self, key: &str) -> Result<usize, String> {
        let value = self.present(key).ok_or_else(|| format!("`{key}` is missing"))?;
        let size = value.as_u64().and_then(|value| usize::try_from(value).ok());
        // Larger than any encoder: an arithmetic overflow further on would be worse than this message.
        size.filter(|&size| size < 1 << 28)
            .ok_or_else(|| format!("`{key}` must be a whole number of a sensible size: {value}"))
    }

    fn size_or(&self, key: &str, default: usize) -> Result<usize, String> {
        if self.present(key).is_some() { self.size(key) } else { Ok(default) }
    }

    fn number_or(&self, key: &str, default: f64) -> Result<f64, String> {
        match self.present(key) {
            Some(value) => value.as_f64().ok_or_else(|| format!("`{key}` must be a number: {value}")),
            None => Ok(default),
        }
    }

    fn share(&self, key: &str) -> Result<f32, String> {
        let share = self.number_or(key, 0.1)?;
        if (0.0..1.0).contains(&share) {
            Ok(share as f32)
        } else {
            Err(format!("`{key}` must be at least 0 and below 1: {share}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: Value) -> Result<EncoderConfig, String> {
        EncoderConfig::parse(json.as_object().unwrap().clone())
    }

    #[test]
    fn a_new_config_reads_back_as_itself() {
        let config = EncoderConfig::bert(100, 32, 2, 4);
        assert_eq!(EncoderConfig::parse(config.source.clone()).unwrap(), config);
        let config = EncoderConfig::words(100, 50);
        assert_eq!(EncoderConfig::parse(config.source.clone()).unwrap(), config);
    }

    #[test]
    fn distilbert_and_roberta_have_their_own_names_and_positions() {
        let distil =
            parse(serde_json::json!({"model_type": "distilbert", "vocab_size": 9, "dim": 8, "n_layers": 1,
            "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 12, "dropout": 0.2}))
            .unwrap();
        assert_eq!((distil.hidden_size, distil.type_vocab_size, distil.hidden_dropout), (8, 0, 0.2));
        let roberta =
            parse(serde_json::json!({"model_type": "xlm-roberta", "vocab_size": 9, "hidden_size": 8,
            "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "type_vocab_size": 1,
            "max_position_embeddings": 12, "layer_norm_eps": 1e-5}))
            .unwrap();
        assert_eq!((roberta.first_position, roberta.max_tokens()), (2, 10));
    }

    #[test]
    fn what_cannot_be_run_is_refused_by_name() {
        for (json, word) in [
            (serde_json::json!({"model_type": "t5"}), "t5"),
            (serde_json::json!({"model_type": "bert"}), "vocab_size"),
            (serde_json::json!({"model_type": "bert", "hidden_act": "relu"}), "relu"),
            (
                serde_json::json!({"model_type": "bert", "vocab_size": 9, "hidden_size": 10,
                "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 16,
                "max_position_embeddings": 12}),
                "4 heads",
            ),
        ] {
            let message = parse(json).unwrap_err();
            assert!(message.contains(word), "{message}");
        }
    }
}
