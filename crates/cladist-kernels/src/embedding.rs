//! Token embeddings: gather, add, and scatter of gradients.

use rayon::prelude::*;

use crate::norm::{Moments, normalise, normalise_backward};
use crate::pool::Buffer;
use crate::simd::add;

/// The tables of an encoder's embeddings, row by row.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// `[vocabulary][hidden]`
    pub words: &'a [f32],
    /// `[positions][hidden]`
    pub positions: &'a [f32],
    /// `[types][hidden]`, empty if the encoder has none.
    pub types: &'a [f32],
    /// `[hidden]`
    pub gain: &'a [f32],
    /// `[hidden]`
    pub bias: &'a [f32],
    /// ε of the normalisation.
    pub epsilon: f32,
}

/// One token: its word, its position and its type, as rows of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Row of `words`.
    pub word: u32,
    /// Row of `positions`.
    pub position: u32,
    /// Row of `types`.
    pub kind: u32,
}

/// Sums before normalisation and their moments.
#[derive(Debug)]
pub struct Saved {
    sums: Buffer,
    moments: Vec<Moments>,
}

/// `out[token] = LN(words[w] + positions[p] + types[t])`.
///
/// # Panics
/// If a token points outside a table.
pub fn forward(tables: Tables<'_>, tokens: &[Token], out: &mut [f32]) -> Saved {
    let hidden = tables.gain.len();
    assert_eq!(out.len(), tokens.len() * hidden);
    let mut sums = Buffer::new(out.len());
    let mut moments = vec![Moments::default(); tokens.len()];
    let rows = out.par_chunks_exact_mut(hidden).zip(sums.par_chunks_exact_mut(hidden));
    rows.zip(moments.par_iter_mut()).zip(tokens).with_min_len(64).for_each(
        |(((out, sum), moments), token)| {
            sum.copy_from_slice(row(tables.words, token.word, hidden));
            add(sum, row(tables.positions, token.position, hidden));
            if !tables.types.is_empty() {
                add(sum, row(tables.types, token.kind, hidden));
            }
            *moments = normalise(sum, tables.gain, tables.bias, tables.epsilon, out);
        },
    );
    Saved { sums, moments }
}

/// Places for the gradients of [`Tables`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// As `words`.
    pub words: &'a mut [f32],
    /// As `positions`.
    pub positions: &'a mut [f32],
    /// As `types`.
    pub types: &'a mut [f32],
    /// As `gain`.
    pub gain: &'a mut [f32],
    /// As `bias`.
    pub bias: &'a mut [f32],
}

/// Adds the gradients of [`forward`]; tokens are taken in order, so that sums do not depend on threads.
pub fn backward(
    tables: Tables<'_>,
    tokens: &[Token],
    saved: &Saved,
    d: &[f32],
    gradients: &mut Gradients<'_>,
) {
    let hidden = tables.gain.len();
    assert_eq!(d.len(), tokens.len() * hidden);
    let mut slope = vec![0.0; hidden];
    for (n, token) in tokens.iter().enumerate() {
        let span = n * hidden..(n + 1) * hidden;
        slope.copy_from_slice(&d[span.clone()]);
        normalise_backward(
            &saved.sums[span],
            saved.moments[n],
            tables.gain,
            &mut slope,
            gradients.gain,
            gradients.bias,
        );
        add(row_mut(gradients.words, token.word, hidden), &slope);
        add(row_mut(gradients.positions, token.position, hidden), &slope);
        if !tables.types.is_empty() {
            add(row_mut(gradients.types, token.kind, hidden), &slope);
        }
    }
}

fn row(table: &[f32], index: u32, hidden: usize) -> &[f32] {
    &table[index as usize * hidden..][..hidden]
}

fn row_mut(table: &mut [f32], index: u32, hidden: usize) -> &mut [f32] {
    &mut table[index as usize * hidden..][..hidden]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 29 + seed * 7) % 31) as f32 / 15.0 - 1.0).collect()
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let hidden = 6;
        let parts = [
            values(5 * hidden, 1),
            values(4 * hidden, 2),
            values(2 * hidden, 3),
            values(hidden, 4),
            values(hidden, 5),
        ];
        let tokens: Vec<Token> = [(0, 0, 0), (3, 1, 0), (3, 2, 1), (4, 3, 1)]
            .map(|(word, position, kind)| Token { word, position, kind })
            .to_vec();
        let d = values(tokens.len() * hidden, 6);
        let tables = |parts: &[Vec<f32>; 5]| -> (Vec<f32>, Saved) {
            let tables = Tables {
                words: &parts[0],
                positions: &parts[1],
                types: &parts[2],
                gain: &parts[3],
                bias: &parts[4],
                epsilon: 1e-5,
            };
            let mut out = vec![0.0; tokens.len() * hidden];
            let saved = forward(tables, &tokens, &mut out);
            (out, saved)
        };
        let (_, saved) = tables(&parts);
        let mut sums: Vec<Vec<f32>> = parts.iter().map(|part| vec![0.0; part.len()]).collect();
        let [words, positions, types, gain, bias] = &mut sums[..] else { unreachable!() };
        let view = Tables {
            words: &parts[0],
            positions: &parts[1],
            types: &parts[2],
            gain: &parts[3],
            bias: &parts[4],
            epsilon: 1e-5,
        };
        backward(view, &tokens, &saved, &d, &mut Gradients { words, positions, types, gain, bias });
        let loss = |parts: &[Vec<f32>; 5]| -> f64 {
            tables(parts).0.iter().zip(&d).map(|(y, d)| f64::from(*y) * f64::from(*d)).sum()
        };
        for n in 0..5 {
            for i in 0..parts[n].len() {
                let (mut up, mut down) = (parts.clone(), parts.clone());
                up[n][i] += 5e-3;
                down[n][i] -= 5e-3;
                let slope = (loss(&up) - loss(&down)) / f64::from(up[n][i] - down[n][i]);
                assert!(
                    (f64::from(sums[n][i]) - slope).abs() < 5e-3 * (1.0 + slope.abs()),
                    "{n} {i}: {} {slope}",
                    sums[n][i]
                );
            }
        }
    }
}
