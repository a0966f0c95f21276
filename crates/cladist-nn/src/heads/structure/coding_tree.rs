//! Coding tree: node features are passed up a tree of groups of labels of least structural entropy (HiTIN, Zhu et al. 2023).
//!
//! The tree is a function of the taxonomy ([`cladist_core::taxonomy::CodingTree`]), of height K with the labels as leaves.
//! With t the document vector, q a copy of drop(t·W_p + b_p) for each of n labels, each with a dropout of its own:
//! ```text
//! X = drop(W_d·[q; …; q] + b_d)                        over the axis of labels
//! h_a = ReLU(N(MLP_l(Σ over children c of h_c)))       for each node a of level l = 1 … K; h = X at the leaves
//! z = Σ over l of U_l·drop(pool over the nodes a of level l of h_a) + c_l
//! ```
//! MLP_l is linear, N, ReLU, linear. N normalises the nodes of a level together, document by document: mean and variance are over nodes
//! and features, gain and bias are of each feature. The published network takes statistics of the batch; without them a
//! document's scores do not depend on its neighbours, and one document is enough to learn from. Were each node normalised by itself, all
//! that groups differ in at the first level, the factor of q below, would be gone but for its sign.
//!
//! Without dropout all copies are the same, so `X_k = (Σ over m of W_d[k, m])·q + b_d[k]`: a factor of q and a bias for each
//! label, and for each group of labels the sums of these. No leaf is then stored, and of the first linear layer above there is one product
//! for q and not one for each group. The small form has nothing but factors and biases, and its dropout is on q alone, so that this holds in training
//! too. If the highest of each feature is read, leaves are stored in any case.

mod tree;

use std::ops::RangeInclusive;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::LabelSet;
use cladist_core::taxonomy::CodingRule;
use cladist_core::text::tfidf::SparseRow;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use tree::{Level, LevelPool, Mixing, Scales, Tree};

use super::config::{Common, of_all_levels, structured};
use super::gcn::vector;
use crate::blocks::Linear;
use crate::encoder::LayerSet;
use crate::error::Result;
use crate::fused::by_rows;
use crate::heads::label_attention::labels_at_once;
use crate::heads::per_label::by_logits;
use crate::heads::settings::{check_matrix, check_width_or_none, setting};
use crate::heads::{
    DocumentVector, Group, Head, HeadConfig, HeadContext, HeadInput, Labelwise, Moment, Objective, Pool,
};
use crate::random::normal;
use tree::{Shape, steps};

/// One line of help.
pub const ABOUT: &str = "message passing up a coding tree of minimal structural entropy (HiTIN)";

structured! {
    /// Settings of the coding-tree head.
    CodingTreeConfig of "coding-tree", output_dropout = 0.5, recursive_regularisation = 1e-6 {
        /// Steps from a label to the root of the tree.
        height: usize = 2,
        /// How labels are grouped: `reference` or `stop-when-positive`.
        tree: CodingRule = CodingRule::default(),
        /// Readout of each level: `sum`, `average`, `max` or `root` alone; `auto` is the sum over nodes divided by their number, over
        /// labels by its root.
        level_pool: LevelPool = LevelPool::default(),
        /// Features of a node; 0 has as many as the encoder's states.
        width: usize = 0,
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

    of_all_levels!();

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<TreeNetwork> {
        let Common { form, pool, dropout, output_dropout, recursive_regularisation, loss } = self.common()?;
        let Self { height, tree, level_pool, width, .. } = *self;
        if !(1..=16).contains(&height) {
            return Err(setting("coding-tree.height", "1 to 16", height));
        }
        check_width_or_none("coding-tree.width", width)?;
        let (hidden, device) = (context.hidden_size, context.device);
        let n_labels = context.taxonomy.n_labels();
        if form.is_full(n_labels) {
            check_matrix("coding-tree.form", "full", &[n_labels, n_labels])?;
        }
        let width = if width == 0 { hidden } else { width };
        let random = &mut ChaCha8Rng::seed_from_u64(context.seed);
        let biases = context.biases();
        let n_outputs = if level_pool == LevelPool::Root { 1 } else { height + 1 };
        Ok(TreeNetwork {
            tree: Tree {
                projection: Linear::new(hidden, width, random, device),
                mixing: if form.is_full(n_labels) {
                    Mixing::Full(Linear::new(n_labels, n_labels, random, device))
                } else {
                    Mixing::Small(Scales {
                        // As the sums of W_d's rows.
                        factors: vector((0..n_labels).map(|_| normal(random)).collect(), device),
                        biases: vector(vec![0.0; n_labels], device),
                    })
                },
                levels: (0..height).map(|_| Level::new(width, random, device)).collect(),
                // Logits are sums over levels, of which one has the biases.
                outputs: (0..n_outputs)
                    .map(|n| {
                        let biases = if n == 0 { biases.clone() } else { vec![0.0; biases.len()] };
                        Linear::new(width, biases.len(), random, device).with_bias(biases)
                    })
                    .collect(),
                shape: Shape {
                    steps: steps(context.trees.of(context.taxonomy, height, tree)?.as_ref()),
                    pool: level_pool,
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

    by_logits!(labelwise, except objective);

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.vector.layers()
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
