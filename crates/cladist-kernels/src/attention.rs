//! Self-attention over packed sequences: no padding, no transposed copies, probabilities never stored.
//!
//! For each sequence and head, O = softmax(Q·Kᵀ/√d)·V. Forward keeps the logarithm of each row's normaliser;
//! backward computes the probabilities again from it.

pub mod look;
mod sequences;

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use crate::dropout::Dropout;
use crate::gemm::{Packed, Start, outer_product_here, product_here};
use crate::math::exp;
use crate::simd::{Kernel, Simd, dispatch, vectorised};

pub use sequences::{Heads, Outputs, Sequences};

/// Query rows handled at once: their scores stay in the second-level cache.
const BLOCK: usize = 56;

#[derive(Default)]
struct Scratch {
    keys: Packed,
    values: Packed,
    other: Packed,
    rows: Packed,
    scores: Vec<f32>,
    slopes: Vec<f32>,
    factors: Vec<f32>,
    out: Vec<f32>,
    d_keys: Vec<f32>,
    d_values: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// A place that tasks write to at positions that never overlap.
#[derive(Clone, Copy)]
struct Target(*mut f32);
// SAFETY: every task writes only the rows of its sequence at the columns of its head.
unsafe impl Send for Target {}
unsafe impl Sync for Target {}

impl Target {
    /// Copies `rows` of `width` values to rows that are `stride` apart.
    ///
    /// # Safety
    /// The rows must lie inside the target and belong to this task alone.
    unsafe fn put(self, at: usize, stride: usize, rows: &[f32], width: usize) {
        for (n, row) in rows.chunks_exact(width).enumerate() {
            unsafe { std::ptr::copy_nonoverlapping(row.as_ptr(), self.0.add(at + n * stride), width) };
        }
    }
}

/// Each head with the tokens and the rows of output of each sequence.
fn tasks(
    sequences: Sequences<'_>,
    heads: Heads,
    outputs: Outputs,
) -> impl IndexedParallelIterator<Item = (usize, Range<usize>, Range<usize>)> {
    (0..sequences.len() * heads.n_heads).into_par_iter().with_max_len(4).map(move |task| {
        let (sequence, head) = (task / heads.n_heads, task % heads.n_heads);
        (head, sequences.range(sequence), sequences.rows(outputs, sequence))
    })
}

/// `qkv[tokens][3·hidden]` → `out[rows][hidden]`; `normaliser[heads][rows]` gets ln Σ e^score of each row.
///
/// With [`Outputs::First`] the queries of other tokens are not read.
pub fn forward(
    qkv: &[f32],
    sequences: Sequences<'_>,
    heads: Heads,
    outputs: Outputs,
    dropout: Dropout,
    out: &mut [f32],
    normaliser: &mut [f32],
) {
    let (hidden, width, tokens) = (heads.hidden, heads.width(), sequences.n_tokens());
    let (stride, n_rows) = (3 * hidden, sequences.n_rows(outputs));
    assert!(qkv.len() == tokens * stride && out.len() == n_rows * hidden);
    assert!(normaliser.len() == n_rows * heads.n_heads);
    assert!(outputs == Outputs::All || (0..sequences.len()).all(|n| !sequences.range(n).is_empty()));
    let (target, normalisers) = (Target(out.as_mut_ptr()), Target(normaliser.as_mut_ptr()));
    tasks(sequences, heads, outputs).for_each(|(head, range, outputs)| {
        SCRATCH.with_borrow_mut(|scratch| {
            let length = range.len();
            if length == 0 {
                return;
            }
            let first = &qkv[range.start * stride + head * width..];
            scratch.keys.pack_transposed(&first[hidden..], width, length, stride);
            let columns = scratch.keys.pad_columns();
            scratch.values.pack(&first[2 * hidden..], length, width, stride);
            for row in (0..outputs.len()).step_by(BLOCK) {
                let rows = BLOCK.min(outputs.len() - row);
                scratch.scores.resize(BLOCK * columns, 0.0);
                let scores = &mut scratch.scores[..rows * columns];
                product_here(&first[row * stride..], stride, &scratch.keys, scores, columns, Start::Zero);
                for (n, scores) in scores.chunks_exact_mut(columns).enumerate() {
                    let token = range.start + row + n;
                    scores[length..].fill(-1e30);
                    let log = dispatch(Softmax { row: scores, scale: heads.scale() });
                    // SAFETY: one value per row and head.
                    unsafe { normalisers.put(head * n_rows + outputs.start + row + n, 1, &[log], 1) };
                    drop_out(dropout, head, token, &mut scores[..length], &mut scratch.factors);
                }
                scratch.out.resize(BLOCK * width, 0.0);
                let out = &mut scratch.out[..rows * width];
                product_here(scores, columns, &scratch.values, out, width, Start::Zero);
                // SAFETY: rows of this sequence, columns of this head.
                unsafe { target.put((outputs.start + row) * hidden + head * width, hidden, out, width) };
            }
        });
    });
}

fn drop_out(dropout: Dropout, head: usize, token: usize, row: &mut [f32], factors: &mut Vec<f32>) {
    if dropout.is_active() {
        factors.resize(row.len(), 0.0);
        dropout.factors(((head as u64) << 40) | token as u64, factors);
        vectorised(|| row.iter_mut().zip(factors.iter()).for_each(|(p, f)| *p *= f));
    }
}

/// The gradient of [`forward`]: `d_out[rows][hidden]` → `d_qkv[tokens][3·hidden]`.
///
/// With [`Outputs::First`] nothing is written for the queries of other tokens.
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
pub fn backward(
    qkv: &[f32],
    sequences: Sequences<'_>,
    heads: Heads,
    outputs: Outputs,
    dropout: Dropout,
    out: &[f32],
    normaliser: &[f32],
    d_out: &[f32],
    d_qkv: &mut [f32],
) {
    let (hidden, width, tokens) = (heads.hidden, heads.width(), sequences.n_tokens());
    let (stride, n_rows) = (3 * hidden, sequences.n_rows(outputs));
    assert!(qkv.len() == tokens * stride && d_qkv.len() == qkv.len());
    assert!(out.len() == n_rows * hidden && d_out.len() == out.len());
    assert!(normaliser.len() == n_rows * heads.n_heads);
    let (target, scale) = (Target(d_qkv.as_mut_ptr()), heads.scale());
    tasks(sequences, heads, outputs).for_each(|(head, range, outputs)| {
        SCRATCH.with_borrow_mut(|scratch| {
            let length = range.len();
            if length == 0 {
                return;
            }
            let Scratch {
                keys,
                values,
                other,
                rows: packed,
                scores,
                slopes,
                factors,
                out: dq,
                d_keys,
                d_values,
            } = scratch;
            let first = &qkv[range.start * stride + head * width..];
            let column = outputs.start * hidden + head * width;
            keys.pack_transposed(&first[hidden..], width, length, stride);
            let columns = keys.pad_columns();
            values.pack_transposed(&first[2 * hidden..], width, length, stride);
            values.pad_columns();
            let mut keys_down = std::mem::take(other);
            keys_down.pack(&first[hidden..], length, width, stride);
            for (buffer, len) in
                [(&mut *scores, BLOCK * columns), (slopes, BLOCK * columns), (dq, BLOCK * width)]
            {
                buffer.resize(len, 0.0);
            }
            for buffer in [&mut *d_keys, d_values] {
                buffer.clear();
                buffer.resize(length * width, 0.0);
            }
            for row in (0..outputs.len()).step_by(BLOCK) {
                let rows = BLOCK.min(outputs.len() - row);
                let scores = &mut scores[..rows * columns];
                let slopes = &mut slopes[..rows * columns];
                let queries = &first[row * stride..];
                let d_block = &d_out[column + row * hidden..];
                product_here(queries, stride, keys, scores, columns, Start::Zero);
                product_here(d_block, hidden, values, slopes, columns, Start::Zero);
                for n in 0..rows {
                    let token = range.start + row + n;
                    let at = column + (row + n) * hidden;
                    // Σ_j P_ij·dP_ij, also with dropout, is d_out · out.
                    let mean = vectorised(|| dot(&d_out[at..at + width], &out[at..at + width]));
                    let p = &mut scores[n * columns..][..length];
                    let slope = &mut slopes[n * columns..][..length];
                    let log = normaliser[head * n_rows + outputs.start + row + n];
                    dispatch(Probabilities { row: p, scale: heads.scale(), log });
                    // With dropout `p` must become the dropped probabilities for dV, after dS took the whole ones.
                    if dropout.is_active() {
                        factors.resize(length, 0.0);
                        dropout.factors(((head as u64) << 40) | token as u64, factors);
                        vectorised(|| {
                            for ((p, slope), &factor) in p.iter_mut().zip(slope).zip(factors.iter()) {
                                *slope = *p * (*slope * factor - mean) * scale;
                                *p *= factor;
                            }
                        });
                    } else {
                        vectorised(|| {
                            for (p, slope) in p.iter().zip(slope) {
                                *slope = p * (*slope - mean) * scale;
                            }
                        });
                    }
                }
                let dq = &mut dq[..rows * width];
                product_here(slopes, columns, &keys_down, dq, width, Start::Zero);
                // SAFETY: rows of this sequence, query columns of this head.
                unsafe { target.put((range.start + row) * stride + head * width, stride, dq, width) };
                outer_product_here(slopes, (columns, length), queries, (stride, width), rows, d_keys, packed);
                outer_product_here(
                    scores,
                    (columns, length),
                    d_block,
                    (hidden, width),
                    rows,
                    d_values,
                    packed,
                );
            }
            *other = keys_down;
            // SAFETY: rows of this sequence, key and value columns of this head.
            unsafe {
                let at = range.start * stride + head * width;
                target.put(at + hidden, stride, d_keys, width);
                target.put(at + 2 * hidden, stride, d_values, width);
            }
        });
    });
}

/// Attention probabilities of one sequence, `[heads][length][length]`, for looking at.
#[must_use]
pub fn probabilities(qkv: &[f32], range: Range<usize>, heads: Heads) -> Vec<f32> {
    let (length, stride) = (range.len(), 3 * heads.hidden);
    let mut out = vec![0.0; heads.n_heads * length * length];
    let mut keys = Packed::default();
    for (head, out) in out.chunks_exact_mut((length * length).max(1)).enumerate() {
        let first = &qkv[range.start * stride + head * heads.width()..];
        keys.pack_transposed(&first[heads.hidden..], heads.width(), length, stride);
        product_here(first, stride, &keys, out, length, Start::Zero);
        for row in out.chunks_exact_mut(length) {
            dispatch(Softmax { row, scale: heads.scale() });
        }
    }
    out
}

/// Turns raw scores into probabilities and returns ln Σ e^(scale·score).
struct Softmax<'a> {
    row: &'a mut [f32],
    scale: f32,
}

impl Kernel for Softmax<'_> {
    type Output = f32;
    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let Self { row, scale } = self;
        // SAFETY: both stay inside the row.
        let shift = unsafe { highest::<S>(row) } * scale;
        let sum = unsafe { exponentials::<S>(row, scale, shift) };
        let inverse = 1.0 / sum;
        row.iter_mut().for_each(|p| *p *= inverse);
        shift + sum.ln()
    }
}

/// Σ a·b, in parts that the compiler keeps in registers.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut parts = [0.0f32; 16];
    for (a, b) in a.chunks(16).zip(b.chunks(16)) {
        parts.iter_mut().zip(a).zip(b).for_each(|((part, a), b)| *part += a * b);
    }
    parts.iter().sum()
}

/// The largest value of a row.
#[inline(always)]
unsafe fn highest<S: Simd>(row: &[f32]) -> f32 {
    let mut chunks = row.chunks_exact(S::LANES);
    // SAFETY: every chunk holds a register.
    let best = unsafe {
        let mut best = S::splat(f32::NEG_INFINITY);
        for chunk in chunks.by_ref() {
            best = S::max(best, S::load(chunk.as_ptr()));
        }
        S::highest(best)
    };
    chunks.remainder().iter().copied().fold(best, f32::max)
}

/// Turns raw scores into probabilities with a known normaliser.
struct Probabilities<'a> {
    row: &'a mut [f32],
    scale: f32,
    log: f32,
}

impl Kernel for Probabilities<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: as above.
        unsafe { exponentials::<S>(self.row, self.scale, self.log) };
    }
}

/// `row = e^(scale·row − shift)`; returns the sum.
#[inline(always)]
unsafe fn exponentials<S: Simd>(row: &mut [f32], scale: f32, shift: f32) -> f32 {
    unsafe {
        let (factor, offset) = (S::splat(scale), S::splat(-shift));
        let mut sum = S::splat(0.0);
        let mut chunks = row.chunks_exact_mut(S::LANES);
        for chunk in chunks.by_ref() {
            let e = exp::<S>(S::fma(S::load(chunk.as_ptr()), factor, offset));
            S::store(chunk.as_mut_ptr(), e);
            sum = S::add(sum, e);
        }
        let mut total = S::sum(sum);
        let rest = chunks.into_remainder();
        if rest.is_empty() {
            return total;
        }
        let mut buffer = [f32::NEG_INFINITY; 16];
        buffer[..rest.len()].copy_from_slice(rest);
        let e = exp::<S>(S::fma(S::load(buffer.as_ptr()), factor, offset));
        S::store(buffer.as_mut_ptr(), e);
        rest.copy_from_slice(&buffer[..rest.len()]);
        total += rest.iter().sum::<f32>();
        total
    }
}

#[cfg(test)]
mod tests;
