//! One post-norm transformer encoder layer, as BERT has it, forward and backward.
//!
//! ```text
//! a = attention(x·W_qkvᵀ + b_qkv)
//! h = LN₁(x + drop(a·W_outᵀ + b_out))
//! y = LN₂(h + drop(gelu(h·W_upᵀ + b_up)·W_downᵀ + b_down))
//! ```
//! Everything after attention runs block of rows by block of rows, so that the wide middle of the feed-forward part
//! stays in cache.

use rayon::prelude::*;

use crate::activation::{gelu, gelu_backward};
use crate::attention::{self, Heads, Sequences};
use crate::dropout::Dropout;
use crate::gemm::{Packed, Start, outer_product, product, product_here};
use crate::norm::{Moments, normalise, normalise_backward};
use crate::pool::Buffer;
use crate::simd::{add, vectorised};

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
    qkv: Packed,
    out: Packed,
    up: Packed,
    down: Packed,
}

impl Panels {
    /// Packs the four matrices.
    pub fn pack(&mut self, shape: Shape, qkv: &[f32], out: &[f32], up: &[f32], down: &[f32]) {
        let (hidden, wide) = (shape.heads.hidden, shape.intermediate);
        self.qkv.pack_transposed_parallel(qkv, hidden, 3 * hidden, hidden);
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

/// `x[tokens][hidden]` → `y[tokens][hidden]`. Keeps what backward needs if `keep`.
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
pub fn forward(
    shape: Shape,
    weights: &Parameters<&[f32]>,
    panels: &Panels,
    x: &[f32],
    sequences: Sequences<'_>,
    dropouts: Dropouts,
    y: &mut [f32],
    keep: bool,
) -> Option<Saved> {
    let Shape { heads, intermediate, epsilon } = shape;
    let hidden = heads.hidden;
    let tokens = sequences.n_tokens();
    assert!(x.len() == tokens * hidden && y.len() == x.len());

    let mut qkv = Buffer::new(tokens * 3 * hidden);
    product(x, hidden, &panels.qkv, &mut qkv, Start::Bias(weights.qkv_bias), |_, _| {});
    let mut context = Buffer::new(tokens * hidden);
    let mut normaliser = Buffer::new(tokens * heads.n_heads);
    attention::forward(&qkv, sequences, heads, dropouts.attention, &mut context, &mut normaliser);

    let kept = if keep { tokens } else { 0 };
    let mut sum1 = Buffer::new(kept * hidden);
    let mut sum2 = Buffer::new(kept * hidden);
    let mut pre = Buffer::new(kept * intermediate);
    let mut moments = vec![[Moments::default(); 2]; tokens];

    let block = block_rows(tokens);
    // Without keeping, a block works in scratch of its own.
    let blocks = y
        .par_chunks_mut(block * hidden)
        .zip(moments.par_chunks_mut(block))
        .zip(blocks_or_empty(&mut sum1, hidden, block, tokens))
        .zip(blocks_or_empty(&mut sum2, hidden, block, tokens))
        .zip(blocks_or_empty(&mut pre, intermediate, block, tokens))
        .enumerate()
        .with_max_len(1);
    blocks.for_each(|(number, ((((y, moments), sum1), sum2), pre))| {
        let first = number * block;
        let rows = moments.len();
        let here = first * hidden..(first + rows) * hidden;
        let (mut own1, mut own2, mut own3) = (Buffer::default(), Buffer::default(), Buffer::default());
        let sum1 = own_if_empty(sum1, &mut own1, rows * hidden);
        let sum2 = own_if_empty(sum2, &mut own2, rows * hidden);
        let pre = own_if_empty(pre, &mut own3, rows * intermediate);
        let mut factors = Buffer::new(if dropouts.hidden1.is_active() || dropouts.hidden2.is_active() {
            hidden
        } else {
            0
        });
        let mut h = Buffer::new(rows * hidden);

        product_here(
            &context[here.clone()],
            hidden,
            &panels.out,
            sum1,
            hidden,
            Start::Bias(weights.out_bias),
        );
        for (row, moments) in moments.iter_mut().enumerate() {
            let span = row * hidden..(row + 1) * hidden;
            add_residual(
                dropouts.hidden1,
                first + row,
                &mut sum1[span.clone()],
                &x[here.clone()][span.clone()],
                &mut factors,
            );
            moments[0] =
                normalise(&sum1[span.clone()], weights.norm1_gain, weights.norm1_bias, epsilon, &mut h[span]);
        }
        product_here(&h, hidden, &panels.up, pre, intermediate, Start::Bias(weights.up_bias));
        let mut active = Buffer::new(rows * intermediate);
        gelu(pre, &mut active);
        product_here(&active, intermediate, &panels.down, sum2, hidden, Start::Bias(weights.down_bias));
        for (row, moments) in moments.iter_mut().enumerate() {
            let span = row * hidden..(row + 1) * hidden;
            add_residual(
                dropouts.hidden2,
                first + row,
                &mut sum2[span.clone()],
                &h[span.clone()],
                &mut factors,
            );
            moments[1] =
                normalise(&sum2[span.clone()], weights.norm2_gain, weights.norm2_bias, epsilon, &mut y[span]);
        }
    });
    keep.then_some(Saved { qkv, normaliser, context, sum1, pre, sum2, moments })
}

/// Blocks of a kept buffer, or as many empty ones.
fn blocks_or_empty(
    buffer: &mut [f32],
    width: usize,
    block: usize,
    tokens: usize,
) -> impl IndexedParallelIterator<Item = &mut [f32]> {
    let n = tokens.div_ceil(block);
    let mut blocks: Vec<&mut [f32]> = buffer.chunks_mut(block * width).collect();
    blocks.resize_with(n, Default::default);
    blocks.into_par_iter()
}

fn own_if_empty<'a>(block: &'a mut [f32], own: &'a mut Buffer, len: usize) -> &'a mut [f32] {
    if block.is_empty() {
        *own = Buffer::new(len);
        own
    } else {
        block
    }
}

/// `sum = drop(sum) + residual` for one row.
fn add_residual(dropout: Dropout, token: usize, sum: &mut [f32], residual: &[f32], factors: &mut [f32]) {
    if dropout.is_active() {
        dropout.factors(token as u64, factors);
        vectorised(|| {
            for ((sum, residual), factor) in sum.iter_mut().zip(residual).zip(factors.iter()) {
                *sum = *sum * factor + residual;
            }
        });
    } else {
        add(sum, residual);
    }
}

/// The gradient of [`forward`]: `dy` → `dx`, and the gradients of the parameters added to `gradients`.
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
pub fn backward(
    shape: Shape,
    weights: &Parameters<&[f32]>,
    x: &[f32],
    sequences: Sequences<'_>,
    dropouts: Dropouts,
    saved: Saved,
    dy: &[f32],
    dx: &mut [f32],
    gradients: &mut Parameters<&mut [f32]>,
) {
    let Shape { heads, intermediate, epsilon: _ } = shape;
    let hidden = heads.hidden;
    let tokens = sequences.n_tokens();
    assert!(x.len() == tokens * hidden && dy.len() == x.len() && dx.len() == x.len());
    let Saved { qkv, normaliser, context, sum1, mut pre, sum2, moments } = saved;

    let (mut down, mut up, mut out) = (Packed::default(), Packed::default(), Packed::default());
    down.pack_parallel(weights.down_weight, hidden, intermediate, intermediate);
    up.pack_parallel(weights.up_weight, intermediate, hidden, hidden);
    out.pack_parallel(weights.out_weight, hidden, hidden, hidden);

    let mut d_down = Buffer::new(tokens * hidden);
    let mut d_pre = Buffer::new(tokens * intermediate);
    let mut h = Buffer::new(tokens * hidden);
    let mut d_out = Buffer::new(tokens * hidden);
    let mut d_context = Buffer::new(tokens * hidden);
    // Column sums of each block, added up in order afterwards so that the result does not depend on threads:
    // gain and bias of both normalisations, then the biases of down, out and up.
    let width = 6 * hidden + intermediate;
    let block = block_rows(tokens);
    let mut partial = Buffer::zeros(tokens.div_ceil(block) * width);

    dx.par_chunks_mut(block * hidden)
        .zip(d_down.par_chunks_mut(block * hidden))
        .zip(d_pre.par_chunks_mut(block * intermediate))
        .zip(h.par_chunks_mut(block * hidden))
        .zip(d_out.par_chunks_mut(block * hidden))
        .zip(d_context.par_chunks_mut(block * hidden))
        .zip(pre.par_chunks_mut(block * intermediate))
        .zip(partial.par_chunks_mut(width))
        .enumerate()
        .with_max_len(1)
        .for_each(|(number, (((((((dx, d_down), d_pre), h), d_out), d_context), pre), partial))| {
            let first = number * block;
            let rows = dx.len() / hidden;
            let mut factors = Buffer::new(hidden);
            let (gain2, rest) = partial.split_at_mut(hidden);
            let (bias2, rest) = rest.split_at_mut(hidden);
            let (gain1, rest) = rest.split_at_mut(hidden);
            let (bias1, rest) = rest.split_at_mut(hidden);
            let (b_down, rest) = rest.split_at_mut(hidden);
            let (b_out, b_up) = rest.split_at_mut(hidden);

            // d(h + drop(down)): what reaches h directly is kept in `dx` for now.
            dx.copy_from_slice(&dy[first * hidden..][..rows * hidden]);
            for row in 0..rows {
                let span = row * hidden..(row + 1) * hidden;
                let at = (first + row) * hidden;
                let sum2 = &sum2[at..at + hidden];
                normalise_backward(
                    sum2,
                    moments[first + row][1],
                    weights.norm2_gain,
                    &mut dx[span.clone()],
                    gain2,
                    bias2,
                );
                through_dropout(
                    dropouts.hidden2,
                    first + row,
                    &dx[span.clone()],
                    &mut d_down[span],
                    &mut factors,
                );
            }
            column_sums(d_down, b_down);
            product_here(d_down, hidden, &down, d_pre, intermediate, Start::Zero);
            gelu_backward(pre, d_pre);
            column_sums(d_pre, b_up);
            product_here(d_pre, intermediate, &up, dx, hidden, Start::Output);
            for row in 0..rows {
                let span = row * hidden..(row + 1) * hidden;
                let at = (first + row) * hidden;
                let moments = moments[first + row][0];
                let sum1 = &sum1[at..at + hidden];
                let h = &mut h[span.clone()];
                vectorised(|| {
                    for (((h, &x), gain), bias) in
                        h.iter_mut().zip(sum1).zip(weights.norm1_gain).zip(weights.norm1_bias)
                    {
                        *h = (x - moments.mean) * moments.rstd * gain + bias;
                    }
                });
                normalise_backward(sum1, moments, weights.norm1_gain, &mut dx[span.clone()], gain1, bias1);
                through_dropout(
                    dropouts.hidden1,
                    first + row,
                    &dx[span.clone()],
                    &mut d_out[span],
                    &mut factors,
                );
            }
            column_sums(d_out, b_out);
            product_here(d_out, hidden, &out, d_context, hidden, Start::Zero);
        });
    let active = pre;
    for partial in partial.chunks_exact(width) {
        let targets = [
            &mut *gradients.norm2_gain,
            gradients.norm2_bias,
            gradients.norm1_gain,
            gradients.norm1_bias,
            gradients.down_bias,
            gradients.out_bias,
        ];
        let (narrow, wide) = partial.split_at(6 * hidden);
        for (target, part) in targets.into_iter().zip(narrow.chunks_exact(hidden)) {
            add(target, part);
        }
        add(gradients.up_bias, wide);
    }
    outer_product(
        &d_down,
        hidden,
        hidden,
        &active,
        intermediate,
        intermediate,
        tokens,
        gradients.down_weight,
    );
    outer_product(&d_pre, intermediate, intermediate, &h, hidden, hidden, tokens, gradients.up_weight);
    outer_product(&d_out, hidden, hidden, &context, hidden, hidden, tokens, gradients.out_weight);

    let mut d_qkv = Buffer::new(tokens * 3 * hidden);
    attention::backward(
        &qkv,
        sequences,
        heads,
        dropouts.attention,
        &context,
        &normaliser,
        &d_context,
        &mut d_qkv,
    );
    let mut down_qkv = Packed::default();
    down_qkv.pack_parallel(weights.qkv_weight, 3 * hidden, hidden, hidden);
    product(&d_qkv, 3 * hidden, &down_qkv, dx, Start::Output, |_, _| {});
    outer_product(&d_qkv, 3 * hidden, 3 * hidden, x, hidden, hidden, tokens, gradients.qkv_weight);
    column_sums(&d_qkv, gradients.qkv_bias);
}

fn through_dropout(dropout: Dropout, token: usize, d: &[f32], out: &mut [f32], factors: &mut [f32]) {
    if dropout.is_active() {
        dropout.factors(token as u64, factors);
        vectorised(|| {
            for ((out, d), factor) in out.iter_mut().zip(d).zip(factors.iter()) {
                *out = d * factor;
            }
        });
    } else {
        out.copy_from_slice(d);
    }
}

fn column_sums(rows: &[f32], sums: &mut [f32]) {
    vectorised(|| {
        for row in rows.chunks_exact(sums.len()) {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    });
}

#[cfg(test)]
mod tests;
