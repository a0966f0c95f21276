//! Confidence intervals by drawing documents with replacement.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::options::MetricOptions;
use super::samples::Samples;
use super::view::Judged;
use crate::error::{Error, Result};
use crate::job::Job;

/// Resamples at most: intervals do not get better beyond it, and a number of each is kept for each metric.
const MAX_RESAMPLES: usize = 1_000_000;

/// How documents are resampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResampleOptions {
    /// Metrics by name: ratios over documents, macro F1 and macro R-Precision.
    pub metrics: Vec<String>,
    /// How many times documents are drawn (and, in a comparison, exchanged). Macro F1 over very many documents
    /// costs most; a few hundred give a usable interval.
    pub resamples: usize,
    /// The share of resamples within an interval.
    pub confidence: f64,
    /// Everything random follows from it.
    pub seed: u64,
}

impl Default for ResampleOptions {
    fn default() -> Self {
        let metrics = [
            "micro-f1",
            "macro-f1",
            "sample-f1",
            "set-accuracy",
            "p@1",
            "p@5",
            "ndcg@5",
            "r-precision-micro",
            "hierarchical-f1-micro",
        ];
        Self { metrics: metrics.map(str::to_owned).to_vec(), resamples: 1000, confidence: 0.95, seed: 1 }
    }
}

impl ResampleOptions {
    /// Checks every value but the names of metrics.
    pub fn validate(&self) -> Result<()> {
        if !(1..=MAX_RESAMPLES).contains(&self.resamples) {
            return Err(Error::setting("resamples", format!("1 to {MAX_RESAMPLES}"), self.resamples));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(Error::setting("confidence", "between 0 and 1", self.confidence));
        }
        Ok(())
    }

    /// The ends of the interval of the values at hand, moved so that their mean falls on `centre`; none without one.
    ///
    /// Resamples hold fewer different documents than the whole, so that macro averages over them are off to one
    /// side; left alone, the interval of a value could miss the value.
    pub(super) fn interval(&self, centre: f64, mut values: Vec<f64>) -> Option<(f64, f64)> {
        values.sort_unstable_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let shift = centre - values.iter().sum::<f64>() / values.len() as f64;
        let at = |share: f64| {
            let position = share * last as f64;
            let below = (position as usize).min(last);
            let above = (below + 1).min(last);
            values[below] + (position - below as f64) * (values[above] - values[below])
        };
        let tail = (1.0 - self.confidence) / 2.0;
        Some((at(tail) + shift, at(1.0 - tail) + shift))
    }
}

/// A metric's value with its confidence interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its name.
    pub metric: String,
    /// For all documents.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How often each of `n` documents is drawn in resample number `round`.
pub(super) fn draw(n: usize, seed: u64, round: usize) -> Vec<u32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(2 * round as u64);
    let mut times = vec![0; n];
    for _ in 0..n {
        times[random.random_range(0..n)] += 1;
    }
    times
}

/// Percentile bootstrap intervals over documents, centred on the values. Metrics that the documents do not define are left out.
///
/// For macro averages the labels stay those of the whole evaluation; a label of which a resample holds neither gold
/// nor prediction takes no part in it.
pub fn bootstrap(
    judged: &Judged,
    metric_options: &MetricOptions,
    options: &ResampleOptions,
    job: &Job,
) -> Result<Vec<Interval>> {
    options.validate()?;
    let samples = Samples::collect(judged, &options.metrics, metric_options, job)?;
    let n = judged.len();
    if n == 0 {
        return Ok(Vec::new());
    }
    job.progress.stage("bootstrap", options.resamples as u64);
    let rounds = rounds(samples.len(), options, job, |round, values| {
        let times = draw(n, options.seed, round);
        for (value, metric) in values.iter_mut().zip(&samples) {
            *value = metric.resampled(&weighted(metric, &times)).unwrap_or(f64::NAN);
        }
    })?;
    let interval = |(column, (metric, name)): (usize, (&Samples, &String))| {
        let value = metric.value(&weighted(metric, &vec![1; n]))?;
        let (low, high) = options.interval(value, column_of(&rounds, column, samples.len()))?;
        Some(Interval { metric: name.clone(), value, low, high })
    };
    Ok(samples.iter().zip(&options.metrics).enumerate().filter_map(interval).collect())
}

/// What every resample comes to: rows of `width` numbers, which `fill` writes; NaN where there is none. One number per
/// resample and column is all that is kept, however many documents there are.
pub(super) fn rounds(
    width: usize,
    options: &ResampleOptions,
    job: &Job,
    fill: impl Fn(usize, &mut [f64]) + Sync,
) -> Result<Vec<f64>> {
    let progress = job.progress;
    let mut rounds = vec![f64::NAN; width * options.resamples];
    rounds.par_chunks_mut(width.max(1)).enumerate().try_for_each(|(round, values)| -> Result<()> {
        job.cancel.check()?;
        fill(round, values);
        progress.advance(1);
        Ok(())
    })?;
    Ok(rounds)
}

/// The numbers of one column of [`rounds`], where there are any.
pub(super) fn column_of(rounds: &[f64], column: usize, width: usize) -> Vec<f64> {
    rounds.iter().skip(column).step_by(width.max(1)).copied().filter(|value| !value.is_nan()).collect()
}

/// Sums over documents, each as many times as drawn.
pub(super) fn weighted(metric: &Samples, times: &[u32]) -> super::samples::Sums {
    let mut sums = metric.sums();
    for (document, &times) in times.iter().enumerate().filter(|(_, times)| **times > 0) {
        metric.add(&mut sums, document, f64::from(times));
    }
    sums
}
