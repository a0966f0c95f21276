//! Binary linear classifiers by dual coordinate descent (Hsieh et al. 2008; logistic: Yu et al. 2011).
//!
//! Squared hinge: min over w of ½wᵀw + C Σ max(0, 1 − yᵢwᵀxᵢ)², y = ±1. With D = 1/(2C), one α ≥ 0 per row and
//! w = Σ αᵢyᵢxᵢ, a step on row i is G = yᵢwᵀxᵢ − 1 + αᵢD, α ← max(0, α − G/(xᵢᵀxᵢ + D)). A classifier is done when
//! the projected gradients of one pass over all its rows span at most ε. A row with α = 0 and G above the largest
//! projected gradient of the pass before is left out until the others are done.
//!
//! Up to sixteen classifiers over the same rows are trained side by side: their weights for one column lie next to
//! each other, so that a row is read once for all of them and the arithmetic is done in vector registers. Each
//! classifier keeps its own stopping and shrinking; only the order of rows is shared. The constant feature 1 that
//! every row ends with is not stored: its weight is the bias.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::config::Loss;
use crate::error::Result;
use crate::job::Job;
use crate::seeds::seed_of;
use crate::sparse::SparseMatrix;

/// Shrunken rows come back after this many passes, converged or not.
const REOPEN_EVERY: usize = 32;

/// How to solve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) loss: Loss,
    pub(crate) c: f32,
    pub(crate) epsilon: f32,
    pub(crate) epochs: usize,
    pub(crate) prune: f32,
}

/// A trained classifier: s = bias + Σ weight · value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Classifier {
    pub(crate) bias: f32,
    /// Columns with a weight above the pruning threshold, ascending.
    pub(crate) weights: Vec<(u32, f32)>,
}

/// Classifiers that are trained side by side at most.
const WIDEST: usize = 16;

/// Trains one classifier per list of positive rows; all other rows are negative. Weights are given for the columns
/// of `rows`. Progress advances by one step per classifier.
pub(crate) fn solve(
    rows: &SparseMatrix,
    positives: &[&[u32]],
    settings: &Settings,
    seed: u64,
    job: &Job,
) -> Result<Vec<Classifier>> {
    match positives.len() {
        0 => Ok(Vec::new()),
        1 => solve_in_groups::<1>(rows, positives, settings, seed, job),
        2 => solve_in_groups::<2>(rows, positives, settings, seed, job),
        3..=4 => solve_in_groups::<4>(rows, positives, settings, seed, job),
        5..=8 => solve_in_groups::<8>(rows, positives, settings, seed, job),
        _ => solve_in_groups::<WIDEST>(rows, positives, settings, seed, job),
    }
}

fn solve_in_groups<const N: usize>(
    rows: &SparseMatrix,
    positives: &[&[u32]],
    settings: &Settings,
    seed: u64,
    job: &Job,
) -> Result<Vec<Classifier>> {
    let squares: Vec<f32> = (0..rows.n_rows())
        .map(|row| 1.0 + rows.row(row).1.iter().map(|value| value * value).sum::<f32>())
        .collect();
    // Classifiers of similar frequency need a similar number of passes.
    let mut order: Vec<usize> = (0..positives.len()).collect();
    order.sort_by_key(|&output| (std::cmp::Reverse(positives[output].len()), output));
    let n_groups = positives.len().div_ceil(N);
    let size = positives.len().div_ceil(n_groups);
    let solved: Vec<Vec<Classifier>> = order
        .par_chunks(size)
        .enumerate()
        .map_init(
            || Lanes::<N>::new(rows, &squares, settings),
            |lanes, (group, outputs)| {
                let positives: Vec<&[u32]> = outputs.iter().map(|&output| positives[output]).collect();
                lanes.start(&positives);
                lanes.run(&mut ChaCha8Rng::seed_from_u64(seed_of(&[seed, group as u64])), job)?;
                job.progress.advance(outputs.len() as u64);
                Ok(lanes.finish(outputs.len()))
            },
        )
        .collect::<Result<_>>()?;
    let mut classifiers = vec![Classifier::default(); positives.len()];
    for (output, classifier) in order.into_iter().zip(solved.into_iter().flatten()) {
        classifiers[output] = classifier;
    }
    Ok(classifiers)
}

/// `N` classifiers in the making. Sets of classifiers are bits.
struct Lanes<'a, const N: usize> {
    rows: &'a SparseMatrix,
    /// xᵀx of each row, bias included.
    squares: &'a [f32],
    settings: &'a Settings,
    weights: Vec<[f32; N]>,
    bias: [f32; N],
    alpha: Vec<[f32; N]>,
    /// Which classifiers a row is positive for.
    positive: Vec<u32>,
    /// Which classifiers have not left a row out.
    open: Vec<u32>,
    /// Rows that anybody visits first, the others behind.
    order: Vec<u32>,
    n_active: usize,
    /// Classifiers that are not done.
    live: u32,
}

/// One classifier's view of a pass.
#[derive(Clone, Copy)]
struct Span<const N: usize> {
    high: [f32; N],
    low: [f32; N],
}

impl<'a, const N: usize> Lanes<'a, N> {
    fn new(rows: &'a SparseMatrix, squares: &'a [f32], settings: &'a Settings) -> Self {
        let n = rows.n_rows();
        Self {
            rows,
            squares,
            settings,
            weights: vec![[0.0; N]; rows.n_columns()],
            bias: [0.0; N],
            alpha: vec![[0.0; N]; n],
            positive: vec![0; n],
            open: vec![0; n],
            order: Vec::with_capacity(n),
            n_active: 0,
            live: 0,
        }
    }

    fn start(&mut self, positives: &[&[u32]]) {
        self.weights.fill([0.0; N]);
        self.bias = [0.0; N];
        self.alpha.fill([0.0; N]);
        self.positive.fill(0);
        for (lane, rows) in positives.iter().enumerate() {
            for &row in *rows {
                self.positive[row as usize] |= 1 << lane;
            }
        }
        self.live = (1 << positives.len()) - 1;
        self.open.fill(self.live);
        self.order.clear();
        self.order.extend(0..self.rows.n_rows() as u32);
        self.n_active = self.order.len();
    }

    fn run(&mut self, rng: &mut ChaCha8Rng, job: &Job) -> Result<()> {
        let mut limit = [f32::INFINITY; N];
        // Classifiers that visit every row in the coming pass.
        let mut whole = self.live;
        for pass in 1..=self.settings.epochs {
            job.cancel.check()?;
            self.order[..self.n_active].shuffle(rng);
            let span = match self.settings.loss {
                Loss::SquaredHinge => self.pass_squared_hinge(&limit),
                Loss::Logistic => self.pass_logistic(),
            };
            let mut reopened = 0;
            let full = std::mem::take(&mut whole);
            for (lane, limit) in limit.iter_mut().enumerate() {
                let bit = 1 << lane;
                if self.live & bit == 0 {
                    continue;
                }
                if span.high[lane] - span.low[lane] <= self.settings.epsilon {
                    *limit = f32::INFINITY;
                    if full & bit != 0 {
                        self.live &= !bit;
                    } else {
                        reopened |= bit;
                    }
                } else {
                    *limit = if span.high[lane] <= 0.0 { f32::INFINITY } else { span.high[lane] };
                }
            }
            // A criterion below what single precision can reach must not keep rows shut for ever.
            if pass % REOPEN_EVERY == 0 {
                reopened = self.live;
                limit = [f32::INFINITY; N];
            }
            if reopened != 0 {
                for open in &mut self.open {
                    *open |= reopened;
                }
                whole = reopened;
                self.n_active = self.order.len();
            }
            if self.live == 0 {
                break;
            }
        }
        Ok(())
    }

    fn scores(&self, row: usize) -> [f32; N] {
        // Sums that do not wait for each other: as many as the registers hold.
        if N <= 4 { self.scores_by::<4>(row) } else { self.scores_by::<2>(row) }
    }

    fn scores_by<const PARTS: usize>(&self, row: usize) -> [f32; N] {
        let (columns, values) = self.rows.row(row);
        let ((columns, last_columns), (values, last_values)) =
            (columns.as_chunks::<PARTS>(), values.as_chunks::<PARTS>());
        let mut sums = [[0.0; N]; PARTS];
        for (columns, values) in columns.iter().zip(values) {
            for part in 0..PARTS {
                let weights = &self.weights[columns[part] as usize];
                for lane in 0..N {
                    sums[part][lane] += values[part] * weights[lane];
                }
            }
        }
        let mut scores = self.bias;
        for (&column, &value) in last_columns.iter().zip(last_values) {
            let weights = &self.weights[column as usize];
            for lane in 0..N {
                scores[lane] += value * weights[lane];
            }
        }
        for sum in &sums {
            for lane in 0..N {
                scores[lane] += sum[lane];
            }
        }
        scores
    }

    fn add(&mut self, row: usize, steps: &[f32; N]) {
        let (columns, values) = self.rows.row(row);
        for (bias, step) in self.bias.iter_mut().zip(steps) {
            *bias += step;
        }
        for (&column, &value) in columns.iter().zip(values) {
            let weights = &mut self.weights[column as usize];
            for lane in 0..N {
                weights[lane] += value * steps[lane];
            }
        }
    }

    fn pass_squared_hinge(&mut self, limit: &[f32; N]) -> Span<N> {
        let mut span = Span { high: [f32::NEG_INFINITY; N], low: [f32::INFINITY; N] };
        let d = 0.5 / self.settings.c;
        // Steps too small to matter to the stopping criterion are not worth writing all weights of a row.
        let trifle = self.settings.epsilon * TRIFLE;
        let mut next = 0;
        while next < self.n_active {
            let row = self.order[next] as usize;
            let mut open = self.open[row] & self.live;
            if open == 0 {
                self.n_active -= 1;
                self.order.swap(next, self.n_active);
                continue;
            }
            let scores = self.scores(row);
            let positive = self.positive[row];
            let alpha = &mut self.alpha[row];
            let inverse = 1.0 / (self.squares[row] + d);
            let mut gradient = [0.0; N];
            let mut shut = 0;
            for lane in 0..N {
                let y = if positive >> lane & 1 != 0 { 1.0 } else { -1.0 };
                gradient[lane] = y * scores[lane] - 1.0 + alpha[lane] * d;
                shut |= u32::from(alpha[lane] == 0.0 && gradient[lane] > limit[lane]) << lane;
            }
            if open & shut != 0 {
                open &= !shut;
                self.open[row] &= !shut;
            }
            let mut steps = [0.0; N];
            let mut moved = false;
            for lane in 0..N {
                let on = open >> lane & 1 != 0;
                let projected = if alpha[lane] > 0.0 { gradient[lane] } else { gradient[lane].min(0.0) };
                if on {
                    span.high[lane] = span.high[lane].max(projected);
                    span.low[lane] = span.low[lane].min(projected);
                }
                if on && projected.abs() > trifle {
                    let y = if positive >> lane & 1 != 0 { 1.0 } else { -1.0 };
                    let new = (alpha[lane] - gradient[lane] * inverse).max(0.0);
                    steps[lane] = (new - alpha[lane]) * y;
                    alpha[lane] = new;
                    moved = true;
                }
            }
            if moved {
                self.add(row, &steps);
            }
            next += 1;
        }
        span
    }

    /// The dual of logistic regression has 0 < α < C and the condition yᵢwᵀxᵢ + ln(α/(C − α)) = 0; a step solves it
    /// for one row by Newton's method. Nothing can be left out: no α is ever 0.
    fn pass_logistic(&mut self) -> Span<N> {
        let mut span = Span { high: [0.0; N], low: [0.0; N] };
        let c = f64::from(self.settings.c);
        for next in 0..self.order.len() {
            let row = self.order[next] as usize;
            let scores = self.scores(row);
            let square = f64::from(self.squares[row]);
            let mut steps = [0.0; N];
            for lane in 0..N {
                if self.live >> lane & 1 == 0 {
                    continue;
                }
                let y = if self.positive[row] >> lane & 1 != 0 { 1.0 } else { -1.0 };
                let old = f64::from(self.alpha[row][lane]);
                let margin = y * f64::from(scores[lane]);
                let start = if old == 0.0 { c / (1.0 + margin.exp()) } else { old };
                let before = if old == 0.0 { f64::INFINITY } else { margin + (old / (c - old)).ln() };
                span.high[lane] = span.high[lane].max(before.abs() as f32);
                let new = logistic_step(start, old, margin, square, c);
                steps[lane] = ((new - old) * y) as f32;
                self.alpha[row][lane] = new as f32;
            }
            self.add(row, &steps);
        }
        span
    }

    fn finish(&self, n: usize) -> Vec<Classifier> {
        let mut classifiers: Vec<Classifier> =
            self.bias[..n].iter().map(|&bias| Classifier { bias, weights: Vec::new() }).collect();
        for (column, weights) in (0..).zip(&self.weights) {
            if weights.iter().all(|weight| weight.abs() <= self.settings.prune) {
                continue;
            }
            for (classifier, &weight) in classifiers.iter_mut().zip(weights) {
                if weight.abs() > self.settings.prune {
                    classifier.weights.push((column, weight));
                }
            }
        }
        for classifier in &mut classifiers {
            classifier.weights.shrink_to_fit();
        }
        classifiers
    }
}

/// Projected gradients below this part of ε are not acted upon.
const TRIFLE: f32 = 1e-2;

/// The z in (0, C) with square·(z − old) + margin + ln(z/(C − z)) = 0; its left side grows with z.
fn logistic_step(start: f64, old: f64, margin: f64, square: f64, c: f64) -> f64 {
    let smallest = c * 1e-12;
    let (mut low, mut high) = (smallest, c - c * 1e-7);
    let mut z = start.clamp(low, high);
    for _ in 0..50 {
        let value = square * (z - old) + margin + (z / (c - z)).ln();
        if value.abs() < 1e-6 {
            break;
        }
        if value > 0.0 {
            high = z;
        } else {
            low = z;
        }
        let slope = square + c / (z * (c - z));
        let newton = z - value / slope;
        z = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
    }
    z
}

#[cfg(test)]
mod tests;
