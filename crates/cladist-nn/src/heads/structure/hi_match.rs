//! Hi-match: text propagation, and matching losses in a joint embedding space where a document is nearer to its labels than to
//! their parents, siblings and other labels (HiMatch, Chen et al. 2021).
//!
//! T is an MLP of the document's node features after message passing, M_l one of label l's encoded description after a graph layer
//! of its own; both are normalised to length 1. With d(a, b) = |a − b|², a gold label l of the document at random, p its parent
//! (itself at the top), s a negative sibling and o any negative label:
//! ```text
//! loss + d(T, l) + relu(d(T, p) − .01) + relu(.1 − (d(T, s) − d(T, l))) + relu(.2 − (d(T, o) − d(T, l)))
//! ```
//! The released code divides d by the width of the space, where lengths are 1 and no margin can be met; here it does not.
//! Descriptions are encoded by the encoder of the documents every so many updates, without gradients.

mod draw;

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Tensor, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet, Taxonomy};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::config::{of_all_levels, propagating};
use super::gcn::GraphConvolution;
use super::{Drops, Nodes, Propagation, Variant};
use crate::blocks::Linear;
use crate::descriptions::{DescriptionConfig, DescriptionVector, MAX_TOKENS};
use crate::encoder::LayerSet;
use crate::error::Result;
use crate::heads::label_attention::select;
use crate::heads::settings::{check_matrix, check_weights, check_widths, setting};
use crate::heads::{Group, Head, HeadConfig, HeadContext, HeadInput, LabelBatch, Moment, Objective, Pool};
use draw::{Draw, draw};

/// One line of help.
pub const ABOUT: &str = "hierarchy-gcn with a text-label matching loss in a joint embedding space (HiMatch)";

/// Places of dropouts.
const DOCUMENT: u64 = 1 << 20;
const LABEL: u64 = (1 << 20) + 1;
const GRAPH: u64 = (1 << 20) + 8;
/// Margins: of parents, of siblings and of any other label.
const PARENT: f64 = 0.01;
const SIBLING: f64 = 0.1;
const OTHER: f64 = 0.2;

propagating! {
    /// Settings of the hi-match head.
    HiMatchConfig of "hi-match", recursive_regularisation = 0.0 {
        /// Width of the joint embedding space of documents and labels.
        width: usize = 200,
        /// Weight of the matching losses.
        match_weight: f64 = 1.0,
        /// Updates after which descriptions are encoded again.
        refresh: u64 = 50,
        /// Put the names of ancestors before each description.
        path: bool = false,
        /// Tokens of a description at most.
        max_tokens: usize = MAX_TOKENS,
        /// The vector of a description: `cls` or `mean`.
        vector: DescriptionVector = DescriptionVector::default(),
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

    of_all_levels!();

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn describes(&self) -> Option<DescriptionConfig> {
        let Self { path, max_tokens, vector, .. } = *self;
        Some(DescriptionConfig { path, max_tokens, vector, at_start_only: false })
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<HiMatch> {
        let graph = self.graph(Variant::TextPropagation)?;
        let Self { width, match_weight, refresh, dropout, node_size, node_dropout, .. } = *self;
        check_widths(&[("hi-match.width", width)])?;
        check_weights(&[("hi-match.match_weight", match_weight)])?;
        if refresh == 0 {
            return Err(setting("hi-match.refresh", "at least 1", refresh));
        }
        let random = &mut ChaCha8Rng::seed_from_u64(context.seed);
        let (hidden, device) = (context.hidden_size, context.device);
        let layer = GraphConvolution::layer(node_size, node_dropout, device);
        let answers = Propagation::new(context, &graph, layer, random)?;
        check_matrix("hi-match.width", width, &[answers.summary_width(), width])?;
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
        let passed = self.graph.forward(vectors.unsqueeze(), Drops { rows: n_labels, ..drops }, GRAPH);
        let passed = passed.reshape([n_labels, width]);
        [documents, self.label.forward(passed, |x| drops.on(x, self.dropout, LABEL))]
    }

    /// Adds the matching losses.
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

    #[test]
    fn what_is_far_enough_costs_nothing() {
        let values = |values: [f32; 2]| Tensor::<1>::from_floats(values, &Device::flex());
        let costs = to_vec(hinge(0.1, values([0.12, 0.5]), values([0.10, 0.10])));
        assert!((costs[0] - 0.08).abs() < 1e-6 && costs[1] == 0.0, "{costs:?}");
    }
}
