//! One output per label: of all labels, or of a shortlist.

use std::ops::Range;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::label_tree::Partition;
use cladist_core::linear::hinge_probability;
use cladist_core::scores::keep_top;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use cladist_kernels::rows;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{HeadContext, HeadInput, Labelwise, Measured, Moment, Objective, columns, select_columns};
use crate::blocks::Linear;
use crate::encoder::linear;
use crate::error::{Error, Result};
use crate::losses::{Loss, bce_with_logits, squared_hinge};
use crate::parameters::to_vec;
use crate::seeds;
use crate::shortlist::{Rows, Shortlist, ShortlistConfig};

/// The last layer of a head.
#[derive(Module, Debug)]
pub enum Outputs {
    /// Of all labels, as parameters.
    All(Linear),
    /// Of a shortlist, whose rows are in a table.
    Listed(Listed),
}

/// Outputs of a shortlist.
#[derive(Module, Debug)]
pub struct Listed {
    /// From the document vector to groups; none if there is only one.
    matcher: Option<Linear>,
    #[module(skip)]
    shortlist: Arc<Shortlist>,
    #[module(skip)]
    width: usize,
}

/// The vectors of a batch of documents.
#[derive(Debug, Clone)]
pub struct Vectors {
    /// What groups are matched by: `[documents, coarse]`.
    pub coarse: Tensor<2>,
    /// What labels are scored by: `[documents, fine]`.
    pub fine: Tensor<2>,
}

impl Vectors {
    /// One vector for both.
    #[must_use]
    pub fn same(vector: Tensor<2>) -> Self {
        Self { coarse: vector.clone(), fine: vector }
    }
}

impl Outputs {
    /// New outputs on vectors of these widths.
    pub(crate) fn new(
        coarse: usize,
        fine: usize,
        loss: Loss,
        context: &HeadContext<'_>,
        random: &mut ChaCha8Rng,
    ) -> Result<Self> {
        let Some(shortlist) = context.shortlist else {
            return Ok(Self::All(context.outputs(fine, random)));
        };
        if matches!(loss, Loss::Coherent | Loss::MacroFMeasure) {
            let name = if loss == Loss::Coherent { "coherent" } else { "macro-f-measure" };
            return Err(Error::Head {
                problem: format!("the loss `{name}` needs every label, and a shortlist has few"),
                remedy: "use another loss, or leave `shortlist.group_size` at 0",
            });
        }
        let n_groups = shortlist.partition.n_groups();
        if shortlist.config.match_only && loss != Loss::Bce {
            return Err(Error::Head {
                problem: "with `shortlist.match_only` labels learn nothing, so they have no loss to choose"
                    .to_owned(),
                remedy: "leave the loss of the head at `bce`",
            });
        }
        if shortlist.config.match_only && n_groups < 2 {
            return Err(Error::Head {
                problem: "all labels are in one group, so `shortlist.match_only` has nothing to match"
                    .to_owned(),
                remedy: "lower `shortlist.group_size`",
            });
        }
        let matcher = (n_groups > 1).then(|| {
            let biases = context.group_biases(shortlist);
            Linear::new(coarse, n_groups, random, context.device).with_bias(biases)
        });
        Ok(Self::Listed(Listed { matcher, shortlist: Arc::clone(shortlist), width: fine + 1 }))
    }

    /// The outputs of a shortlist, if these are.
    #[must_use]
    pub fn listed(&self) -> Option<&Listed> {
        match self {
            Self::All(_) => None,
            Self::Listed(listed) => Some(listed),
        }
    }

    /// Logits of groups `[documents, groups]`; none if there is no matcher.
    #[must_use]
    pub fn groups(&self, vectors: Vectors) -> Option<Tensor<2>> {
        self.listed().and_then(|listed| listed.matched(vectors.coarse))
    }

    /// The loss of a batch.
    #[must_use]
    pub(crate) fn objective(
        &self,
        vectors: Vectors,
        input: &HeadInput<'_>,
        gold: &[LabelSet],
        moment: &Moment,
        labelwise: &Labelwise,
    ) -> Objective {
        match self {
            Self::All(all) => labelwise.objective(all.forward(vectors.fine), gold, moment),
            Self::Listed(listed) => {
                let gold = listed.rows_of(&columns(gold));
                let groups = listed.matched(vectors.coarse);
                if listed.match_only() {
                    let hinge = |groups| squared_hinge(groups, &listed.groups_of(&gold));
                    return groups
                        .map_or_else(Objective::default, |groups| Objective::of("groups", hinge(groups)));
                }
                let objective = match &groups {
                    Some(groups) if moment.seed.is_none() => {
                        listed.measured(vectors.fine, groups, &gold, rows_of(input), moment, labelwise)
                    }
                    _ => {
                        let (picked, places) = listed.step(groups.as_ref(), &gold, moment.seed);
                        labelwise.loss(listed.logits(vectors.fine, &picked, rows_of(input)), &places, moment)
                    }
                };
                match groups {
                    Some(groups) => {
                        let matched =
                            bce_with_logits(groups, &listed.groups_of(&gold), labelwise.label_smoothing);
                        objective.with("groups", 1.0, matched)
                    }
                    None => objective,
                }
            }
        }
    }

    /// Logits `[documents, labels]` and which labels these are: all, or those of the best groups of any document. Where
    /// groups alone are learnt, a label has the logit of its group.
    #[must_use]
    pub fn logits(
        &self,
        vectors: Vectors,
        input: &HeadInput<'_>,
        labels: &[LabelId],
    ) -> (Tensor<2>, Vec<LabelId>) {
        match self {
            Self::All(all) => (all.forward(vectors.fine), labels.to_vec()),
            Self::Listed(listed) => {
                let groups = listed.matched(vectors.coarse);
                let picked = listed.pick(groups.as_ref(), &[], None);
                let partition = &listed.shortlist.partition;
                let of = picked.iter().map(|&row| labels[partition.label(row as usize) as usize]).collect();
                let logits = match groups {
                    Some(groups) if listed.match_only() => {
                        let groups_of: Vec<u32> = picked.iter().map(|&row| partition.group_of(row)).collect();
                        select_columns(groups, &groups_of)
                    }
                    _ => listed.logits(vectors.fine, &picked, rows_of(input)),
                };
                (logits, of)
            }
        }
    }

    /// A row of probabilities per document, in any order; the best `top_k` if given.
    #[must_use]
    pub(crate) fn score(
        &self,
        vectors: Vectors,
        input: &HeadInput<'_>,
        labelwise: &Labelwise,
        top_k: Option<usize>,
    ) -> Vec<Vec<(LabelId, f32)>> {
        match self {
            Self::All(all) => labelwise.score(all.forward(vectors.fine), top_k),
            Self::Listed(listed) => {
                let rows = (!listed.match_only()).then(|| rows_of(input));
                listed.score(vectors, rows, &labelwise.labels, top_k)
            }
        }
    }

    /// The weights of all labels, if they are parameters.
    pub(crate) fn weight(&self) -> Option<Tensor<2>> {
        match self {
            Self::All(all) => Some(all.weight()),
            Self::Listed(_) => None,
        }
    }

    /// The weights of each label, if they are parameters.
    #[must_use]
    pub fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        match self {
            Self::All(all) => Some(all.outputs()),
            Self::Listed(_) => None,
        }
    }
}

/// The rows of an input.
pub(crate) fn rows_of<'a>(input: &HeadInput<'a>) -> &'a Rows<'a> {
    match input.rows {
        Some(rows) => rows,
        // The model has a table for every head that is built with a shortlist.
        None => unreachable!("rows of labels are missing"),
    }
}

impl Listed {
    /// Values of a label's row in the table; `None` if groups alone are learnt, and there is no table.
    #[must_use]
    pub fn row_width(&self) -> Option<usize> {
        (!self.match_only()).then_some(self.width)
    }

    /// The groups.
    pub(crate) fn partition(&self) -> &Partition {
        &self.shortlist.partition
    }

    pub(crate) fn match_only(&self) -> bool {
        self.shortlist.config.match_only
    }

    pub(crate) fn matched(&self, coarse: Tensor<2>) -> Option<Tensor<2>> {
        self.matcher.as_ref().map(|matcher| matcher.forward(coarse))
    }

    /// The best groups of a document by their logits, each with a number from 0 to 1: exp(−max(0, 1 − z)³) where groups
    /// learn by the hinge, else σ(z).
    pub(crate) fn best_groups(&self, logits: &[f32]) -> Vec<(u32, f32)> {
        if self.matcher.is_none() {
            return vec![(0, 1.0)];
        }
        let share = |z: f32| if self.match_only() { hinge_probability(z) as f32 } else { sigmoid(z) };
        self.best(logits, &[]).into_iter().map(|group| (group, share(logits[group as usize]))).collect()
    }

    /// Rows of gold labels; those that no training document has have none.
    pub(crate) fn rows_of(&self, gold: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let partition = &self.shortlist.partition;
        gold.iter()
            .map(|labels| labels.iter().filter_map(|&label| partition.row_of(label)).collect())
            .collect()
    }

    /// Groups of rows, each once.
    pub(crate) fn groups_of(&self, rows: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let groups = |rows: &Vec<u32>| {
            let mut groups: Vec<u32> =
                rows.iter().map(|&row| self.shortlist.partition.group_of(row)).collect();
            groups.sort_unstable();
            groups.dedup();
            groups
        };
        rows.iter().map(groups).collect()
    }

    /// The best groups by their logits, those first that must be among them. Half as many others as would be without these
    /// are there in any case.
    fn best(&self, logits: &[f32], first: &[u32]) -> Vec<u32> {
        let most = self.shortlist.config.top_groups;
        let n = most.max(first.len() + most.div_ceil(2)).min(logits.len());
        let mut ranked: Vec<(bool, f32, u32)> = (logits.iter().zip(0..))
            .map(|(&logit, group)| (first.binary_search(&group).is_err(), logit, group))
            .collect();
        let rank = |a: &(bool, f32, u32), b: &(bool, f32, u32)| {
            a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2))
        };
        if n < ranked.len() {
            ranked.select_nth_unstable_by(n, rank);
            ranked.truncate(n);
        }
        ranked.sort_unstable_by(rank);
        ranked.into_iter().map(|(_, _, group)| group).collect()
    }

    /// Rows for a batch, ascending: those of gold labels; of the best groups, first of each document's best, then of its
    /// second, and so on while there is room; and, in training, of labels at random.
    ///
    /// Half of the room is for groups without a gold label of their document: labels that the matcher takes for gold and that
    /// are not are what there is most to learn from, and a batch has so many gold groups that these alone would fill it.
    pub(crate) fn pick(&self, groups: Option<&Tensor<2>>, gold: &[Vec<u32>], seed: Option<u64>) -> Vec<u32> {
        let Shortlist { partition, config: ShortlistConfig { random, size, .. } } = &*self.shortlist;
        let n_rows = partition.n_rows() as u32;
        let Some(groups) = groups else { return (0..n_rows).collect() };
        let [n_documents, n_groups] = groups.dims();
        let logits = to_vec(groups.clone());
        let gold_groups = self.groups_of(gold);
        let best: Vec<Vec<u32>> = (0..n_documents)
            .into_par_iter()
            .map(|n| {
                let first = gold_groups.get(n).map_or(&[][..], Vec::as_slice);
                self.best(&logits[n * n_groups..][..n_groups], first)
            })
            .collect();
        let mut picked: Vec<u32> = gold.concat();
        picked.sort_unstable();
        picked.dedup();
        let n_gold = |n: usize| gold_groups.get(n).map_or(0, Vec::len).min(best[n].len());
        let of_gold: Vec<&[u32]> = (0..n_documents).map(|n| &best[n][..n_gold(n)]).collect();
        let mined: Vec<&[u32]> = (0..n_documents).map(|n| &best[n][n_gold(n)..]).collect();
        // Where something is learnt, memory is bounded; else every document has what it would be scored by.
        let (random, size) = seed.map_or((0, usize::MAX), |_| (*random, size.saturating_sub(*random)));
        let half = picked.len() + size.saturating_sub(picked.len()) / 2;
        let mut chosen = vec![false; n_groups];
        // What either kind leaves free, the other has.
        for (lists, size) in [(&mined, half), (&of_gold, size), (&mined, size)] {
            let ranks = lists.iter().map(|list| list.len()).max().unwrap_or(0);
            for &group in (0..ranks).flat_map(|rank| lists.iter().filter_map(move |list| list.get(rank))) {
                let rows = partition.rows(group as usize);
                if !chosen[group as usize] && picked.len() + rows.len() <= size {
                    chosen[group as usize] = true;
                    picked.extend(rows.start as u32..rows.end as u32);
                }
            }
        }
        if let Some(seed) = seed.filter(|_| n_rows > 0) {
            let mut generator = ChaCha8Rng::seed_from_u64(seeds::derive(seed, seeds::SHORTLIST));
            picked.extend((0..random).map(|_| generator.random_range(0..n_rows)));
        }
        picked.sort_unstable();
        picked.dedup();
        picked
    }

    /// The label of a row.
    pub(crate) fn label(&self, row: u32) -> u32 {
        self.shortlist.partition.label(row as usize)
    }

    /// The rows of a group.
    pub(crate) fn group(&self, group: u32) -> Range<u32> {
        let rows = self.shortlist.partition.rows(group as usize);
        rows.start as u32..rows.end as u32
    }

    /// The rows of a training step, ascending, and the places of each document's gold rows among them.
    pub(crate) fn step(
        &self,
        groups: Option<&Tensor<2>>,
        gold: &[Vec<u32>],
        seed: Option<u64>,
    ) -> (Vec<u32>, Vec<Vec<u32>>) {
        let picked = self.pick(groups, gold, seed);
        let place = |row: &u32| picked.binary_search(row).ok().map(|place| place as u32);
        let places = gold.iter().map(|rows| rows.iter().filter_map(place).collect()).collect();
        (picked, places)
    }

    /// What is measured, not learnt from: every document by its own groups and gold labels, so that its loss is the same in any
    /// batch.
    fn measured(
        &self,
        fine: Tensor<2>,
        groups: &Tensor<2>,
        gold: &[Vec<u32>],
        rows: &Rows<'_>,
        moment: &Moment,
        labelwise: &Labelwise,
    ) -> Objective {
        let device = fine.device();
        let mut all = Measured::default();
        for (n, gold) in gold.chunks(1).enumerate() {
            let (picked, places) = self.step(Some(&groups.clone().narrow(0, n, 1)), gold, None);
            if !picked.is_empty() {
                let logits = self.logits(fine.clone().narrow(0, n, 1), &picked, rows);
                all.add(labelwise.loss(logits, &places, moment), 1);
            }
        }
        all.objective(&device)
    }

    fn logits(&self, fine: Tensor<2>, picked: &[u32], rows: &Rows<'_>) -> Tensor<2> {
        let (weights, biases) = rows.take(picked, &fine.device());
        linear(fine, weights, biases)
    }

    /// One document after the other, without tensors: rows of a group lie together, and a document scores the same in
    /// any batch. Without rows, a label scores what its group does.
    fn score(
        &self,
        vectors: Vectors,
        rows: Option<&Rows<'_>>,
        labels: &[LabelId],
        top_k: Option<usize>,
    ) -> Vec<Vec<(LabelId, f32)>> {
        let partition = &self.shortlist.partition;
        let groups = self.matched(vectors.coarse).map(to_vec).unwrap_or_default();
        let n_groups = if groups.is_empty() { 0 } else { partition.n_groups() };
        let fine = to_vec(vectors.fine);
        fine.par_chunks_exact(self.width - 1)
            .enumerate()
            .map(|(n, x)| {
                let mut row: Vec<(LabelId, f32)> = Vec::new();
                let mut out = Vec::new();
                for (group, share) in self.best_groups(&groups[n * n_groups..][..n_groups]) {
                    let of_group =
                        partition.labels(group as usize).iter().map(|&label| labels[label as usize]);
                    let Some(rows) = rows else {
                        row.extend(of_group.map(|label| (label, share)));
                        continue;
                    };
                    let range = partition.rows(group as usize);
                    out.clear();
                    out.resize(range.len(), 0.0);
                    rows::outputs(rows.table().rows(range), x, &mut out);
                    row.extend(of_group.zip(&out).map(|(label, &z)| (label, sigmoid(z) * share)));
                }
                if let Some(k) = top_k {
                    keep_top(&mut row, k);
                }
                row
            })
            .collect()
    }
}

fn sigmoid(z: f32) -> f32 {
    1.0 / (1.0 + (-z).exp())
}
