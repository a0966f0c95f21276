//! Some labels in the small form, and those whose features reach them: all that a masked branch computes.
//!
//! A label's output reads its own features alone, which come from as many steps away as there are layers, so that whatever
//! is farther changes nothing.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use cladist_kernels::graph::Edges;

/// Labels that count and their surroundings.
#[derive(Debug)]
pub struct Part {
    /// The labels that count, ascending.
    pub(super) only: Vec<u32>,
    /// They and those that features come from, ascending.
    pub(super) labels: Vec<u32>,
    /// Where the labels that count are among them.
    places: Vec<u32>,
    /// The numbers of the edges between them, and these edges by place, from parents and from children.
    edges: Vec<u32>,
    pub(super) down: Arc<Edges>,
    pub(super) up: Arc<Edges>,
}

impl Part {
    /// The labels up to so many edges away from those that count.
    pub(super) fn new(only: &[u32], all: &Edges, steps: usize) -> Self {
        let mut inside = vec![false; all.n_sources];
        only.iter().for_each(|&label| inside[label as usize] = true);
        for _ in 0..steps {
            let before = inside.clone();
            for (source, target) in all.iter() {
                inside[source] |= before[target];
                inside[target] |= before[source];
            }
        }
        let labels: Vec<u32> = (0..all.n_sources as u32).filter(|&label| inside[label as usize]).collect();
        let place = |label: u32| labels.partition_point(|&other| other < label) as u32;
        let between =
            || (0..).zip(all.iter()).filter(|(_, (source, target))| inside[*source] && inside[*target]);
        let (sources, targets) =
            between().map(|(_, (source, target))| (place(source as u32), place(target as u32))).unzip();
        let down = Edges { sources, targets, n_sources: labels.len(), n_targets: labels.len() };
        Self {
            only: only.to_vec(),
            places: only.iter().map(|&label| place(label)).collect(),
            edges: between().map(|(number, _)| number).collect(),
            up: Arc::new(down.reversed()),
            down: Arc::new(down),
            labels,
        }
    }

    /// Values of edges, of those between these labels.
    pub(super) fn of_edges(&self, values: Tensor<1>) -> Tensor<1> {
        let numbers = numbers(&self.edges, &values.device());
        values.select(0, numbers)
    }

    /// Features of these labels, of those that count: `[documents, labels, width]`.
    pub(super) fn counted(&self, features: Tensor<3>) -> Tensor<3> {
        let places = numbers(&self.places, &features.device());
        features.select(1, places)
    }
}

fn numbers(values: &[u32], device: &burn::tensor::Device) -> Tensor<1, Int> {
    let numbers: Vec<i64> = values.iter().map(|&value| i64::from(value)).collect();
    let shape = [numbers.len()];
    Tensor::from_data(TensorData::new(numbers, shape), device)
}
