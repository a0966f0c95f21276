//! Whether one run is better than another on the same documents.

use std::sync::atomic::{AtomicUsize, Ordering};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::bootstrap::{ResampleOptions, column_of, draw, rounds, weighted};
use super::options::MetricOptions;
use super::samples::{Samples, Sums};
use super::view::Judged;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::taxonomy::LabelSet;

/// One metric of two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Its name.
    pub metric: String,
    /// The first run's value.
    pub a: f64,
    /// The second run's value.
    pub b: f64,
    /// `b - a`.
    pub difference: f64,
    /// The lower end of the difference's confidence interval (paired bootstrap).
    pub ci_low: f64,
    /// The upper end.
    pub ci_high: f64,
    /// How likely a difference at least as large is if it does not matter which run answered which document
    /// (two-sided approximate randomisation): `(1 + rounds as extreme) / (1 + rounds)`.
    pub p_value: f64,
}

/// What each document contributes to metrics: all that a comparison needs of a run, and far less than its scores.
///
/// Several runs of the same kind, such as seeds, can be joined: a document then stands for all answers to it, so that
/// they are drawn and exchanged together. Answers of several runs to one document are no independent observations.
#[derive(Debug, Clone)]
pub struct Contributions {
    metrics: Vec<String>,
    samples: Vec<Samples>,
    gold: Vec<LabelSet>,
}

impl Contributions {
    /// What a run's answers contribute to the metrics of these names.
    pub fn collect(judged: &Judged, metrics: &[String], options: &MetricOptions, job: &Job) -> Result<Self> {
        let samples = Samples::collect(judged, metrics, options, job)?;
        Ok(Self { metrics: metrics.to_vec(), samples, gold: judged.gold.to_vec() })
    }

    /// Adds the answers of another run, collected for the same metrics.
    pub fn join(&mut self, other: &Self) -> Result<()> {
        same_gold(&self.gold, &other.gold)?;
        for (samples, more) in self.samples.iter_mut().zip(&other.samples) {
            samples.join(more);
        }
        Ok(())
    }

    /// Compares with runs that answered the same documents, as [`compare`] does.
    pub fn compare(&self, other: &Self, options: &ResampleOptions, job: &Job) -> Result<Vec<Comparison>> {
        options.validate()?;
        same_gold(&self.gold, &other.gold)?;
        resample(&self.metrics, &self.samples, &other.samples, self.gold.len(), options, job)
    }
}

/// Two runs' contributions to one metric.
struct Pair<'s> {
    name: &'s str,
    a: &'s Samples,
    b: &'s Samples,
    /// Documents to which the runs contribute differently: exchanging any other changes nothing.
    differing: Vec<usize>,
    /// Sums over all other documents.
    shared: Sums,
    difference: f64,
    values: (f64, f64),
}

impl<'s> Pair<'s> {
    /// None if one of the runs has no value.
    fn new(name: &'s str, a: &'s Samples, b: &'s Samples) -> Option<Self> {
        let n = a.n_documents();
        let everything = vec![1; n];
        let values = (a.value(&weighted(a, &everything))?, b.value(&weighted(b, &everything))?);
        let mut shared = a.sums();
        let mut differing = Vec::new();
        for document in 0..n {
            if a.same(b, document) {
                a.add(&mut shared, document, 1.0);
            } else {
                differing.push(document);
            }
        }
        Some(Self { name, a, b, differing, shared, difference: values.1 - values.0, values })
    }

    fn resampled(&self, times: &[u32]) -> Option<f64> {
        Some(self.b.resampled(&weighted(self.b, times))? - self.a.resampled(&weighted(self.a, times))?)
    }

    /// The difference after exchanging the answers to some documents.
    fn exchanged(&self, exchange: impl Fn(usize) -> bool) -> Option<f64> {
        let (mut first, mut second) = (self.shared.clone(), self.shared.clone());
        for &document in &self.differing {
            let (a, b) = if exchange(document) { (self.b, self.a) } else { (self.a, self.b) };
            a.add(&mut first, document, 1.0);
            b.add(&mut second, document, 1.0);
        }
        Some(self.b.value(&second)? - self.a.value(&first)?)
    }
}

/// One random bit per document.
fn coins(n: usize, seed: u64, round: usize) -> Vec<u64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(2 * round as u64 + 1);
    (0..n.div_ceil(64)).map(|_| random.next_u64()).collect()
}

/// Whether two runs were judged by the same gold labels.
fn same_gold(a: &[LabelSet], b: &[LabelSet]) -> Result<()> {
    if a.len() != b.len() {
        return Err(Error::Mismatch {
            left: "documents in the first run",
            n_left: a.len(),
            right: "documents in the second",
            n_right: b.len(),
        });
    }
    match (0..a.len()).find(|&n| a[n] != b[n]) {
        Some(document) => Err(Error::DifferentGold { document: document + 1 }),
        None => Ok(()),
    }
}

/// Compares two runs by each metric: paired bootstrap for the interval of the difference, paired approximate
/// randomisation for its significance. Metrics without a value for both runs are left out.
pub fn compare(
    a: &Judged,
    b: &Judged,
    metric_options: &MetricOptions,
    options: &ResampleOptions,
    job: &Job,
) -> Result<Vec<Comparison>> {
    options.validate()?;
    same_gold(a.gold, b.gold)?;
    if a.is_empty() {
        return Ok(Vec::new());
    }
    let first = Samples::collect(a, &options.metrics, metric_options, job)?;
    let second = Samples::collect(b, &options.metrics, metric_options, job)?;
    resample(&options.metrics, &first, &second, a.len(), options, job)
}

/// The test of each metric, by what each of `n` documents contributes.
fn resample(
    names: &[String],
    first: &[Samples],
    second: &[Samples],
    n: usize,
    options: &ResampleOptions,
    job: &Job,
) -> Result<Vec<Comparison>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    let pairs: Vec<Pair<'_>> = names
        .iter()
        .zip(first.iter().zip(second))
        .filter_map(|(name, (a, b))| Pair::new(name, a, b))
        .collect();
    job.progress.stage("compare", options.resamples as u64);
    let extreme: Vec<AtomicUsize> = pairs.iter().map(|_| AtomicUsize::new(0)).collect();
    let rounds = rounds(pairs.len(), options, job, |round, values| {
        let times = draw(n, options.seed, round);
        let coins = coins(n, options.seed, round);
        let exchange = |document: usize| coins[document / 64] >> (document % 64) & 1 == 1;
        for ((value, pair), extreme) in values.iter_mut().zip(&pairs).zip(&extreme) {
            // The same difference may be summed in another order.
            let is_extreme = pair
                .exchanged(exchange)
                .is_none_or(|difference| difference.abs() >= pair.difference.abs() - 1e-12);
            extreme.fetch_add(usize::from(is_extreme), Ordering::Relaxed);
            *value = pair.resampled(&times).unwrap_or(f64::NAN);
        }
    })?;
    let row = |(column, pair): (usize, &Pair<'_>)| {
        let drawn = column_of(&rounds, column, pairs.len());
        let (ci_low, ci_high) = options.interval(pair.difference, drawn)?;
        let extreme = extreme[column].load(Ordering::Relaxed);
        Some(Comparison {
            metric: pair.name.to_owned(),
            a: pair.values.0,
            b: pair.values.1,
            difference: pair.difference,
            ci_low,
            ci_high,
            p_value: (1 + extreme) as f64 / (1 + options.resamples) as f64,
        })
    };
    Ok(pairs.iter().enumerate().filter_map(row).collect())
}
