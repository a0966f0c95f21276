//! Forward.

use rayon::prelude::*;

use super::{Dropouts, Panels, Parameters, Saved, Shape, block_rows, first_rows};
use crate::activation::gelu;
use crate::attention::{self, Outputs, Sequences};
use crate::dropout::Dropout;
use crate::gemm::{Start, product, product_here, rows_of_a_task};
use crate::norm::{Moments, normalise};
use crate::pool::Buffer;
use crate::simd::{add, vectorised};

/// `x[tokens][hidden]` → `y[rows][hidden]`. Keeps what backward needs if `keep`.
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
pub fn forward(
    shape: Shape,
    weights: &Parameters<&[f32]>,
    panels: &Panels,
    x: &[f32],
    sequences: Sequences<'_>,
    outputs: Outputs,
    dropouts: Dropouts,
    y: &mut [f32],
    keep: bool,
) -> Option<Saved> {
    let Shape { heads, intermediate, epsilon } = shape;
    let hidden = heads.hidden;
    let tokens = sequences.n_tokens();
    let rows = sequences.n_rows(outputs);
    assert!(x.len() == tokens * hidden && y.len() == rows * hidden);

    let firsts = first_rows(x, sequences, outputs, hidden, hidden);
    let mut qkv = Buffer::new(tokens * 3 * hidden);
    project(shape, weights.qkv_bias, panels, x, firsts.is_none(), &mut qkv);
    if let Some(firsts) = &firsts {
        let mut queries = Buffer::new(rows * hidden);
        product(firsts, hidden, &panels.query, &mut queries, Start::Bias(weights.qkv_bias));
        for (row, query) in queries.chunks_exact(hidden).enumerate() {
            qkv[sequences.token(outputs, row) * 3 * hidden..][..hidden].copy_from_slice(query);
        }
    }
    let residual = firsts.as_deref().unwrap_or(x);
    let mut context = Buffer::new(rows * hidden);
    let mut normaliser = Buffer::new(rows * heads.n_heads);
    attention::forward(&qkv, sequences, heads, outputs, dropouts.attention, &mut context, &mut normaliser);

    let kept = if keep { rows } else { 0 };
    let mut sum1 = Buffer::new(kept * hidden);
    let mut sum2 = Buffer::new(kept * hidden);
    let mut pre = Buffer::new(kept * intermediate);
    let mut moments = vec![[Moments::default(); 2]; rows];

    let block = block_rows(rows);
    // Without keeping, a block works in scratch of its own.
    let blocks = y
        .par_chunks_mut(block * hidden)
        .zip(moments.par_chunks_mut(block))
        .zip(blocks_or_empty(&mut sum1, hidden, block, rows))
        .zip(blocks_or_empty(&mut sum2, hidden, block, rows))
        .zip(blocks_or_empty(&mut pre, intermediate, block, rows))
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
                sequences.token(outputs, first + row),
                &mut sum1[span.clone()],
                &residual[here.clone()][span.clone()],
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
                sequences.token(outputs, first + row),
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

/// Keys and values of all tokens, and their queries if `queries`, side by side in `qkv[tokens][3·hidden]`.
fn project(shape: Shape, bias: &[f32], panels: &Panels, x: &[f32], queries: bool, qkv: &mut [f32]) {
    let hidden = shape.heads.hidden;
    let (query_bias, key_value_bias) = bias.split_at(hidden);
    let rows = rows_of_a_task(x.len() / hidden);
    let blocks = qkv.par_chunks_mut(rows * 3 * hidden).zip(x.par_chunks(rows * hidden));
    blocks.with_max_len(1).for_each(|(qkv, x)| {
        if queries {
            product_here(x, hidden, &panels.query, qkv, 3 * hidden, Start::Bias(query_bias));
        }
        let rest = &mut qkv[hidden..];
        product_here(x, hidden, &panels.key_value, rest, 3 * hidden, Start::Bias(key_value_bias));
    });
}

/// Blocks of a kept buffer, or as many empty ones.
fn blocks_or_empty(
    buffer: &mut [f32],
    width: usize,
    block: usize,
    rows: usize,
) -> impl IndexedParallelIterator<Item = &mut [f32]> {
    let n = rows.div_ceil(block);
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
