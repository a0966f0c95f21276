//! Nodes that look at those their edges come from.

use rayon::prelude::*;

use super::{Edges, dot};

/// The sizes of [`attend_along`] for one document: values of sources, of targets, of edges, and those of one attention head.
fn sizes(edges: &Edges, width: usize, n_heads: usize) -> [usize; 4] {
    [edges.n_sources * width, edges.n_targets * width, edges.len() * n_heads, width / n_heads.max(1)]
}

/// For each attention head, weights = softmax of scores over the edges that end at a node, and
/// `out[document][target] = Σ of weight·x[document][source]`. Scores become the weights.
///
/// `x` is `[documents][n_sources][width]`, `scores` `[documents][edges][n_heads]`, `out` `[documents][n_targets][width]`; a
/// head has `width / n_heads` columns.
///
/// # Panics
/// If the shapes do not fit.
pub fn attend_along(
    edges: &Edges,
    n_heads: usize,
    scores: &mut [f32],
    x: &[f32],
    width: usize,
    out: &mut [f32],
) {
    let [from, to, cells, part] = sizes(edges, width, n_heads);
    if from == 0 || to == 0 || cells == 0 {
        return out.fill(0.0);
    }
    assert_eq!(x.len() / from, out.len() / to);
    assert_eq!(x.len() / from, scores.len() / cells);
    let documents =
        out.par_chunks_exact_mut(to).zip(x.par_chunks_exact(from)).zip(scores.par_chunks_exact_mut(cells));
    documents.for_each(|((out, x), scores)| {
        softmax(edges, n_heads, scores);
        out.fill(0.0);
        for ((source, target), weights) in edges.iter().zip(scores.chunks_exact(n_heads)) {
            for (head, weight) in weights.iter().enumerate() {
                let (source, target) = (source * width + head * part, target * width + head * part);
                for (out, x) in out[target..target + part].iter_mut().zip(&x[source..source + part]) {
                    *out += weight * x;
                }
            }
        }
    });
}

/// The softmax of one document's scores over the edges of each target.
fn softmax(edges: &Edges, n_heads: usize, scores: &mut [f32]) {
    let mut highest = vec![f32::NEG_INFINITY; edges.n_targets * n_heads];
    for ((_, target), scores) in edges.iter().zip(scores.chunks_exact(n_heads)) {
        for (highest, score) in highest[target * n_heads..].iter_mut().zip(scores) {
            *highest = highest.max(*score);
        }
    }
    let mut sums = vec![0.0f32; highest.len()];
    for ((_, target), scores) in edges.iter().zip(scores.chunks_exact_mut(n_heads)) {
        for (head, score) in scores.iter_mut().enumerate() {
            *score = (*score - highest[target * n_heads + head]).exp();
            sums[target * n_heads + head] += *score;
        }
    }
    for ((_, target), scores) in edges.iter().zip(scores.chunks_exact_mut(n_heads)) {
        for (score, sum) in scores.iter_mut().zip(&sums[target * n_heads..]) {
            *score /= sum;
        }
    }
}

/// The gradients of `x` and of the scores in [`attend_along`], from the weights it left and the slope of its result.
///
/// # Panics
/// If the shapes do not fit.
#[must_use]
pub fn attend_back(
    edges: &Edges,
    n_heads: usize,
    weights: &[f32],
    x: &[f32],
    width: usize,
    slope: &[f32],
) -> [Vec<f32>; 2] {
    let [from, to, cells, part] = sizes(edges, width, n_heads);
    let (mut of_x, mut of_scores) = (vec![0.0f32; x.len()], vec![0.0f32; weights.len()]);
    if from == 0 || to == 0 || cells == 0 {
        return [of_x, of_scores];
    }
    let outputs = of_x.par_chunks_exact_mut(from).zip(of_scores.par_chunks_exact_mut(cells));
    let inputs =
        x.par_chunks_exact(from).zip(weights.par_chunks_exact(cells)).zip(slope.par_chunks_exact(to));
    outputs.zip(inputs).for_each(|((of_x, of_scores), ((x, weights), slope))| {
        // First the slopes of the weights; their mean by weight is what the softmax takes off each.
        let mut means = vec![0.0f32; edges.n_targets * n_heads];
        for (edge, (source, target)) in edges.iter().enumerate() {
            for head in 0..n_heads {
                let cell = edge * n_heads + head;
                let (at, to) = (source * width + head * part, target * width + head * part);
                let slope = &slope[to..to + part];
                for (of_x, slope) in of_x[at..at + part].iter_mut().zip(slope) {
                    *of_x += weights[cell] * slope;
                }
                of_scores[cell] = dot(&x[at..at + part], slope);
                means[target * n_heads + head] += weights[cell] * of_scores[cell];
            }
        }
        for (edge, (_, target)) in edges.iter().enumerate() {
            for head in 0..n_heads {
                let cell = edge * n_heads + head;
                of_scores[cell] = weights[cell] * (of_scores[cell] - means[target * n_heads + head]);
            }
        }
    });
    [of_x, of_scores]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::values;

    const WIDTH: usize = 6;
    const HEADS: usize = 2;

    fn edges() -> Edges {
        Edges { sources: vec![0, 1, 2, 0, 1], targets: vec![0, 0, 0, 1, 1], n_sources: 3, n_targets: 3 }
    }

    fn loss(scores: &[f32], x: &[f32], slope: &[f32]) -> f64 {
        let (mut scores, mut out) = (scores.to_vec(), vec![9.0; slope.len()]);
        attend_along(&edges(), HEADS, &mut scores, x, WIDTH, &mut out);
        out.iter().zip(slope).map(|(a, b)| f64::from(a * b)).sum()
    }

    #[test]
    fn weights_of_a_target_add_up_to_one() {
        let mut scores = values(10, 1, 90.0);
        let mut out = vec![0.0; 3 * WIDTH];
        attend_along(&edges(), HEADS, &mut scores, &[1.0; 3 * WIDTH], WIDTH, &mut out);
        // The last node has no edges.
        assert!(out[..2 * WIDTH].iter().all(|x| (x - 1.0).abs() < 1e-6), "{out:?}");
        assert!(out[2 * WIDTH..].iter().all(|x| *x == 0.0));
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let documents = 2;
        let (x, scores) = (values(documents * 3 * WIDTH, 1, 1.0), values(documents * 5 * HEADS, 2, 1.0));
        let slope = values(documents * 3 * WIDTH, 3, 1.0);
        let (mut weights, mut out) = (scores.clone(), vec![0.0; slope.len()]);
        attend_along(&edges(), HEADS, &mut weights, &x, WIDTH, &mut out);
        let [of_x, of_scores] = attend_back(&edges(), HEADS, &weights, &x, WIDTH, &slope);
        let step = 1e-2;
        let moved = |values: &[f32], n: usize, step: f32| {
            let mut values = values.to_vec();
            values[n] += step;
            values
        };
        for (n, gradient) in of_x.iter().enumerate() {
            let at = |step: f32| loss(&scores, &moved(&x, n, step), &slope);
            let expected = (at(step) - at(-step)) / f64::from(2.0 * step);
            assert!((f64::from(*gradient) - expected).abs() < 1e-3, "{n}: {gradient} {expected}");
        }
        for (n, gradient) in of_scores.iter().enumerate() {
            let at = |step: f32| loss(&moved(&scores, n, step), &x, &slope);
            let expected = (at(step) - at(-step)) / f64::from(2.0 * step);
            assert!((f64::from(*gradient) - expected).abs() < 1e-3, "{n}: {gradient} {expected}");
        }
    }
}
