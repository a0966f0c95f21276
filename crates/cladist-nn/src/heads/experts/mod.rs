//! Experts: several classifiers on layers of one encoder, each for itself in training, together in prediction.
//!
//! An expert `D-m` has an output for each label on the `[CLS]` vector of layer m; with an expert `A-m` every label
//! looks at the tokens of layer m. Lower layers are nearer to words, which serves labels that a few words give away;
//! the last one has the gist of the document.
//!
//! The loss is the mean of the experts' own losses and, from some epoch on, a term that drives them apart on rare gold
//! labels they are unsure of. The answer is the mean of their probabilities.

mod attention;
mod diversity;
mod name;

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Tensor, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use attention::LabelLook;
pub use diversity::Pairs;
pub use name::{At, ExpertName, Kind};

use super::mixture::log_odds;
use super::{
    DROPOUT, Group, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Task, columns, rows, setting,
};
use crate::blocks::{Perceptron, dropout};
use crate::encoder::{LayerSet, place};
use crate::error::{Error, Result};
use crate::losses::bce_with_logits;
use diversity::Diversity;

/// One line of help.
pub const ABOUT: &str = "experts on layers of one encoder: [CLS], and labels that look at words (ME-XML)";

/// What each expert learns from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpertLoss {
    /// Each from its own mistakes.
    #[default]
    Individual,
    /// All from the mistakes of their mean logit.
    Collaborative,
}

/// Settings of the experts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpertsConfig {
    /// The experts: `D-` and layers (`D-last`, `D-12+1`) read `[CLS]`, `A-` and a layer (`A-1`, `A-mid`) all tokens.
    pub experts: Vec<ExpertName>,
    /// What experts learn from: `individual` or `collaborative` losses.
    pub loss: ExpertLoss,
    /// What it counts that experts differ on rare gold labels; 0 lets them be alike.
    pub diversity: f64,
    /// Epochs before it counts; half of all, rounded up, if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diversity_after: Option<usize>,
    /// Which experts are to differ: `all` pairs, or the `first` from each of the others.
    pub pairs: Pairs,
    /// Measure differences of a pair in both directions.
    pub symmetric: bool,
    /// Hidden layers of the network that all labels of an attention expert share.
    pub hidden: Vec<usize>,
    /// Hidden layers of a document expert.
    pub document_hidden: Vec<usize>,
    /// Dropout on `[CLS]` vectors.
    pub dropout: f64,
}

impl Default for ExpertsConfig {
    fn default() -> Self {
        let expert = |kind, at| ExpertName { kind, layers: vec![at] };
        Self {
            experts: vec![
                expert(Kind::Document, At::Last),
                expert(Kind::Attention, At::Number(1)),
                expert(Kind::Attention, At::Mid),
            ],
            loss: ExpertLoss::default(),
            diversity: 0.01,
            diversity_after: None,
            pairs: Pairs::default(),
            symmetric: false,
            hidden: vec![256],
            document_hidden: Vec::new(),
            dropout: 0.5,
        }
    }
}

/// What an expert is made of.
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "there are a handful of them")]
pub enum Parts {
    /// An output for each label.
    Document(Perceptron),
    /// Labels that look at tokens.
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
}

/// The head.
#[derive(Module, Debug)]
pub struct Experts {
    experts: Vec<Expert>,
    #[module(skip)]
    labels: Vec<LabelId>,
    #[module(skip)]
    diversity: Diversity,
    #[module(skip)]
    config: ExpertsConfig,
    #[module(skip)]
    label_smoothing: f64,
}

impl HeadConfig for ExpertsConfig {
    type Head = Experts;

    fn pooled(&self) -> bool {
        false
    }

    fn settle(&mut self, epochs: usize) {
        self.diversity_after.get_or_insert(epochs.div_ceil(2));
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Experts> {
        self.check(context.task)?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let (width, n_labels, device) = (context.hidden_size, context.taxonomy.n_labels(), context.device);
        let expert = |name: &ExpertName| {
            let layers = name.resolve(context.n_layers)?;
            let parts = match name.kind {
                Kind::Document => {
                    let widths = [&[layers.len() * width], &self.document_hidden[..], &[n_labels]].concat();
                    Parts::Document(Perceptron::new(&widths, &mut random, device))
                }
                Kind::Attention => {
                    Parts::Attention(LabelLook::new(width, &self.hidden, n_labels, &mut random, device))
                }
            };
            Ok(Expert { parts, name: name.clone(), layers })
        };
        Ok(Experts {
            experts: self.experts.iter().map(expert).collect::<Result<_>>()?,
            labels: context.taxonomy.labels().collect(),
            diversity: Diversity {
                pairs: self.pairs,
                symmetric: self.symmetric,
                counts: context.label_counts.counts.clone(),
            },
            config: self.clone(),
            label_smoothing: context.label_smoothing,
        })
    }
}

impl ExpertsConfig {
    fn check(&self, task: Task) -> Result<()> {
        let list = || self.experts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if self.experts.is_empty()
            || self.experts.iter().enumerate().any(|(n, name)| self.experts[..n].contains(name))
        {
            return Err(setting("experts.experts", "at least one, and none twice", list()));
        }
        for (key, widths) in
            [("experts.hidden", &self.hidden), ("experts.document_hidden", &self.document_hidden)]
        {
            if widths.contains(&0) {
                return Err(setting(key, "widths of at least 1", format!("{widths:?}")));
            }
        }
        if !(self.diversity >= 0.0 && self.diversity.is_finite()) {
            return Err(setting("experts.diversity", "at least 0", self.diversity));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(setting("experts.dropout", "at least 0 and below 1", self.dropout));
        }
        if task == Task::MultiClass {
            return Err(Error::Head {
                problem: "experts decide on every label for itself, so a document has several labels"
                    .to_owned(),
                hint: "use `task = \"multi-label\"`",
            });
        }
        Ok(())
    }
}

impl Experts {
    /// The logits `[documents, labels]` of every expert, by name.
    #[must_use]
    pub fn each(&self, input: &HeadInput<'_>) -> Vec<(String, Tensor<2>)> {
        let names = self.experts.iter().map(|expert| expert.name.to_string());
        names.zip(self.compute(input, None)).collect()
    }

    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Vec<Tensor<2>> {
        let documents = input.documents;
        let logits = |(n, expert): (usize, &Expert)| match &expert.parts {
            Parts::Document(output) => {
                let vectors = expert.layers.iter().map(|&layer| documents.cls(layer)).collect();
                let seed = seed.map(|seed| place(seed, DROPOUT + n as u64));
                output.forward(dropout(Tensor::cat(vectors, 1), self.config.dropout, seed))
            }
            Parts::Attention(look) => look.logits(documents.packed(expert.layers[0]), documents.packing()),
        };
        self.experts.iter().enumerate().map(logits).collect()
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
        let logits = self.compute(input, moment.seed);
        let bce = |logits: Tensor<2>| bce_with_logits(logits, &gold, self.label_smoothing);
        let n = logits.len() as f64;
        let mut objective = Objective::default();
        match self.config.loss {
            ExpertLoss::Individual => {
                for (expert, logits) in self.experts.iter().zip(&logits) {
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
            && let Some((value, kl)) = self.diversity.of(&logits, &gold)
        {
            let due = moment.epoch >= self.config.diversity_after.unwrap_or(0) as f64;
            if due && self.config.diversity > 0.0 {
                objective = objective.with("diversity", self.config.diversity, value);
            }
            objective = objective.with("expert-kl", 0.0, kl);
        }
        objective
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        let layers: LayerSet = self.experts.iter().flat_map(|expert| expert.layers.iter().copied()).collect();
        let only_cls = self.looks().all(|(_, layer)| Some(layer) != layers.last());
        if only_cls { layers.first_tokens() } else { layers }
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        let n = self.experts.len() as f64;
        match sum(self.compute(input, None).into_iter().map(activation::sigmoid)) {
            Some(sum) => rows(sum / n, &self.labels, top_k),
            None => vec![Vec::new(); input.documents.n_sequences()],
        }
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        let parts: Vec<(Tensor<2>, f64)> =
            self.compute(input, None).into_iter().map(|logits| (logits, 1.0)).collect();
        Some((log_odds(&parts)?, self.labels.clone()))
    }

    /// What experts have of a label, side by side: its outputs, and what it looks with.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
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

    /// The mean over the experts that look at tokens.
    fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
        let documents = input.documents;
        let weights = |(look, layer): (&LabelLook, usize)| {
            look.weights(documents.packed(layer), documents.packing(), labels)
        };
        let n = self.looks().count() as f64;
        Some(sum(self.looks().map(weights))? / n)
    }

    fn group(&self, parameter: &str) -> Group {
        if parameter.contains("queries") { Group::Labels } else { Group::Output }
    }
}

#[cfg(test)]
mod tests;
