//! What an encoder is made of, as plain data.
//!
//! Families fill [`EncoderConfig`] from their `config.json`; parameters, their shapes and the operations that run follow
//! from it alone. What the fused operations of the CPU compute is one of these descriptions, BERT's; every other one runs
//! as ordinary tensor operations.

use super::EncoderConfig;

/// What a token is before the first layer.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingSpec {
    /// Width of the tables.
    pub width: usize,
    /// How rows of `width` become states of `hidden_size`.
    pub projection: Projection,
    /// Where a token's place enters.
    pub positions: Positions,
    /// Rows of the token-type table, of which the first is used; 0 if there is none.
    pub n_types: usize,
    /// Whether the sum is normalised.
    pub norm: bool,
}

/// From the width of embeddings to that of states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projection {
    /// None: they are as wide.
    None,
    /// W·drop(norm(e)) + b: ELECTRA, ALBERT.
    AfterNorm,
    /// drop(norm(W·e)): DeBERTa.
    BeforeNorm,
}

/// How embeddings know of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positions {
    /// Not at all: attention does, or nothing.
    None {
        /// The longest sequence, special tokens included.
        limit: usize,
    },
    /// A learnt row for each place.
    Learned {
        /// Rows of the table.
        rows: usize,
        /// Row of the first token.
        first: usize,
    },
}

/// Which tokens attend to which, and what they know of their places.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionSpec {
    /// Heads of keys and values, each of which serves as many heads of queries.
    pub n_key_heads: usize,
    /// Whether the projections add a bias.
    pub bias: bool,
    /// Rotation of queries and keys by place.
    pub rotary: Option<Rotary>,
    /// A learnt term of the scores, by distance and head; all layers share it.
    pub distance: Option<DistanceBias>,
    /// Layers whose tokens see their neighbours only.
    pub window: Option<Window>,
}

/// Rotary positions (Su et al. 2021), by halves: dimension k turns with k + d/2 by place · inv_k, where
/// inv_k = (θ·f)^(−2k/d) / f^(2/d).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotary {
    /// θ of layers that see everything.
    pub theta: f64,
    /// θ of layers with a window.
    pub local_theta: f64,
    /// f of NTK scaling; 1 for none.
    pub factor: f64,
}

/// A bias for each bucket of distances (T5, MPNet). Half of the buckets are for keys behind the query; of each half, half
/// are for one distance each, the others for ranges that grow by a constant factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistanceBias {
    /// Rows of the table; those above `buckets` are not used.
    pub rows: usize,
    /// Buckets.
    pub buckets: usize,
    /// From this distance on, all are in the last bucket of their half.
    pub max_distance: usize,
}

/// Attention to tokens at most `radius` away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The largest distance.
    pub radius: usize,
    /// For each layer, whether it has the window.
    pub local: Vec<bool>,
}

/// Every normalisation of an encoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormSpec {
    /// Where layers normalise.
    pub place: NormPlace,
    /// How.
    pub kind: NormKind,
    /// Whether something is added after the gain.
    pub bias: bool,
    /// ε under the root.
    pub epsilon: f32,
}

/// Where a layer normalises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormPlace {
    /// norm(x + f(x)).
    Post,
    /// x + f(norm(x)), and one more norm on what is read of a layer.
    Pre {
        /// Whether the attention of the first layer reads x as it is: the embeddings are normalised already.
        skip_first: bool,
    },
}

/// What normalisation does to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// (x − mean) / √(variance + ε).
    Layer,
    /// x / √(mean of x² + ε).
    Rms,
}

/// The feed-forward half of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MlpSpec {
    /// Width of its middle.
    pub width: usize,
    /// The activation.
    pub activation: Activation,
    /// Whether one half of the first projection gates the other.
    pub gate: Gate,
    /// Whether the first projection adds a bias.
    pub up_bias: bool,
    /// Whether the second does.
    pub down_bias: bool,
}

/// What happens between the two projections u = W·x and the output of the feed-forward half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// act(u).
    None,
    /// act(u₁)·u₂ of the two halves of u.
    First,
    /// u₁·act(u₂).
    Second,
}

/// Activations by the names that `config.json` has for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// x·Φ(x), exactly.
    Gelu,
    /// The same with Φ by tanh.
    GeluTanh,
    /// x·σ(x).
    Silu,
    /// max(x, 0).
    Relu,
}

/// Dropout rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DropoutRates {
    /// On embeddings.
    pub embeddings: f32,
    /// On attention probabilities.
    pub attention: f32,
    /// On the output of attention.
    pub attention_output: f32,
    /// On the output of the feed-forward half.
    pub mlp_output: f32,
}

impl DropoutRates {
    /// One rate for attention probabilities and one for all else, as BERT has it.
    #[must_use]
    pub fn new(hidden: f32, attention: f32) -> Self {
        Self { embeddings: hidden, attention, attention_output: hidden, mlp_output: hidden }
    }
}

impl AttentionSpec {
    /// BERT's.
    #[must_use]
    pub fn bert(n_heads: usize) -> Self {
        Self { n_key_heads: n_heads, bias: true, rotary: None, distance: None, window: None }
    }
}

impl NormSpec {
    /// BERT's.
    #[must_use]
    pub fn bert(epsilon: f32) -> Self {
        Self { place: NormPlace::Post, kind: NormKind::Layer, bias: true, epsilon }
    }
}

impl MlpSpec {
    /// BERT's.
    #[must_use]
    pub fn bert(width: usize) -> Self {
        Self { width, activation: Activation::Gelu, gate: Gate::None, up_bias: true, down_bias: true }
    }
}

impl Activation {
    /// By its name in `config.json`.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        match name {
            "gelu" => Ok(Self::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" => Ok(Self::GeluTanh),
            "silu" | "swish" => Ok(Self::Silu),
            "relu" => Ok(Self::Relu),
            other => Err(format!(
                "activation `{other}` is not supported; gelu, gelu_new, gelu_pytorch_tanh, silu, swish and relu are"
            )),
        }
    }
}

impl Window {
    /// The radius of a layer, counted from 0; `None` if it sees everything.
    #[must_use]
    pub fn radius(&self, layer: usize) -> Option<usize> {
        self.local.get(layer).copied().unwrap_or(false).then_some(self.radius)
    }
}

impl DistanceBias {
    /// The bucket of a key that is `distance` behind the query, or before it if that is negative.
    #[must_use]
    pub fn bucket(&self, distance: isize) -> usize {
        let half = self.buckets / 2;
        let exact = half / 2;
        let start = if distance > 0 { half } else { 0 };
        let n = distance.unsigned_abs();
        if n < exact {
            return start + n;
        }
        // In f32 as the models were trained: whole numbers of the logarithm are on the boundary.
        let ratio = (n as f32 / exact as f32).ln() / (self.max_distance as f64 / exact as f64).ln() as f32;
        let range = (ratio * (half - exact) as f32) as usize;
        start + (exact + range).min(half - 1)
    }
}

impl EncoderConfig {
    /// Whether the fused operations compute embeddings, up to their projection.
    pub(super) fn fuses_embeddings(&self) -> bool {
        matches!(self.embeddings.positions, Positions::Learned { .. })
            && self.embeddings.norm
            && self.embeddings.projection != Projection::BeforeNorm
            && self.norm.kind == NormKind::Layer
            && self.norm.bias
    }

    /// Whether the fused operations compute layers.
    pub(super) fn fuses_layers(&self) -> bool {
        self.attention == AttentionSpec::bert(self.n_heads)
            && self.norm == NormSpec::bert(self.norm.epsilon)
            && self.mlp == MlpSpec::bert(self.mlp.width)
    }

    /// Which parameters a layer uses, counted from 0.
    pub(super) fn group_of(&self, layer: usize) -> usize {
        layer * self.n_groups / self.n_layers.max(1)
    }
}
