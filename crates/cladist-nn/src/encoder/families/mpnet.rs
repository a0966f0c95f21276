//! MPNet (Song et al. 2020): BERT without token types, whose attention scores have a bias by distance.

use super::super::EncoderConfig;
use super::super::description::{AttentionSpec, DistanceBias, EmbeddingSpec};
use super::super::fields::{Fields, most};
use super::{Family, Row, bert, roberta};

pub(super) const ATTENTION: &[Row] = &[
    (
        "layers.#.qkv_weight",
        &[
            "encoder.layer.#.attention.attn.q.weight",
            "encoder.layer.#.attention.attn.k.weight",
            "encoder.layer.#.attention.attn.v.weight",
        ],
    ),
    (
        "layers.#.qkv_bias",
        &[
            "encoder.layer.#.attention.attn.q.bias",
            "encoder.layer.#.attention.attn.k.bias",
            "encoder.layer.#.attention.attn.v.bias",
        ],
    ),
    ("layers.#.out_weight", &["encoder.layer.#.attention.attn.o.weight"]),
    ("layers.#.out_bias", &["encoder.layer.#.attention.attn.o.bias"]),
    ("layers.#.norm1_gain", &["encoder.layer.#.attention.LayerNorm.weight"]),
    ("layers.#.norm1_bias", &["encoder.layer.#.attention.LayerNorm.bias"]),
    ("distance_bias", &["encoder.relative_attention_bias.weight"]),
];

/// Its code has these numbers in it; `relative_attention_num_buckets` only says how many rows the table has.
const BUCKETS: usize = 32;
const MAX_DISTANCE: usize = 128;
/// The row of padding in the position table, whatever `pad_token_id` says.
const PADDING: usize = 1;

pub(super) fn describe(fields: &Fields<'_>) -> Result<EncoderConfig, String> {
    let config = bert::describe(fields)?;
    let rows = fields.size_or("relative_attention_num_buckets", BUCKETS, most::POSITIONS)?;
    if rows < BUCKETS {
        return Err(format!("`relative_attention_num_buckets` must be at least {BUCKETS}: {rows}"));
    }
    let distance = DistanceBias { rows, buckets: BUCKETS, max_distance: MAX_DISTANCE };
    let embeddings = roberta::starting_at(PADDING + 1, config.embeddings);
    Ok(EncoderConfig {
        family: Family::Mpnet,
        embeddings: EmbeddingSpec { n_types: 0, ..embeddings },
        attention: AttentionSpec { distance: Some(distance), ..config.attention },
        ..config
    })
}
