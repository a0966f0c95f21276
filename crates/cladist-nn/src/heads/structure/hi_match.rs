//! Hi-match: documents and labels in one space, where a document lies near its labels, less near to their parents and siblings
//! (HiMatch, Chen et al. 2021), beside the answers of text propagation.
//!
//! T is an MLP of the document's features after they travelled, M_l one of label l's description after it travelled through a graph layer of
//! its own; both have length 1. With d(a, b) = |a − b|², a label l of the document at random, p its parent (itself at the top),
//! s a sibling and o any label, neither of the document's:
//! ```text
//! loss + d(T, l) + relu(d(T, p) − .01) + relu(.1 − (d(T, s) − d(T, l))) + relu(.2 − (d(T, o) − d(T, l)))
//! ```
//! The released code divides d by the width of the space, where lengths are 1 and no margin can be met; here it does not.
//! Descriptions are read by the encoder of the documents now and then, and it does not learn from them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Tensor, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet, Taxonomy};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::gcn::GraphConvolution;
use super::propagation::Settings;
use super::{Drops, Form, Layer, Nodes, Propagation, Variant, check_rates, check_sizes, check_weight};
use crate::blocks::Linear;
use crate::descriptions::{DescriptionConfig, DescriptionVector};
use crate::encoder::{LayerSet, place};
use crate::error::Result;
use crate::heads::label_attention::select;
use crate::heads::{
    Group, Head, HeadConfig, HeadContext, HeadInput, LabelBatch, Masking, Moment, Objective, Pool, setting,
};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "documents near their labels in one space, beside hierarchy-gcn (HiMatch)";

/// The place of drawn labels in the seed of a step, and places of dropouts.
const DRAW: u64 = crate::seeds::COMPARED;
const DOCUMENT: u64 = 1 << 20;
const LABEL: u64 = (1 << 20) + 1;
const GRAPH: u64 = (1 << 20) + 8;
/// Margins: of parents, of siblings and of any other label.
const PARENT: f64 = 0.01;
const SIBLING: f64 = 0.1;
const OTHER: f64 = 0.2;

/// Settings of the hi-match head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HiMatchConfig {
    /// `full` has weights of every label on the features of all, `small` on its own; `auto` is `full` up to 200 labels.
    pub form: Form,
    /// The document vector: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Layers on top of each other.
    pub layers: usize,
    /// Features of a label.
    pub node_size: usize,
    /// Width of the space of documents and labels.
    pub width: usize,
    /// Weight of the terms that match documents with labels.
    pub match_weight: f64,
    /// Updates after which descriptions are read again.
    pub refresh: u64,
    /// Put the names of ancestors before each description.
    pub path: bool,
    /// Tokens of a description at most.
    pub max_tokens: usize,
    /// The vector of a description: `cls` or `mean`.
    pub vector: DescriptionVector,
    /// Dropout on the features before they travel, and inside the MLPs.
    pub dropout: f64,
    /// Dropout on what reaches a label.
    pub node_dropout: f64,
    /// Dropout on the features before the output.
    pub output_dropout: f64,
    /// What it costs that outputs of adjacent labels differ.
    pub recursive_regularisation: f64,
    /// What is minimised with any number of labels: `bce`, `f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
}

impl Default for HiMatchConfig {
    fn default() -> Self {
        Self {
            form: Form::default(),
            pool: Pool::default(),
            layers: 1,
            node_size: 300,
            width: 200,
            match_weight: 1.0,
            refresh: 50,
            path: false,
            max_tokens: 32,
            vector: DescriptionVector::default(),
            dropout: 0.1,
            node_dropout: 0.05,
            output_dropout: 0.1,
            recursive_regularisation: 0.0,
            loss: Loss::default(),
        }
    }
}

/// Linear, ReLU, dropout, linear, and length 1.
#[derive(Module, Debug)]
pub struct Projector {
    first: Linear,
    second: Linear,
}

impl Projector {
    fn new(inputs: usize, width: usize, random: &mut ChaCha8Rng, context: &HeadContext<'_>) -> Self {
        Self {
            first: Linear::new(inputs, width, random, context.device),
            second: Linear::new(width, width, random, context.device),
        }
    }

    fn forward(&self, x: Tensor<2>, drop: impl Fn(Tensor<2>) -> Tensor<2>) -> Tensor<2> {
        let x = self.second.forward(drop(activation::relu(self.first.forward(x))));
        let length = (x.clone().powi_scalar(2).sum_dim(1) + 1e-12).sqrt();
        x / length
    }
}

/// The head.
#[derive(Module, Debug)]
pub struct HiMatch {
    answers: Propagation,
    document: Projector,
    graph: GraphConvolution,
    label: Projector,
    /// The labels of the graph.
    #[module(skip)]
    nodes: Arc<Nodes>,
    /// Those that are drawn; any if `None`.
    #[module(skip)]
    only: Option<Arc<[LabelId]>>,
    #[module(skip)]
    taxonomy: Arc<Taxonomy>,
    #[module(skip)]
    match_weight: f64,
    #[module(skip)]
    refresh: u64,
    #[module(skip)]
    dropout: f64,
}

impl HeadConfig for HiMatchConfig {
    type Head = HiMatch;

    fn pooled(&self) -> bool {
        self.pool == Pool::Pooled
    }

    fn learns_ancestors(&self) -> bool {
        true
    }

    fn masking(&self) -> Masking {
        Masking::Among
    }

    fn fit(&mut self, n_labels: usize) {
        self.form = self.form.of(n_labels);
    }

    fn describes(&self) -> Option<DescriptionConfig> {
        let Self { path, max_tokens, vector, .. } = *self;
        Some(DescriptionConfig { path, max_tokens, vector, at_start_only: false })
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<HiMatch> {
        let Self {
            form,
            pool,
            layers,
            node_size,
            width,
            match_weight,
            refresh,
            path: _,
            max_tokens: _,
            vector: _,
            dropout,
            node_dropout,
            output_dropout,
            recursive_regularisation,
            loss,
        } = *self;
        check_sizes(&[
            ("hi-match.layers", layers),
            ("hi-match.node_size", node_size),
            ("hi-match.width", width),
        ])?;
        check_rates(&[
            ("hi-match.dropout", dropout),
            ("hi-match.node_dropout", node_dropout),
            ("hi-match.output_dropout", output_dropout),
        ])?;
        check_weight("hi-match.match_weight", match_weight)?;
        check_weight("hi-match.recursive_regularisation", recursive_regularisation)?;
        if refresh == 0 {
            return Err(setting("hi-match.refresh", "at least 1", refresh));
        }
        let settings = Settings {
            variant: Variant::TextPropagation,
            form,
            pool,
            node_size,
            dropout,
            output_dropout,
            recursive_regularisation,
            loss,
        };
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let random = &mut random;
        let (hidden, device) = (context.hidden_size, context.device);
        let nodes = settings.nodes(context, layers);
        let layer =
            |_| Layer::Gcn(GraphConvolution::new(&nodes, node_size, node_dropout, &mut *random, device));
        let layers = (0..layers).map(layer).collect();
        let answers = Propagation::new(context, &settings, nodes, layers, random)?;
        // Labels that are drawn have their neighbours beside them.
        let nodes = Nodes::new(context, Some(1));
        Ok(HiMatch {
            document: Projector::new(answers.summary_width(), width, random, context),
            graph: GraphConvolution::new(&nodes, hidden, node_dropout, random, device),
            label: Projector::new(hidden, width, random, context),
            answers,
            nodes,
            only: context.only.map(Arc::from),
            taxonomy: Arc::new(context.taxonomy.clone()),
            match_weight,
            refresh,
            dropout,
        })
    }
}

/// Labels drawn for a document.
#[derive(Debug, PartialEq)]
struct Draw {
    document: u32,
    own: LabelId,
    parent: LabelId,
    /// A sibling that the document does not have, or any label in its place; and any label that it does not have.
    others: Option<[LabelId; 2]>,
}

/// Draws labels for every document that has some among those that count.
fn draw(taxonomy: &Taxonomy, gold: &[LabelSet], only: Option<&[LabelId]>, seed: u64) -> Vec<Draw> {
    let counts = |label: &LabelId| only.is_none_or(|only| only.binary_search(label).is_ok());
    let pool: Vec<LabelId> = taxonomy.labels().filter(counts).collect();
    let mut random = ChaCha8Rng::seed_from_u64(place(seed, DRAW));
    let mut drawn = Vec::new();
    for (document, gold) in gold.iter().enumerate() {
        let own: Vec<LabelId> = gold.iter().copied().filter(counts).collect();
        let Some(&label) = own.choose(&mut random) else { continue };
        let parent = taxonomy.parents(label).iter().copied().find(counts).unwrap_or(label);
        let mut wrong = || {
            // Few labels are a document's: most draws are good.
            let mut lucky = (0..16).map(|_| pool[random.random_range(0..pool.len())]);
            let found = lucky.find(|other| !gold.contains(*other));
            found.or_else(|| pool.iter().copied().find(|other| !gold.contains(*other)))
        };
        let other = wrong();
        let fallback = wrong();
        let siblings: Vec<LabelId> = taxonomy
            .siblings(label)
            .iter()
            .copied()
            .filter(|other| counts(other) && !gold.contains(*other))
            .collect();
        let sibling = siblings.choose(&mut random).copied().or(fallback);
        let others = sibling.zip(other).map(|(sibling, other)| [sibling, other]);
        drawn.push(Draw { document: document as u32, own: label, parent, others });
    }
    drawn
}

/// |a − b|² of rows: `[n, width]` → `[n]`
fn distances(a: Tensor<2>, b: Tensor<2>) -> Tensor<1> {
    let [n, _] = a.dims();
    (a - b).powi_scalar(2).sum_dim(1).reshape([n])
}

/// relu(margin − (far − near))
fn hinge(margin: f64, far: Tensor<1>, near: Tensor<1>) -> Tensor<1> {
    activation::relu(near - far + margin)
}

impl HiMatch {
    /// T of the documents and M of the labels.
    fn space(&self, summary: Tensor<2>, vectors: Tensor<2>, seed: Option<u64>) -> [Tensor<2>; 2] {
        let drops = Drops { seed, first: 0, rows: 1 };
        let documents = self.document.forward(summary, |x| drops.on(x, self.dropout, DOCUMENT));
        let [n_labels, width] = vectors.dims();
        let travelled = self.graph.forward(vectors.unsqueeze(), Drops { rows: n_labels, ..drops }, GRAPH);
        let travelled = travelled.reshape([n_labels, width]);
        [documents, self.label.forward(travelled, |x| drops.on(x, self.dropout, LABEL))]
    }

    /// Adds the terms that match documents with labels.
    fn matched(
        &self,
        objective: Objective,
        [documents, labels]: [Tensor<2>; 2],
        drawn: &[Draw],
    ) -> Objective {
        let of = |rows: &Tensor<2>, numbers: Vec<u32>| select(rows.clone(), Some(&numbers));
        // What is drawn is answered for, so it is one of them.
        let number = |label: LabelId| {
            self.nodes.place(label).unwrap_or_else(|| unreachable!("a label that was drawn"))
        };
        let at = |draws: &[&Draw]| of(&documents, draws.iter().map(|draw| draw.document).collect());
        let near = |draws: &[&Draw]| {
            distances(at(draws), of(&labels, draws.iter().map(|draw| number(draw.own)).collect()))
        };
        let all: Vec<&Draw> = drawn.iter().collect();
        if all.is_empty() {
            return objective;
        }
        let parents = of(&labels, all.iter().map(|draw| number(draw.parent)).collect());
        let parents = activation::relu(distances(at(&all), parents) - PARENT);
        let mut objective = objective.with("match", self.match_weight, near(&all).mean());
        objective = objective.with("match-parent", self.match_weight, parents.mean());
        let (some, others): (Vec<&Draw>, Vec<[LabelId; 2]>) =
            drawn.iter().filter_map(|draw| Some((draw, draw.others?))).unzip();
        if some.is_empty() {
            return objective;
        }
        for (which, name, margin) in [(0, "match-sibling", SIBLING), (1, "match-other", OTHER)] {
            let far = of(&labels, others.iter().map(|others| number(others[which])).collect());
            let cost = hinge(margin, distances(at(&some), far), near(&some));
            objective = objective.with(name, self.match_weight, cost.mean());
        }
        objective
    }
}

impl Head for HiMatch {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let (objective, summary) = self.answers.objective_and_summary(input, gold, moment);
        let Some(states) = input.labels.filter(|_| self.match_weight > 0.0) else { return objective };
        let drawn = draw(&self.taxonomy, gold, self.only.as_deref(), moment.seed.unwrap_or(0));
        let vectors = select(states.vectors.clone(), Some(self.nodes.labels()));
        self.matched(objective, self.space(summary, vectors, moment.seed), &drawn)
    }

    fn layers(&self, levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.answers.layers(levels)
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        self.answers.score(input, top_k)
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        self.answers.logits(input)
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        self.answers.label_vectors()
    }

    fn label_batch(&self, _gold: &[LabelSet], _moment: &Moment) -> Option<LabelBatch> {
        Some(LabelBatch::Every(self.refresh))
    }

    fn group(&self, parameter: &str) -> Group {
        parameter.strip_prefix("answers.").map_or(Group::Labels, |parameter| self.answers.group(parameter))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::parameters::to_vec;
    use crate::toy::Toy;

    #[test]
    fn what_is_far_enough_costs_nothing() {
        let values = |values: [f32; 2]| Tensor::<1>::from_floats(values, &Device::flex());
        let costs = to_vec(hinge(0.1, values([0.12, 0.5]), values([0.10, 0.10])));
        assert!((costs[0] - 0.08).abs() < 1e-6 && costs[1] == 0.0, "{costs:?}");
    }

    #[test]
    fn drawn_labels_are_what_they_are_called() {
        let toy = Toy::new(Default::default());
        let taxonomy = &toy.taxonomy;
        for seed in 0..50 {
            let drawn = draw(taxonomy, &toy.gold, None, seed);
            assert_eq!(drawn.len(), toy.gold.len());
            assert_eq!(drawn, draw(taxonomy, &toy.gold, None, seed));
            for draw in &drawn {
                let gold = &toy.gold[draw.document as usize];
                assert!(gold.contains(draw.own));
                let above = taxonomy.parents(draw.own);
                assert!(above.contains(&draw.parent) || (above.is_empty() && draw.parent == draw.own));
                let [sibling, other] = draw.others.unwrap();
                assert!(!gold.contains(sibling) && !gold.contains(other));
                let siblings = taxonomy.siblings(draw.own);
                let has_wrong = siblings.iter().any(|sibling| !gold.contains(*sibling));
                assert!(!has_wrong || siblings.contains(sibling));
            }
        }
        // Where one label counts there is nothing else to draw.
        let only = [taxonomy.get("goods").unwrap()];
        let drawn = draw(taxonomy, &toy.gold, Some(&only), 1);
        assert!(!drawn.is_empty() && drawn.iter().all(|d| d.own == d.parent && d.others.is_none()));
    }
}
