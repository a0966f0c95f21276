//! The labels that message passing runs over: all of them, or those within reach of the labels of a masked branch.
//!
//! In the small form a label's output reads its own node features alone, whose receptive field is as many edges wide as there are
//! layers. Whatever is farther changes nothing, so a head that answers for few labels has no parameters for it.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use cladist_core::LabelId;
use cladist_core::taxonomy::Priors;
use cladist_kernels::graph::Edges;

use crate::heads::HeadContext;
use crate::heads::labelwise::edges;

/// Labels with node features.
#[derive(Debug)]
pub struct Nodes {
    /// Their numbers, ascending.
    labels: Vec<u32>,
    /// Edges between them, from parents and from children.
    pub(super) down: Arc<Edges>,
    pub(super) up: Arc<Edges>,
    /// The share of each edge's child among the children of its parent.
    pub(super) priors: Vec<f32>,
    /// Where the labels that are answered for are, if there are others.
    answered: Option<Vec<u32>>,
}

impl Nodes {
    /// The labels up to so many edges away from those that are answered for, or all.
    pub(super) fn new(context: &HeadContext<'_>, steps: Option<usize>) -> Arc<Self> {
        let all = edges(context);
        let priors = Priors::of_counts(context.taxonomy, context.label_counts);
        let priors: Vec<f32> = priors.by_edge().iter().map(|&prior| prior as f32).collect();
        let (Some(only), Some(steps)) = (context.only, steps) else {
            let labels = (0..all.n_sources as u32).collect();
            return Arc::new(Self {
                labels,
                up: Arc::new(all.reversed()),
                down: all,
                priors,
                answered: None,
            });
        };
        let mut inside = vec![false; all.n_sources];
        only.iter().for_each(|label| inside[label.index()] = true);
        for _ in 0..steps {
            let before = inside.clone();
            for (source, target) in all.iter() {
                inside[source] |= before[target];
                inside[target] |= before[source];
            }
        }
        let labels: Vec<u32> = (0..all.n_sources as u32).filter(|&label| inside[label as usize]).collect();
        let (down, numbers) = all.between(&labels);
        let mut nodes = Self {
            up: Arc::new(down.reversed()),
            down: Arc::new(down),
            priors: numbers.iter().map(|&edge| priors[edge as usize]).collect(),
            answered: None,
            labels,
        };
        nodes.answered = Some(nodes.places(only));
        Arc::new(nodes)
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Their numbers, ascending.
    pub(super) fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Where a label is; what is farther away has no place.
    pub(super) fn place(&self, label: LabelId) -> Option<u32> {
        self.labels.binary_search(&(label.index() as u32)).ok().map(|place| place as u32)
    }

    fn places(&self, labels: &[LabelId]) -> Vec<u32> {
        labels.iter().filter_map(|&label| self.place(label)).collect()
    }

    /// Features of the labels that are answered for: `[documents, nodes, width]` → `[documents, labels, width]`
    pub(super) fn answered(&self, features: Tensor<3>) -> Tensor<3> {
        let Some(places) = &self.answered else { return features };
        let places: Vec<i64> = places.iter().map(|&place| i64::from(place)).collect();
        let shape = [places.len()];
        let places = Tensor::<1, Int>::from_data(TensorData::new(places, shape), &features.device());
        features.select(1, places)
    }
}
