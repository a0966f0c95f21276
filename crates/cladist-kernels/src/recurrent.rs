//! LSTM and GRU layers over packed sequences, forward and backward.
//!
//! What the inputs add to the gates comes in, computed for all tokens at once by an ordinary product. The recurrence
//! takes a group of sequences step by step, those that are still going on in one product; groups run on different
//! cores. What a sequence becomes does not depend on its group.

mod cell;

use std::ops::Range;

use rayon::prelude::*;

use crate::attention::Sequences;
use crate::gemm::{Packed, Start, outer_product, product_here};
use crate::pool::Buffer;
use crate::simd::add;

pub use cell::Cell;

/// One layer in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The kind of cell.
    pub cell: Cell,
    /// Width of a state.
    pub hidden: usize,
    /// From the last token to the first.
    pub reverse: bool,
}

impl Shape {
    /// Values that the input gives a token.
    #[must_use]
    pub fn gates(self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// Values of a token's output: its state, and after it the memory of an LSTM.
    #[must_use]
    pub fn outputs(self) -> usize {
        self.cell.states() * self.hidden
    }

    /// The token of a step.
    fn token(self, tokens: &Range<usize>, step: usize) -> usize {
        if self.reverse { tokens.end - 1 - step } else { tokens.start + step }
    }
}

/// What backward needs beside input and output: gates after their activation, four parts a token.
#[derive(Debug)]
pub struct Saved(Buffer);

/// States after every token. `x` is `[tokens][gates]`, `weight` `[gates][hidden]`, `bias` `[gates]`, `out`
/// `[tokens][outputs]`; every sequence begins with zeros.
///
/// # Panics
/// If the lengths do not fit.
pub fn forward(
    shape: Shape,
    x: &[f32],
    weight: &[f32],
    bias: &[f32],
    sequences: Sequences<'_>,
    out: &mut [f32],
    keep: bool,
) -> Option<Saved> {
    let (n_tokens, hidden) = (sequences.n_tokens(), shape.hidden);
    let (gates, outputs, kept) = (shape.gates(), shape.outputs(), 4 * hidden);
    assert!(x.len() == n_tokens * gates && out.len() == n_tokens * outputs);
    assert!(weight.len() == gates * hidden && bias.len() == gates);
    let mut packed = Packed::default();
    packed.pack_transposed_parallel(weight, hidden, gates, hidden);
    let mut saved = Buffer::new(if keep { n_tokens * kept } else { 0 });
    let groups = groups(sequences);
    let outs = split(out, &groups, sequences, outputs);
    let saves = split(&mut saved, &groups, sequences, if keep { kept } else { 0 });
    let work: Vec<_> = groups.iter().zip(outs).zip(saves).collect();
    work.into_par_iter().with_max_len(1).for_each(|((group, out), saved)| {
        let (order, first) = (longest_first(sequences, group), sequences.range(group.start).start);
        let mut states = Buffer::zeros(order.len() * outputs);
        let mut recurrent = Buffer::new(order.len() * gates);
        let mut scratch = vec![0.0; kept];
        for step in 0..order.first().map_or(0, Range::len) {
            let active = order.partition_point(|tokens| tokens.len() > step);
            let products = &mut recurrent[..active * gates];
            product_here(&states, outputs, &packed, products, gates, Start::Bias(bias));
            let rows = products.chunks_exact_mut(gates).zip(states.chunks_exact_mut(outputs));
            for (tokens, (products, state)) in order.iter().zip(rows) {
                let token = shape.token(tokens, step);
                let kept = if keep { row(saved, token - first, kept) } else { &mut scratch };
                shape.cell.forward(&x[token * gates..][..gates], products, state, kept);
                row(out, token - first, outputs).copy_from_slice(state);
            }
        }
    });
    keep.then_some(Saved(saved))
}

/// Gradients, added to what is there: of the input `[tokens][gates]`, of the weight and of the bias.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of `x`.
    pub x: &'a mut [f32],
    /// Of `weight`.
    pub weight: &'a mut [f32],
    /// Of `bias`.
    pub bias: &'a mut [f32],
}

/// The gradients of [`forward`] from that of its output.
///
/// # Panics
/// If the lengths do not fit.
pub fn backward(
    shape: Shape,
    weight: &[f32],
    sequences: Sequences<'_>,
    out: &[f32],
    Saved(saved): Saved,
    slope: &[f32],
    gradients: &mut Gradients<'_>,
) {
    let (n_tokens, hidden) = (sequences.n_tokens(), shape.hidden);
    let (gates, outputs, kept) = (shape.gates(), shape.outputs(), 4 * hidden);
    assert!(slope.len() == n_tokens * outputs && out.len() == slope.len());
    assert!(gradients.x.len() == n_tokens * gates && gradients.bias.len() == gates);
    let mut packed = Packed::default();
    packed.pack_parallel(weight, gates, hidden, hidden);
    // Gradients of the recurrent products, and the states that went into them.
    let mut products = Buffer::new(n_tokens * gates);
    let mut befores = Buffer::zeros(n_tokens * hidden);
    let groups = groups(sequences);
    let work: Vec<_> = (groups.iter())
        .zip(split(gradients.x, &groups, sequences, gates))
        .zip(split(&mut products, &groups, sequences, gates))
        .zip(split(&mut befores, &groups, sequences, hidden))
        .collect();
    let zeros = vec![0.0; outputs];
    work.into_par_iter().with_max_len(1).for_each(|(((group, dx), products), befores)| {
        let (order, first) = (longest_first(sequences, group), sequences.range(group.start).start);
        // The gradient of each sequence's state, on its way back.
        let mut states = Buffer::zeros(order.len() * outputs);
        let mut steps = Buffer::new(order.len() * gates);
        let mut through = Buffer::new(order.len() * hidden);
        for step in (0..order.first().map_or(0, Range::len)).rev() {
            let active = order.partition_point(|tokens| tokens.len() > step);
            let rows = steps.chunks_exact_mut(gates).zip(states.chunks_exact_mut(outputs));
            for (tokens, (recurrent, state)) in order[..active].iter().zip(rows) {
                let token = shape.token(tokens, step);
                add(state, &slope[token * outputs..][..outputs]);
                let before = match step {
                    0 => &zeros,
                    _ => &out[shape.token(tokens, step - 1) * outputs..][..outputs],
                };
                let after = &out[token * outputs..][..outputs];
                let kept = &saved[token * kept..][..kept];
                let dx = row(dx, token - first, gates);
                shape.cell.backward(kept, before, after, state, dx, recurrent);
                row(products, token - first, gates).copy_from_slice(recurrent);
                row(befores, token - first, hidden).copy_from_slice(&before[..hidden]);
            }
            let through = &mut through[..active * hidden];
            product_here(&steps, gates, &packed, through, hidden, Start::Zero);
            for (state, through) in states.chunks_exact_mut(outputs).zip(through.chunks_exact(hidden)) {
                add(&mut state[..hidden], through);
            }
        }
    });
    outer_product(&products, gates, gates, &befores, hidden, hidden, n_tokens, gradients.weight);
    products.chunks_exact(gates.max(1)).for_each(|row| add(gradients.bias, row));
}

fn row(rows: &mut [f32], number: usize, width: usize) -> &mut [f32] {
    &mut rows[number * width..][..width]
}

/// Tokens of a group's sequences, the longest first: those that go on at a step are the first ones.
fn longest_first(sequences: Sequences<'_>, group: &Range<usize>) -> Vec<Range<usize>> {
    let mut order: Vec<Range<usize>> = group.clone().map(|n| sequences.range(n)).collect();
    order.sort_by_key(|tokens| std::cmp::Reverse(tokens.len()));
    order
}

/// Neighbouring sequences with about the same number of tokens, a group for each core.
fn groups(sequences: Sequences<'_>) -> Vec<Range<usize>> {
    let (cores, n_tokens) = (rayon::current_num_threads(), sequences.n_tokens());
    let mut ends: Vec<usize> = (1..=cores)
        .map(|core| {
            (0..sequences.len()).take_while(|&n| sequences.range(n).end * cores <= core * n_tokens).count()
        })
        .collect();
    ends.push(sequences.len());
    ends.dedup();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts
        .zip(ends.iter().copied())
        .filter(|(start, end)| start < end)
        .map(|(start, end)| start..end)
        .collect()
}

/// Rows of a matrix with a row for each token, group by group.
fn split<'a>(
    mut rest: &'a mut [f32],
    groups: &[Range<usize>],
    sequences: Sequences<'_>,
    width: usize,
) -> Vec<&'a mut [f32]> {
    let mut parts = Vec::with_capacity(groups.len());
    for group in groups {
        let tokens: usize = group.clone().map(|n| sequences.range(n).len()).sum();
        let (part, after) = rest.split_at_mut(tokens * width);
        parts.push(part);
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests;
