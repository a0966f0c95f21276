//! HiLAP: a policy that walks the taxonomy assigns labels, by supervised learning and then by policy gradient (Mao et al. 2019).
//!
//! A walk begins at the root. What comes next is a label all of whose parents were assigned, or the end; so assigned sets
//! contain their ancestors. The policy sees the document vector and the label that came last.
//!
//! - The supervised part is ½ the binary cross-entropy of one output per label and ½ that of candidates along a walk
//!   through the gold labels, where the end is right when no gold label is left. The paper's goes level by level; along
//!   walks the policy meets the states that it will be in.
//! - From some epoch on, walks are drawn from the policy. A label is rewarded by what it adds to F1; returns are compared
//!   with those of the greedy walk, and standardised over the batch.
//!
//! A label's score is ½·σ(z) by its own output, and ½ more if the greedy walk assigned it: above 0.5 is what was assigned.

mod config;
mod walk;

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet, Taxonomy};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use config::HilapConfig;
pub use walk::Policy;

use super::{
    DROPOUT, DocumentVector, Group, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Pool,
    columns, rows,
};
use crate::blocks::{Linear, dropout};
use crate::encoder::{LayerSet, place};
use crate::error::Result;
use crate::losses::{bce_with_logits, softplus};
use crate::parameters::to_vec;
use walk::{Step, Walk, drawn, highest, returns, rewards, standardise, walk};

/// One line of help.
pub const ABOUT: &str = "labels assigned by a policy that walks the taxonomy, rewarded by F1 (HiLAP)";

/// Places in the seed of a step: of the order of gold labels and of drawn walks.
const WALKS: [u64; 2] = [crate::seeds::WALKS, crate::seeds::WALKS + 1];
/// What is left of the weight of entropy after each epoch of reinforcement.
const FADE: f64 = 0.9;

/// The head.
#[derive(Module, Debug)]
pub struct Hilap {
    policy: Policy,
    output: Linear,
    #[module(skip)]
    taxonomy: Arc<Taxonomy>,
    #[module(skip)]
    labels: Vec<LabelId>,
    #[module(skip)]
    vector: DocumentVector,
    #[module(skip)]
    config: HilapConfig,
    #[module(skip)]
    label_smoothing: f64,
}

impl HeadConfig for HilapConfig {
    type Head = Hilap;

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn learns_ancestors(&self) -> bool {
        true
    }

    fn settle(&mut self, epochs: usize) {
        self.reinforce_after.get_or_insert(epochs.div_ceil(2));
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Hilap> {
        self.check(context.task)?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let (n_labels, device) = (context.taxonomy.n_labels(), context.device);
        let (inputs, sizes) = (context.hidden_size, [self.hidden, self.width]);
        Ok(Hilap {
            policy: Policy::new(inputs, sizes, n_labels, &mut random, device),
            output: Linear::new(inputs, n_labels, &mut random, device),
            taxonomy: Arc::new(context.taxonomy.clone()),
            labels: context.taxonomy.labels().collect(),
            vector: self.pool.at(context)?,
            config: self.clone(),
            label_smoothing: context.label_smoothing,
        })
    }
}

impl Hilap {
    fn vectors(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let vectors = self.vector.of(input.documents);
        dropout(vectors, self.config.dropout, seed.map(|seed| place(seed, DROPOUT)))
    }

    fn walk(
        &self,
        vectors: &Tensor<2>,
        choose: impl FnMut(usize, &[u32], &[f32]) -> usize,
    ) -> (Vec<Step>, Vec<Walk>) {
        walk(&self.policy, vectors, &self.taxonomy, self.config.max_labels, choose)
    }

    fn greedy(&self, vectors: &Tensor<2>) -> Vec<Walk> {
        self.walk(vectors, |_, _, logits| highest(logits)).1
    }

    /// Binary cross-entropy of the candidates along walks through the gold labels, in an order by the seed, or by number: the
    /// mean over candidates and then over steps.
    fn supervised(&self, vectors: &Tensor<2>, gold: &[LabelSet], seed: Option<u64>) -> Option<Tensor<1>> {
        let mut random = seed.map(|seed| ChaCha8Rng::seed_from_u64(place(seed, WALKS[0])));
        let is_gold = |document: usize, label: u32| {
            self.taxonomy.at(label as usize).is_some_and(|label| gold[document].contains(label))
        };
        let (steps, _) = self.walk(vectors, |document, candidates, _| {
            let right: Vec<usize> =
                (0..candidates.len()).filter(|&place| is_gold(document, candidates[place])).collect();
            match (right.len(), &mut random) {
                (0, _) => candidates.len() - 1,
                (n, Some(random)) => right[random.random_range(0..n)],
                (_, None) => right[0],
            }
        });
        mean_over_steps(&steps, |step, row, cells| {
            let candidates = &step.candidates[row];
            let document = step.documents[row];
            let is_end = step.chosen[row] == candidates.len() - 1;
            for (place, cell) in cells.iter_mut().enumerate() {
                let right = is_gold(document, candidates[place]) || (is_end && place == candidates.len() - 1);
                *cell = if right { 1.0 } else { 0.0 };
            }
        })
    }

    /// −ln π of what was drawn, by how much better it turned out than greed, and Σ π·ln π over candidates: means over
    /// steps.
    fn reinforced(
        &self,
        vectors: &Tensor<2>,
        gold: &[LabelSet],
        seed: u64,
    ) -> Option<(Tensor<1>, Tensor<1>)> {
        let mut random = ChaCha8Rng::seed_from_u64(place(seed, WALKS[1]));
        let (steps, walks) = self.walk(vectors, |_, _, logits| drawn(logits, random.random()));
        let greedy = self.greedy(&vectors.clone().detach());
        let advantages = self.advantages(&steps, &walks, &greedy, gold);
        let n_rows: usize = steps.iter().map(|step| step.documents.len()).sum();
        let device = vectors.device();
        let mut sums: Option<(Tensor<1>, Tensor<1>)> = None;
        for (time, step) in steps.iter().enumerate() {
            let n = step.documents.len();
            let logs = activation::log_softmax(step.logits.clone(), 1);
            let chosen: Vec<i64> = step.chosen.iter().map(|&place| place as i64).collect();
            let chosen: Tensor<2, Int> = Tensor::from_data(TensorData::new(chosen, [n, 1]), &device);
            let column = |values: Vec<f32>| -> Tensor<2> {
                Tensor::from_data(TensorData::new(values, [n, 1]), &device)
            };
            let advantage = |&document: &usize| -advantages[document][time] as f32 / n_rows as f32;
            let weights = column(step.documents.iter().map(advantage).collect());
            let shares =
                column(step.candidates.iter().map(|all| 1.0 / (all.len() * n_rows) as f32).collect());
            let policy = (logs.clone().gather(1, chosen) * weights).sum();
            let entropy = (logs.clone().exp() * logs * shares).sum();
            sums = Some(match sums {
                Some((a, b)) => (a + policy, b + entropy),
                None => (policy, entropy),
            });
        }
        sums
    }

    /// Of every document and step: the return of the drawn walk less that of the greedy one, standardised.
    fn advantages(
        &self,
        steps: &[Step],
        walks: &[Walk],
        greedy: &[Walk],
        gold: &[LabelSet],
    ) -> Vec<Vec<f64>> {
        let mut lengths = vec![0; walks.len()];
        for &document in steps.iter().flat_map(|step| &step.documents) {
            lengths[document] += 1;
        }
        let of = |walk: &Walk, gold: &LabelSet| returns(&rewards(&walk.labels, gold), self.config.discount);
        let mut advantages: Vec<Vec<f64>> = (walks.iter().zip(greedy).zip(gold).zip(lengths))
            .map(|(((walk, greedy), gold), length)| {
                let (drawn, greedy) = (of(walk, gold), of(greedy, gold));
                // The end adds nothing.
                let at = |returns: &[f64], time: usize| returns.get(time).copied().unwrap_or(0.0);
                (0..length).map(|time| at(&drawn, time) - at(&greedy, time)).collect()
            })
            .collect();
        standardise(advantages.iter_mut().flatten());
        advantages
    }

    /// Gold labels with their ancestors.
    fn closed(&self, gold: &[LabelSet]) -> Vec<LabelSet> {
        gold.iter().map(|labels| self.taxonomy.close_upward(labels)).collect()
    }
}

/// The mean over steps of all documents of the mean binary cross-entropy over candidates; `targets` fills in a row. `None`
/// without steps.
fn mean_over_steps(steps: &[Step], targets: impl Fn(&Step, usize, &mut [f32])) -> Option<Tensor<1>> {
    let n_rows: usize = steps.iter().map(|step| step.documents.len()).sum();
    let of_step = |step: &Step| {
        let [n, most] = step.logits.dims();
        let device = step.logits.device();
        let (mut right, mut shares) = (vec![0.0; n * most], vec![0.0f32; n * most]);
        for (row, candidates) in step.candidates.iter().enumerate() {
            let cells = row * most..row * most + candidates.len();
            targets(step, row, &mut right[cells.clone()]);
            shares[cells].fill(1.0 / (candidates.len() * n_rows) as f32);
        }
        let matrix = |cells: Vec<f32>| Tensor::<2>::from_data(TensorData::new(cells, [n, most]), &device);
        let cells = softplus(step.logits.clone()) - matrix(right) * step.logits.clone();
        (cells * matrix(shares)).sum()
    };
    steps.iter().map(of_step).reduce(|sum, term| sum + term)
}

impl Head for Hilap {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let gold = self.closed(gold);
        let vectors = self.vectors(input, moment.seed);
        let logits = self.output.forward(vectors.clone());
        let bce = bce_with_logits(logits, &columns(&gold), self.label_smoothing);
        let mut objective = Objective::default().with("bce", 0.5, bce);
        if let Some(value) = self.supervised(&vectors, &gold, moment.seed) {
            objective = objective.with("bce-walk", 0.5, value);
        }
        let HilapConfig { reinforce, entropy, reinforce_after, .. } = self.config;
        let since = moment.epoch - reinforce_after.unwrap_or(0) as f64;
        // What dev is judged by stays the same from the first epoch to the last.
        let Some(seed) = moment.seed.filter(|_| reinforce > 0.0 && since >= 0.0) else { return objective };
        if let Some((policy, undecided)) = self.reinforced(&vectors, &gold, seed) {
            let entropy = entropy * FADE.powf(since.floor());
            objective = objective.with("policy", reinforce, policy);
            objective = objective.with("entropy", reinforce * entropy, undecided);
        }
        objective
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.vector.layers()
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        let vectors = self.vectors(input, None);
        let mut cells = to_vec(activation::sigmoid(self.output.forward(vectors.clone())));
        let n_labels = self.labels.len();
        cells.iter_mut().for_each(|cell| *cell *= 0.5);
        for (row, walk) in cells.chunks_exact_mut(n_labels.max(1)).zip(self.greedy(&vectors)) {
            for label in walk.labels {
                // Above a half whatever is lost by rounding: what was assigned is an answer.
                row[label as usize] = (row[label as usize] + 0.5).max(0.5 + f32::EPSILON);
            }
        }
        let shape = [input.documents.n_sequences(), n_labels];
        rows(Tensor::from_data(TensorData::new(cells, shape), &vectors.device()), &self.labels, top_k)
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.output.outputs())
    }

    fn group(&self, parameter: &str) -> Group {
        if parameter.starts_with("policy.embeddings") { Group::Labels } else { Group::Output }
    }
}

#[cfg(test)]
mod tests;
