//! Experts over a shortlist of labels: the parameters of a label are a row of a table.
//!
//! A row holds, one after the other, a label's weights for each document expert and its vector for each attention expert;
//! its last value is a bias that all experts share, those with attention too. Groups are matched by `[CLS]` of the last layer, and the answer is
//! the mean of the experts' probabilities times that of the label's group.

use burn::tensor::{Device, Tensor, activation};
use cladist_core::LabelId;
use cladist_core::scores::keep_top;
use rand_chacha::ChaCha8Rng;

use super::{Expert, Experts, Parts, sum};
use crate::blocks::dropout;
use crate::encoder::{Packing, linear, place};
use crate::error::{Error, Result};
use crate::heads::mixture::log_odds;
use crate::heads::{DROPOUT, HeadContext, HeadInput, Listed, Moment, Objective, Outputs, rows_of};
use crate::losses::{Loss, bce_with_logits};
use crate::parameters::to_vec;

/// The groups of labels whose rows have so many columns, if there is a shortlist.
pub(super) fn groups(
    columns: usize,
    context: &HeadContext<'_>,
    random: &mut ChaCha8Rng,
) -> Result<Option<Outputs>> {
    let Some(shortlist) = context.shortlist else { return Ok(None) };
    if shortlist.config.match_only {
        return Err(Error::Head {
            problem: "experts score every label of the shortlist, not only groups".to_owned(),
            remedy: "leave `shortlist.match_only` at false, or use the head `flat`",
        });
    }
    Outputs::new(context.hidden_size, columns, Loss::Bce, context, random).map(Some)
}

/// Weights `[labels, columns]` and biases `[labels]` of some labels.
struct Own {
    weights: Tensor<2>,
    biases: Tensor<1>,
}

impl Own {
    fn take(rows: &[u32], input: &HeadInput<'_>, device: &Device) -> Self {
        let (weights, biases) = rows_of(input).take(rows, device);
        Self { weights, biases }
    }
}

/// The rows of these labels; zeros for labels that no training document has.
pub(super) fn rows_of_labels(
    listed: &Listed,
    input: &HeadInput<'_>,
    labels: &[LabelId],
    device: &Device,
) -> Tensor<2> {
    let numbers: Vec<Vec<u32>> = labels.iter().map(|label| vec![label.index() as u32]).collect();
    let rows = listed.rows_of(&numbers);
    let known: Vec<u32> = rows.iter().flatten().copied().collect();
    let width = rows_of(input).table().width() - 1;
    if known.is_empty() {
        return Tensor::zeros([labels.len(), width], device);
    }
    let taken = Own::take(&known, input, device).weights;
    let mut next = 0;
    let row = |found: &Vec<u32>| {
        if found.is_empty() {
            return Tensor::zeros([1, width], &taken.device());
        }
        next += 1;
        taken.clone().narrow(0, next - 1, 1)
    };
    Tensor::cat(rows.iter().map(row).collect(), 0)
}

impl Expert {
    /// The expert's part of rows: `[labels, width]`.
    pub(super) fn part(&self, rows: &Tensor<2>, width: usize) -> Tensor<2> {
        rows.clone().narrow(1, self.column, width)
    }

    /// Logits `[documents, labels]` of labels with these rows.
    fn answer(&self, read: Tensor<2>, packing: &Packing, own: &Own) -> Tensor<2> {
        match &self.parts {
            Parts::Document(hidden) => {
                let mut x = hidden.forward(read);
                if !hidden.is_empty() {
                    x = activation::relu(x);
                }
                let width = x.dims()[1];
                linear(x, self.part(&own.weights, width), own.biases.clone())
            }
            Parts::Attention(look) => {
                let width = read.dims()[1];
                look.logits(self.part(&own.weights, width), read, packing) + own.biases.clone().unsqueeze()
            }
        }
    }
}

impl Experts {
    pub(super) fn listed(&self) -> Option<&Listed> {
        self.groups.as_ref().and_then(Outputs::listed)
    }

    /// What groups are matched by.
    pub(super) fn coarse(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let seed = seed.map(|seed| place(seed, DROPOUT + self.experts.len() as u64));
        dropout(self.vector.of(input.documents, self.last), self.config.dropout, seed)
    }

    fn answers(&self, read: Vec<Tensor<2>>, packing: &Packing, own: &Own) -> Vec<Tensor<2>> {
        let experts = self.experts.iter().zip(read);
        experts.map(|(expert, read)| expert.answer(read, packing, own)).collect()
    }

    pub(super) fn objective_listed(
        &self,
        listed: &Listed,
        input: &HeadInput<'_>,
        gold: &[Vec<u32>],
        moment: &Moment,
    ) -> Objective {
        let gold = listed.rows_of(gold);
        let groups = listed.matched(self.coarse(input, moment.seed));
        let (picked, places) = listed.step(groups.as_ref(), &gold, moment.seed);
        let read = self.read(input, moment.seed);
        let own = Own::take(&picked, input, &read[0].device());
        let logits = self.answers(read, input.documents.packing(), &own);
        let objective = self.learn(&logits, &places, moment, |place| listed.label(picked[place as usize]));
        match groups {
            Some(groups) => {
                let matched = bce_with_logits(groups, &listed.groups_of(&gold), self.label_smoothing);
                objective.with("groups", 1.0, matched)
            }
            None => objective,
        }
    }

    /// Logits of the labels of the best groups of any document.
    pub(super) fn logits_listed(
        &self,
        listed: &Listed,
        input: &HeadInput<'_>,
    ) -> Option<(Tensor<2>, Vec<LabelId>)> {
        let groups = listed.matched(self.coarse(input, None));
        let picked = listed.pick(groups.as_ref(), &[], None);
        let read = self.read(input, None);
        let own = Own::take(&picked, input, &read.first()?.device());
        let logits = self.answers(read, input.documents.packing(), &own);
        let parts: Vec<(Tensor<2>, f64)> = logits.into_iter().map(|logits| (logits, 1.0)).collect();
        let labels = picked.iter().map(|&row| self.labels[listed.label(row) as usize]).collect();
        Some((log_odds(&parts)?, labels))
    }

    /// One document after the other, so that attention is computed for the labels of its shortlist alone.
    pub(super) fn score_listed(
        &self,
        listed: &Listed,
        input: &HeadInput<'_>,
        top_k: Option<usize>,
    ) -> Vec<Vec<(LabelId, f32)>> {
        let packing = input.documents.packing();
        let groups = listed.matched(self.coarse(input, None));
        let n_groups = groups.as_ref().map_or(0, |groups| groups.dims()[1]);
        let groups = groups.map(to_vec).unwrap_or_default();
        let all = self.read(input, None);
        let one = |document: usize| {
            let best = listed.best_groups(&groups[document * n_groups..][..n_groups]);
            let shares: Vec<(u32, f32)> = best
                .iter()
                .flat_map(|&(group, share)| listed.group(group).map(move |row| (row, share)))
                .collect();
            let rows: Vec<u32> = shares.iter().map(|&(row, _)| row).collect();
            let (start, length) = (packing.offsets[document], packing.length(document));
            let read = all.iter().zip(&self.experts).map(|(read, expert)| match expert.parts {
                Parts::Document(_) => read.clone().narrow(0, document, 1),
                Parts::Attention(_) => read.clone().narrow(0, start, length),
            });
            let own = Own::take(&rows, input, &all[0].device());
            let logits = self.answers(read.collect(), &Packing::new(&[0, length]), &own);
            let n = logits.len() as f32;
            let Some(sum) = sum(logits.into_iter().map(activation::sigmoid)) else { return Vec::new() };
            let label = |row: u32| self.labels[listed.label(row) as usize];
            let scores = shares.iter().zip(to_vec(sum));
            let mut row: Vec<(LabelId, f32)> =
                scores.map(|(&(row, share), sum)| (label(row), sum / n * share)).collect();
            if let Some(k) = top_k {
                keep_top(&mut row, k);
            }
            row
        };
        (0..packing.n_sequences()).map(one).collect()
    }
}
