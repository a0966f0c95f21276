//! Word vectors: an encoder without layers.

use super::super::EncoderConfig;
use super::super::description::{
    AttentionSpec, DropoutRates, EmbeddingSpec, MlpSpec, NormSpec, Positions, Projection,
};
use super::super::fields::{Fields, most};
use super::{Family, Row};

pub(super) const NAMES: &[Row] = &[("embeddings.words", &["embeddings.word_embeddings.weight"])];

/// A table of these sizes.
pub(in super::super) fn sized(vocab_size: usize, width: usize) -> EncoderConfig {
    EncoderConfig {
        family: Family::Words,
        vocab_size,
        hidden_size: width,
        n_layers: 0,
        n_groups: 0,
        n_heads: 1,
        embeddings: EmbeddingSpec {
            width,
            projection: Projection::None,
            // No table limits it; a document of more words would not fit into memory with its activations.
            positions: Positions::None { limit: 1 << 16 },
            n_types: 0,
            norm: false,
        },
        attention: AttentionSpec::bert(1),
        norm: NormSpec::bert(0.0),
        mlp: MlpSpec::bert(0),
        dropout: DropoutRates::new(0.0, 0.0),
        initializer_range: 0.1,
        source: serde_json::Map::new(),
    }
}

pub(super) fn describe(fields: &Fields<'_>) -> Result<EncoderConfig, String> {
    let config =
        sized(fields.size("vocab_size", most::VOCABULARY)?, fields.size("hidden_size", most::WIDTH)?);
    let dropout = DropoutRates::new(fields.share_or("hidden_dropout_prob", 0.0)?, 0.0);
    Ok(EncoderConfig { dropout, ..config })
}
