//! Coding tree: features of labels are summed up a tree of groups of labels (HiTIN, Zhu et al. 2023).
//!
//! The tree is a function of the taxonomy ([`cladist_core::taxonomy::CodingTree`]), of height K with the labels as leaves.
//! With t the document vector, q a copy of drop(t·W_p + b_p) for each of n labels, each with a dropout of its own:
//! ```text
//! X = drop(W_d·[q; …; q] + b_d)                        over the axis of labels
//! h_a = ReLU(N(MLP_l(Σ over children c of h_c)))       for each node a of level l = 1 … K; h = X at the leaves
//! z = Σ over l of U_l·drop(pool over the nodes a of level l of h_a) + c_l
//! ```
//! MLP_l is linear, N, ReLU, linear. N normalises each node by itself (layer normalisation), where the published network
//! takes statistics of the batch: a document's scores then do not depend on its neighbours, and one document is
//! enough to learn from. Nothing else is offered.
//!
//! Without dropout all copies are the same, so `X_k = (Σ over m of W_d[k, m])·q + b_d[k]`: a factor of q and a bias for each
//! label, and for each group of labels the sums of these. No leaf is then stored, and of the first linear layer above there is one product
//! for q and not one for each group. The small form has nothing but factors and biases, and its dropout is on q alone, so that this holds in training
//! too. If the highest of each feature is read, leaves are stored in any case.

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use cladist_core::taxonomy::{CodingRule, CodingTree};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet};
use cladist_kernels::graph::Edges;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::gcn::vector;
use super::{Drops, Form, check_rates, check_weight};
use crate::blocks::{LayerNorm, Linear};
use crate::encoder::LayerSet;
use crate::error::Result;
use crate::fused::{by_rows, sum_along};
use crate::heads::label_attention::labels_at_once;
use crate::heads::{
    DocumentVector, Group, Head, HeadConfig, HeadContext, HeadInput, Labelwise, Masking, Moment, Objective,
    Pool, setting,
};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "features of labels are summed up a tree of groups of labels (HiTIN)";

/// Labels above which `auto` takes means: sums grow with the labels.
const SUM_UP_TO: usize = 1000;
/// Places of dropouts: copies, leaves, then the levels.
const COPIES: u64 = 0;
const LEAVES: u64 = 1;
const LEVELS: u64 = 8;

/// What is read of the nodes of a level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelPool {
    /// `sum` up to 1000 labels, `average` above.
    #[default]
    Auto,
    /// Their sum.
    Sum,
    /// Their mean.
    Average,
    /// The highest of each feature.
    Max,
    /// Nothing of any level but the root.
    Root,
}

impl LevelPool {
    /// `[documents, nodes, width]` → `[documents, width]`
    fn of(self, nodes: Tensor<3>) -> Tensor<2> {
        let [documents, _, width] = nodes.dims();
        let pooled = match self {
            Self::Average => nodes.mean_dim(1),
            Self::Max => nodes.max_dim(1),
            Self::Auto | Self::Sum | Self::Root => nodes.sum_dim(1),
        };
        pooled.reshape([documents, width])
    }
}

/// Settings of the coding-tree head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodingTreeConfig {
    /// Steps from a label to the root of the tree.
    pub height: usize,
    /// How labels are grouped: `reference` or `stop-when-positive`.
    pub tree: CodingRule,
    /// `full` mixes the leaves by weights of every pair of labels, `small` does not; `auto` is `full` up to 200 labels.
    pub form: Form,
    /// The document vector: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// What is read of each level: `sum`, `average`, `max` or `root` alone; `auto` is `sum` up to 1000 labels, `average` above.
    pub level_pool: LevelPool,
    /// Features of a node; 0 has as many as the encoder's states.
    pub width: usize,
    /// Dropout on the features of leaves.
    pub dropout: f64,
    /// Dropout on what is read of a level.
    pub output_dropout: f64,
    /// What it costs that outputs of adjacent labels differ.
    pub recursive_regularisation: f64,
    /// What is minimised with any number of labels: `bce`, `f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
}

impl Default for CodingTreeConfig {
    fn default() -> Self {
        Self {
            height: 2,
            tree: CodingRule::default(),
            form: Form::default(),
            pool: Pool::default(),
            level_pool: LevelPool::default(),
            width: 0,
            dropout: 0.1,
            output_dropout: 0.5,
            recursive_regularisation: 1e-6,
            loss: Loss::default(),
        }
    }
}

/// How leaves are made of the document.
#[derive(Module, Debug)]
pub enum Mixing {
    /// W_d and b_d.
    Full(Linear),
    /// A factor and a bias for each label.
    Small(Scales),
}

/// A factor and a bias for each label.
#[derive(Module, Debug)]
pub struct Scales {
    factors: Param<Tensor<1>>,
    biases: Param<Tensor<1>>,
}

/// What happens at a level.
#[derive(Module, Debug)]
pub struct Level {
    first: Linear,
    first_norm: LayerNorm,
    second: Linear,
    second_norm: LayerNorm,
}

impl Level {
    /// `[nodes, width]` → the same
    fn forward(&self, sums: Tensor<2>) -> Tensor<2> {
        self.above(self.first.forward(sums))
    }

    /// The same for sums that are factor·q + bias, as [`Leaves::Scaled`] has them: `[1, nodes, 2]` and `[documents, width]` →
    /// `[documents·nodes, width]`
    fn scaled(&self, sums: Tensor<3>, q: Tensor<2>) -> Tensor<2> {
        let ([_, nodes, _], [documents, width]) = (sums.dims(), q.dims());
        // With first(x) = W·x + c: W·(f·q + b·1) + c = f·first(q) + b·first(1) + (1 − f − b)·c.
        let products = self.first.forward(Tensor::cat(vec![q.clone(), q.narrow(0, 0, 1).ones_like()], 0));
        let of_all = |row: Tensor<2>| row.reshape([1, 1, width]).repeat_dim(0, documents);
        let basis = vec![
            products.clone().narrow(0, 0, documents).reshape([documents, 1, width]),
            of_all(products.narrow(0, documents, 1)),
            of_all(self.first.bias().unsqueeze()),
        ];
        let rest = sums.clone().sum_dim(2).neg() + 1.0;
        let sums = Tensor::cat(vec![sums, rest], 2).repeat_dim(0, documents);
        let inner = sums.matmul(Tensor::cat(basis, 1));
        self.above(inner.reshape([documents * nodes, width]))
    }

    fn above(&self, inner: Tensor<2>) -> Tensor<2> {
        self.second_norm.rectified(self.second.forward(self.first_norm.rectified(inner)))
    }
}

/// The features of the leaves.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Leaves {
    /// factor·q + bias: `[1, labels, 2]` and `[documents, width]`
    Scaled(Tensor<3>, Tensor<2>),
    /// `[documents, labels, width]`
    Stored(Tensor<3>),
}

/// Everything between the document vector and the logits.
#[derive(Module, Debug)]
pub struct Tree {
    projection: Linear,
    mixing: Mixing,
    levels: Vec<Level>,
    /// For the leaves and each level; for the root alone if nothing else is read.
    outputs: Vec<Linear>,
    #[module(skip)]
    shape: Shape,
}

#[derive(Debug, Clone)]
struct Shape {
    /// From the nodes of each level to those above.
    steps: Vec<Arc<Edges>>,
    pool: LevelPool,
    dropout: f64,
    output_dropout: f64,
}

/// From the nodes of each level to those above.
fn steps(tree: &CodingTree) -> Vec<Arc<Edges>> {
    let step = |level: usize| {
        let targets = tree.parents(level).to_vec();
        let sources = (0..targets.len() as u32).collect();
        let (n_sources, n_targets) = (targets.len(), tree.n_nodes(level + 1));
        Arc::new(Edges { sources, targets, n_sources, n_targets })
    };
    (0..tree.height()).map(step).collect()
}

/// The sums of the children of each node.
fn sums(children: Tensor<3>, step: &Arc<Edges>) -> Tensor<3> {
    let ones = Tensor::ones([step.len()], &children.device());
    sum_along(children, ones, step)
}

/// The features of all levels above the leaves, of which those of the first are given: `level` makes features of nodes from the
/// sums of their children.
fn climb(
    first: Tensor<3>,
    steps: &[Arc<Edges>],
    level: impl Fn(usize, Tensor<2>) -> Tensor<2>,
) -> Vec<Tensor<3>> {
    let [documents, _, width] = first.dims();
    let mut levels = vec![first];
    for (n, step) in steps.iter().enumerate().skip(1) {
        let of_children = sums(levels[n - 1].clone(), step);
        let nodes = level(n, of_children.reshape([documents * step.n_targets, width]));
        levels.push(nodes.reshape([documents, step.n_targets, width]));
    }
    levels
}

impl Tree {
    fn n_labels(&self) -> usize {
        self.shape.steps.first().map_or(0, |step| step.n_sources)
    }

    /// Features that a document has at most at a time.
    fn cells(&self) -> usize {
        let stored = matches!(self.mixing, Mixing::Full(_)) || self.shape.pool == LevelPool::Max;
        let nodes = if stored { self.n_labels() } else { self.shape.steps[0].n_targets };
        nodes * self.projection.bias().dims()[0]
    }

    /// X, from the document vector times W_p: `[documents, width]`
    fn leaves(&self, q: Tensor<2>, drops: Drops) -> Leaves {
        let [documents, width] = q.dims();
        let (n, rate) = (self.n_labels(), self.shape.dropout);
        let (factors, biases) = match &self.mixing {
            Mixing::Full(mixing) if drops.is_active(rate) => {
                let drops = Drops { rows: n, ..drops };
                let copies = q.unsqueeze_dim::<3>(1).repeat_dim(1, n).reshape([documents * n, width]);
                let copies = drops.on(copies, rate, COPIES).reshape([documents, n, width]);
                let mixed = mixing.weight().unsqueeze::<3>().matmul(copies);
                let mixed = mixed + mixing.bias().reshape([1, n, 1]);
                let rows = drops.on(mixed.reshape([documents * n, width]), rate, LEAVES);
                return Leaves::Stored(rows.reshape([documents, n, width]));
            }
            Mixing::Full(mixing) => (mixing.weight().sum_dim(1).reshape([n]), mixing.bias()),
            Mixing::Small(Scales { factors, biases }) => (factors.val(), biases.val()),
        };
        let q = drops.on(q, rate, COPIES);
        let scales = Tensor::cat(vec![factors.unsqueeze_dim::<2>(1), biases.unsqueeze_dim(1)], 1);
        let scales = scales.unsqueeze::<3>();
        if self.shape.pool != LevelPool::Max {
            return Leaves::Scaled(scales, q);
        }
        let [factors, biases] = [0, 1].map(|which| scales.clone().narrow(2, which, 1));
        Leaves::Stored(q.unsqueeze_dim::<3>(1) * factors + biases)
    }

    /// What is read of the leaves, and the features of the level above: `[documents, width]` and `[documents, nodes, width]`
    fn first(&self, leaves: Leaves) -> (Tensor<2>, Tensor<3>) {
        let Shape { steps, pool, .. } = &self.shape;
        let (step, level) = (&steps[0], &self.levels[0]);
        let nodes = |rows: Tensor<2>, documents: usize| {
            let width = rows.dims()[1];
            rows.reshape([documents, step.n_targets, width])
        };
        match leaves {
            Leaves::Stored(leaves) => {
                let [documents, _, width] = leaves.dims();
                let sums = sums(leaves.clone(), step).reshape([documents * step.n_targets, width]);
                (pool.of(leaves), nodes(level.forward(sums), documents))
            }
            Leaves::Scaled(scales, q) => {
                let [documents, _] = q.dims();
                let read = pool.of(scales.clone());
                let [factors, biases] = [0, 1].map(|which| read.clone().narrow(1, which, 1));
                let above = level.scaled(sums(scales, step), q.clone());
                (q * factors + biases, nodes(above, documents))
            }
        }
    }

    /// `[documents, hidden]` → `[documents, labels]`
    fn logits(&self, vectors: Tensor<2>, seed: Option<u64>, first: usize) -> Tensor<2> {
        let Shape { steps, pool, output_dropout, .. } = &self.shape;
        let of_documents = Drops { seed, first, rows: 1 };
        let leaves = self.leaves(self.projection.forward(vectors), of_documents);
        let (read, nodes) = self.first(leaves);
        let levels = climb(nodes, steps, |level, sums| self.levels[level].forward(sums));
        let skipped = 1 + levels.len() - self.outputs.len();
        let above = levels.into_iter().skip(skipped.saturating_sub(1)).map(|nodes| pool.of(nodes));
        let read = (skipped == 0).then_some(read).into_iter().chain(above);
        let parts = (LEVELS..).zip(read).zip(&self.outputs);
        let parts =
            parts.map(|((site, read), output)| output.forward(of_documents.on(read, *output_dropout, site)));
        parts.reduce(|sum, part| sum + part).unwrap_or_else(|| unreachable!("a tree has a root"))
    }
}

/// The head.
#[derive(Module, Debug)]
pub struct TreeNetwork {
    tree: Tree,
    #[module(skip)]
    labelwise: Labelwise,
    #[module(skip)]
    vector: DocumentVector,
}

impl HeadConfig for CodingTreeConfig {
    type Head = TreeNetwork;

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

    fn build(&self, context: &HeadContext<'_>) -> Result<TreeNetwork> {
        let Self {
            height,
            tree,
            form,
            pool,
            level_pool,
            width,
            dropout,
            output_dropout,
            recursive_regularisation,
            loss,
        } = *self;
        if !(1..=16).contains(&height) {
            return Err(setting("coding-tree.height", "1 to 16", height));
        }
        if width > 65_536 {
            return Err(setting("coding-tree.width", "0 to 65536", width));
        }
        check_rates(&[("coding-tree.dropout", dropout), ("coding-tree.output_dropout", output_dropout)])?;
        check_weight("coding-tree.recursive_regularisation", recursive_regularisation)?;
        let (hidden, device) = (context.hidden_size, context.device);
        let n_labels = context.taxonomy.n_labels();
        let width = if width == 0 { hidden } else { width };
        let pool_of_levels = match level_pool {
            LevelPool::Auto if n_labels > SUM_UP_TO => LevelPool::Average,
            LevelPool::Auto => LevelPool::Sum,
            other => other,
        };
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let random = &mut random;
        let biases = context.biases();
        let n_outputs = if level_pool == LevelPool::Root { 1 } else { height + 1 };
        Ok(TreeNetwork {
            tree: Tree {
                projection: Linear::new(hidden, width, random, device),
                mixing: if form.is_full(n_labels) {
                    Mixing::Full(Linear::new(n_labels, n_labels, random, device))
                } else {
                    Mixing::Small(Scales {
                        factors: vector(crate::random::xavier(1, n_labels, random), device),
                        biases: vector(vec![0.0; n_labels], device),
                    })
                },
                levels: (0..height)
                    .map(|_| Level {
                        first: Linear::new(width, width, random, device),
                        first_norm: LayerNorm::new(width, device),
                        second: Linear::new(width, width, random, device),
                        second_norm: LayerNorm::new(width, device),
                    })
                    .collect(),
                // Logits are sums over levels, of which one has the biases.
                outputs: (0..n_outputs)
                    .map(|n| {
                        let biases = if n == 0 { biases.clone() } else { vec![0.0; biases.len()] };
                        Linear::new(width, biases.len(), random, device).with_bias(biases)
                    })
                    .collect(),
                shape: Shape {
                    steps: steps(&context.trees.of(context.taxonomy, height, tree)),
                    pool: pool_of_levels,
                    dropout,
                    output_dropout,
                },
            },
            labelwise: Labelwise::new(context, loss).with_recursive(recursive_regularisation),
            vector: pool.at(context)?,
        })
    }
}

impl TreeNetwork {
    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let vectors = self.vector.of(input.documents);
        let at_once = labels_at_once(self.tree.cells());
        if vectors.dims()[0] <= at_once {
            return self.tree.logits(vectors, seed, 0);
        }
        let work =
            Arc::new(move |first, vectors, tree: &Tree, _: &[Tensor<2>]| tree.logits(vectors, seed, first));
        by_rows(vectors, &self.tree, Vec::new(), at_once, work)
    }
}

impl Head for TreeNetwork {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let logits = self.compute(input, moment.seed);
        let objective = self.labelwise.objective(logits, gold, moment);
        self.labelwise.regularise(objective, self.tree.outputs.iter().map(Linear::weight))
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.vector.layers()
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        self.labelwise.score(self.compute(input, None), top_k)
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        Some((self.compute(input, None), self.labelwise.labels.to_vec()))
    }

    /// The outputs on all levels, side by side.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        let levels: Vec<Vec<SparseRow>> = self.tree.outputs.iter().map(Linear::outputs).collect();
        let of_label = |label: usize| {
            let values = levels.iter().flat_map(|rows| rows[label].iter().map(|&(_, weight)| weight));
            (0..).zip(values).collect()
        };
        Some((0..self.labelwise.labels.len()).map(of_label).collect())
    }

    fn group(&self, parameter: &str) -> Group {
        if parameter.starts_with("tree.outputs") { Group::Output } else { Group::Labels }
    }
}

#[cfg(test)]
mod tests;
