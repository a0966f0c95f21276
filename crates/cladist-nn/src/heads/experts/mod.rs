//! Mixture of experts: classifiers on several layers of one encoder, with a loss each and averaged at inference.
//!
//! An expert `D-m` has a linear output layer on the document vector of layer m (`[CLS]` in the paper); an expert `A-m` has label-wise attention over the
//! tokens of layer m. Lower layers are closer to the surface form, which serves labels with indicative words; the last one
//! represents the whole document.
//!
//! The loss is the mean of the experts' losses and, from some epoch on, a diversity loss on uncertain tail labels. The
//! prediction is the mean of their probabilities.

mod attention;
mod config;
mod diversity;
mod listed;
mod name;

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Tensor, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use attention::LabelLook;
pub use config::{ExpertLoss, ExpertsConfig};
pub use diversity::Pairs;
pub use name::{At, ExpertName, Kind};

use super::document::LayerVector;
use super::mixture::log_odds;
use super::{
    DROPOUT, Group, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Pool, columns, rows,
};
use crate::blocks::{Perceptron, dropout};
use crate::encoder::{LayerSet, place};
use crate::error::Result;
use crate::heads::Outputs;
use crate::losses::bce_with_logits;
use diversity::Diversity;

/// One line of help.
pub const ABOUT: &str = "experts on layers of one encoder: [CLS] and label-wise attention (ME-XML)";

/// What an expert is made of.
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "there are a handful of them")]
pub enum Parts {
    /// An output for each label.
    Document(Perceptron),
    /// Label-wise attention over tokens.
    Attention(LabelLook),
}

/// One of the experts.
#[derive(Module, Debug)]
pub struct Expert {
    parts: Parts,
    #[module(skip)]
    name: ExpertName,
    #[module(skip)]
    layers: Vec<usize>,
    /// Where its weights begin in the row of a label, if labels have rows.
    #[module(skip)]
    column: usize,
}

/// The head.
#[derive(Module, Debug)]
pub struct Experts {
    experts: Vec<Expert>,
    /// Groups of labels, if what experts have of a label is a row of a table.
    groups: Option<Outputs>,
    #[module(skip)]
    labels: Vec<LabelId>,
    #[module(skip)]
    diversity: Diversity,
    #[module(skip)]
    vector: LayerVector,
    #[module(skip)]
    config: ExpertsConfig,
    #[module(skip)]
    label_smoothing: f64,
    #[module(skip)]
    last: usize,
    #[module(skip)]
    hidden: usize,
}

impl HeadConfig for ExpertsConfig {
    type Head = Experts;

    fn settle(&mut self, epochs: usize) {
        self.diversity_after.get_or_insert(epochs.div_ceil(2));
    }

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Experts> {
        self.check(context.task)?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let (width, n_labels, device) = (context.hidden_size, context.taxonomy.n_labels(), context.device);
        let all = context.shortlist.is_none().then_some(n_labels);
        let mut columns = 0;
        let expert = |name: &ExpertName| {
            let layers = name.resolve(context.n_layers)?;
            let mut widths = [&[layers.len() * width], &self.document_hidden[..]].concat();
            let (parts, row) = match name.kind {
                Kind::Document => {
                    let row = widths.last().copied().unwrap_or(0);
                    widths.extend(all);
                    let layers = Perceptron::new(&widths, &mut random, device);
                    let layers = if all.is_some() { layers.with_bias(context.biases()) } else { layers };
                    (Parts::Document(layers), row)
                }
                Kind::Attention => {
                    let look = LabelLook::new(width, &self.hidden, all, &mut random, device);
                    // Rows of a table have a bias for each label.
                    let bias = if all.is_some() { context.shared_bias() } else { 0.0 };
                    (Parts::Attention(look.with_bias(bias)), width)
                }
            };
            columns += row;
            Ok(Expert { parts, name: name.clone(), layers, column: columns - row })
        };
        let experts = self.experts.iter().map(expert).collect::<Result<_>>()?;
        Ok(Experts {
            experts,
            groups: listed::groups(columns, context, &mut random)?,
            last: context.n_layers,
            hidden: width,
            labels: context.taxonomy.labels().collect(),
            diversity: Diversity {
                pairs: self.pairs,
                symmetric: self.symmetric,
                cap: (self.diversity_cap && self.diversity > 0.0).then_some(self.diversity),
                counts: context.label_counts.counts.clone(),
            },
            vector: self.pool.at_any_layer("experts.pool", context)?,
            config: self.clone(),
            label_smoothing: context.label_smoothing,
        })
    }
}

impl Experts {
    /// The logits `[documents, labels]` of every expert, by name.
    #[cfg(test)]
    fn each(&self, input: &HeadInput<'_>) -> Vec<(String, Tensor<2>)> {
        let names = self.experts.iter().map(|expert| expert.name.to_string());
        names.zip(self.compute(input, None)).collect()
    }

    /// The input of each expert: document vectors, or tokens.
    fn read(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Vec<Tensor<2>> {
        let documents = input.documents;
        let read = |(n, expert): (usize, &Expert)| match &expert.parts {
            Parts::Document(_) => {
                let vectors = expert.layers.iter().map(|&layer| self.vector.of(documents, layer)).collect();
                let seed = seed.map(|seed| place(seed, DROPOUT + n as u64));
                dropout(Tensor::cat(vectors, 1), self.config.dropout, seed)
            }
            Parts::Attention(_) => documents.packed(expert.layers[0]),
        };
        self.experts.iter().enumerate().map(read).collect()
    }

    /// The logits `[documents, labels]` of every expert.
    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Vec<Tensor<2>> {
        let experts = self.experts.iter().zip(self.read(input, seed));
        let logits = |(expert, read): (&Expert, Tensor<2>)| match &expert.parts {
            Parts::Document(output) => output.forward(read),
            Parts::Attention(look) => look.logits(look.own(), read, input.documents.packing()),
        };
        experts.map(logits).collect()
    }

    /// The losses of logits whose columns are labels by `label`, and the columns of gold labels.
    fn learn(
        &self,
        logits: &[Tensor<2>],
        gold: &[Vec<u32>],
        moment: &Moment,
        label: impl Fn(u32) -> u32,
    ) -> Objective {
        let bce = |logits: Tensor<2>| bce_with_logits(logits, gold, self.label_smoothing);
        let n = logits.len() as f64;
        let mut objective = Objective::default();
        match self.config.loss {
            ExpertLoss::Individual => {
                for (expert, logits) in self.experts.iter().zip(logits) {
                    objective = objective.with(&format!("bce-{}", expert.name), 1.0 / n, bce(logits.clone()));
                }
            }
            ExpertLoss::Collaborative => {
                if let Some(sum) = sum(logits.iter().cloned()) {
                    objective = objective.with("bce", 1.0, bce(sum / n));
                }
            }
        }
        // What dev is judged by stays the same from the first epoch to the last.
        if moment.seed.is_some()
            && let Some((value, kl)) = self.diversity.of(logits, gold, label)
        {
            let due = moment.epoch >= self.config.diversity_after.unwrap_or(0) as f64;
            if due && self.config.diversity > 0.0 {
                objective = objective.with("diversity", self.config.diversity, value);
            }
            objective = objective.with("expert-kl", 0.0, kl);
        }
        objective
    }

    fn looks(&self) -> impl Iterator<Item = (&LabelLook, usize)> {
        self.experts.iter().filter_map(|expert| match &expert.parts {
            Parts::Document(_) => None,
            Parts::Attention(look) => Some((look, expert.layers[0])),
        })
    }
}

/// The sum; there is at least one.
fn sum<const D: usize>(tensors: impl IntoIterator<Item = Tensor<D>>) -> Option<Tensor<D>> {
    tensors.into_iter().reduce(|sum, tensor| sum + tensor)
}

impl Head for Experts {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let gold = columns(gold);
        match self.listed() {
            Some(listed) => self.objective_listed(listed, input, &gold, moment),
            None => self.learn(&self.compute(input, moment.seed), &gold, moment, |label| label),
        }
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        let last = self.groups.as_ref().map(|_| self.last);
        let documents = self.experts.iter().filter(|expert| matches!(expert.parts, Parts::Document(_)));
        let layers = documents.flat_map(|expert| expert.layers.iter().copied()).chain(last);
        self.vector.layers(layers.collect()).union(self.looks().map(|(_, layer)| layer).collect())
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        if let Some(listed) = self.listed() {
            return self.score_listed(listed, input, top_k);
        }
        let n = self.experts.len() as f64;
        match sum(self.compute(input, None).into_iter().map(activation::sigmoid)) {
            Some(sum) => rows(sum / n, &self.labels, top_k),
            None => vec![Vec::new(); input.documents.n_sequences()],
        }
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        if let Some(listed) = self.listed() {
            return self.logits_listed(listed, input);
        }
        let parts: Vec<(Tensor<2>, f64)> =
            self.compute(input, None).into_iter().map(|logits| (logits, 1.0)).collect();
        Some((log_odds(&parts)?, self.labels.clone()))
    }

    /// The parameters of a label in all experts, concatenated: output weights and attention queries.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        if self.groups.is_some() {
            return None;
        }
        let mut vectors = vec![SparseRow::new(); self.labels.len()];
        for expert in &self.experts {
            let of_labels = match &expert.parts {
                Parts::Document(output) => output.outputs(),
                Parts::Attention(look) => look.vectors(),
            };
            for (vector, row) in vectors.iter_mut().zip(of_labels) {
                let first = vector.len() as u32;
                vector.extend(row.into_iter().map(|(column, value)| (first + column, value)));
            }
        }
        Some(vectors)
    }

    /// The mean over the experts with label-wise attention.
    fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
        let documents = input.documents;
        let device = documents.packed(self.looks().next()?.1).device();
        let rows = self.listed().map(|listed| listed::rows_of_labels(listed, input, labels, &device));
        let weights = |expert: &Expert| {
            let Parts::Attention(look) = &expert.parts else { return None };
            let queries = match &rows {
                Some(rows) => expert.part(rows, self.hidden),
                None => look.own_of(labels),
            };
            Some(LabelLook::weights(queries, documents.packed(expert.layers[0]), documents.packing()))
        };
        let weights: Vec<Tensor<3>> = self.experts.iter().filter_map(weights).collect();
        let n = weights.len() as f64;
        Some(sum(weights)? / n)
    }

    fn outputs(&self) -> Option<&Outputs> {
        self.groups.as_ref()
    }

    fn groups(&self, input: &HeadInput<'_>) -> Option<Tensor<2>> {
        self.listed()?.matched(self.coarse(input, None))
    }

    fn group(&self, parameter: &str) -> Group {
        if parameter.contains("queries") { Group::Labels } else { Group::Output }
    }
}

#[cfg(test)]
mod tests;
