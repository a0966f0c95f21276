//! Backward.

use rayon::prelude::*;

use super::{Dropouts, Parameters, Saved, Shape, block_rows, first_rows};
use crate::activation::gelu_backward;
use crate::attention::{self, Outputs, Sequences};
use crate::dropout::Dropout;
use crate::gemm::{Packed, Start, outer_product, product, product_here};
use crate::norm::normalise_backward;
use crate::pool::Buffer;
use crate::simd::{add, vectorised};

/// The gradient of [`super::forward`]: `dy` → `dx`, and the gradients of the parameters added to `gradients`.
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
pub fn backward(
    shape: Shape,
    weights: &Parameters<&[f32]>,
    x: &[f32],
    sequences: Sequences<'_>,
    outputs: Outputs,
    dropouts: Dropouts,
    saved: Saved,
    dy: &[f32],
    dx: &mut [f32],
    gradients: &mut Parameters<&mut [f32]>,
) {
    let Shape { heads, intermediate, epsilon: _ } = shape;
    let hidden = heads.hidden;
    let tokens = sequences.n_tokens();
    let n_rows = sequences.n_rows(outputs);
    assert!(x.len() == tokens * hidden && dy.len() == n_rows * hidden && dx.len() == x.len());
    let Saved { qkv, normaliser, context, sum1, mut pre, sum2, moments } = saved;

    let (mut down, mut up, mut out) = (Packed::default(), Packed::default(), Packed::default());
    down.pack_parallel(weights.down_weight, hidden, intermediate, intermediate);
    up.pack_parallel(weights.up_weight, intermediate, hidden, hidden);
    out.pack_parallel(weights.out_weight, hidden, hidden, hidden);

    let mut d_down = Buffer::new(n_rows * hidden);
    let mut d_pre = Buffer::new(n_rows * intermediate);
    let mut h = Buffer::new(n_rows * hidden);
    let mut d_out = Buffer::new(n_rows * hidden);
    let mut d_context = Buffer::new(n_rows * hidden);
    // Column sums of each block, added up in order afterwards so that the result does not depend on threads:
    // gain and bias of both normalisations, then the biases of down, out and up.
    let width = 6 * hidden + intermediate;
    let block = block_rows(n_rows);
    let mut partial = Buffer::zeros(n_rows.div_ceil(block) * width);

    // What reaches the input past attention: all of `dx`, or rows of their own that are added to it in the end.
    let mut own = Buffer::default();
    let past: &mut [f32] = match outputs {
        Outputs::All => &mut *dx,
        Outputs::First => {
            own = Buffer::new(n_rows * hidden);
            &mut own
        }
    };
    past.par_chunks_mut(block * hidden)
        .zip(d_down.par_chunks_mut(block * hidden))
        .zip(d_pre.par_chunks_mut(block * intermediate))
        .zip(h.par_chunks_mut(block * hidden))
        .zip(d_out.par_chunks_mut(block * hidden))
        .zip(d_context.par_chunks_mut(block * hidden))
        .zip(pre.par_chunks_mut(block * intermediate))
        .zip(partial.par_chunks_mut(width))
        .enumerate()
        .with_max_len(1)
        .for_each(|(number, (((((((past, d_down), d_pre), h), d_out), d_context), pre), partial))| {
            let first = number * block;
            let rows = past.len() / hidden;
            let mut factors = Buffer::new(hidden);
            let (gain2, rest) = partial.split_at_mut(hidden);
            let (bias2, rest) = rest.split_at_mut(hidden);
            let (gain1, rest) = rest.split_at_mut(hidden);
            let (bias1, rest) = rest.split_at_mut(hidden);
            let (b_down, rest) = rest.split_at_mut(hidden);
            let (b_out, b_up) = rest.split_at_mut(hidden);

            // d(h + drop(down)): what reaches h directly is kept in `past` for now.
            past.copy_from_slice(&dy[first * hidden..][..rows * hidden]);
            for row in 0..rows {
                let span = row * hidden..(row + 1) * hidden;
                let at = (first + row) * hidden;
                let sum2 = &sum2[at..at + hidden];
                normalise_backward(
                    sum2,
                    moments[first + row][1],
                    weights.norm2_gain,
                    &mut past[span.clone()],
                    gain2,
                    bias2,
                );
                through_dropout(
                    dropouts.hidden2,
                    sequences.token(outputs, first + row),
                    &past[span.clone()],
                    &mut d_down[span],
                    &mut factors,
                );
            }
            column_sums(d_down, hidden, b_down);
            product_here(d_down, hidden, &down, d_pre, intermediate, Start::Zero);
            gelu_backward(pre, d_pre);
            column_sums(d_pre, intermediate, b_up);
            product_here(d_pre, intermediate, &up, past, hidden, Start::Output);
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
                normalise_backward(sum1, moments, weights.norm1_gain, &mut past[span.clone()], gain1, bias1);
                through_dropout(
                    dropouts.hidden1,
                    sequences.token(outputs, first + row),
                    &past[span.clone()],
                    &mut d_out[span],
                    &mut factors,
                );
            }
            column_sums(d_out, hidden, b_out);
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
        n_rows,
        gradients.down_weight,
    );
    outer_product(&d_pre, intermediate, intermediate, &h, hidden, hidden, n_rows, gradients.up_weight);
    outer_product(&d_out, hidden, hidden, &context, hidden, hidden, n_rows, gradients.out_weight);

    let mut d_qkv = Buffer::new(tokens * 3 * hidden);
    attention::backward(
        &qkv,
        sequences,
        heads,
        outputs,
        dropouts.attention,
        &context,
        &normaliser,
        &d_context,
        &mut d_qkv,
    );
    let (matrix, bias) = (&mut *gradients.qkv_weight, &mut *gradients.qkv_bias);
    let mut packed = Packed::default();
    let Some(firsts) = first_rows(x, sequences, outputs, hidden, hidden) else {
        packed.pack_parallel(weights.qkv_weight, 3 * hidden, hidden, hidden);
        product(&d_qkv, 3 * hidden, &packed, dx, Start::Output);
        outer_product(&d_qkv, 3 * hidden, 3 * hidden, x, hidden, hidden, tokens, matrix);
        column_sums(&d_qkv, 3 * hidden, bias);
        return;
    };
    // Keys and values of all tokens, queries of the first ones only.
    let (query_weight, key_value_weight) = weights.qkv_weight.split_at(hidden * hidden);
    let (query_matrix, key_value_matrix) = matrix.split_at_mut(hidden * hidden);
    let (query_bias, key_value_bias) = bias.split_at_mut(hidden);
    let d_key_value = &d_qkv[hidden.min(d_qkv.len())..];
    packed.pack_parallel(key_value_weight, 2 * hidden, hidden, hidden);
    product(d_key_value, 3 * hidden, &packed, dx, Start::Zero);
    outer_product(d_key_value, 3 * hidden, 2 * hidden, x, hidden, hidden, tokens, key_value_matrix);
    column_sums(d_key_value, 3 * hidden, key_value_bias);
    if let Some(d_query) = first_rows(&d_qkv, sequences, outputs, 3 * hidden, hidden) {
        packed.pack_parallel(query_weight, hidden, hidden, hidden);
        product(&d_query, hidden, &packed, &mut own, Start::Output);
        outer_product(&d_query, hidden, hidden, &firsts, hidden, hidden, n_rows, query_matrix);
        column_sums(&d_query, hidden, query_bias);
    }
    for (row, own) in own.chunks_exact(hidden).enumerate() {
        add(&mut dx[sequences.token(outputs, row) * hidden..][..hidden], own);
    }
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

/// Adds rows that are `stride` values apart.
fn column_sums(rows: &[f32], stride: usize, sums: &mut [f32]) {
    vectorised(|| {
        for row in rows.chunks(stride) {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    });
}
