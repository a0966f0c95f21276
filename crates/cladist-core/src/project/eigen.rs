//! The largest eigenvalues of a symmetric matrix and their vectors.
//!
//! Small matrices are rotated until they are diagonal (Jacobi). Large ones are first brought down to a small one: on the
//! space of v, A·v, A²·v, … for a few v, whose best vectors begin the next round until nothing changes any more.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Vectors of the space that stands for a large matrix.
const SPACE: usize = 96;
/// Vectors that begin a round: as many equal eigenvalues are still told apart.
const BLOCK: usize = 6;
const ROUNDS: usize = 50;
/// |A·v − λ·v| that is small enough, as a share of the largest eigenvalue.
const TOLERANCE: f64 = 1e-9;
const SWEEPS: usize = 60;

/// A value and its vector of length 1.
pub(super) type Pair = (f64, Vec<f64>);

/// The `wanted` largest eigenvalues, the largest first, of a symmetric `n` × `n` matrix given row by row.
pub(super) fn largest(matrix: &[f64], n: usize, wanted: usize) -> Vec<Pair> {
    if n <= SPACE {
        let mut pairs = jacobi(matrix.to_vec(), n);
        pairs.truncate(wanted);
        return pairs;
    }
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut start: Vec<Vec<f64>> =
        (0..BLOCK.max(wanted)).map(|_| (0..n).map(|_| random.random_range(-1.0..1.0)).collect()).collect();
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let (space, images) = krylov(matrix, n, start);
        let size = space.len();
        let products: Vec<f64> = (0..size * size)
            .into_par_iter()
            .map(|cell| dot(&space[cell / size], &images[cell % size]))
            .collect();
        let small = jacobi(products, size);
        let lift = |vectors: &[Vec<f64>], weights: &[f64]| -> Vec<f64> {
            let mut sum = vec![0.0; n];
            for (vector, weight) in vectors.iter().zip(weights) {
                sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * value);
            }
            sum
        };
        let scale = small.first().map_or(0.0, |(value, _)| value.abs());
        let is_exact = |(value, weights): &Pair| {
            let (vector, image) = (lift(&space, weights), lift(&images, weights));
            let rest: f64 = vector.iter().zip(&image).map(|(v, a)| (a - value * v).powi(2)).sum();
            rest.sqrt() <= TOLERANCE * scale
        };
        let done = small.iter().take(wanted).all(is_exact);
        let best = small.iter().take(BLOCK.max(wanted));
        let best: Vec<Pair> = best.map(|(value, weights)| (*value, lift(&space, weights))).collect();
        start = best.iter().map(|(_, vector)| vector.clone()).collect();
        found = best;
        if done {
            break;
        }
    }
    found.truncate(wanted);
    found
}

/// An orthonormal base of the space of `start`, A·`start`, …, and A times each of its vectors.
fn krylov(matrix: &[f64], n: usize, start: Vec<Vec<f64>>) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let (mut space, mut images): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    let mut next = start;
    while !next.is_empty() && space.len() < SPACE {
        let known = space.len();
        for mut vector in next {
            let before = dot(&vector, &vector).sqrt();
            // Once more for what rounding left.
            for _ in 0..2 {
                for base in &space {
                    let share = dot(base, &vector);
                    vector.iter_mut().zip(base).for_each(|(value, base)| *value -= share * base);
                }
            }
            let length = dot(&vector, &vector).sqrt();
            if length > 1e-10 * before {
                vector.iter_mut().for_each(|value| *value /= length);
                space.push(vector);
            }
        }
        next = space[known..].iter().map(|vector| times(matrix, n, vector)).collect();
        images.extend(next.iter().cloned());
    }
    (space, images)
}

fn times(matrix: &[f64], n: usize, vector: &[f64]) -> Vec<f64> {
    matrix.par_chunks(n).map(|row| dot(row, vector)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// All eigenvalues and vectors of a symmetric matrix, the largest value first.
fn jacobi(mut matrix: Vec<f64>, n: usize) -> Vec<Pair> {
    let mut vectors = vec![0.0; n * n];
    (0..n).for_each(|i| vectors[i * n + i] = 1.0);
    let all: f64 = matrix.iter().map(|cell| cell * cell).sum();
    for _ in 0..SWEEPS {
        let off: f64 =
            (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| matrix[i * n + j].powi(2)).sum();
        if off <= 1e-30 * all {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let cell = matrix[p * n + q];
                if cell == 0.0 {
                    continue;
                }
                let theta = (matrix[q * n + q] - matrix[p * n + p]) / (2.0 * cell);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = (t * t + 1.0).sqrt().recip();
                let s = t * c;
                for k in 0..n {
                    let (a, b) = (matrix[k * n + p], matrix[k * n + q]);
                    (matrix[k * n + p], matrix[k * n + q]) = (c * a - s * b, s * a + c * b);
                }
                for k in 0..n {
                    let (a, b) = (matrix[p * n + k], matrix[q * n + k]);
                    (matrix[p * n + k], matrix[q * n + k]) = (c * a - s * b, s * a + c * b);
                    let (a, b) = (vectors[p * n + k], vectors[q * n + k]);
                    (vectors[p * n + k], vectors[q * n + k]) = (c * a - s * b, s * a + c * b);
                }
            }
        }
    }
    let mut pairs: Vec<Pair> =
        (0..n).map(|i| (matrix[i * n + i], vectors[i * n..(i + 1) * n].to_vec())).collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Σ λᵢ·uᵢuᵢᵀ with uᵢ from Householder's reflection of the unit vectors.
    fn with_values(values: &[f64]) -> Vec<f64> {
        let n = values.len();
        let normal: Vec<f64> = (0..n).map(|i| ((i * 7 % 11) as f64 + 1.0).sqrt()).collect();
        let square = dot(&normal, &normal);
        let u = |i: usize, k: usize| f64::from(i == k) - 2.0 * normal[i] * normal[k] / square;
        let cell = |a: usize, b: usize| (0..n).map(|i| values[i] * u(i, a) * u(i, b)).sum();
        (0..n * n).map(|place| cell(place / n, place % n)).collect()
    }

    fn check(values: &[f64], wanted: usize) {
        let n = values.len();
        let matrix = with_values(values);
        let mut expected = values.to_vec();
        expected.sort_by(|a, b| b.total_cmp(a));
        let found = largest(&matrix, n, wanted);
        assert_eq!(found.len(), wanted.min(n));
        for ((value, vector), expected) in found.iter().zip(&expected) {
            assert!(
                (value - expected).abs() < 1e-8 * expected.abs().max(1.0),
                "{value} instead of {expected}"
            );
            assert!((dot(vector, vector) - 1.0).abs() < 1e-9);
            let image = times(&matrix, n, vector);
            assert!(image.iter().zip(vector).all(|(a, v)| (a - value * v).abs() < 1e-6), "{value}");
        }
        for (n, (_, a)) in found.iter().enumerate() {
            assert!(found[..n].iter().all(|(_, b)| dot(a, b).abs() < 1e-8));
        }
    }

    #[test]
    fn small_matrices_are_solved_whole() {
        check(&[3.0], 2);
        check(&[1.0, 5.0, 2.0], 3);
        check(&[2.0, 2.0, 2.0, 0.0], 3);
    }

    #[test]
    fn large_matrices_are_solved_at_the_top() {
        let falling: Vec<f64> = (0..150).map(|i| 0.97f64.powi(i) * 10.0).collect();
        check(&falling, 2);
        // Equal values, a low rank, and values that hardly differ.
        let mut equal = vec![1.0; 150];
        equal[3..5].fill(4.0);
        check(&equal, 3);
        let mut low = vec![0.0; 150];
        low[7] = 2.0;
        check(&low, 3);
        let close: Vec<f64> = (0..150).map(|i| 1.0 + f64::from(i) / 1000.0).collect();
        check(&close, 2);
    }
}
