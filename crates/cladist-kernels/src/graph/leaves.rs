//! Features that labels make of a document, each with a dropout of its own, summed over groups of labels.
//!
//! With q the document's features, label k has `drop(factor_k·q + bias_k)`. Nothing of a label is stored: there are many more
//! of them than groups, and backward draws the same masks again.

use rayon::prelude::*;

use super::Edges;
use crate::dropout::Dropout;
use crate::simd::{add, vectorised};

/// Labels, their groups, and the dropout on their features.
#[derive(Debug, Clone, Copy)]
pub struct Leaves<'a> {
    /// From labels, of which each is once a source, to groups.
    pub groups: &'a Edges,
    /// On the features of each label.
    pub dropout: Dropout,
    /// The number of the first document, which masks depend on.
    pub first: usize,
}

/// What [`Leaves::back`] finds.
#[derive(Debug)]
pub struct Slopes {
    /// Of the documents' features.
    pub q: Vec<f32>,
    /// Of the labels' factors.
    pub factors: Vec<f32>,
    /// Of the labels' biases.
    pub biases: Vec<f32>,
}

impl Leaves<'_> {
    /// `out[document][group] = Σ over labels k of the group of drop(factor_k·q[document] + bias_k)`.
    ///
    /// `q` is `[documents][width]` and `out` is `[documents][groups][width]`.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn sums(self, q: &[f32], factors: &[f32], biases: &[f32], width: usize, out: &mut [f32]) {
        let row = self.groups.n_targets * width;
        if row == 0 {
            return;
        }
        assert_eq!(q.len() / width, out.len() / row);
        let documents = out.par_chunks_exact_mut(row).zip(q.par_chunks_exact(width)).enumerate();
        documents.for_each_init(
            || vec![1.0; width],
            |mask, (document, (out, q))| {
                out.fill(0.0);
                for (label, group) in self.groups.iter() {
                    self.mask(document, label, mask);
                    let (factor, bias) = (factors[label], biases[label]);
                    let out = &mut out[group * width..(group + 1) * width];
                    vectorised(|| {
                        for ((out, q), mask) in out.iter_mut().zip(q).zip(&*mask) {
                            *out += mask * (factor * q + bias);
                        }
                    });
                }
            },
        );
    }

    /// The gradients of [`Leaves::sums`], whose slope is `[documents][groups][width]`.
    #[must_use]
    pub fn back(self, q: &[f32], factors: &[f32], width: usize, slope: &[f32]) -> Slopes {
        let (row, n_labels) = (self.groups.n_targets * width, factors.len());
        let mut slopes =
            Slopes { q: vec![0.0; q.len()], factors: vec![0.0; n_labels], biases: vec![0.0; n_labels] };
        if row == 0 || n_labels == 0 {
            return slopes;
        }
        let documents = slopes.q.par_chunks_exact_mut(width).zip(q.par_chunks_exact(width));
        let documents = documents.zip(slope.par_chunks_exact(row)).enumerate();
        let of_labels = documents.map_init(
            || vec![1.0; width],
            |mask, (document, ((of_q, q), slope))| {
                let mut of_labels = [vec![0.0; n_labels], vec![0.0; n_labels]];
                for (label, group) in self.groups.iter() {
                    self.mask(document, label, mask);
                    let slope = &slope[group * width..(group + 1) * width];
                    let [of_factor, of_bias] = back_of_label(factors[label], q, mask, slope, of_q);
                    of_labels[0][label] += of_factor;
                    of_labels[1][label] += of_bias;
                }
                of_labels
            },
        );
        // In the order of documents, so that the sums do not depend on threads.
        let of_labels: Vec<[Vec<f32>; 2]> = of_labels.collect();
        for [factors, biases] in &of_labels {
            add(&mut slopes.factors, factors);
            add(&mut slopes.biases, biases);
        }
        slopes
    }

    fn mask(self, document: usize, label: usize, mask: &mut [f32]) {
        if self.dropout.is_active() {
            self.dropout.factors(((self.first + document) * self.groups.n_sources + label) as u64, mask);
        }
    }
}

/// Adds a label's part of the slope of `q`; returns the slopes of its factor and its bias, in eight sums side by side.
fn back_of_label(factor: f32, q: &[f32], mask: &[f32], slope: &[f32], of_q: &mut [f32]) -> [f32; 2] {
    const LANES: usize = 8;
    vectorised(|| {
        let (mut of_factor, mut of_bias) = ([0.0f32; LANES], [0.0f32; LANES]);
        let mut step = |q: &[f32], mask: &[f32], slope: &[f32], of_q: &mut [f32]| {
            for lane in 0..q.len().min(LANES) {
                let slope = mask[lane] * slope[lane];
                of_q[lane] += factor * slope;
                of_factor[lane] += q[lane] * slope;
                of_bias[lane] += slope;
            }
        };
        let whole = q.len() - q.len() % LANES;
        for start in (0..whole).step_by(LANES) {
            let part = start..start + LANES;
            step(&q[part.clone()], &mask[part.clone()], &slope[part.clone()], &mut of_q[part]);
        }
        step(&q[whole..], &mask[whole..], &slope[whole..], &mut of_q[whole..]);
        [of_factor.iter().sum(), of_bias.iter().sum()]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::values;

    const WIDTH: usize = 19;
    const DOCUMENTS: usize = 3;

    /// Five labels in two groups and one that has none.
    fn groups() -> Edges {
        Edges { sources: vec![0, 1, 2, 3, 4], targets: vec![1, 0, 1, 1, 0], n_sources: 5, n_targets: 3 }
    }

    fn sums(leaves: Leaves<'_>, q: &[f32], factors: &[f32], biases: &[f32]) -> Vec<f32> {
        let mut out = vec![7.0; DOCUMENTS * leaves.groups.n_targets * WIDTH];
        leaves.sums(q, factors, biases, WIDTH, &mut out);
        out
    }

    #[test]
    fn groups_hold_the_sums_of_features_that_are_left() {
        let groups = groups();
        for rate in [0.0, 0.4] {
            let dropout = Dropout { rate, seed: 5 };
            let (q, factors, biases) =
                (values(DOCUMENTS * WIDTH, 1, 1.0), values(5, 2, 1.0), values(5, 3, 1.0));
            let mut expected = [0.0f64; DOCUMENTS * 3 * WIDTH];
            for document in 0..DOCUMENTS {
                for (label, group) in groups.iter() {
                    let mut mask = [1.0; WIDTH];
                    if dropout.is_active() {
                        dropout.factors(((document + 2) * 5 + label) as u64, &mut mask);
                    }
                    for n in 0..WIDTH {
                        let feature = factors[label] * q[document * WIDTH + n] + biases[label];
                        expected[(document * 3 + group) * WIDTH + n] += f64::from(mask[n] * feature);
                    }
                }
            }
            let out = sums(Leaves { groups: &groups, dropout, first: 2 }, &q, &factors, &biases);
            for (a, b) in out.iter().zip(expected) {
                assert!((f64::from(*a) - b).abs() < 1e-5, "{a} {b}");
            }
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let groups = groups();
        let leaves = Leaves { groups: &groups, dropout: Dropout { rate: 0.3, seed: 9 }, first: 0 };
        let inputs = [values(DOCUMENTS * WIDTH, 1, 1.0), values(5, 2, 1.0), values(5, 3, 1.0)];
        let slope = values(DOCUMENTS * 3 * WIDTH, 4, 1.0);
        let loss = |inputs: &[Vec<f32>; 3]| -> f64 {
            let out = sums(leaves, &inputs[0], &inputs[1], &inputs[2]);
            out.iter().zip(&slope).map(|(a, b)| f64::from(a * b)).sum()
        };
        let Slopes { q, factors, biases } = leaves.back(&inputs[0], &inputs[1], WIDTH, &slope);
        for (which, gradients) in [q, factors, biases].iter().enumerate() {
            assert_eq!(gradients.len(), inputs[which].len());
            for (n, gradient) in gradients.iter().enumerate() {
                let step = 1e-2;
                let moved = [step, -step].map(|step| {
                    let mut inputs = inputs.clone();
                    inputs[which][n] += step;
                    loss(&inputs)
                });
                let expected = (moved[0] - moved[1]) / f64::from(2.0 * step);
                assert!((f64::from(*gradient) - expected).abs() < 2e-3, "{which} {n}: {gradient} {expected}");
            }
        }
    }
}
