//! Walks through the taxonomy: labels one after the other, a child never before all of its parents.

use std::collections::BTreeSet;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use cladist_core::{LabelId, LabelSet, Taxonomy};
use rand_chacha::ChaCha8Rng;

use crate::blocks::{Matrix, Perceptron};
use crate::parameters::to_vec;

/// How far below everything the logits of padding are.
const NEVER: f32 = -1e4;

/// What comes next: u = relu(W₂·relu(W₁·[v; e_current])), and e·u + b of each candidate.
#[derive(Module, Debug)]
pub struct Policy {
    /// Of labels, of the end and of the root, where walks begin and which is no candidate.
    embeddings: Matrix,
    /// Of labels and of the end.
    biases: Matrix,
    network: Perceptron,
    #[module(skip)]
    n_labels: usize,
}

impl Policy {
    pub(super) fn new(
        inputs: usize,
        [hidden, width]: [usize; 2],
        n_labels: usize,
        random: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        Self {
            embeddings: Matrix::new(width, n_labels + 2, random, device),
            biases: Matrix::of(Tensor::zeros([n_labels + 1, 1], device), device),
            network: Perceptron::new(&[inputs + width, hidden, width], random, device),
            n_labels,
        }
    }

    /// The candidate that ends a walk.
    pub(super) fn end(&self) -> u32 {
        self.n_labels as u32
    }

    fn root(&self) -> u32 {
        self.end() + 1
    }

    /// Logits `[documents, most candidates]`.
    fn logits(&self, vectors: Tensor<2>, current: &[u32], candidates: &[Vec<u32>]) -> Tensor<2> {
        let (n, device) = (candidates.len(), vectors.device());
        let most = candidates.iter().map(Vec::len).max().unwrap_or(0);
        let (mut numbers, mut padding) = (vec![self.end(); n * most], vec![NEVER; n * most]);
        for (document, candidates) in candidates.iter().enumerate() {
            let start = document * most;
            numbers[start..start + candidates.len()].copy_from_slice(candidates);
            padding[start..start + candidates.len()].fill(0.0);
        }
        let state = Tensor::cat(vec![vectors, self.embeddings.rows(current)], 1);
        let u = activation::relu(self.network.forward(state));
        let [_, width] = u.dims();
        let embeddings = self.embeddings.rows(&numbers).reshape([n, most, width]);
        let products = embeddings.matmul(u.unsqueeze_dim::<3>(2)).reshape([n, most]);
        let padding: Tensor<2> = Tensor::from_data(TensorData::new(padding, [n, most]), &device);
        products + self.biases.rows(&numbers).reshape([n, most]) + padding
    }
}

/// The walk of one document.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    /// The labels in the order in which they came.
    pub(super) labels: Vec<u32>,
    assigned: BTreeSet<u32>,
    /// Labels that are not assigned and whose parents all are.
    frontier: BTreeSet<u32>,
    is_over: bool,
}

impl Walk {
    pub(super) fn new(taxonomy: &Taxonomy) -> Self {
        let free = taxonomy.labels().filter(|&label| taxonomy.parents(label).is_empty());
        Self {
            labels: Vec::new(),
            assigned: BTreeSet::new(),
            frontier: free.map(|label| label.index() as u32).collect(),
            is_over: false,
        }
    }

    pub(super) fn assign(&mut self, label: u32, taxonomy: &Taxonomy) {
        self.frontier.remove(&label);
        self.assigned.insert(label);
        self.labels.push(label);
        let Some(label) = taxonomy.at(label as usize) else { return };
        for &child in taxonomy.children(label) {
            let is_there = |label: &LabelId| self.assigned.contains(&(label.index() as u32));
            if taxonomy.parents(child).iter().all(is_there) && !is_there(&child) {
                self.frontier.insert(child.index() as u32);
            }
        }
        self.is_over = self.frontier.is_empty();
    }
}

/// One step of the walks that are not over.
#[derive(Debug)]
pub(super) struct Step {
    /// Numbers of the documents.
    pub(super) documents: Vec<usize>,
    /// Labels in the order of their numbers, then the end.
    pub(super) candidates: Vec<Vec<u32>>,
    /// `[documents, most candidates]`
    pub(super) logits: Tensor<2>,
    /// The place of what was chosen among the candidates of each.
    pub(super) chosen: Vec<usize>,
}

/// Walks of all documents, at most `max_labels` labels long. `choose` gets the number of a document, its candidates and
/// their logits, and gives the place of one.
pub(super) fn walk(
    policy: &Policy,
    vectors: &Tensor<2>,
    taxonomy: &Taxonomy,
    max_labels: usize,
    mut choose: impl FnMut(usize, &[u32], &[f32]) -> usize,
) -> (Vec<Step>, Vec<Walk>) {
    let n = vectors.dims()[0];
    let mut walks = vec![Walk::new(taxonomy); n];
    let mut steps = Vec::new();
    for _ in 0..max_labels {
        let documents: Vec<usize> = (0..n).filter(|&document| !walks[document].is_over).collect();
        if documents.is_empty() {
            break;
        }
        let of = |&document: &usize| -> Vec<u32> {
            walks[document].frontier.iter().copied().chain([policy.end()]).collect()
        };
        let candidates: Vec<Vec<u32>> = documents.iter().map(of).collect();
        let current: Vec<u32> = (documents.iter())
            .map(|&document| walks[document].labels.last().copied().unwrap_or(policy.root()))
            .collect();
        let logits = policy.logits(select(vectors, &documents), &current, &candidates);
        let most = logits.dims()[1];
        let values = to_vec(logits.clone());
        let mut chosen = Vec::with_capacity(documents.len());
        for ((&document, candidates), values) in
            documents.iter().zip(&candidates).zip(values.chunks_exact(most.max(1)))
        {
            let place = choose(document, candidates, &values[..candidates.len()]);
            match candidates[place] {
                end if end == policy.end() => walks[document].is_over = true,
                label => walks[document].assign(label, taxonomy),
            }
            chosen.push(place);
        }
        steps.push(Step { documents, candidates, logits, chosen });
    }
    (steps, walks)
}

fn select(rows: &Tensor<2>, numbers: &[usize]) -> Tensor<2> {
    let numbers: Vec<i64> = numbers.iter().map(|&number| number as i64).collect();
    let shape = [numbers.len()];
    let numbers: Tensor<1, Int> = Tensor::from_data(TensorData::new(numbers, shape), &rows.device());
    rows.clone().select(0, numbers)
}

/// The place of the highest, the first of several.
pub(super) fn highest(values: &[f32]) -> usize {
    let better = |best: usize, place: usize| if values[place] > values[best] { place } else { best };
    (1..values.len()).fold(0, better)
}

/// The place that a number from 0 to 1 falls on when each has a share by softmax.
pub(super) fn drawn(values: &[f32], at: f64) -> usize {
    let highest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let shares: Vec<f64> = values.iter().map(|value| f64::from(value - highest).exp()).collect();
    let mut rest = at * shares.iter().sum::<f64>();
    for (place, share) in shares.iter().enumerate() {
        rest -= share;
        if rest < 0.0 {
            return place;
        }
    }
    values.len().saturating_sub(1)
}

/// What each label of a walk adds to F1 between the labels so far and gold, which has its ancestors.
pub(super) fn rewards(labels: &[u32], gold: &LabelSet) -> Vec<f64> {
    let is_gold = |label: u32| gold.iter().any(|gold| gold.index() as u32 == label);
    let (mut hits, mut before) = (0, 0.0);
    let mut rewards = Vec::with_capacity(labels.len());
    for (n, &label) in labels.iter().enumerate() {
        hits += usize::from(is_gold(label));
        let f1 = 2.0 * hits as f64 / (n + 1 + gold.len()) as f64;
        rewards.push(f1 - before);
        before = f1;
    }
    rewards
}

/// Each reward with what comes after it, at a discount for every step.
pub(super) fn returns(rewards: &[f64], discount: f64) -> Vec<f64> {
    let mut returns = rewards.to_vec();
    for n in (1..returns.len()).rev() {
        returns[n - 1] += discount * returns[n];
    }
    returns
}

/// To mean 0 and deviation 1; all 0 if they are equal.
pub(super) fn standardise<'a>(values: impl Iterator<Item = &'a mut f64>) {
    let values: Vec<&mut f64> = values.collect();
    let n = values.len().max(1) as f64;
    let mean = values.iter().map(|value| **value).sum::<f64>() / n;
    let variance = values.iter().map(|value| (**value - mean).powi(2)).sum::<f64>() / n;
    for value in values {
        *value = if variance > 1e-16 { (*value - mean) / variance.sqrt() } else { 0.0 };
    }
}
