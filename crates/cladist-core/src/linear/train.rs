//! Training label trees: shapes by clustering, then one set of classifiers per node.

use rayon::prelude::*;

use super::config::{LinearConfig, LinearHead, LinearTrain, Loss};
use super::forest::Forest;
use super::solver::{self, Classifier, Settings};
use crate::error::Result;
use crate::job::Job;
use crate::label_tree::{LabelTree, label_features};
use crate::seeds::seed_of;
use crate::sparse::{ColumnPlaces, Lists, SparseMatrix};

/// Documents to learn from: one row of features and a list of labels each.
pub(crate) struct Examples<'a> {
    pub(crate) rows: &'a SparseMatrix,
    pub(crate) labels: &'a [Vec<u32>],
    pub(crate) n_labels: usize,
}

/// Trains a forest. Labels without documents are in no tree and so are never predicted.
pub(crate) fn train(
    examples: &Examples,
    head: LinearHead,
    config: &LinearConfig,
    train: &LinearTrain,
    job: &Job,
) -> Result<Forest> {
    let documents_of = Lists::inverted(examples.labels.iter().map(Vec::as_slice), examples.n_labels);
    let used: Vec<u32> =
        (0..examples.n_labels as u32).filter(|&label| !documents_of.of(label).is_empty()).collect();
    let shapes = match head {
        LinearHead::Svm => vec![LabelTree::flat(used)],
        LinearHead::Parabel | LinearHead::Bonsai => {
            job.progress.stage("cluster labels", config.n_trees as u64);
            let features = label_features(examples.rows, &documents_of, usize::MAX, job)?;
            let tree_config = config.tree(head);
            (0..config.n_trees as u64)
                .map(|tree| {
                    let seed = seed_of(&[train.seed, tree]);
                    let shape = LabelTree::grow(&features, used.clone(), &tree_config, seed, job);
                    job.progress.advance(1);
                    shape
                })
                .collect::<Result<_>>()?
        }
    };

    let mut nodes: Vec<(usize, usize)> = Vec::new();
    for (tree, shape) in shapes.iter().enumerate() {
        nodes.extend((0..shape.nodes.len()).map(|node| (tree, node)));
    }
    let n_outputs: usize = nodes.iter().map(|&(tree, node)| shapes[tree].outputs(node).len()).sum();
    job.progress.stage("train classifiers", n_outputs as u64);
    let trained: Vec<(Vec<Classifier>, Vec<u32>)> = nodes
        .par_iter()
        .with_max_len(1)
        .map_init(ColumnPlaces::default, |places, &(tree, node)| {
            let shape = &shapes[tree];
            let outputs = shape.outputs(node);
            let documents = if head == LinearHead::Svm {
                // A document without labels is a fine negative example.
                (0..examples.rows.n_rows() as u32).collect()
            } else {
                documents_of.union(&shape.order[shape.nodes[node].labels.clone()])
            };
            let seed = seed_of(&[train.seed, tree as u64, node as u64]);
            let settings = settings(config, train, documents.len(), examples.rows.n_rows());
            train_node(examples.rows, &documents, &outputs, &documents_of, &settings, seed, places, job)
        })
        .collect::<Result<_>>()?;

    let mut forest = Forest::new(examples.rows.n_columns(), examples.n_labels);
    for (&(tree, node), (classifiers, features)) in nodes.iter().zip(trained) {
        if node == 0 {
            forest.roots.push(forest.n_nodes() as u32);
        }
        let root = forest.roots.last().copied().unwrap_or(0);
        let shape = &shapes[tree];
        let node = &shape.nodes[node];
        if node.children.is_empty() {
            forest.push_node(true, shape.order[node.labels.clone()].iter().copied(), &classifiers, &features);
        } else {
            let children = node.children.clone().map(|child| root + child as u32);
            forest.push_node(false, children, &classifiers, &features);
        }
    }
    forest.index();
    Ok(forest)
}

pub(super) fn settings(
    config: &LinearConfig,
    train: &LinearTrain,
    n_documents: usize,
    n_total: usize,
) -> Settings {
    let LinearConfig { loss, c, epsilon, prune, .. } = *config;
    // Logistic regression shrinks its scores with the number of documents; this keeps nodes comparable.
    let scale = if loss == Loss::Logistic { n_total as f32 / n_documents.max(1) as f32 } else { 1.0 };
    Settings { loss, c: c * scale, epsilon, epochs: train.epochs, prune }
}

/// Classifiers of one node over the features that its documents have, and which features these are.
#[expect(clippy::too_many_arguments, reason = "the parts of one problem, named alike by all who have one")]
pub(super) fn train_node(
    rows: &SparseMatrix,
    documents: &[u32],
    outputs: &[&[u32]],
    documents_of: &Lists,
    settings: &Settings,
    seed: u64,
    places: &mut ColumnPlaces,
    job: &Job,
) -> Result<(Vec<Classifier>, Vec<u32>)> {
    let (rows, features) = rows.select(documents, places);
    let positives: Vec<Vec<u32>> = outputs
        .iter()
        .map(|labels| {
            let mut positive = documents_of.union(labels);
            for document in &mut positive {
                *document = documents.binary_search(document).unwrap_or_default() as u32;
            }
            positive
        })
        .collect();
    let positives: Vec<&[u32]> = positives.iter().map(Vec::as_slice).collect();
    Ok((solver::solve(&rows, &positives, settings, seed, job)?, features))
}
