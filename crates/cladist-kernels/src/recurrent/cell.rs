//! One token of an LSTM or a GRU.

use crate::activation::{sigmoid, tanh};
use crate::simd::{add, vectorised};

/// The kind of a recurrent cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// Gates in, forget, new, out; m' = f⊙m + i⊙g, h' = o⊙tanh(m').
    Lstm,
    /// Gates reset, update, new; n = tanh(x + r⊙q) with q the recurrent product, h' = (1 − z)⊙n + z⊙h.
    Gru,
}

impl Cell {
    /// Parts of the input.
    #[must_use]
    pub fn gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Parts of the state.
    #[must_use]
    pub fn states(self) -> usize {
        match self {
            Self::Lstm => 2,
            Self::Gru => 1,
        }
    }

    /// One step: `state` goes on; `kept` gets four parts, i f g o or r z n q. `products` is used up.
    pub(super) fn forward(self, x: &[f32], products: &mut [f32], state: &mut [f32], kept: &mut [f32]) {
        let hidden = kept.len() / 4;
        match self {
            Self::Lstm => {
                vectorised(|| sum(kept, products, x));
                sigmoid(&mut kept[..2 * hidden]);
                tanh(&mut kept[2 * hidden..3 * hidden]);
                sigmoid(&mut kept[3 * hidden..]);
                let [i, f, g, o] = quarters(kept);
                let (h, m) = state.split_at_mut(hidden);
                vectorised(|| {
                    for n in 0..hidden {
                        m[n] = f[n] * m[n] + i[n] * g[n];
                    }
                    h.copy_from_slice(m);
                });
                tanh(h);
                vectorised(|| h.iter_mut().zip(o).for_each(|(h, o)| *h *= o));
            }
            Self::Gru => {
                let (rz, q) = products.split_at_mut(2 * hidden);
                vectorised(|| sum(&mut kept[..2 * hidden], rz, x));
                sigmoid(&mut kept[..2 * hidden]);
                kept[3 * hidden..].copy_from_slice(q);
                let x = &x[2 * hidden..];
                vectorised(|| {
                    for n in 0..hidden {
                        kept[2 * hidden + n] = x[n] + kept[n] * q[n];
                    }
                });
                tanh(&mut kept[2 * hidden..3 * hidden]);
                let [_, z, new, _] = quarters(kept);
                vectorised(|| {
                    for n in 0..hidden {
                        state[n] = new[n] + z[n] * (state[n] - new[n]);
                    }
                });
            }
        }
    }

    /// One step back: `state` holds the gradient of the state after it and gets that of the state before, but for what
    /// goes through the recurrent product; that is for the gradient of the product, `recurrent`. `dx` is added to.
    pub(super) fn backward(
        self,
        kept: &[f32],
        before: &[f32],
        after: &[f32],
        state: &mut [f32],
        dx: &mut [f32],
        recurrent: &mut [f32],
    ) {
        let hidden = kept.len() / 4;
        let [a, b, c, d] = quarters(kept);
        match self {
            Self::Lstm => {
                let (i, f, g, o) = (a, b, c, d);
                let (before, after) = (&before[hidden..], &after[hidden..]);
                let mut squashed = after.to_vec();
                tanh(&mut squashed);
                let (dh, dm) = state.split_at_mut(hidden);
                let [di, df, dg, d_o] = quarters_mut(recurrent);
                vectorised(|| {
                    for n in 0..hidden {
                        let t = squashed[n];
                        d_o[n] = dh[n] * t * o[n] * (1.0 - o[n]);
                        let slope = dm[n] + dh[n] * o[n] * (1.0 - t * t);
                        di[n] = slope * g[n] * i[n] * (1.0 - i[n]);
                        df[n] = slope * before[n] * f[n] * (1.0 - f[n]);
                        dg[n] = slope * i[n] * (1.0 - g[n] * g[n]);
                        dm[n] = slope * f[n];
                        dh[n] = 0.0;
                    }
                });
                add(dx, recurrent);
            }
            Self::Gru => {
                let (r, z, new, q) = (a, b, c, d);
                let [dr, rest] = halves(recurrent, hidden);
                let [dz, dq] = halves(rest, hidden);
                vectorised(|| {
                    for n in 0..hidden {
                        let dh = state[n];
                        let dn = dh * (1.0 - z[n]) * (1.0 - new[n] * new[n]);
                        dr[n] = dn * q[n] * r[n] * (1.0 - r[n]);
                        dz[n] = dh * (before[n] - new[n]) * z[n] * (1.0 - z[n]);
                        dq[n] = dn * r[n];
                        state[n] = dh * z[n];
                        dx[n] += dr[n];
                        dx[hidden + n] += dz[n];
                        dx[2 * hidden + n] += dn;
                    }
                });
            }
        }
    }
}

fn sum(out: &mut [f32], a: &[f32], b: &[f32]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = a + b;
    }
}

fn quarters(row: &[f32]) -> [&[f32]; 4] {
    let part = row.len() / 4;
    std::array::from_fn(|n| &row[n * part..(n + 1) * part])
}

fn halves(row: &mut [f32], at: usize) -> [&mut [f32]; 2] {
    row.split_at_mut(at).into()
}

fn quarters_mut(row: &mut [f32]) -> [&mut [f32]; 4] {
    let part = row.len() / 4;
    let [low, high] = halves(row, 2 * part);
    let ([a, b], [c, d]) = (halves(low, part), halves(high, part));
    [a, b, c, d]
}
