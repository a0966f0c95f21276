//! BERT (Devlin et al. 2019), whose keys and names most families share.

use super::super::EncoderConfig;
use super::super::description::{
    Activation, AttentionSpec, DropoutRates, EmbeddingSpec, MlpSpec, NormSpec, Positions, Projection,
};
use super::super::fields::{Fields, most};
use super::{Family, Row};

pub(super) const EMBEDDINGS: &[Row] = &[
    ("embeddings.words", &["embeddings.word_embeddings.weight"]),
    ("embeddings.positions", &["embeddings.position_embeddings.weight"]),
    ("embeddings.norm_gain", &["embeddings.LayerNorm.weight"]),
    ("embeddings.norm_bias", &["embeddings.LayerNorm.bias"]),
];

pub(super) const TYPES: &[Row] = &[("embeddings.types", &["embeddings.token_type_embeddings.weight"])];

pub(super) const ATTENTION: &[Row] = &[
    (
        "layers.#.qkv_weight",
        &[
            "encoder.layer.#.attention.self.query.weight",
            "encoder.layer.#.attention.self.key.weight",
            "encoder.layer.#.attention.self.value.weight",
        ],
    ),
    (
        "layers.#.qkv_bias",
        &[
            "encoder.layer.#.attention.self.query.bias",
            "encoder.layer.#.attention.self.key.bias",
            "encoder.layer.#.attention.self.value.bias",
        ],
    ),
    ("layers.#.out_weight", &["encoder.layer.#.attention.output.dense.weight"]),
    ("layers.#.out_bias", &["encoder.layer.#.attention.output.dense.bias"]),
    ("layers.#.norm1_gain", &["encoder.layer.#.attention.output.LayerNorm.weight"]),
    ("layers.#.norm1_bias", &["encoder.layer.#.attention.output.LayerNorm.bias"]),
];

pub(super) const MLP: &[Row] = &[
    ("layers.#.up_weight", &["encoder.layer.#.intermediate.dense.weight"]),
    ("layers.#.up_bias", &["encoder.layer.#.intermediate.dense.bias"]),
    ("layers.#.down_weight", &["encoder.layer.#.output.dense.weight"]),
    ("layers.#.down_bias", &["encoder.layer.#.output.dense.bias"]),
    ("layers.#.norm2_gain", &["encoder.layer.#.output.LayerNorm.weight"]),
    ("layers.#.norm2_bias", &["encoder.layer.#.output.LayerNorm.bias"]),
];

pub(super) const POOLER: &[Row] =
    &[("pooler.weight", &["pooler.dense.weight"]), ("pooler.bias", &["pooler.dense.bias"])];

/// BERT of these sizes, with the constants it was published with.
pub(in super::super) fn sized(
    vocab_size: usize,
    hidden_size: usize,
    n_layers: usize,
    n_heads: usize,
) -> EncoderConfig {
    EncoderConfig {
        family: Family::Bert,
        vocab_size,
        hidden_size,
        n_layers,
        n_groups: n_layers,
        n_heads,
        embeddings: EmbeddingSpec {
            width: hidden_size,
            projection: Projection::None,
            positions: Positions::Learned { rows: 512, first: 0 },
            n_types: 2,
            norm: true,
        },
        attention: AttentionSpec::bert(n_heads),
        norm: NormSpec::bert(1e-12),
        mlp: MlpSpec::bert(4 * hidden_size),
        dropout: DropoutRates::new(0.1, 0.1),
        initializer_range: 0.02,
        source: serde_json::Map::new(),
    }
}

pub(super) fn describe(fields: &Fields<'_>) -> Result<EncoderConfig, String> {
    only_encoders(fields)?;
    let activation = Activation::parse(&fields.text_or("hidden_act", "gelu")?)?;
    let config = sized(
        fields.size("vocab_size", most::VOCABULARY)?,
        fields.size("hidden_size", most::WIDTH)?,
        fields.size("num_hidden_layers", most::LAYERS)?,
        fields.size("num_attention_heads", most::WIDTH)?,
    );
    let rows = fields.size("max_position_embeddings", most::POSITIONS)?;
    Ok(EncoderConfig {
        embeddings: EmbeddingSpec {
            positions: Positions::Learned { rows, first: 0 },
            n_types: fields.size_or("type_vocab_size", 2, most::VOCABULARY)?,
            ..config.embeddings
        },
        norm: NormSpec::bert(fields.number_or("layer_norm_eps", 1e-12)?),
        mlp: MlpSpec { activation, ..MlpSpec::bert(fields.size("intermediate_size", most::MIDDLE)?) },
        dropout: DropoutRates::new(
            fields.share_or("hidden_dropout_prob", 0.1)?,
            fields.share_or("attention_probs_dropout_prob", 0.1)?,
        ),
        initializer_range: fields.number_or("initializer_range", 0.02)?,
        ..config
    })
}

/// Refuses variants of BERT's code that no description covers.
pub(super) fn only_encoders(fields: &Fields<'_>) -> Result<(), String> {
    let positions = fields.text_or("position_embedding_type", "absolute")?;
    if positions != "absolute" {
        return Err(format!("position embeddings of type `{positions}` are not supported"));
    }
    if fields.is_set("is_decoder") {
        return Err("`is_decoder` is true: decoders are not supported".to_owned());
    }
    Ok(())
}
