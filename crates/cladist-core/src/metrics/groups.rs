//! Tables of labels by level and by branch.

use serde::{Deserialize, Serialize};

use super::Totals;
use super::counts::LabelTally;
use super::options::LabelSpace;
use super::view::Judged;
use crate::taxonomy::{Closure, LabelId};

/// How some labels went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupScores {
    /// Labels that macro averages run over.
    pub labels: usize,
    /// Gold labels of all documents.
    pub gold: u64,
    /// Decoded labels of all documents.
    pub predicted: u64,
    /// Micro precision, 0 if nothing is predicted.
    pub precision: f64,
    /// Micro recall, 0 without gold.
    pub recall: f64,
    /// Micro F1.
    pub f1: f64,
    /// Macro F1; none without labels.
    pub macro_f1: Option<f64>,
}

/// A level of the taxonomy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelRow {
    /// From 1.
    pub level: usize,
    /// How it went.
    #[serde(flatten)]
    pub scores: GroupScores,
    /// R-Precision; none without gold.
    pub r_precision: Option<f64>,
}

/// A label under the root and everything below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchRow {
    /// The label's id.
    pub id: String,
    /// For people.
    pub name: String,
    /// How it went.
    #[serde(flatten)]
    pub scores: GroupScores,
    /// Micro F1 of gold and decoded sets with their ancestors.
    pub hierarchical_f1: f64,
    /// Macro F1 of these; none without labels.
    pub hierarchical_macro_f1: Option<f64>,
}

/// Counts of some labels, added up.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    labels: usize,
    f1_sum: f64,
    tp: u64,
    predicted: u64,
    gold: u64,
}

impl Group {
    /// `within`: by label, whether macro averages run over it.
    fn of(labels: &[LabelId], tally: &LabelTally, within: &[bool]) -> Self {
        let mut group = Self::default();
        for label in labels {
            let count = tally.labels[label.index()];
            group.tp += u64::from(count.tp);
            group.predicted += u64::from(count.predicted);
            group.gold += u64::from(count.support);
            if within[label.index()] {
                group.labels += 1;
                group.f1_sum += count.f1();
            }
        }
        group
    }

    fn scores(self) -> GroupScores {
        GroupScores {
            labels: self.labels,
            gold: self.gold,
            predicted: self.predicted,
            precision: self.tp as f64 / self.predicted.max(1) as f64,
            recall: self.tp as f64 / self.gold.max(1) as f64,
            f1: self.f1(),
            macro_f1: self.macro_f1(),
        }
    }

    fn f1(self) -> f64 {
        2.0 * self.tp as f64 / (self.predicted + self.gold).max(1) as f64
    }

    fn macro_f1(self) -> Option<f64> {
        (self.labels > 0).then(|| self.f1_sum / self.labels as f64)
    }
}

pub(super) fn per_level(
    judged: &Judged,
    space: LabelSpace,
    totals: &Totals,
    r_precision: &[Option<f64>],
) -> Vec<LevelRow> {
    let within = totals.plain.held(space, judged);
    let row = |(n, r_precision): (usize, &Option<f64>)| {
        let group = Group::of(judged.taxonomy.labels_at(n + 1), &totals.plain, &within);
        LevelRow { level: n + 1, scores: group.scores(), r_precision: *r_precision }
    };
    r_precision.iter().enumerate().map(row).collect()
}

pub(super) fn per_branch(judged: &Judged, space: LabelSpace, totals: &Totals) -> Vec<BranchRow> {
    let taxonomy = judged.taxonomy;
    if taxonomy.n_levels() < 2 {
        return Vec::new();
    }
    let (within, within_closed) = (totals.plain.held(space, judged), totals.closed.held(space, judged));
    let mut closure = Closure::new(taxonomy);
    let row = |&top: &LabelId| {
        let labels = closure.downward(&[top]);
        let group = Group::of(&labels, &totals.plain, &within);
        let closed = Group::of(&labels, &totals.closed, &within_closed);
        BranchRow {
            id: taxonomy.id(top).to_owned(),
            name: taxonomy.name(top).to_owned(),
            scores: group.scores(),
            hierarchical_f1: closed.f1(),
            hierarchical_macro_f1: closed.macro_f1(),
        }
    };
    taxonomy.roots().iter().map(row).collect()
}
