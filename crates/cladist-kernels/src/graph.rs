//! Sums along the edges of a graph that is the same for every document, and distances between its neighbours.

mod attention;

use rayon::prelude::*;

pub use attention::{attend_along, attend_back};

/// Edges from nodes to nodes; both may be of the same kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edges {
    /// Where each edge begins.
    pub sources: Vec<u32>,
    /// Where each edge ends.
    pub targets: Vec<u32>,
    /// Nodes that edges begin at.
    pub n_sources: usize,
    /// Nodes that edges end at.
    pub n_targets: usize,
}

impl Edges {
    /// The number of edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Sources and targets of all edges.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
        self.sources.iter().zip(&self.targets).map(|(&source, &target)| (source as usize, target as usize))
    }

    /// The edges between some nodes, ascending, which are numbered anew in their order; and the numbers that these edges had.
    #[must_use]
    pub fn between(&self, nodes: &[u32]) -> (Self, Vec<u32>) {
        let place = |node: &u32| nodes.binary_search(node).ok().map(|place| place as u32);
        let mut edges = Self { n_sources: nodes.len(), n_targets: nodes.len(), ..Self::default() };
        let mut numbers = Vec::new();
        for (number, pair) in (0..).zip(self.sources.iter().zip(&self.targets)) {
            if let (Some(source), Some(target)) = (place(pair.0), place(pair.1)) {
                edges.sources.push(source);
                edges.targets.push(target);
                numbers.push(number);
            }
        }
        (edges, numbers)
    }

    /// The same edges the other way round.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            sources: self.targets.clone(),
            targets: self.sources.clone(),
            n_sources: self.n_targets,
            n_targets: self.n_sources,
        }
    }
}

/// `out[document][target] = Σ over edges of weight·x[document][source]`; nodes without edges get 0.
///
/// `x` is `[documents][n_sources][width]` and `out` is `[documents][n_targets][width]`.
///
/// # Panics
/// If the shapes do not fit.
pub fn sum_along(edges: &Edges, weights: &[f32], x: &[f32], width: usize, out: &mut [f32]) {
    sum(edges.iter(), weights, x, [edges.n_sources * width, edges.n_targets * width, width], out);
}

/// The gradient of `x` in [`sum_along`]: slopes flow from targets to sources.
///
/// # Panics
/// If the shapes do not fit.
pub fn sum_back(edges: &Edges, weights: &[f32], slope: &[f32], width: usize, out: &mut [f32]) {
    let edges_back = edges.iter().map(|(source, target)| (target, source));
    sum(edges_back, weights, slope, [edges.n_targets * width, edges.n_sources * width, width], out);
}

fn sum(
    edges: impl Iterator<Item = (usize, usize)> + Clone + Send + Sync,
    weights: &[f32],
    x: &[f32],
    [from, to, width]: [usize; 3],
    out: &mut [f32],
) {
    if from == 0 || to == 0 {
        return out.fill(0.0);
    }
    assert_eq!(x.len() / from, out.len() / to);
    out.par_chunks_exact_mut(to).zip(x.par_chunks_exact(from)).for_each(|(out, x)| {
        out.fill(0.0);
        for ((source, target), &weight) in edges.clone().zip(weights) {
            let (source, target) = (source * width, target * width);
            for (out, x) in out[target..target + width].iter_mut().zip(&x[source..source + width]) {
                *out += weight * x;
            }
        }
    });
}

/// The gradient of the weights in [`sum_along`]: for each edge Σ over documents of `x[source]·slope[target]`.
pub fn weight_gradient(edges: &Edges, x: &[f32], slope: &[f32], width: usize) -> Vec<f32> {
    let (from, to) = (edges.n_sources * width, edges.n_targets * width);
    if from == 0 || to == 0 {
        return vec![0.0; edges.len()];
    }
    let gradient = |n: usize| {
        let (source, target) = (edges.sources[n] as usize * width, edges.targets[n] as usize * width);
        let documents = x.chunks_exact(from).zip(slope.chunks_exact(to));
        let sums =
            documents.map(|(x, slope)| dot(&x[source..source + width], &slope[target..target + width]));
        sums.sum()
    };
    (0..edges.len()).into_par_iter().map(gradient).collect()
}

/// Σ a·b, in eight sums side by side.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a8, a) = a.as_chunks::<8>();
    let (b8, b) = b.as_chunks::<8>();
    let mut sums = [0.0f32; 8];
    for (a, b) in a8.iter().zip(b8) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>()
}

/// ½ Σ over edges of |row(source) − row(target)|².
pub fn differences(edges: &Edges, rows: &[f32], width: usize) -> f64 {
    let row = |node: u32| &rows[node as usize * width..(node as usize + 1) * width];
    let squares: Vec<f64> = (0..edges.len())
        .into_par_iter()
        .map(|n| {
            let pairs = row(edges.sources[n]).iter().zip(row(edges.targets[n]));
            pairs.map(|(a, b)| f64::from(a - b)).map(|difference| difference * difference).sum()
        })
        .collect();
    squares.iter().sum::<f64>() / 2.0
}

/// The gradient of [`differences`] by `slope`: for each row Σ over neighbours of what sets it apart.
pub fn differences_gradient(edges: &Edges, rows: &[f32], width: usize, slope: f32) -> Vec<f32> {
    let mut gradient = vec![0.0f32; rows.len()];
    if width == 0 {
        return gradient;
    }
    let mut neighbours = vec![Vec::new(); rows.len() / width];
    for (source, target) in edges.iter() {
        neighbours[source].push(target);
        neighbours[target].push(source);
    }
    gradient.par_chunks_exact_mut(width).zip(neighbours.par_iter()).enumerate().for_each(
        |(node, (out, neighbours))| {
            let own = &rows[node * width..(node + 1) * width];
            for &other in neighbours {
                let other = &rows[other * width..(other + 1) * width];
                for ((out, a), b) in out.iter_mut().zip(own).zip(other) {
                    *out += slope * (a - b);
                }
            }
        },
    );
    gradient
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::values;

    /// Three nodes to two, with one pair twice and a target for itself.
    fn edges() -> Edges {
        Edges { sources: vec![0, 2, 1, 2], targets: vec![1, 1, 0, 1], n_sources: 3, n_targets: 2 }
    }

    const WIDTH: usize = 11;

    fn loss(edges: &Edges, weights: &[f32], x: &[f32], slope: &[f32]) -> f64 {
        let mut out = vec![7.0; slope.len()];
        sum_along(edges, weights, x, WIDTH, &mut out);
        out.iter().zip(slope).map(|(a, b)| f64::from(a * b)).sum()
    }

    #[test]
    fn targets_hold_the_weighted_sum_of_their_sources() {
        let x = [1.0, 2.0, 3.0, -1.0, 0.0, 1.0];
        let mut out = [9.0; 4];
        sum_along(&edges(), &[1.0, 0.5, 2.0, 1.0], &x, 2, &mut out);
        assert_eq!(out, [6.0, -2.0, 1.0, 3.5]);
        sum_along(&Edges { n_sources: 3, n_targets: 2, ..Edges::default() }, &[], &x, 2, &mut out);
        assert_eq!(out, [0.0; 4]);
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (edges, documents) = (edges(), 2);
        let x = values(documents * 3 * WIDTH, 1, 1.0);
        let weights = values(4, 2, 1.0);
        let slope = values(documents * 2 * WIDTH, 3, 1.0);
        let mut of_x = vec![0.0; x.len()];
        sum_back(&edges, &weights, &slope, WIDTH, &mut of_x);
        let of_weights = weight_gradient(&edges, &x, &slope, WIDTH);
        let step = 1e-2;
        for (n, gradient) in of_x.iter().enumerate() {
            let mut moved = [x.clone(), x.clone()];
            (moved[0][n], moved[1][n]) = (x[n] + step, x[n] - step);
            let [up, down] = moved.map(|x| loss(&edges, &weights, &x, &slope));
            let expected = (up - down) / f64::from(2.0 * step);
            assert!((f64::from(*gradient) - expected).abs() < 1e-3, "{n}: {gradient} {expected}");
        }
        for (n, gradient) in of_weights.iter().enumerate() {
            let mut moved = [weights.clone(), weights.clone()];
            (moved[0][n], moved[1][n]) = (weights[n] + step, weights[n] - step);
            let [up, down] = moved.map(|weights| loss(&edges, &weights, &x, &slope));
            let expected = (up - down) / f64::from(2.0 * step);
            assert!((f64::from(*gradient) - expected).abs() < 1e-3, "{n}: {gradient} {expected}");
        }
    }

    #[test]
    fn differences_between_neighbours_and_their_slopes() {
        let edges = Edges { sources: vec![0, 0], targets: vec![1, 2], n_sources: 3, n_targets: 3 };
        let rows = [1.0, 2.0, 0.0, 2.0, 1.0, -1.0];
        assert_eq!(differences(&edges, &rows, 2), 5.0);
        assert_eq!(differences_gradient(&edges, &rows, 2, 2.0), [2.0, 6.0, -2.0, 0.0, 0.0, -6.0]);
    }
}
