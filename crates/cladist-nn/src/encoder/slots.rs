//! The parameters that a description calls for.

use super::description::{Gate, NormPlace, Positions, Projection};
use super::{EncoderConfig, Family};

/// How a parameter begins when no file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Normal,
    Ones,
    Zeros,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    /// Its place among the modules: `layers.3.up_bias`.
    pub(super) path: String,
    pub(super) shape: Vec<usize>,
    /// Rows of what lies one under the other in it: queries, keys and values, or the halves of a gate.
    parts: Vec<usize>,
    pub(super) start: Start,
}

impl Slot {
    /// Whether an encoder can be used without a file having it.
    pub(super) fn is_optional(&self) -> bool {
        self.path.starts_with("pooler.")
    }

    /// Its tensors with their shapes: one for all, or one for each part.
    pub(super) fn tensors(&self, family: Family) -> Vec<(String, Vec<usize>)> {
        let names = family.tensors(&self.path);
        let whole = &self.shape[..1];
        let rows = if names.len() == 1 { whole } else { &self.parts };
        let shape = |rows: &usize| [&[*rows], &self.shape[1..]].concat();
        names.into_iter().zip(rows.iter().map(shape)).collect()
    }
}

/// Every parameter in the order in which [`super::Encoder`] holds them, which is that of random starts.
pub(super) fn slots(config: &EncoderConfig, pooler: bool) -> Vec<Slot> {
    let EncoderConfig { hidden_size: hidden, n_heads, .. } = *config;
    let EncoderConfig { embeddings, attention, norm, mlp, .. } = config;
    let keys = attention.n_key_heads * (hidden / n_heads.max(1));
    let (qkv, gated) = (hidden + 2 * keys, mlp.gate != Gate::None);
    let up = if gated { 2 * mlp.width } else { mlp.width };
    let mut slots = Vec::new();
    let mut add = |wanted: bool, path: &str, shape: &[usize], start: Start| {
        if wanted {
            let parts = match path.rsplit('.').next() {
                Some("qkv_weight" | "qkv_bias") => vec![hidden, keys, keys],
                Some("up_weight" | "up_bias") if gated => vec![mlp.width; 2],
                _ => vec![shape[0]],
            };
            slots.push(Slot { path: path.to_owned(), shape: shape.to_vec(), parts, start });
        }
    };

    let width = embeddings.width;
    add(true, "embeddings.words", &[config.vocab_size, width], Start::Normal);
    if let Positions::Learned { rows, .. } = embeddings.positions {
        add(true, "embeddings.positions", &[rows, width], Start::Normal);
    }
    add(embeddings.n_types > 0, "embeddings.types", &[embeddings.n_types, width], Start::Normal);
    let normed = if embeddings.projection == Projection::BeforeNorm { hidden } else { width };
    add(embeddings.norm, "embeddings.norm_gain", &[normed], Start::Ones);
    add(embeddings.norm && norm.bias, "embeddings.norm_bias", &[normed], Start::Zeros);
    let projected = embeddings.projection != Projection::None;
    add(projected, "embeddings.projection_weight", &[hidden, width], Start::Normal);
    let biased = embeddings.projection == Projection::AfterNorm;
    add(biased, "embeddings.projection_bias", &[hidden], Start::Zeros);

    let skips = norm.place == NormPlace::Pre { skip_first: true };
    for n in 0..config.n_groups {
        let mut add = |wanted: bool, name: &str, shape: &[usize], start: Start| {
            add(wanted, &format!("layers.{n}.{name}"), shape, start);
        };
        let norm1 = !(skips && n == 0);
        add(true, "qkv_weight", &[qkv, hidden], Start::Normal);
        add(attention.bias, "qkv_bias", &[qkv], Start::Zeros);
        add(true, "out_weight", &[hidden, hidden], Start::Normal);
        add(attention.bias, "out_bias", &[hidden], Start::Zeros);
        add(norm1, "norm1_gain", &[hidden], Start::Ones);
        add(norm1 && norm.bias, "norm1_bias", &[hidden], Start::Zeros);
        add(true, "up_weight", &[up, hidden], Start::Normal);
        add(mlp.up_bias, "up_bias", &[up], Start::Zeros);
        add(true, "down_weight", &[hidden, mlp.width], Start::Normal);
        add(mlp.down_bias, "down_bias", &[hidden], Start::Zeros);
        add(true, "norm2_gain", &[hidden], Start::Ones);
        add(norm.bias, "norm2_bias", &[hidden], Start::Zeros);
    }
    if let Some(bias) = attention.distance {
        add(true, "distance_bias", &[bias.rows, n_heads], Start::Normal);
    }
    let last = norm.place != NormPlace::Post;
    add(last, "last_norm_gain", &[hidden], Start::Ones);
    add(last && norm.bias, "last_norm_bias", &[hidden], Start::Zeros);
    // Word vectors have no first token that stands for all.
    let pooler = pooler && config.n_layers > 0;
    add(pooler, "pooler.weight", &[hidden, hidden], Start::Normal);
    add(pooler, "pooler.bias", &[hidden], Start::Zeros);
    slots
}
