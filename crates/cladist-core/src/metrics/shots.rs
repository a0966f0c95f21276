//! Label-macro precision, recall and F among the k best, by how often labels occur in training.
//!
//! For a label: `p` documents have it among their k best, in `t` of those it is gold, and it is gold in `y`. Then
//! `P = t / p`, `R = t / y`, `F = 2 P R / (P + R)`, each 0 where its denominator is. A class's value is the mean over
//! its labels, so that its F is not the harmonic mean of its P and R.

use serde::{Deserialize, Serialize};

use super::Tally;
use super::options::MetricOptions;
use super::view::{Judged, View};

/// The shot classes, rarest first. `zero` holds labels without a training document that are gold in the evaluated
/// ones.
pub(crate) const CLASSES: [&str; 4] = ["zero", "few", "medium", "many"];

/// One class at one cut-off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShotRow {
    /// `zero`, `few`, `medium` or `many`.
    pub class: String,
    /// The cut-off.
    pub k: usize,
    /// Labels of the class.
    pub labels: usize,
    /// Those with gold in the evaluated documents.
    pub present: usize,
    /// Labels that are among the k best of no document.
    pub unpredicted: usize,
    /// Mean precision, recall and F over the labels.
    pub all: Option<ShotMeans>,
    /// The same over the labels with gold in the evaluated documents.
    pub only_present: Option<ShotMeans>,
}

/// Mean precision, recall and F of labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ShotMeans {
    /// Precision.
    pub p: f64,
    /// Recall.
    pub r: f64,
    /// F.
    pub f: f64,
}

impl ShotMeans {
    fn add(&mut self, p: f64, r: f64) {
        self.p += p;
        self.r += r;
        self.f += if p + r > 0.0 { 2.0 * p * r / (p + r) } else { 0.0 };
    }

    fn over(self, n: usize) -> Option<Self> {
        let n = (n > 0).then_some(n as f64)?;
        Some(Self { p: self.p / n, r: self.r / n, f: self.f / n })
    }
}

/// How often each label is among the k best, and how often rightly.
#[derive(Debug, Clone)]
pub(crate) struct ShotTally {
    /// Ascending.
    cutoffs: Vec<usize>,
    /// By label, then by cut-off: among the k best, and gold there.
    counts: Vec<(u32, u32)>,
}

impl ShotTally {
    pub(crate) fn new(cutoffs: &[usize], n_labels: usize) -> Self {
        Self { cutoffs: cutoffs.to_vec(), counts: vec![(0, 0); n_labels * cutoffs.len()] }
    }

    /// One row per class and cut-off; none if nothing is known of training. `support` is by label.
    pub(crate) fn rows(
        &self,
        judged: &Judged,
        options: &MetricOptions,
        support: impl Fn(usize) -> u32,
    ) -> Vec<ShotRow> {
        if judged.counts.n_documents == 0 {
            return Vec::new();
        }
        let class_of = |train: u32| match train {
            0 => 0,
            n if n <= options.few_at_most => 1,
            n if n <= options.medium_at_most => 2,
            _ => 3,
        };
        let mut rows = Vec::new();
        for (n, &k) in self.cutoffs.iter().enumerate() {
            let mut table = [(0, 0, 0, ShotMeans::default(), ShotMeans::default()); 4];
            for label in judged.taxonomy.labels() {
                let gold = support(label.index());
                let train = judged.train(label);
                if train == 0 && gold == 0 {
                    continue;
                }
                let (p, t) = self.counts[label.index() * self.cutoffs.len() + n];
                let (labels, present, unpredicted, all, only_present) = &mut table[class_of(train)];
                let precision = f64::from(t) / f64::from(p.max(1));
                let recall = f64::from(t) / f64::from(gold.max(1));
                *labels += 1;
                *unpredicted += usize::from(p == 0);
                all.add(precision, recall);
                if gold > 0 {
                    *present += 1;
                    only_present.add(precision, recall);
                }
            }
            for (class, (labels, present, unpredicted, all, only_present)) in CLASSES.iter().zip(table) {
                rows.push(ShotRow {
                    class: (*class).to_owned(),
                    k,
                    labels,
                    present,
                    unpredicted,
                    all: all.over(labels),
                    only_present: only_present.over(present),
                });
            }
        }
        rows
    }
}

impl Tally for ShotTally {
    fn update(&mut self, view: &View) {
        let n = self.cutoffs.len();
        let deepest = self.cutoffs.last().copied().unwrap_or(0);
        for (rank, ((label, _), &relevant)) in view.ranked.iter().zip(view.relevant).enumerate().take(deepest)
        {
            let counts = &mut self.counts[label.index() * n..(label.index() + 1) * n];
            for ((p, t), _) in counts.iter_mut().zip(&self.cutoffs).filter(|(_, k)| rank < **k) {
                *p += 1;
                *t += u32::from(relevant);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        for ((p, t), (more_p, more_t)) in self.counts.iter_mut().zip(other.counts) {
            *p += more_p;
            *t += more_t;
        }
    }
}
