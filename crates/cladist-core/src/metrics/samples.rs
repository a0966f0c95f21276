//! What each document contributes to a metric, so that resampling documents is cheap.
//!
//! Every metric that resampling knows is a mean over groups of a ratio of sums: `value = 1/G Σ_g (Σ_i n_ig / Σ_i
//! d_ig)`. Micro metrics and means over documents have one group; macro F1 has one per label, with `n = 2 tp` and
//! `d = predicted + gold`; macro R-Precision has one per level.

use rayon::prelude::*;

use super::options::MetricOptions;
use super::table::{MetricInfo, Source, find};
use super::view::{Judged, View, Viewer};
use super::{CHUNK, LabelSpace, Sets};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::taxonomy::{Closure, LabelId};

/// A document's part in one group.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Entry {
    group: u32,
    numerator: f64,
    denominator: f64,
}

/// One metric's contributions of all documents.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    entries: Vec<Entry>,
    /// Where each document's entries end.
    ends: Vec<usize>,
    /// How many groups there are; none for a plain ratio, which is a single group.
    groups: Option<usize>,
    /// How many groups the mean runs over.
    size: usize,
    /// Groups with a denominator, over all documents.
    active: usize,
    empty: Option<f64>,
}

/// Sums per group: numerator, denominator.
pub(super) type Sums = Vec<(f64, f64)>;

/// Whether a metric is made of contributions of documents or labels, so that it can be resampled and tested.
#[must_use]
pub fn can_be_resampled(name: &str) -> bool {
    find(name).is_some_and(|(info, _)| !matches!(info.source, Source::Whole))
}

impl Samples {
    /// Contributions of all documents to the metrics of these names.
    pub(super) fn collect(
        judged: &Judged,
        names: &[String],
        options: &MetricOptions,
        job: &Job,
    ) -> Result<Vec<Self>> {
        options.validate()?;
        judged.check()?;
        let unknown = |name: &str| {
            Error::setting("metrics", "names of metrics that can be resampled", format!("`{name}`"))
        };
        let mut wanted = Vec::new();
        for name in names {
            match find(name) {
                Some((info, number)) if !matches!(info.source, Source::Whole) => {
                    wanted.push((info, number.unwrap_or(0)));
                }
                _ => return Err(unknown(name)),
            }
        }
        let mut all: Vec<Self> = wanted.iter().map(|(info, _)| Self::empty(info, judged)).collect();
        for chunk in gather(judged, &wanted, options, job)? {
            for (samples, (entries, ends)) in all.iter_mut().zip(chunk) {
                samples.ends.extend(ends.iter().map(|end| end + samples.entries.len()));
                samples.entries.extend(entries);
            }
        }
        for (samples, (info, _)) in all.iter_mut().zip(&wanted) {
            if let Source::LabelF1(sets, space) = info.source {
                samples.restrict(judged, sets, space.unwrap_or(options.labels));
            }
            samples.active = samples.count_active();
            if matches!(info.source, Source::LevelMean) {
                samples.size = samples.active;
            }
        }
        Ok(all)
    }

    fn empty(info: &MetricInfo, judged: &Judged) -> Self {
        let groups = match info.source {
            Source::LevelMean => Some(judged.taxonomy.n_levels() + 1),
            Source::LabelF1(..) => Some(judged.taxonomy.n_labels()),
            Source::Documents(_) | Source::Numbered(_) | Source::Whole => None,
        };
        Self { entries: Vec::new(), ends: Vec::new(), groups, size: 1, active: 1, empty: info.empty }
    }

    /// Drops the entries of labels that the mean does not run over.
    fn restrict(&mut self, judged: &Judged, sets: Sets, space: LabelSpace) {
        let mut closure = Closure::new(judged.taxonomy);
        let mut support = vec![0u32; judged.taxonomy.n_labels()];
        for gold in judged.gold {
            if sets == Sets::Plain {
                gold.iter().for_each(|label| support[label.index()] += 1);
            } else {
                closure.upward(gold).iter().for_each(|label| support[label.index()] += 1);
            }
        }
        let trained = judged.trained(sets);
        let holds: Vec<bool> = trained
            .into_iter()
            .zip(&support)
            .map(|(trained, &support)| space.holds(trained, support))
            .collect();
        self.size = holds.iter().filter(|&&holds| holds).count();
        let mut kept = Vec::with_capacity(self.entries.len());
        let mut start = 0;
        for end in &mut self.ends {
            kept.extend(self.entries[start..*end].iter().filter(|entry| holds[entry.group as usize]));
            start = std::mem::replace(end, kept.len());
        }
        self.entries = kept;
    }

    fn count_active(&self) -> usize {
        let mut sums = self.sums();
        (0..self.n_documents()).for_each(|document| self.add(&mut sums, document, 1.0));
        sums.iter().filter(|sum| sum.1 > 0.0).count()
    }

    /// Adds what another run contributes for the same documents and gold.
    pub(super) fn join(&mut self, other: &Self) {
        let mut entries = Vec::with_capacity(self.entries.len() + other.entries.len());
        let mut ends = Vec::with_capacity(self.ends.len());
        for document in 0..self.n_documents() {
            entries.extend_from_slice(self.document(document));
            entries.extend_from_slice(other.document(document));
            ends.push(entries.len());
        }
        (self.entries, self.ends) = (entries, ends);
        self.active = self.count_active();
    }

    /// The number of documents.
    pub(super) fn n_documents(&self) -> usize {
        self.ends.len()
    }

    /// Sums over no document.
    pub(super) fn sums(&self) -> Sums {
        vec![(0.0, 0.0); self.groups.unwrap_or(1)]
    }

    fn document(&self, document: usize) -> &[Entry] {
        let start = if document == 0 { 0 } else { self.ends[document - 1] };
        &self.entries[start..self.ends[document]]
    }

    /// Adds a document so many times.
    pub(super) fn add(&self, sums: &mut Sums, document: usize, times: f64) {
        for entry in self.document(document) {
            let sum = &mut sums[entry.group as usize];
            sum.0 += times * entry.numerator;
            sum.1 += times * entry.denominator;
        }
    }

    /// Whether a document contributes the same to both.
    pub(super) fn same(&self, other: &Self, document: usize) -> bool {
        self.document(document) == other.document(document)
    }

    /// The metric's value for sums over documents; a group without a denominator counts 0.
    pub(super) fn value(&self, sums: &Sums) -> Option<f64> {
        if self.groups.is_none() {
            return Self::ratio(sums[0]).or(self.empty);
        }
        let total: f64 = sums.iter().filter_map(|&sum| Self::ratio(sum)).sum();
        (self.size > 0).then(|| total / self.size as f64)
    }

    /// The metric's value for sums over resampled documents. A rare label or a level may have vanished from them;
    /// it then takes no part, instead of pulling the mean towards 0: the mean over the groups at hand is scaled by
    /// the share of groups that all documents together have something for.
    pub(super) fn resampled(&self, sums: &Sums) -> Option<f64> {
        if self.groups.is_none() {
            return self.value(sums);
        }
        let (total, n) =
            sums.iter().filter_map(|&sum| Self::ratio(sum)).fold((0.0, 0u64), |(t, n), v| (t + v, n + 1));
        (n > 0).then(|| total / n as f64 * self.active as f64 / self.size as f64)
    }

    fn ratio((numerator, denominator): (f64, f64)) -> Option<f64> {
        (denominator > 0.0).then(|| numerator / denominator)
    }
}

/// One entry per label that is predicted or gold, ascending.
fn push_labels(view: &View, sets: Sets, out: &mut Vec<Entry>) {
    let (predicted, gold) = sets.of(view);
    let entry = |label: &LabelId, hit: bool| Entry {
        group: label.index() as u32,
        numerator: if hit { 2.0 } else { 0.0 },
        denominator: if hit { 2.0 } else { 1.0 },
    };
    let start = out.len();
    out.extend(gold.iter().map(|label| entry(label, predicted.contains(*label))));
    out.extend(predicted.iter().filter(|label| !gold.contains(**label)).map(|label| entry(label, false)));
    out[start..].sort_unstable_by_key(|entry| entry.group);
}

fn push(view: &View, source: Source, number: usize, out: &mut Vec<Entry>) {
    let single = |(numerator, denominator)| Entry { group: 0, numerator, denominator };
    match source {
        Source::Documents(share) => out.push(single(share(view))),
        Source::Numbered(share) => out.push(single(share(view, number))),
        Source::LevelMean => out.extend(view.levels.iter().map(|at| Entry {
            group: at.level as u32,
            numerator: f64::from(at.hits) / f64::from(at.gold),
            denominator: 1.0,
        })),
        Source::LabelF1(sets, _) => push_labels(view, sets, out),
        Source::Whole => {}
    }
}

/// Entries, and where each document's end.
type Gathered = (Vec<Entry>, Vec<usize>);

/// Each metric's entries of each chunk of documents.
fn gather(
    judged: &Judged,
    wanted: &[(&MetricInfo, usize)],
    options: &MetricOptions,
    job: &Job,
) -> Result<Vec<Vec<Gathered>>> {
    let weights = options.propensity.weights(judged.counts);
    let starts: Vec<usize> = (0..judged.len()).step_by(CHUNK).collect();
    starts
        .into_par_iter()
        .map_init(
            || Viewer::new(judged, &weights, options),
            |viewer, start| {
                job.cancel.check()?;
                let mut columns = vec![(Vec::new(), Vec::new()); wanted.len()];
                for document in start..(start + CHUNK).min(judged.len()) {
                    let view = viewer.view(document);
                    for ((info, number), (entries, ends)) in wanted.iter().zip(&mut columns) {
                        push(&view, info.source, *number, entries);
                        ends.push(entries.len());
                    }
                }
                Ok(columns)
            },
        )
        .collect()
}
