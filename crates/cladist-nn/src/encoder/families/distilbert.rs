//! DistilBERT (Sanh et al. 2019): BERT with names of its own, no token types and no pooler.

use super::super::EncoderConfig;
use super::super::description::{Activation, DropoutRates, EmbeddingSpec, MlpSpec, Positions};
use super::super::fields::{Fields, most};
use super::{Family, Row, bert};

pub(super) const LAYERS: &[Row] = &[
    (
        "layers.#.qkv_weight",
        &[
            "transformer.layer.#.attention.q_lin.weight",
            "transformer.layer.#.attention.k_lin.weight",
            "transformer.layer.#.attention.v_lin.weight",
        ],
    ),
    (
        "layers.#.qkv_bias",
        &[
            "transformer.layer.#.attention.q_lin.bias",
            "transformer.layer.#.attention.k_lin.bias",
            "transformer.layer.#.attention.v_lin.bias",
        ],
    ),
    ("layers.#.out_weight", &["transformer.layer.#.attention.out_lin.weight"]),
    ("layers.#.out_bias", &["transformer.layer.#.attention.out_lin.bias"]),
    ("layers.#.norm1_gain", &["transformer.layer.#.sa_layer_norm.weight"]),
    ("layers.#.norm1_bias", &["transformer.layer.#.sa_layer_norm.bias"]),
    ("layers.#.up_weight", &["transformer.layer.#.ffn.lin1.weight"]),
    ("layers.#.up_bias", &["transformer.layer.#.ffn.lin1.bias"]),
    ("layers.#.down_weight", &["transformer.layer.#.ffn.lin2.weight"]),
    ("layers.#.down_bias", &["transformer.layer.#.ffn.lin2.bias"]),
    ("layers.#.norm2_gain", &["transformer.layer.#.output_layer_norm.weight"]),
    ("layers.#.norm2_bias", &["transformer.layer.#.output_layer_norm.bias"]),
];

pub(super) fn describe(fields: &Fields<'_>) -> Result<EncoderConfig, String> {
    bert::only_encoders(fields)?;
    let activation = Activation::parse(&fields.text_or("activation", "gelu")?)?;
    let config = bert::sized(
        fields.size("vocab_size", most::VOCABULARY)?,
        fields.size("dim", most::WIDTH)?,
        fields.size("n_layers", most::LAYERS)?,
        fields.size("n_heads", most::WIDTH)?,
    );
    let rows = fields.size("max_position_embeddings", most::POSITIONS)?;
    Ok(EncoderConfig {
        family: Family::Distilbert,
        embeddings: EmbeddingSpec {
            positions: Positions::Learned { rows, first: 0 },
            n_types: 0,
            ..config.embeddings
        },
        mlp: MlpSpec { activation, ..MlpSpec::bert(fields.size("hidden_dim", most::MIDDLE)?) },
        dropout: DropoutRates::new(
            fields.share_or("dropout", 0.1)?,
            fields.share_or("attention_dropout", 0.1)?,
        ),
        initializer_range: fields.number_or("initializer_range", 0.02)?,
        ..config
    })
}
