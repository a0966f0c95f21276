//! The names that encoders' tensors have in Hugging Face files, in the order of our parameters.

use super::config::{EncoderConfig, Family};

/// How a parameter begins when no file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Normal,
    Ones,
    Zeros,
}

/// One parameter: the tensors it is made of, one under the other, and its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) names: Vec<String>,
    pub(super) shape: Vec<usize>,
    pub(super) start: Start,
    /// Whether an encoder can be used without a file having it.
    pub(super) optional: bool,
}

/// Every parameter in the order in which [`super::Encoder`] holds them.
pub(super) fn slots(config: &EncoderConfig, pooler: bool) -> Vec<Slot> {
    let EncoderConfig { hidden_size: hidden, intermediate_size: wide, .. } = *config;
    let distil = config.family == Family::Distilbert;
    let mut slots = Vec::new();
    let mut add = |names: &[String], shape: &[usize], start: Start| {
        slots.push(Slot { names: names.to_vec(), shape: shape.to_vec(), start, optional: false });
    };
    let matrix = |prefix: &str| [format!("{prefix}.weight")];
    let vector = |prefix: &str| [format!("{prefix}.bias")];

    add(&matrix("embeddings.word_embeddings"), &[config.vocab_size, hidden], Start::Normal);
    if config.family == Family::Words {
        return slots;
    }
    add(&matrix("embeddings.position_embeddings"), &[config.max_positions, hidden], Start::Normal);
    if config.type_vocab_size > 0 {
        add(&matrix("embeddings.token_type_embeddings"), &[config.type_vocab_size, hidden], Start::Normal);
    }
    add(&matrix("embeddings.LayerNorm"), &[hidden], Start::Ones);
    add(&vector("embeddings.LayerNorm"), &[hidden], Start::Zeros);
    for n in 0..config.n_layers {
        let layer = if distil { format!("transformer.layer.{n}") } else { format!("encoder.layer.{n}") };
        let pick =
            |bert: &str, distilbert: &str| format!("{layer}.{}", if distil { distilbert } else { bert });
        let attention = [
            pick("attention.self.query", "attention.q_lin"),
            pick("attention.self.key", "attention.k_lin"),
            pick("attention.self.value", "attention.v_lin"),
        ];
        let out = pick("attention.output.dense", "attention.out_lin");
        let norm1 = pick("attention.output.LayerNorm", "sa_layer_norm");
        let up = pick("intermediate.dense", "ffn.lin1");
        let down = pick("output.dense", "ffn.lin2");
        let norm2 = pick("output.LayerNorm", "output_layer_norm");
        add(&attention.each_ref().map(|name| format!("{name}.weight")), &[3 * hidden, hidden], Start::Normal);
        add(&attention.each_ref().map(|name| format!("{name}.bias")), &[3 * hidden], Start::Zeros);
        add(&matrix(&out), &[hidden, hidden], Start::Normal);
        add(&vector(&out), &[hidden], Start::Zeros);
        add(&matrix(&norm1), &[hidden], Start::Ones);
        add(&vector(&norm1), &[hidden], Start::Zeros);
        add(&matrix(&up), &[wide, hidden], Start::Normal);
        add(&vector(&up), &[wide], Start::Zeros);
        add(&matrix(&down), &[hidden, wide], Start::Normal);
        add(&vector(&down), &[hidden], Start::Zeros);
        add(&matrix(&norm2), &[hidden], Start::Ones);
        add(&vector(&norm2), &[hidden], Start::Zeros);
    }
    if pooler {
        add(&matrix("pooler.dense"), &[hidden, hidden], Start::Normal);
        add(&vector("pooler.dense"), &[hidden], Start::Zeros);
        slots.iter_mut().rev().take(2).for_each(|slot| slot.optional = true);
    }
    slots
}
