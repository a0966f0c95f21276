//! How good scores and decoded sets are, in the terms of the literature.
//!
//! [`METRICS`] lists every metric with its definition; [`evaluate`] computes them all in one pass over the
//! documents; [`bootstrap`](bootstrap::bootstrap) and [`compare`](compare::compare) say how far differences can be
//! trusted. Rankings are by score, ties by label; a label that was not scored ranks after all others and is never a
//! hit. Results are the same bits on any number of threads.

#[cfg(test)]
pub(crate) mod arbitrary;
pub mod bootstrap;
pub mod compare;
mod counts;
mod f1;
mod groups;
mod hierarchical;
#[cfg(test)]
mod naive;
mod options;
mod ranking;
mod reliability;
mod report;
mod samples;
mod shots;
mod sum;
mod table;
#[cfg(test)]
mod tests;
mod view;
mod violations;

use rayon::prelude::*;

use crate::error::Result;
use crate::job::Job;
use crate::scores::Scores;
use crate::taxonomy::LabelCounts;
use crate::taxonomy::{LabelSet, Taxonomy};

pub use groups::{BranchRow, GroupScores, LevelRow};
pub use options::{LabelSpace, MetricOptions, Propensity, PropensityNumbers, PropensityPreset};
pub use reliability::{EceOver, ReliabilityBin, expected_calibration_error};
pub use report::{LabelRow, Report};
pub use samples::can_be_resampled;
pub use shots::{ShotMeans, ShotRow};
pub use table::{METRICS, MetricInfo, find};
pub use view::Judged;
pub use violations::Violations;

use counts::{LabelTally, Sets};
use reliability::Reliability;
use shots::ShotTally;
use sum::ExactSum;
use table::Source;
use view::{View, Viewer};

/// Documents between two looks at the cancel flag.
const CHUNK: usize = 1024;

/// Something that documents add up to. Merging is exact and commutative, so that neither threads nor their order
/// can be seen in a result.
pub(crate) trait Tally: Send {
    /// Counts a document.
    fn update(&mut self, view: &View);
    /// Adds what was counted elsewhere.
    fn merge(&mut self, other: Self);
}

/// Every metric that is a ratio of sums over documents, in table order.
struct RatioTally {
    terms: Vec<(Source, usize)>,
    sums: Vec<(ExactSum, ExactSum)>,
}

impl RatioTally {
    fn new(terms: &[(Source, usize)]) -> Self {
        Self { terms: terms.to_vec(), sums: vec![<(ExactSum, ExactSum)>::default(); terms.len()] }
    }
}

impl Tally for RatioTally {
    fn update(&mut self, view: &View) {
        for ((source, number), (numerator, denominator)) in self.terms.iter().zip(&mut self.sums) {
            let (above, below) = match source {
                Source::Documents(share) => share(view),
                Source::Numbered(share) => share(view, *number),
                Source::LevelMean | Source::LabelF1(..) | Source::Whole => continue,
            };
            numerator.add(above);
            denominator.add(below);
        }
    }

    fn merge(&mut self, other: Self) {
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            sum.0.merge(more.0);
            sum.1.merge(more.1);
        }
    }
}

/// R-Precision of every level: a sum over documents with gold there, and their number.
struct LevelTally(Vec<(ExactSum, u64)>);

impl Tally for LevelTally {
    fn update(&mut self, view: &View) {
        for at in view.levels {
            let (sum, documents) = &mut self.0[at.level - 1];
            sum.add(f64::from(at.hits) / f64::from(at.gold));
            *documents += 1;
        }
    }

    fn merge(&mut self, other: Self) {
        for ((sum, documents), (more_sum, more)) in self.0.iter_mut().zip(other.0) {
            sum.merge(more_sum);
            *documents += more;
        }
    }
}

/// Everything that one pass over the documents adds up.
struct Totals {
    with_gold: u64,
    violations: Violations,
    ratios: RatioTally,
    levels: LevelTally,
    plain: LabelTally,
    closed: LabelTally,
    open: LabelTally,
    shots: ShotTally,
    pairs: Reliability,
    top_label: Reliability,
}

impl Totals {
    fn new(taxonomy: &Taxonomy, options: &MetricOptions, terms: &[(Source, usize)]) -> Self {
        let n = taxonomy.n_labels();
        Self {
            with_gold: 0,
            violations: Violations::default(),
            ratios: RatioTally::new(terms),
            levels: LevelTally(vec![Default::default(); taxonomy.n_levels()]),
            plain: LabelTally::new(Sets::Plain, n),
            closed: LabelTally::new(Sets::Closed, n),
            open: LabelTally::new(Sets::Open, n),
            shots: ShotTally::new(&options.cutoffs(), n),
            pairs: Reliability::new(EceOver::Pairs, options.ece_bins),
            top_label: Reliability::new(EceOver::TopLabel, options.ece_bins),
        }
    }

    /// The counts that a mean over labels reads.
    fn labels(&self, sets: Sets) -> &LabelTally {
        match sets {
            Sets::Plain => &self.plain,
            Sets::Closed => &self.closed,
            Sets::Open => &self.open,
        }
    }
}

impl Tally for Totals {
    fn update(&mut self, view: &View) {
        let Self { with_gold, violations, ratios, levels, plain, closed, open, shots, pairs, top_label } =
            self;
        *with_gold += u64::from(!view.gold.is_empty());
        violations.add(view.violations);
        ratios.update(view);
        levels.update(view);
        plain.update(view);
        closed.update(view);
        open.update(view);
        shots.update(view);
        pairs.update(view);
        top_label.update(view);
    }

    fn merge(&mut self, other: Self) {
        self.with_gold += other.with_gold;
        self.violations.add(other.violations);
        self.ratios.merge(other.ratios);
        self.levels.merge(other.levels);
        self.plain.merge(other.plain);
        self.closed.merge(other.closed);
        self.open.merge(other.open);
        self.shots.merge(other.shots);
        self.pairs.merge(other.pairs);
        self.top_label.merge(other.top_label);
    }
}

/// Lets a tally count every document, on all threads.
fn tally<T: Tally>(
    judged: &Judged,
    weights: &[f64],
    options: &MetricOptions,
    job: &Job,
    new: impl Fn() -> T + Sync,
) -> Result<Option<T>> {
    let n = judged.len();
    // One part per thread: a tally may be as large as the taxonomy.
    let part = n.div_ceil(rayon::current_num_threads().max(1)).max(CHUNK);
    let progress = job.progress;
    let starts: Vec<usize> = (0..n).step_by(part).collect();
    let parts: Vec<T> = starts
        .into_par_iter()
        .map(|start| {
            let mut viewer = Viewer::new(judged, weights, options);
            let mut tally = new();
            let end = (start + part).min(n);
            for chunk in (start..end).step_by(CHUNK) {
                job.cancel.check()?;
                let stop = (chunk + CHUNK).min(end);
                for document in chunk..stop {
                    tally.update(&viewer.view(document));
                }
                progress.advance((stop - chunk) as u64);
            }
            Ok(tally)
        })
        .collect::<Result<_>>()?;
    Ok(parts.into_iter().reduce(|mut total, part| {
        total.merge(part);
        total
    }))
}

/// Computes every metric.
///
/// `scores` are what the rankings are made of and `predicted` the decoded sets, both one per document of `gold`;
/// `counts` are the label counts of the training documents (default if unknown: propensity-scored metrics and shot
/// classes are then left out).
pub fn evaluate(
    scores: &Scores,
    predicted: &[LabelSet],
    gold: &[LabelSet],
    taxonomy: &Taxonomy,
    counts: &LabelCounts,
    options: &MetricOptions,
    job: &Job,
) -> Result<Report> {
    options.validate()?;
    let judged = Judged { scores, predicted, gold, taxonomy, counts };
    judged.check()?;
    job.progress.stage("evaluate", judged.len() as u64);
    let terms = report::terms(options);
    let sources: Vec<(Source, usize)> = terms.iter().map(|term| (term.info.source, term.number)).collect();
    let weights = options.propensity.weights(counts);
    let new = || Totals::new(taxonomy, options, &sources);
    let totals = tally(&judged, &weights, options, job, new)?.unwrap_or_else(new);
    Ok(report::assemble(&judged, options, &terms, &totals))
}
