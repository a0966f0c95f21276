//! Message passing up a coding tree, from the document vector to logits.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use cladist_core::taxonomy::CodingTree;
use cladist_kernels::graph::Edges;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::blocks::{BlockNorm, Linear};
use crate::fused::sum_along;
use crate::heads::structure::Drops;

/// Places of dropouts: copies, leaves, then the levels.
const COPIES: u64 = 0;
const LEAVES: u64 = 1;
const LEVELS: u64 = 8;

/// What is read of the nodes of a level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelPool {
    /// Their sum divided by their number, of the leaves by its root: at the start leaves are as often negative as positive, and their sum
    /// grows with the root.
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
    /// Of a level above the leaves: `[documents, nodes, width]` → `[documents, width]`
    pub(super) fn of(self, nodes: Tensor<3>) -> Tensor<2> {
        let [documents, _, width] = nodes.dims();
        let pooled = match self {
            Self::Auto | Self::Average => nodes.mean_dim(1),
            Self::Max => nodes.max_dim(1),
            Self::Sum | Self::Root => nodes.sum_dim(1),
        };
        pooled.reshape([documents, width])
    }

    /// The same of the leaves.
    pub(super) fn of_leaves(self, leaves: Tensor<3>) -> Tensor<2> {
        let n = leaves.dims()[1] as f64;
        match self {
            Self::Auto => self.of(leaves) * n.sqrt(),
            other => other.of(leaves),
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
    pub(super) factors: Param<Tensor<1>>,
    pub(super) biases: Param<Tensor<1>>,
}

/// What happens at a level.
#[derive(Module, Debug)]
pub struct Level {
    first: Linear,
    first_block_norm: BlockNorm,
    second: Linear,
    second_block_norm: BlockNorm,
}

impl Level {
    pub(super) fn new(width: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
        Self {
            first: Linear::new(width, width, random, device),
            first_block_norm: BlockNorm::new(width, device),
            second: Linear::new(width, width, random, device),
            second_block_norm: BlockNorm::new(width, device),
        }
    }

    /// `[documents·nodes, width]` → the same
    fn forward(&self, sums: Tensor<2>, nodes: usize) -> Tensor<2> {
        self.above(self.first.forward(sums), nodes)
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
        self.above(inner.reshape([documents * nodes, width]), nodes)
    }

    fn above(&self, inner: Tensor<2>, nodes: usize) -> Tensor<2> {
        let inner = self.first_block_norm.rectified(inner, nodes);
        self.second_block_norm.rectified(self.second.forward(inner), nodes)
    }
}

/// The features of the leaves.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(super) enum Leaves {
    /// factor·q + bias: `[1, labels, 2]` and `[documents, width]`
    Scaled(Tensor<3>, Tensor<2>),
    /// `[documents, labels, width]`
    Stored(Tensor<3>),
}

/// Everything between the document vector and the logits.
#[derive(Module, Debug)]
pub struct Tree {
    pub(super) projection: Linear,
    pub(super) mixing: Mixing,
    pub(super) levels: Vec<Level>,
    /// For the leaves and each level; for the root alone if nothing else is read.
    pub(super) outputs: Vec<Linear>,
    #[module(skip)]
    pub(super) shape: Shape,
}

/// What a tree has beside its parameters.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    /// From the nodes of each level to those above.
    pub(super) steps: Vec<Arc<Edges>>,
    pub(super) pool: LevelPool,
    pub(super) dropout: f64,
    pub(super) output_dropout: f64,
}

/// From the nodes of each level to those above.
pub(super) fn steps(tree: &CodingTree) -> Vec<Arc<Edges>> {
    let step = |level: usize| {
        let targets = tree.parents(level).to_vec();
        let sources = (0..targets.len() as u32).collect();
        let (n_sources, n_targets) = (targets.len(), tree.n_nodes(level + 1));
        Arc::new(Edges { sources, targets, n_sources, n_targets })
    };
    (0..tree.height()).map(step).collect()
}

/// The sums of the children of each node.
pub(super) fn sums(children: Tensor<3>, step: &Arc<Edges>) -> Tensor<3> {
    let ones = Tensor::ones([step.len()], &children.device());
    sum_along(children, ones, step)
}

/// The features of all levels above the leaves, of which those of the first are given: `level` makes features of nodes from the
/// sums of their children.
pub(super) fn climb(
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
    pub(super) fn n_labels(&self) -> usize {
        self.shape.steps.first().map_or(0, |step| step.n_sources)
    }

    /// Features that a document has at most at a time.
    pub(super) fn cells(&self) -> usize {
        let stored = matches!(self.mixing, Mixing::Full(_)) || self.shape.pool == LevelPool::Max;
        let nodes = if stored { self.n_labels() } else { self.shape.steps[0].n_targets };
        nodes * self.projection.bias().dims()[0]
    }

    /// X, from the document vector times W_p: `[documents, width]`
    pub(super) fn leaves(&self, q: Tensor<2>, drops: Drops) -> Leaves {
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
    pub(super) fn first(&self, leaves: Leaves) -> (Tensor<2>, Tensor<3>) {
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
                (pool.of_leaves(leaves), nodes(level.forward(sums, step.n_targets), documents))
            }
            Leaves::Scaled(scales, q) => {
                let [documents, _] = q.dims();
                let read = pool.of_leaves(scales.clone());
                let [factors, biases] = [0, 1].map(|which| read.clone().narrow(1, which, 1));
                let above = level.scaled(sums(scales, step), q.clone());
                (q * factors + biases, nodes(above, documents))
            }
        }
    }

    /// `[documents, hidden]` → `[documents, labels]`
    pub(super) fn logits(&self, vectors: Tensor<2>, seed: Option<u64>, first: usize) -> Tensor<2> {
        let Shape { steps, pool, output_dropout, .. } = &self.shape;
        let of_documents = Drops { seed, first, rows: 1 };
        let leaves = self.leaves(self.projection.forward(vectors), of_documents);
        let (read, nodes) = self.first(leaves);
        let levels =
            climb(nodes, steps, |level, sums| self.levels[level].forward(sums, steps[level].n_targets));
        let skipped = 1 + levels.len() - self.outputs.len();
        let above = levels.into_iter().skip(skipped.saturating_sub(1)).map(|nodes| pool.of(nodes));
        let read = (skipped == 0).then_some(read).into_iter().chain(above);
        let parts = (LEVELS..).zip(read).zip(&self.outputs);
        let parts =
            parts.map(|((site, read), output)| output.forward(of_documents.on(read, *output_dropout, site)));
        parts.reduce(|sum, part| sum + part).unwrap_or_else(|| unreachable!("a tree has a root"))
    }
}
