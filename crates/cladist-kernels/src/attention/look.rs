//! Labels that look at the tokens of packed sequences: for each sequence and head, O = softmax(Q·Kᵀ·scale)·V with a
//! query for each label.
//!
//! As in self-attention, weights are never stored; backward computes them again from each row's normaliser.

use rayon::prelude::*;

use super::{BLOCK, Probabilities, SCRATCH, Scratch, Sequences, Softmax, Target, dot};
use crate::gemm::{Start, outer_product_here, product_here};
use crate::pool;
use crate::simd::{dispatch, vectorised};

/// Labels of one task of [`forward`]: enough that packing keys and values does not matter.
const LABELS: usize = 1024;

/// What looks at what.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The tokens of each sequence.
    pub sequences: Sequences<'a>,
    /// How many labels look.
    pub n_labels: usize,
    /// Queries of each label: one for all sequences, or one for each.
    pub copies: usize,
    /// Attention heads.
    pub n_heads: usize,
    /// Width of queries and keys, all heads together.
    pub width: usize,
    /// Width of values, all heads together.
    pub out: usize,
    /// What scores are multiplied by.
    pub scale: f32,
}

impl Look<'_> {
    /// Values of the output `[labels][sequences][out]`.
    #[must_use]
    pub fn n_outputs(&self) -> usize {
        self.n_labels * self.sequences.len() * self.out
    }

    /// Rows of weights `[sequences][heads][labels]`.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.sequences.len() * self.n_heads * self.n_labels
    }

    fn check(&self, queries: &[f32], keys: &[f32], values: &[f32]) {
        let Self { sequences, n_labels, copies, n_heads, width, out, .. } = *self;
        assert!(copies == 1 || copies == sequences.len());
        assert!(width.is_multiple_of(n_heads) && out.is_multiple_of(n_heads));
        assert!(queries.len() == n_labels * copies * width);
        assert!(keys.len() == sequences.n_tokens() * width && values.len() == sequences.n_tokens() * out);
    }

    /// Widths of one head.
    fn widths(&self) -> (usize, usize) {
        (self.width / self.n_heads, self.out / self.n_heads)
    }

    /// Where the query of a label is, for a sequence and a head.
    fn query(&self, label: usize, sequence: usize, head: usize) -> usize {
        (label * self.copies + sequence % self.copies) * self.width + head * self.widths().0
    }

    /// Where the output of a label is.
    fn output(&self, label: usize, sequence: usize, head: usize) -> usize {
        (label * self.sequences.len() + sequence) * self.out + head * self.widths().1
    }
}

/// `queries[labels][copies][width]`, `keys[tokens][width]`, `values[tokens][out]` → `out[labels][sequences][out]`;
/// `normaliser[sequences][heads][labels]` gets ln Σ e^score of each row. A sequence without tokens shows nothing but zeros.
///
/// # Panics
/// If a length does not fit.
pub fn forward(
    look: &Look<'_>,
    queries: &[f32],
    keys: &[f32],
    values: &[f32],
    out: &mut [f32],
    normaliser: &mut [f32],
) {
    look.check(queries, keys, values);
    assert!(out.len() == look.n_outputs() && normaliser.len() == look.n_rows());
    let Look { sequences, n_labels, copies, n_heads, .. } = *look;
    let ((width, value_width), stride) = (look.widths(), copies * look.width);
    let (target, normalisers) = (Target(out.as_mut_ptr()), Target(normaliser.as_mut_ptr()));
    let parts = n_labels.div_ceil(LABELS);
    (0..sequences.len() * n_heads * parts).into_par_iter().with_max_len(1).for_each(|task| {
        let (pair, part) = (task / parts, task % parts);
        let (sequence, head) = (pair / n_heads, pair % n_heads);
        let labels = part * LABELS..n_labels.min((part + 1) * LABELS);
        let range = sequences.range(sequence);
        SCRATCH.with_borrow_mut(|scratch| {
            let Scratch { keys: packed_keys, values: packed_values, scores, out, .. } = scratch;
            out.resize(BLOCK * value_width, 0.0);
            if range.is_empty() {
                out.fill(0.0);
                for label in labels {
                    // SAFETY: the row of this label and sequence, columns of this head.
                    unsafe {
                        target.put(look.output(label, sequence, head), 1, &out[..value_width], value_width)
                    };
                }
                return;
            }
            let length = range.len();
            packed_keys.pack_transposed(
                &keys[range.start * look.width + head * width..],
                width,
                length,
                look.width,
            );
            let columns = packed_keys.pad_columns();
            packed_values.pack(
                &values[range.start * look.out + head * value_width..],
                length,
                value_width,
                look.out,
            );
            scores.resize(BLOCK * columns, 0.0);
            for label in labels.clone().step_by(BLOCK) {
                let rows = BLOCK.min(labels.end - label);
                let scores = &mut scores[..rows * columns];
                let queries = &queries[look.query(label, sequence, head)..];
                product_here(queries, stride, packed_keys, scores, columns, Start::Zero);
                for (n, scores) in scores.chunks_exact_mut(columns).enumerate() {
                    scores[length..].fill(-1e30);
                    let log = dispatch(Softmax { row: scores, scale: look.scale });
                    // SAFETY: one value per sequence, head and label.
                    unsafe { normalisers.put(pair * n_labels + label + n, 1, &[log], 1) };
                }
                let out = &mut out[..rows * value_width];
                product_here(scores, columns, packed_values, out, value_width, Start::Zero);
                // SAFETY: rows of these labels and this sequence, columns of this head.
                unsafe {
                    target.put(
                        look.output(label, sequence, head),
                        sequences.len() * look.out,
                        out,
                        value_width,
                    );
                }
            }
        });
    });
}

/// The gradients of queries, keys and values from that of the output of [`forward`].
///
/// # Panics
/// If a length does not fit.
#[must_use]
pub fn backward(
    look: &Look<'_>,
    [queries, keys, values]: [&[f32]; 3],
    out: &[f32],
    normaliser: &[f32],
    d_out: &[f32],
) -> [Vec<f32>; 3] {
    look.check(queries, keys, values);
    assert!(out.len() == look.n_outputs() && d_out.len() == out.len() && normaliser.len() == look.n_rows());
    let Look { sequences, n_labels, copies, n_heads, .. } = *look;
    let ((width, value_width), stride) = (look.widths(), copies * look.width);
    let out_stride = sequences.len() * look.out;
    // Where sequences share a query each has a gradient for it, and their sum comes in the end.
    let shared = copies < sequences.len();
    let mut d_queries = pool::take_zeros(n_labels * look.width * sequences.len());
    let (mut d_keys, mut d_values) = (pool::take_zeros(keys.len()), pool::take_zeros(values.len()));
    let [to_queries, to_keys, to_values] =
        [&mut d_queries, &mut d_keys, &mut d_values].map(|buffer| Target(buffer.as_mut_ptr()));
    (0..sequences.len() * n_heads).into_par_iter().with_max_len(1).for_each(|pair| {
        let (sequence, head) = (pair / n_heads, pair % n_heads);
        let range = sequences.range(sequence);
        if range.is_empty() {
            return;
        }
        let (at, d_stride) = if shared {
            (sequence * n_labels * look.width + head * width, look.width)
        } else {
            (look.query(0, sequence, head), stride)
        };
        SCRATCH.with_borrow_mut(|scratch| {
            let length = range.len();
            let Scratch { keys: up, values: values_up, other: down, rows: packed, .. } = scratch;
            let Scratch { scores, slopes, out: d_block, d_keys, d_values, .. } = scratch;
            let (key, value) =
                (range.start * look.width + head * width, range.start * look.out + head * value_width);
            up.pack_transposed(&keys[key..], width, length, look.width);
            let columns = up.pad_columns();
            values_up.pack_transposed(&values[value..], value_width, length, look.out);
            values_up.pad_columns();
            down.pack(&keys[key..], length, width, look.width);
            scores.resize(BLOCK * columns, 0.0);
            slopes.resize(BLOCK * columns, 0.0);
            d_block.resize(BLOCK * width, 0.0);
            for (buffer, width) in [(&mut *d_keys, width), (d_values, value_width)] {
                buffer.clear();
                buffer.resize(length * width, 0.0);
            }
            for label in (0..n_labels).step_by(BLOCK) {
                let rows = BLOCK.min(n_labels - label);
                let scores = &mut scores[..rows * columns];
                let slopes = &mut slopes[..rows * columns];
                let queries = &queries[look.query(label, sequence, head)..];
                let first = look.output(label, sequence, head);
                product_here(queries, stride, up, scores, columns, Start::Zero);
                product_here(&d_out[first..], out_stride, values_up, slopes, columns, Start::Zero);
                for n in 0..rows {
                    let own = first + n * out_stride..first + n * out_stride + value_width;
                    // Σ over tokens of weight·slope is d_out · out.
                    let mean = vectorised(|| dot(&d_out[own.clone()], &out[own]));
                    let p = &mut scores[n * columns..][..length];
                    let slope = &mut slopes[n * columns..][..length];
                    let log = normaliser[pair * n_labels + label + n];
                    dispatch(Probabilities { row: p, scale: look.scale, log });
                    vectorised(|| {
                        for (p, slope) in p.iter().zip(slope) {
                            *slope = p * (*slope - mean) * look.scale;
                        }
                    });
                }
                let d_block = &mut d_block[..rows * width];
                product_here(slopes, columns, down, d_block, width, Start::Zero);
                // SAFETY: rows of these labels and this sequence, columns of this head.
                unsafe { to_queries.put(at + label * d_stride, d_stride, d_block, width) };
                outer_product_here(slopes, (columns, length), queries, (stride, width), rows, d_keys, packed);
                let d_out = &d_out[first..];
                let out = (out_stride, value_width);
                outer_product_here(scores, (columns, length), d_out, out, rows, d_values, packed);
            }
            // SAFETY: rows of this sequence, columns of this head.
            unsafe {
                to_keys.put(key, look.width, d_keys, width);
                to_values.put(value, look.out, d_values, value_width);
            }
        });
    });
    if shared {
        d_queries = summed(d_queries, sequences.len());
    }
    [d_queries, d_keys, d_values]
}

/// The sum of `n` parts of equal length, one after the other in a buffer.
fn summed(mut parts: Vec<f32>, n: usize) -> Vec<f32> {
    let length = parts.len() / n.max(1);
    let (sum, others) = parts.split_at_mut(length);
    sum.par_chunks_mut(1 << 14).enumerate().for_each(|(chunk, sum)| {
        for other in others.chunks_exact(length) {
            let other = &other[chunk << 14..];
            vectorised(|| sum.iter_mut().zip(other).for_each(|(sum, value)| *sum += value));
        }
    });
    parts.truncate(length);
    parts
}

#[cfg(test)]
mod tests {
    use super::super::tests::values;
    use super::*;

    const OFFSETS: [usize; 4] = [0, 5, 5, 75];

    fn look(copies: usize) -> Look<'static> {
        let sequences = Sequences::new(&OFFSETS);
        Look { sequences, n_labels: 60, copies, n_heads: 2, width: 12, out: 8, scale: 0.7 }
    }

    fn naive(look: &Look<'_>, [queries, keys, values]: [&[f32]; 3]) -> Vec<f64> {
        let (width, value_width) = look.widths();
        let mut out = vec![0.0; look.n_outputs()];
        for label in 0..look.n_labels {
            for sequence in 0..look.sequences.len() {
                for head in 0..look.n_heads {
                    let query = look.query(label, sequence, head);
                    let range = look.sequences.range(sequence);
                    let score = |token: usize| -> f64 {
                        let key = token * look.width + head * width;
                        let products =
                            (0..width).map(|c| f64::from(queries[query + c]) * f64::from(keys[key + c]));
                        (products.sum::<f64>() * f64::from(look.scale)).exp()
                    };
                    let sum: f64 = range.clone().map(score).sum();
                    for c in 0..value_width {
                        let value =
                            |token: usize| f64::from(values[token * look.out + head * value_width + c]);
                        out[look.output(label, sequence, head) + c] =
                            range.clone().map(|token| score(token) / sum * value(token)).sum();
                    }
                }
            }
        }
        out
    }

    #[test]
    fn labels_see_what_the_formula_says_and_slopes_agree_with_finite_differences() {
        for copies in [1, 3] {
            let look = look(copies);
            let mut inputs = [values(60 * copies * 12, 1), values(75 * 12, 2), values(75 * 8, 3)];
            let (mut out, mut log) = (vec![7.0; look.n_outputs()], vec![0.0; look.n_rows()]);
            let [queries, keys, tokens] = inputs.each_ref().map(Vec::as_slice);
            forward(&look, queries, keys, tokens, &mut out, &mut log);
            for (a, b) in out.iter().zip(naive(&look, [queries, keys, tokens])) {
                assert!((f64::from(*a) - b).abs() < 1e-5, "{a} {b}");
            }
            let d_out = values(out.len(), 4);
            let slopes = backward(&look, [queries, keys, tokens], &out, &log, &d_out);
            for which in 0..3 {
                assert_eq!(slopes[which].len(), inputs[which].len());
                for at in (0..inputs[which].len()).step_by(53) {
                    let mut loss = |step: f32| -> f64 {
                        let old = std::mem::replace(&mut inputs[which][at], 0.0);
                        inputs[which][at] = old + step;
                        let out = naive(&look, inputs.each_ref().map(Vec::as_slice));
                        inputs[which][at] = old;
                        out.iter().zip(&d_out).map(|(o, d)| o * f64::from(*d)).sum()
                    };
                    let slope = (loss(1e-2) - loss(-1e-2)) / 2e-2;
                    let found = f64::from(slopes[which][at]);
                    assert!((found - slope).abs() < 1e-3, "{copies} {which} {at}: {found} {slope}");
                }
            }
        }
    }
}
