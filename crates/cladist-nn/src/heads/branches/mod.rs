//! Branch-wise multi-task learning: a head for each branch of the taxonomy, on one encoder (HiMTL).
//!
//! With V_i the labels of branch i, all heads read the same states and the loss is Σ over i of loss_i + regularisers_i.
//! *Projection* builds head i for V_i and the edges inside, as if there were nothing else. *Masking* builds it in the structure of
//! all labels, with outputs for V_i alone: outputs of other labels would learn nothing and answer nothing, and logits set to 0 would each cost
//! ln 2. A label has the highest probability that a branch gives it.
//!
//! In a DAG a label may be in several branches. A branch may have one label.

mod config;

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::scores::keep_top;
use cladist_core::taxonomy::{Branch, Projection};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};

pub use config::{BranchesConfig, Merge, Reduction, Split};

use super::label_attention::select;
use super::{AnyHead, Group, Head, HeadInput, LabelBatch, LabelStates, Moment, Objective, select_columns};
use crate::encoder::{LayerSet, place};

/// The place of branches in the seed of a step.
const BRANCH: u64 = crate::seeds::BRANCHES;

/// The heads.
#[derive(Module, Debug)]
pub struct Branched {
    heads: Vec<AnyHead>,
    #[module(skip)]
    parts: Vec<Part>,
    #[module(skip)]
    merge: Merge,
    #[module(skip)]
    n_labels: usize,
}

/// The labels of a branch.
#[derive(Debug, Clone)]
struct Part {
    /// The labels, ascending.
    labels: Vec<LabelId>,
    /// What the head calls each of them.
    own: Vec<LabelId>,
    /// The labels in the order of the head, if it has no others; it answers for them alone in any case.
    origin: Option<Vec<LabelId>>,
    /// What the branch's loss counts.
    weight: f64,
}

fn numbers(labels: &[LabelId]) -> Vec<u32> {
    labels.iter().map(|label| label.index() as u32).collect()
}

impl Part {
    fn masked(branch: &Branch, weight: f64) -> Self {
        let labels = branch.labels.to_vec();
        Self { own: labels.clone(), origin: None, labels, weight }
    }

    fn projected(projection: Projection, weight: f64) -> Self {
        let Projection { taxonomy, origin } = projection;
        let mut pairs: Vec<(LabelId, LabelId)> = origin.iter().copied().zip(taxonomy.labels()).collect();
        pairs.sort_unstable();
        let (labels, own): (Vec<LabelId>, Vec<LabelId>) = pairs.into_iter().unzip();
        Self { own, origin: Some(origin), labels, weight }
    }

    /// What the head calls a label of the branch.
    fn find(&self, label: LabelId) -> Option<LabelId> {
        self.labels.binary_search(&label).ok().map(|place| self.own[place])
    }

    /// The label that the head calls so, if it is one of the branch.
    fn whole(&self, own: LabelId) -> Option<LabelId> {
        match &self.origin {
            Some(origin) => origin.get(own.index()).copied(),
            None => self.labels.binary_search(&own).ok().map(|_| own),
        }
    }

    fn gold(&self, gold: &[LabelSet]) -> Vec<LabelSet> {
        match self.origin {
            Some(_) => gold.iter().map(|set| set.iter().filter_map(|&l| self.find(l)).collect()).collect(),
            None => gold.to_vec(),
        }
    }

    /// The vectors of its labels that were read.
    fn states(&self, states: &LabelStates) -> LabelStates {
        let Some(origin) = &self.origin else { return states.clone() };
        let Some(given) = &states.labels else {
            return LabelStates {
                vectors: select(states.vectors.clone(), Some(&numbers(origin))),
                labels: None,
            };
        };
        let place = |(own, label): (usize, &LabelId)| {
            given.binary_search(&(label.index() as u32)).ok().map(|row| (own as u32, row as u32))
        };
        let (labels, rows): (Vec<u32>, Vec<u32>) = origin.iter().enumerate().filter_map(place).unzip();
        LabelStates { vectors: select(states.vectors.clone(), Some(&rows)), labels: Some(labels) }
    }

    /// The numbers of labels that the head names by its own.
    fn numbers_of(&self, own: &[u32]) -> Vec<u32> {
        match &self.origin {
            Some(origin) => own.iter().map(|&label| origin[label as usize].index() as u32).collect(),
            None => own.to_vec(),
        }
    }
}

impl Branched {
    fn branches(&self) -> impl Iterator<Item = (&AnyHead, &Part)> {
        self.heads.iter().zip(&self.parts)
    }

    /// Where training is, for one of the branches.
    fn moment(moment: &Moment, branch: usize) -> Moment {
        Moment { seed: moment.seed.map(|seed| place(seed, BRANCH + branch as u64)), ..*moment }
    }

    /// The first branch that has a label, and what it calls it.
    fn owner(&self, label: LabelId) -> Option<(usize, LabelId)> {
        let mut parts = self.parts.iter().enumerate();
        parts.find_map(|(n, part)| part.find(label).map(|own| (n, own)))
    }
}

/// Probabilities of one document from those of each branch, by label; `None` where no branch has the label.
fn merged(
    n_labels: usize,
    merge: Merge,
    scores: impl IntoIterator<Item = (LabelId, f32)>,
) -> Vec<(LabelId, f32)> {
    let mut found: Vec<Option<(LabelId, f32, usize)>> = vec![None; n_labels];
    for (label, score) in scores {
        let cell = &mut found[label.index()];
        *cell = Some(match (*cell, merge) {
            (None, _) => (label, score, 1),
            (Some((_, other, n)), Merge::Max) => (label, other.max(score), n + 1),
            (Some((_, other, n)), Merge::Sum | Merge::MeanOfOwners) => (label, other + score, n + 1),
        });
    }
    let value = |(label, value, n): (LabelId, f32, usize)| match merge {
        Merge::Max => (label, value),
        Merge::Sum => (label, value.min(1.0)),
        Merge::MeanOfOwners => (label, value / n as f32),
    };
    found.into_iter().flatten().map(value).collect()
}

impl Head for Branched {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let mut sum = Objective::default();
        for (n, (head, part)) in self.branches().enumerate() {
            let moment = Self::moment(moment, n);
            let gold = part.gold(gold);
            let mut states = input.labels.map(|states| part.states(states));
            if states.as_ref().is_some_and(|states| states.labels.as_ref().is_some_and(Vec::is_empty)) {
                // A head that reads labels in every step has none here to learn from.
                if head.label_batch(&gold, &moment).is_some() {
                    continue;
                }
                states = None;
            }
            let input = HeadInput::of(input.documents, states.as_ref());
            sum = sum.plus(head.objective(&input, &gold, &moment).scaled(part.weight));
        }
        sum
    }

    fn layers(&self, levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        // A branch has levels of its own.
        let layers =
            self.branches().map(|(head, part)| head.layers(levels.filter(|_| part.origin.is_none())));
        layers.reduce(LayerSet::union).unwrap_or_default()
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        let mut found: Vec<Vec<(LabelId, f32)>> = vec![Vec::new(); input.documents.n_sequences()];
        for (head, part) in self.branches() {
            let states = input.labels.map(|states| part.states(states));
            let input = HeadInput::of(input.documents, states.as_ref());
            for (found, row) in found.iter_mut().zip(head.score(&input, None)) {
                let own = row.into_iter().filter_map(|(own, score)| Some((part.whole(own)?, score)));
                found.extend(own);
            }
        }
        let row = |scores: Vec<(LabelId, f32)>| {
            let mut row = merged(self.n_labels, self.merge, scores);
            if let Some(k) = top_k {
                keep_top(&mut row, k);
            }
            row
        };
        found.into_iter().map(row).collect()
    }

    /// Of a label that several branches have, the highest, or the mean if probabilities are not merged by the highest.
    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        let mut all = Vec::new();
        let mut columns: Vec<(LabelId, u32)> = Vec::new();
        for (head, part) in self.branches() {
            let states = input.labels.map(|states| part.states(states));
            let (logits, of) = head.logits(&HeadInput::of(input.documents, states.as_ref()))?;
            let own = (0..).zip(of).filter_map(|(column, own)| Some((part.whole(own)?, column)));
            let (labels, own): (Vec<LabelId>, Vec<u32>) = own.unzip();
            columns.extend(labels.into_iter().zip(columns.len() as u32..));
            all.push(select_columns(logits, &own));
        }
        columns.sort_unstable();
        let groups: Vec<&[(LabelId, u32)]> = columns.chunk_by(|a, b| a.0 == b.0).collect();
        let all = Tensor::cat(all, 1);
        // The n-th branch of each label; of those that have fewer, one of them again.
        let most = groups.iter().map(|group| group.len()).max()?;
        let nth = |n: usize| {
            let columns: Vec<u32> = groups.iter().map(|group| group[n % group.len()].1).collect();
            let logits = select_columns(all.clone(), &columns);
            if self.merge == Merge::Max {
                return logits;
            }
            let share = |group: &&[_]| if n < group.len() { 1.0 / group.len() as f32 } else { 0.0 };
            let shares: Vec<f32> = groups.iter().map(share).collect();
            logits * Tensor::<1>::from_floats(shares.as_slice(), &all.device()).unsqueeze()
        };
        let logits = (1..most).map(nth).fold(nth(0), |sum, other| match self.merge {
            Merge::Max => sum.max_pair(other),
            Merge::Sum | Merge::MeanOfOwners => sum + other,
        });
        Some((logits, groups.iter().map(|group| group[0].0).collect()))
    }

    /// Of the first branch that has the label, if all branches read the same.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        let all: Vec<Vec<SparseRow>> =
            self.heads.iter().map(AnyHead::label_vectors).collect::<Option<_>>()?;
        let mut vectors = vec![SparseRow::new(); self.n_labels];
        for (rows, part) in all.iter().zip(&self.parts).rev() {
            for (place, (label, own)) in part.labels.iter().zip(&part.own).enumerate() {
                let row = if part.origin.is_some() { own.index() } else { place };
                vectors[label.index()] = rows[row].clone();
            }
        }
        let width = vectors.first().map_or(0, Vec::len);
        vectors.iter().all(|vector| vector.len() == width).then_some(vectors)
    }

    fn label_batch(&self, gold: &[LabelSet], moment: &Moment) -> Option<LabelBatch> {
        let mut some: Option<Vec<u32>> = None;
        for (n, (head, part)) in self.branches().enumerate() {
            match head.label_batch(&part.gold(gold), &Self::moment(moment, n)) {
                None => {}
                Some(LabelBatch::Of(own)) => some.get_or_insert_default().extend(part.numbers_of(&own)),
                all => return all,
            }
        }
        some.map(|mut labels| {
            labels.sort_unstable();
            labels.dedup();
            LabelBatch::Of(labels)
        })
    }

    fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
        let owners: Vec<(usize, LabelId)> =
            labels.iter().map(|&label| self.owner(label)).collect::<Option<_>>()?;
        let of_label = |&(n, own): &(usize, LabelId)| {
            let states = input.labels.map(|states| self.parts[n].states(states));
            self.heads[n].attention(&HeadInput::of(input.documents, states.as_ref()), &[own])
        };
        Some(Tensor::cat(owners.iter().map(of_label).collect::<Option<Vec<_>>>()?, 1))
    }

    fn group(&self, parameter: &str) -> Group {
        let mut parts = parameter.splitn(3, '.').skip(1);
        let head = parts.next().and_then(|n| self.heads.get(n.parse::<usize>().ok()?));
        head.zip(parts.next()).map_or(Group::Output, |(head, parameter)| head.group(parameter))
    }
}

#[cfg(test)]
mod tests;
