//! Counts per label, and everything that follows from them: macro averages, Hamming accuracy, the per-label table.

use super::Tally;
use super::options::LabelSpace;
use super::view::{Judged, View};
use crate::taxonomy::LabelSet;

/// Which sets are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sets {
    /// Decoded and gold, as they are.
    Plain,
    /// Both with their ancestors.
    Closed,
    /// Only gold with its ancestors.
    Open,
}

impl Sets {
    /// The predicted and the gold side of a document.
    pub(crate) fn of<'v>(self, view: &'v View<'_>) -> (&'v LabelSet, &'v LabelSet) {
        match self {
            Self::Plain => (view.predicted, view.gold),
            Self::Closed => (&view.closed_predicted, &view.closed_gold),
            Self::Open => (view.predicted, &view.closed_gold),
        }
    }
}

/// What happened to one label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LabelCount {
    /// Documents with the label in both sets.
    pub(crate) tp: u32,
    /// Documents with the label predicted.
    pub(crate) predicted: u32,
    /// Documents with the label gold.
    pub(crate) support: u32,
}

impl LabelCount {
    pub(crate) fn add(&mut self, other: Self) {
        self.tp += other.tp;
        self.predicted += other.predicted;
        self.support += other.support;
    }

    /// `tp / (tp + fp)`, 0 if never predicted.
    pub(crate) fn precision(self) -> f64 {
        f64::from(self.tp) / f64::from(self.predicted.max(1))
    }

    /// `tp / (tp + fn)`, 0 if never gold.
    pub(crate) fn recall(self) -> f64 {
        f64::from(self.tp) / f64::from(self.support.max(1))
    }

    /// `2 tp / (2 tp + fp + fn)`, 0 if the denominator is.
    pub(crate) fn f1(self) -> f64 {
        2.0 * f64::from(self.tp) / (f64::from(self.predicted) + f64::from(self.support)).max(1.0)
    }

    /// Documents on which prediction and gold differ.
    pub(crate) fn errors(self) -> u64 {
        u64::from(self.predicted) + u64::from(self.support) - 2 * u64::from(self.tp)
    }
}

/// Counts of every label.
#[derive(Debug, Clone)]
pub(crate) struct LabelTally {
    sets: Sets,
    pub(crate) labels: Vec<LabelCount>,
}

impl LabelTally {
    pub(crate) fn new(sets: Sets, n_labels: usize) -> Self {
        Self { sets, labels: vec![LabelCount::default(); n_labels] }
    }

    /// Whether a mean runs over each label.
    pub(crate) fn held(&self, space: LabelSpace, judged: &Judged) -> Vec<bool> {
        let labels = judged.trained(self.sets).into_iter().zip(&self.labels);
        labels.map(|(trained, count)| space.holds(trained, count.support)).collect()
    }

    /// The counts of the labels that a mean runs over.
    pub(crate) fn within<'t>(
        &'t self,
        space: LabelSpace,
        judged: &'t Judged,
    ) -> impl Iterator<Item = LabelCount> + 't {
        self.held(space, judged)
            .into_iter()
            .zip(&self.labels)
            .filter(|(held, _)| *held)
            .map(|(_, &count)| count)
    }
}

/// The mean of a value over counts; none if there are none.
pub(crate) fn mean(
    counts: impl Iterator<Item = LabelCount>,
    value: impl Fn(LabelCount) -> f64,
) -> Option<f64> {
    let (sum, n) = counts.fold((0.0, 0u64), |(sum, n), count| (sum + value(count), n + 1));
    (n > 0).then(|| sum / n as f64)
}

impl Tally for LabelTally {
    fn update(&mut self, view: &View) {
        let (predicted, gold) = self.sets.of(view);
        for label in predicted {
            self.labels[label.index()].predicted += 1;
        }
        for label in gold {
            let count = &mut self.labels[label.index()];
            count.support += 1;
            count.tp += u32::from(predicted.contains(*label));
        }
    }

    fn merge(&mut self, other: Self) {
        for (count, more) in self.labels.iter_mut().zip(other.labels) {
            count.add(more);
        }
    }
}
