//! Layer-guided classification: every level of the taxonomy has its own outputs, on document vectors of its own layers.
//!
//! With c_i the document vector of layer i (`[CLS]` in the paper; the mean of tokens where the encoder was pretrained so) and g(n) the layers of level n: x_n = concat of c_i over g(n),
//! p_n = σ(W_n·drop(x_n) + b_n), and the loss is Σ w_n·BCE_n with w_n = |L_n|/|L|, which is the mean over all labels.
//! General labels are thus learnt by lower layers, special ones by higher layers.

mod ties;

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Tensor, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet, Taxonomy};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use ties::{TieRule, Ties};

use super::document::LayerVector;
use super::levels::LevelColumns;
use super::settings::{check_rates, setting};
use super::{DROPOUT, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Pool, Task, rows};
use crate::blocks::{Linear, dropout};
use crate::encoder::{Encoded, LayerSet, place};
use crate::error::{Error, Result};
use crate::losses::bce_with_logits;

/// One line of help.
pub const ABOUT: &str = "levels of the taxonomy supervised at layers of the encoder (layer-guided)";

/// The weight of each level's loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "`labels`, `uniform`, or a number for each level")]
pub enum LevelWeights {
    /// By a rule.
    Rule(WeightRule),
    /// A number for each level.
    Each(Vec<f64>),
}

/// Rules for the weights of levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightRule {
    /// |L_n|/|L|: every label counts the same.
    #[default]
    Labels,
    /// 1/D: every level counts the same, so that few labels at the top count much.
    Uniform,
}

impl Default for LevelWeights {
    fn default() -> Self {
        Self::Rule(WeightRule::default())
    }
}

impl LevelWeights {
    fn resolve(&self, counts: &[usize]) -> Result<Vec<f64>> {
        let all: usize = counts.iter().sum();
        match self {
            Self::Rule(WeightRule::Labels) => Ok(counts.iter().map(|&n| n as f64 / all as f64).collect()),
            Self::Rule(WeightRule::Uniform) => Ok(vec![1.0 / counts.len() as f64; counts.len()]),
            Self::Each(weights) => {
                let good = weights.len() == counts.len()
                    && weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0)
                    && weights.iter().any(|weight| *weight > 0.0);
                if good {
                    Ok(weights.clone())
                } else {
                    let expected = "a number of at least 0 for each level, not all of them 0";
                    Err(setting("layer-guided.weights", expected, format!("{weights:?}")))
                }
            }
        }
    }
}

/// Settings of the layer-guided head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LayerGuidedConfig {
    /// The document vector of each layer: `cls`, `mean`, or `auto` as the encoder was pretrained.
    pub pool: Pool,
    /// How levels are tied to layers: `last`, `one-by-one`, `in-groups`, `hybrid`, or the layers of each level.
    pub ties: Ties,
    /// The weight of each level's loss: `labels`, `uniform`, or a number for each level.
    pub weights: LevelWeights,
    /// Dropout on the vector of each level.
    pub dropout: f64,
    /// If there are more levels than can be tied, let the last one take all deeper ones too.
    pub merge_levels: bool,
}

impl Default for LayerGuidedConfig {
    fn default() -> Self {
        Self {
            pool: Pool::default(),
            ties: Ties::default(),
            weights: LevelWeights::default(),
            dropout: 0.1,
            merge_levels: false,
        }
    }
}

/// One level of the head.
#[derive(Module, Debug)]
pub struct Level {
    output: Linear,
    #[module(skip)]
    layers: Vec<usize>,
    #[module(skip)]
    labels: Vec<LabelId>,
    #[module(skip)]
    levels: RangeInclusive<usize>,
    #[module(skip)]
    weight: f64,
}

/// The head.
#[derive(Module, Debug)]
pub struct LayerGuided {
    levels: Vec<Level>,
    #[module(skip)]
    columns: LevelColumns,
    #[module(skip)]
    n_labels: usize,
    #[module(skip)]
    vector: LayerVector,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    label_smoothing: f64,
}

/// The levels that have outputs of their own: `room` of them at most, the last with all deeper labels if they are merged.
fn levels(taxonomy: &Taxonomy, room: usize, merge: bool) -> Vec<RangeInclusive<usize>> {
    let deepest = taxonomy.n_levels();
    if merge && deepest > room && room > 0 {
        return (1..room).map(|level| level..=level).chain([room..=deepest]).collect();
    }
    (1..=deepest).map(|level| level..=level).collect()
}

impl HeadConfig for LayerGuidedConfig {
    type Head = LayerGuided;

    fn learns_ancestors(&self) -> bool {
        true
    }

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<LayerGuided> {
        let Self { pool, ties, weights, dropout, merge_levels } = self;
        check_rates(&[("layer-guided.dropout", *dropout)])?;
        if context.task == Task::MultiClass {
            return Err(Error::Head {
                problem: "`layer-guided` predicts labels of every level, so a document has several"
                    .to_owned(),
                remedy: "use `task = \"multi-label\"`",
            });
        }
        let taxonomy = context.taxonomy;
        let spans = levels(taxonomy, ties.room(context.n_layers), *merge_levels);
        let labels: Vec<Vec<LabelId>> = spans
            .iter()
            .map(|span| span.clone().flat_map(|level| taxonomy.labels_at(level)).copied().collect())
            .collect();
        let counts: Vec<usize> = labels.iter().map(Vec::len).collect();
        let table = ties.resolve(context.n_layers, &counts)?;
        let weights = weights.resolve(&counts)?;
        let columns = LevelColumns::new(&labels, taxonomy.n_labels());
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let levels = (table.into_iter().zip(labels).zip(spans).zip(weights))
            .map(|(((layers, labels), levels), weight)| {
                let inputs = context.hidden_size * layers.len();
                let output = context.outputs_of(inputs, &labels, &mut random);
                Level { output, layers, labels, levels, weight }
            })
            .collect();
        Ok(LayerGuided {
            levels,
            columns,
            n_labels: taxonomy.n_labels(),
            vector: pool.at_any_layer("layer-guided.pool", context)?,
            dropout: *dropout,
            label_smoothing: context.label_smoothing,
        })
    }
}

impl Level {
    /// Whether the encoder ran its layers.
    fn is_ready(&self, documents: &Encoded) -> bool {
        self.layers.iter().all(|&layer| documents.has(layer))
    }

    fn logits(&self, documents: &Encoded, vector: LayerVector, rate: f64, seed: Option<u64>) -> Tensor<2> {
        let vectors: Vec<Tensor<2>> = self.layers.iter().map(|&layer| vector.of(documents, layer)).collect();
        let vector = Tensor::cat(vectors, 1);
        let seed = seed.map(|seed| place(seed, DROPOUT + *self.levels.start() as u64));
        self.output.forward(dropout(vector, rate, seed))
    }
}

impl Head for LayerGuided {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let columns = self.columns.of(gold);
        let levels = self.levels.iter().zip(&columns);
        levels.fold(Objective::default(), |objective, (level, gold)| {
            let logits = level.logits(input.documents, self.vector, self.dropout, moment.seed);
            let loss = bce_with_logits(logits, gold, self.label_smoothing);
            objective.with(&format!("bce-{}", level.levels.start()), level.weight, loss)
        })
    }

    fn layers(&self, levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        let wanted = |level: &&Level| {
            levels.is_none_or(|wanted| {
                level.levels.start() <= wanted.end() && wanted.start() <= level.levels.end()
            })
        };
        let layers = self.levels.iter().filter(wanted).flat_map(|level| level.layers.iter().copied());
        self.vector.layers(layers.collect())
    }

    /// Of the levels whose layers the encoder ran.
    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        let ready: Vec<&Level> = self.levels.iter().filter(|level| level.is_ready(input.documents)).collect();
        let logits: Vec<Tensor<2>> =
            ready.iter().map(|level| level.logits(input.documents, self.vector, 0.0, None)).collect();
        let labels = ready.iter().flat_map(|level| level.labels.iter().copied()).collect();
        (!logits.is_empty()).then(|| (Tensor::cat(logits, 1), labels))
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        match self.logits(input) {
            Some((logits, labels)) => rows(activation::sigmoid(logits), &labels, top_k),
            None => vec![Vec::new(); input.documents.n_sequences()],
        }
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        // Every layer has columns of its own, so that levels on other layers have other features.
        let mut vectors = vec![SparseRow::new(); self.n_labels];
        for level in &self.levels {
            for (label, row) in level.labels.iter().zip(level.output.outputs()) {
                let width = row.len() / level.layers.len().max(1);
                let placed = |(layer, values): (&usize, &[(u32, f32)])| -> SparseRow {
                    (((layer * width) as u32)..).zip(values.iter().map(|&(_, value)| value)).collect()
                };
                let mut blocks: Vec<SparseRow> =
                    level.layers.iter().zip(row.chunks_exact(width.max(1))).map(placed).collect();
                blocks.sort_by_key(|block| block.first().map(|&(column, _)| column));
                vectors[label.index()] = blocks.concat();
            }
        }
        Some(vectors)
    }
}

#[cfg(test)]
mod tests;
