//! t-SNE, exact: points whose neighbours on the plane are those of the vectors.
//!
//! Of vectors i and j, p(j|i) ∝ exp(−βᵢ·|xᵢ − xⱼ|²) with βᵢ such that the entropy of p(·|i) is ln(perplexity), and
//! pᵢⱼ = (p(j|i) + p(i|j)) / 2n. On the plane wᵢⱼ = 1/(1 + |yᵢ − yⱼ|²) and qᵢⱼ = wᵢⱼ/Σw. Minimised is KL(p ‖ q), by gradient descent
//! with momentum and gains, from the principal components, with p exaggerated at first.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Gram, Point, pca};
use crate::error::{Error, Result};
use crate::job::Job;

/// How long p is exaggerated, and by how much.
const EXAGGERATED: usize = 250;
const EXAGGERATION: f64 = 12.0;
/// The spread at which points begin.
const SPREAD: f64 = 1e-4;
const SMALLEST_GAIN: f64 = 0.01;

/// Settings of t-SNE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TsneConfig {
    /// How many neighbours a point attends to, about.
    pub perplexity: f64,
    /// Steps of descent.
    pub iterations: usize,
}

impl Default for TsneConfig {
    fn default() -> Self {
        Self { perplexity: 30.0, iterations: 1000 }
    }
}

/// Vectors on a plane that keeps their neighbours.
#[derive(Debug, Clone, PartialEq)]
pub struct Tsne {
    /// A place for each vector.
    pub points: Vec<Point>,
    /// KL(p ‖ q) in the end, in nats.
    pub kl: f64,
    /// The perplexity that was used: at most a third of the other vectors.
    pub perplexity: f64,
}

/// Places vectors by their products.
pub fn tsne(gram: Gram, config: &TsneConfig, job: &Job) -> Result<Tsne> {
    if !(config.perplexity.is_finite() && config.perplexity >= 1.0) {
        return Err(Error::setting("perplexity", "a number of at least 1", config.perplexity));
    }
    if config.iterations > 1_000_000 {
        return Err(Error::setting("iterations", "at most 1000000", config.iterations));
    }
    let n = gram.n();
    let perplexity = config.perplexity.min((n.saturating_sub(1) as f64 / 3.0).max(1.0));
    let mut points = begin(&gram);
    let p = affinities(gram.into_distances(), n, perplexity);
    let rate = (n as f64 / EXAGGERATION / 4.0).max(50.0);
    let mut steps = vec![[0.0; 2]; n];
    let mut gains = vec![[1.0; 2]; n];
    for iteration in 0..config.iterations {
        job.cancel.check()?;
        let early = iteration < EXAGGERATED;
        let (exaggeration, momentum) = if early { (EXAGGERATION, 0.5) } else { (1.0, 0.8) };
        let gradient = gradient(&p, &points, exaggeration);
        let moved = points.iter_mut().zip(&mut steps).zip(&mut gains).zip(&gradient);
        for (((point, step), gain), slope) in moved {
            for axis in [0, 1] {
                let onward = slope[axis] * step[axis] < 0.0;
                gain[axis] = if onward { gain[axis] + 0.2 } else { (gain[axis] * 0.8f64).max(SMALLEST_GAIN) };
                step[axis] = momentum * step[axis] - rate * gain[axis] * slope[axis];
                point[axis] += step[axis];
            }
        }
        job.progress.advance(1);
    }
    centre(&mut points);
    let kl = divergence(&p, &points);
    Ok(Tsne { points, kl, perplexity })
}

/// The principal components, small, and shaken a little so that equal vectors and those on one line can part.
fn begin(gram: &Gram) -> Vec<Point> {
    let mut points = pca(gram).points;
    let spread =
        (points.iter().map(|point| point[0] * point[0]).sum::<f64>() / points.len().max(1) as f64).sqrt();
    let scale = if spread > 0.0 { SPREAD / spread } else { 0.0 };
    let mut random = ChaCha8Rng::seed_from_u64(0);
    for value in points.iter_mut().flatten() {
        *value = *value * scale + SPREAD / 100.0 * random.random_range(-1.0..1.0);
    }
    points
}

fn centre(points: &mut [Point]) {
    let n = points.len().max(1) as f64;
    for axis in [0, 1] {
        let mean = points.iter().map(|point| point[axis]).sum::<f64>() / n;
        points.iter_mut().for_each(|point| point[axis] -= mean);
    }
}

/// pᵢⱼ row by row, in the place of squared distances.
fn affinities(mut cells: Vec<f64>, n: usize, perplexity: f64) -> Vec<f64> {
    cells.par_chunks_mut(n.max(1)).enumerate().for_each(|(i, row)| conditional(row, i, perplexity.ln()));
    let scale = 1.0 / (2.0 * n.max(1) as f64);
    for i in 0..n {
        for j in 0..i {
            let p = (cells[i * n + j] + cells[j * n + i]) * scale;
            (cells[i * n + j], cells[j * n + i]) = (p, p);
        }
    }
    cells
}

/// p(·|i) in the place of squared distances; β is found by halving intervals.
fn conditional(row: &mut [f64], i: usize, entropy: f64) {
    const HALVINGS: usize = 200;
    row[i] = f64::INFINITY;
    // Distances beyond the nearest: the same probabilities, and no sum of nothing but zeros.
    let nearest = row.iter().copied().fold(f64::INFINITY, f64::min);
    let nearest = if nearest.is_finite() { nearest } else { 0.0 };
    let others = || row.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, distance)| distance - nearest);
    let mean = others().sum::<f64>() / (row.len().max(2) - 1) as f64;
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut beta = if mean > 0.0 { 1.0 / mean } else { 1.0 };
    for _ in 0..HALVINGS {
        let (mut sum, mut weighted) = (0.0, 0.0);
        for distance in others() {
            let p = (-beta * distance).exp();
            sum += p;
            weighted += p * distance;
        }
        // H = ln Σp + β·Σp·d/Σp
        let found = sum.ln() + beta * weighted / sum;
        if (found - entropy).abs() < 1e-10 {
            break;
        }
        if found > entropy {
            low = beta;
            beta = if high.is_finite() { (low + high) / 2.0 } else { beta * 2.0 };
        } else {
            high = beta;
            beta = (low + high) / 2.0;
        }
        if !beta.is_finite() || beta > 1e12 / mean.max(f64::MIN_POSITIVE) {
            break;
        }
    }
    let beta = beta.min(f64::MAX);
    let mut sum = 0.0;
    for (j, cell) in row.iter_mut().enumerate() {
        *cell = if j == i { 0.0 } else { (-beta * (*cell - nearest)).exp() };
        sum += *cell;
    }
    row.iter_mut().for_each(|cell| *cell /= sum.max(f64::MIN_POSITIVE));
}

/// wᵢⱼ.
fn weight(a: &Point, b: &Point) -> f64 {
    let (x, y) = (a[0] - b[0], a[1] - b[1]);
    1.0 / (1.0 + x * x + y * y)
}

/// ∂KL/∂yᵢ = 4·Σⱼ (pᵢⱼ − qᵢⱼ)·wᵢⱼ·(yᵢ − yⱼ), with p `exaggeration` times itself.
fn gradient(p: &[f64], points: &[Point], exaggeration: f64) -> Vec<Point> {
    let n = points.len().max(1);
    // Σw of a row, and both sums of forces.
    let rows: Vec<(f64, Point, Point)> = (p.par_chunks(n).zip(points))
        .map(|(row, own)| {
            let (mut sum, mut pull, mut push) = (-1.0, [0.0; 2], [0.0; 2]);
            for (p, other) in row.iter().zip(points) {
                let w = weight(own, other);
                sum += w;
                for axis in [0, 1] {
                    let apart = (own[axis] - other[axis]) * w;
                    pull[axis] += p * apart;
                    push[axis] += w * apart;
                }
            }
            (sum, pull, push)
        })
        .collect();
    let sum = rows.iter().map(|(sum, ..)| sum).sum::<f64>().max(f64::MIN_POSITIVE);
    let force = |(_, pull, push): &(f64, Point, Point)| {
        [0, 1].map(|axis| 4.0 * (exaggeration * pull[axis] - push[axis] / sum))
    };
    rows.iter().map(force).collect()
}

/// KL(p ‖ q).
fn divergence(p: &[f64], points: &[Point]) -> f64 {
    let n = points.len().max(1);
    // Σw and Σp·ln(p/w) of a row.
    let rows: Vec<(f64, f64)> = (p.par_chunks(n).zip(points).enumerate())
        .map(|(i, (row, own))| {
            let (mut sum, mut terms) = (0.0, 0.0);
            for (_, (p, other)) in row.iter().zip(points).enumerate().filter(|(j, _)| *j != i) {
                let w = weight(own, other);
                sum += w;
                if *p > 0.0 {
                    terms += p * (p / w).ln();
                }
            }
            (sum, terms)
        })
        .collect();
    let (sum, terms) = rows.iter().fold((0.0, 0.0), |all, row| (all.0 + row.0, all.1 + row.1));
    // Σp is 1.
    if sum > 0.0 { terms + sum.ln() } else { 0.0 }
}

#[cfg(test)]
mod tests;
