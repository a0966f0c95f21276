//! HMCN-F: a layer for each level of the taxonomy, with local outputs of the level and global outputs of all labels.
//!
//! With x the document vector (Wehrmann, Cerri and Barros 2018, the feed-forward network):
//! ```text
//! A₁ = relu(W₁·x)     Aₕ = relu(Wₕ·[Aₕ₋₁; x])
//! Lₕ = σ(W″ₕ·relu(W′ₕ·Aₕ))     G = σ(W·[A_D; x])     P = β·L + (1 − β)·G
//! ```
//! The loss is Σ BCE(Lₕ) + BCE(G) + λ·mean of max(0, P_child − P_parent)² over documents and edges.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::levels::LevelColumns;
use super::mixture::log_odds;
use super::settings::{check_rates, check_weights, check_widths, setting};
use super::{
    DROPOUT, DocumentVector, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Pool, Task,
    columns, rows,
};
use crate::blocks::{Linear, dropout};
use crate::encoder::{LayerSet, place};
use crate::error::{Error, Result};
use crate::losses::bce_with_logits;

/// One line of help.
pub const ABOUT: &str = "a layer for each level, local and global outputs mixed (HMCN-F)";

/// Settings of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HmcnConfig {
    /// The document vector: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Units of each layer.
    pub hidden: usize,
    /// β: the share of local outputs in the probability; the rest is of the global one.
    pub beta: f64,
    /// λ: the weight of the hierarchical violation loss, where a label is likelier than its parent.
    pub violation: f64,
    /// Dropout on the document vector and on each layer.
    pub dropout: f64,
}

impl Default for HmcnConfig {
    fn default() -> Self {
        Self { pool: Pool::default(), hidden: 384, beta: 0.5, violation: 0.1, dropout: 0.1 }
    }
}

/// The layer of one level and its outputs.
#[derive(Module, Debug)]
pub struct LevelLayer {
    layer: Linear,
    local: Linear,
    output: Linear,
}

/// The head.
#[derive(Module, Debug)]
pub struct Hmcn {
    levels: Vec<LevelLayer>,
    global: Linear,
    #[module(skip)]
    structure: Structure,
    #[module(skip)]
    vector: DocumentVector,
    #[module(skip)]
    config: HmcnConfig,
    #[module(skip)]
    label_smoothing: f64,
}

/// Where labels are.
#[derive(Debug, Clone)]
struct Structure {
    labels: Vec<LabelId>,
    columns: LevelColumns,
    /// Of each label, its place when the columns of all levels lie side by side.
    places: Vec<u32>,
    /// Ends of edges.
    parents: Vec<u32>,
    children: Vec<u32>,
}

impl HeadConfig for HmcnConfig {
    type Head = Hmcn;

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn learns_ancestors(&self) -> bool {
        true
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Hmcn> {
        self.check(context.task)?;
        let (taxonomy, device) = (context.taxonomy, context.device);
        let levels: Vec<Vec<LabelId>> =
            (1..=taxonomy.n_levels()).map(|level| taxonomy.labels_at(level).to_vec()).collect();
        let mut places = vec![0; taxonomy.n_labels()];
        for (place, label) in (0u32..).zip(levels.iter().flatten()) {
            places[label.index()] = place;
        }
        let (parents, children) =
            taxonomy.edges().map(|(parent, child)| (parent.index() as u32, child.index() as u32)).unzip();
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let random = &mut random;
        let (hidden, width) = (self.hidden, context.hidden_size);
        let new = |(n, labels): (usize, &Vec<LabelId>)| LevelLayer {
            layer: Linear::new(if n == 0 { width } else { hidden + width }, hidden, random, device),
            local: Linear::new(hidden, hidden, random, device),
            output: context.outputs_of(hidden, labels, random),
        };
        Ok(Hmcn {
            levels: levels.iter().enumerate().map(new).collect(),
            global: context.outputs(hidden + width, random),
            structure: Structure {
                labels: taxonomy.labels().collect(),
                columns: LevelColumns::new(&levels, taxonomy.n_labels()),
                places,
                parents,
                children,
            },
            vector: self.pool.at(context)?,
            config: self.clone(),
            label_smoothing: context.label_smoothing,
        })
    }
}

impl HmcnConfig {
    fn check(&self, task: Task) -> Result<()> {
        check_widths(&[("hmcn.hidden", self.hidden)])?;
        if !(0.0..=1.0).contains(&self.beta) {
            return Err(setting("hmcn.beta", "0 to 1", self.beta));
        }
        check_weights(&[("hmcn.violation", self.violation)])?;
        check_rates(&[("hmcn.dropout", self.dropout)])?;
        if task == Task::MultiClass {
            return Err(Error::Head {
                problem: "`hmcn` predicts labels of every level, so a document has several".to_owned(),
                remedy: "use `task = \"multi-label\"`",
            });
        }
        Ok(())
    }
}

impl Hmcn {
    /// Logits of each level by its own outputs, and of all labels by the global one.
    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> (Vec<Tensor<2>>, Tensor<2>) {
        let drop = |x: Tensor<2>, site: u64| {
            dropout(x, self.config.dropout, seed.map(|seed| place(seed, DROPOUT + site)))
        };
        let x = drop(self.vector.of(input.documents), 0);
        let mut local = Vec::with_capacity(self.levels.len());
        let mut above = x.clone();
        for (site, level) in (1..).zip(&self.levels) {
            let a = drop(activation::relu(level.layer.forward(above)), site);
            local.push(level.output.forward(activation::relu(level.local.forward(a.clone()))));
            above = Tensor::cat(vec![a, x.clone()], 1);
        }
        (local, self.global.forward(above))
    }

    /// The levels' logits in the order of labels.
    fn in_order(&self, local: Vec<Tensor<2>>) -> Tensor<2> {
        let local = Tensor::cat(local, 1);
        let places = numbers(&self.structure.places, &local.device());
        local.select(1, places)
    }

    fn mixed(&self, local: Tensor<2>, global: Tensor<2>) -> Tensor<2> {
        let beta = self.config.beta;
        activation::sigmoid(local) * beta + activation::sigmoid(global) * (1.0 - beta)
    }
}

fn numbers(values: &[u32], device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.iter().map(|&value| i64::from(value)).collect();
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Mean over documents and edges of max(0, P_child − P_parent)².
fn violation(probabilities: Tensor<2>, parents: &[u32], children: &[u32]) -> Tensor<1> {
    let device = probabilities.device();
    let of = |labels: &[u32]| probabilities.clone().select(1, numbers(labels, &device));
    let excess = activation::relu(of(children) - of(parents));
    (excess.clone() * excess).mean()
}

impl Head for Hmcn {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let (local, global) = self.compute(input, moment.seed);
        let bce = |logits: &Tensor<2>, gold: &[Vec<u32>]| {
            bce_with_logits(logits.clone(), gold, self.label_smoothing)
        };
        let mut objective = Objective::of("bce", bce(&global, &columns(gold)));
        for ((level, logits), gold) in (1..).zip(&local).zip(&self.structure.columns.of(gold)) {
            objective = objective.with(&format!("bce-{level}"), 1.0, bce(logits, gold));
        }
        let Structure { parents, children, .. } = &self.structure;
        if self.config.violation > 0.0 && !parents.is_empty() {
            let mixed = self.mixed(self.in_order(local), global);
            objective =
                objective.with("violation", self.config.violation, violation(mixed, parents, children));
        }
        objective
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.vector.layers()
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        let (local, global) = self.compute(input, None);
        let beta = self.config.beta;
        let odds = log_odds(&[(self.in_order(local), beta), (global, 1.0 - beta)])?;
        Some((odds, self.structure.labels.clone()))
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        let (local, global) = self.compute(input, None);
        rows(self.mixed(self.in_order(local), global), &self.structure.labels, top_k)
    }

    /// Of the output for all labels.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.global.outputs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::{AnyHead, AnyHeadConfig};
    use crate::parameters::to_vec;
    use crate::toy::{Toy, design};

    #[test]
    fn a_child_above_its_parent_costs_the_square() {
        let probabilities = Tensor::<2>::from_floats([[0.4, 0.7, 0.3]], &Device::flex());
        let value = |parents: &[u32], children: &[u32]| {
            violation(probabilities.clone(), parents, children).into_scalar::<f32>()
        };
        assert!((value(&[0], &[1]) - 0.09).abs() < 1e-6);
        assert_eq!(value(&[0], &[2]), 0.0);
        assert!((value(&[0, 0], &[1, 2]) - 0.045).abs() < 1e-6);
    }

    #[test]
    fn levels_and_all_labels_are_mixed_label_by_label() {
        let toy = Toy::new(Task::MultiLabel);
        let config = HmcnConfig { hidden: 16, beta: 0.25, ..HmcnConfig::default() };
        let model = toy.model(design(AnyHeadConfig::Hmcn(config), Task::MultiLabel), 1);
        let AnyHead::Hmcn(head) = &model.network.head else { panic!("another head") };
        let documents = toy.encoded(&model);
        let input = HeadInput::new(&documents);
        let (local, global) = head.compute(&input, None);
        assert_eq!(local.len(), toy.taxonomy.n_levels());
        let n_labels = toy.taxonomy.n_labels();
        let local: Vec<Vec<f32>> = local.into_iter().map(to_vec).collect();
        let (global, odds) = (to_vec(global), to_vec(head.logits(&input).unwrap().0));
        let sigma = |z: f32| 1.0 / (1.0 + (-z).exp());
        for (document, row) in head.score(&input, None).into_iter().enumerate() {
            for (label, score) in row {
                let of_level = toy.taxonomy.labels_at(toy.taxonomy.level(label));
                let column = of_level.iter().position(|other| *other == label).unwrap();
                let own = local[toy.taxonomy.level(label) - 1][document * of_level.len() + column];
                let cell = document * n_labels + label.index();
                let expected = 0.25 * sigma(own) + 0.75 * sigma(global[cell]);
                assert!((score - expected).abs() < 1e-6 && (sigma(odds[cell]) - expected).abs() < 1e-6);
            }
        }
        // A share of one half: 0.8 and 0.4 make 0.6.
        let odds = |p: f32| Tensor::<2>::from_floats([[(p / (1.0 - p)).ln()]], &Device::flex());
        let even = HmcnConfig { hidden: 16, ..HmcnConfig::default() };
        let model = toy.model(design(AnyHeadConfig::Hmcn(even), Task::MultiLabel), 1);
        let AnyHead::Hmcn(head) = &model.network.head else { panic!("another head") };
        assert!((to_vec(head.mixed(odds(0.8), odds(0.4)))[0] - 0.6).abs() < 1e-6);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        let refused = |config: HmcnConfig, key: &str| {
            let message = config.check(Task::MultiLabel).unwrap_err().to_string();
            assert!(message.contains(key), "{message}");
        };
        let default = HmcnConfig::default;
        refused(HmcnConfig { hidden: 0, ..default() }, "hmcn.hidden");
        refused(HmcnConfig { beta: 1.5, ..default() }, "hmcn.beta");
        refused(HmcnConfig { violation: -1.0, ..default() }, "hmcn.violation");
        refused(HmcnConfig { dropout: 1.0, ..default() }, "hmcn.dropout");
        assert!(default().check(Task::MultiClass).is_err());
    }
}
