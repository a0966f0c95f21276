//! One post-norm transformer encoder layer, as BERT has it, forward and backward.
//!
//! ```text
//! a = attention(x·W_qkvᵀ + b_qkv)
//! h = LN₁(x + drop(a·W_outᵀ + b_out))
//! y = LN₂(h + drop(gelu(h·W_upᵀ + b_up)·W_downᵀ + b_down))
//! ```
//! Everything after attention runs block of rows by block of rows, so that the wide middle of the feed-forward part
//! stays in cache. Where only the first token of each sequence is read, as heads do at the last layer, the others
//! give their keys and values and nothing else.

mod backward;
mod forward;

use crate::attention::{Heads, Outputs, Sequences};
use crate::dropout::Dropout;
use crate::gemm::Packed;
use crate::norm::Moments;
use crate::pool::Buffer;

pub use backward::backward;
pub use forward::forward;

/// Rows of a block at most: what is in flight of it stays in the second-level cache.
const BLOCK: usize = 56;

/// Rows of each block. Blocks come in eights, so that two, four or eight cores end together; how many there are must not
/// depend on the cores, since sums over blocks would.
fn block_rows(tokens: usize) -> usize {
    let rows = tokens.div_ceil((tokens.div_ceil(8 * BLOCK) * 8).max(1));
    // Few tokens make whole tiles rather than even blocks.
    if rows < BLOCK / 2 { rows.next_multiple_of(BLOCK / 4).max(BLOCK / 4) } else { rows }
}

/// Sizes and constants of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Width and heads.
    pub heads: Heads,
    /// Width of the middle of the feed-forward part.
    pub intermediate: usize,
    /// ε of both normalisations.
    pub epsilon: f32,
}

/// Parameters of a layer, or places for their gradients. Matrices are `[out, in]`.
#[derive(Debug, Clone)]
pub struct Parameters<T> {
    /// `[3·hidden, hidden]`: query, key, value rows.
    pub qkv_weight: T,
    /// `[3·hidden]`
    pub qkv_bias: T,
    /// `[hidden, hidden]`
    pub out_weight: T,
    /// `[hidden]`
    pub out_bias: T,
    /// `[hidden]`
    pub norm1_gain: T,
    /// `[hidden]`
    pub norm1_bias: T,
    /// `[intermediate, hidden]`
    pub up_weight: T,
    /// `[intermediate]`
    pub up_bias: T,
    /// `[hidden, intermediate]`
    pub down_weight: T,
    /// `[hidden]`
    pub down_bias: T,
    /// `[hidden]`
    pub norm2_gain: T,
    /// `[hidden]`
    pub norm2_bias: T,
}

/// Dropout of a layer's three places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropouts {
    /// On attention probabilities.
    pub attention: Dropout,
    /// On the output of attention.
    pub hidden1: Dropout,
    /// On the output of the feed-forward part.
    pub hidden2: Dropout,
}

impl Dropouts {
    /// No dropout anywhere.
    pub const NONE: Self = Self { attention: Dropout::NONE, hidden1: Dropout::NONE, hidden2: Dropout::NONE };
}

/// A layer's weights in panels for forward; made once per update of the weights.
#[derive(Debug, Default)]
pub struct Panels {
    query: Packed,
    key_value: Packed,
    out: Packed,
    up: Packed,
    down: Packed,
}

impl Panels {
    /// Packs the four matrices.
    pub fn pack(&mut self, shape: Shape, qkv: &[f32], out: &[f32], up: &[f32], down: &[f32]) {
        let (hidden, wide) = (shape.heads.hidden, shape.intermediate);
        let (query, key_value) = qkv.split_at(hidden * hidden);
        self.query.pack_transposed_parallel(query, hidden, hidden, hidden);
        self.key_value.pack_transposed_parallel(key_value, hidden, 2 * hidden, hidden);
        self.out.pack_transposed_parallel(out, hidden, hidden, hidden);
        self.up.pack_transposed_parallel(up, hidden, wide, hidden);
        self.down.pack_transposed_parallel(down, wide, hidden, wide);
    }
}

/// What backward needs of forward, beside the input.
#[derive(Debug)]
pub struct Saved {
    qkv: Buffer,
    normaliser: Buffer,
    context: Buffer,
    sum1: Buffer,
    pre: Buffer,
    sum2: Buffer,
    moments: Vec<[Moments; 2]>,
}

/// The rows of `x` that give an output, one after the other; `None` if all do.
fn first_rows(
    x: &[f32],
    sequences: Sequences<'_>,
    outputs: Outputs,
    stride: usize,
    width: usize,
) -> Option<Buffer> {
    (outputs == Outputs::First).then(|| {
        let mut rows = Buffer::new(sequences.len() * width);
        for (n, row) in rows.chunks_exact_mut(width).enumerate() {
            row.copy_from_slice(&x[sequences.token(outputs, n) * stride..][..width]);
        }
        rows
    })
}

#[cfg(test)]
mod tests;
