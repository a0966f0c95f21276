//! Learning and answering with one output per label.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData, activation};
use cladist_core::{LabelId, LabelSet};
use cladist_kernels::graph::Edges;

use super::{HeadContext, Moment, Objective, Task, columns, rows};
use crate::fused::differences;
use crate::losses::{Loss, coherent, cross_entropy};

/// What a head with one output per label knows beside its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Labelwise {
    /// Shared, as networks are copied and labels may be very many.
    pub(crate) labels: Arc<[LabelId]>,
    /// Edges between labels, parents first, ascending.
    edges: Arc<Edges>,
    task: Task,
    loss: Loss,
    pub(crate) label_smoothing: f64,
    /// What it costs that outputs of adjacent labels differ.
    recursive: f64,
}

/// The edges of a taxonomy, from parents to children.
pub(crate) fn edges(context: &HeadContext<'_>) -> Arc<Edges> {
    let n_labels = context.taxonomy.n_labels();
    let (sources, targets) =
        context.taxonomy.edges().map(|(parent, child)| (parent.index() as u32, child.index() as u32)).unzip();
    Arc::new(Edges { sources, targets, n_sources: n_labels, n_targets: n_labels })
}

impl Labelwise {
    pub(crate) fn new(context: &HeadContext<'_>, loss: Loss) -> Self {
        Self {
            labels: context.taxonomy.labels().collect(),
            edges: edges(context),
            task: context.task,
            loss,
            label_smoothing: context.label_smoothing,
            recursive: 0.0,
        }
    }

    /// With a weight of [`Labelwise::regularise`].
    pub(crate) fn with_recursive(self, recursive: f64) -> Self {
        Self { recursive, ..self }
    }

    /// The objective of logits `[documents, labels]`, of which only some may count.
    pub(crate) fn objective(
        &self,
        logits: Tensor<2>,
        gold: &[LabelSet],
        only: Option<&[u32]>,
        moment: &Moment,
    ) -> Objective {
        self.objective_of(logits, gold, None, only, moment)
    }

    /// The same where the columns are those of `given` labels, ascending, among which all gold labels are.
    pub(crate) fn objective_of(
        &self,
        logits: Tensor<2>,
        gold: &[LabelSet],
        given: Option<&[u32]>,
        only: Option<&[u32]>,
        moment: &Moment,
    ) -> Objective {
        let gold = columns(gold);
        if self.task == Task::MultiLabel && self.loss == Loss::Coherent {
            let value = coherent(logits, &gold, &self.edges, only, self.label_smoothing);
            return Objective::of("coherent", value);
        }
        let (logits, gold) = match kept(given, only) {
            None => (logits, gold),
            Some(kept) if kept.is_empty() => return Objective::default(),
            Some(kept) => {
                let gold = gold.iter().map(|row| places(row, &kept)).collect();
                let logits = match (given, only) {
                    (_, None) => logits,
                    (None, Some(only)) => select_columns(logits, only),
                    (Some(given), Some(_)) => select_columns(logits, &places(&kept, given)),
                };
                (logits, gold)
            }
        };
        self.loss(logits, &gold, moment)
    }

    /// The objective of logits of any labels, with the columns of gold labels among them.
    pub(crate) fn loss(&self, logits: Tensor<2>, gold: &[Vec<u32>], moment: &Moment) -> Objective {
        match self.task {
            Task::MultiLabel => (self.loss_at(moment).terms(logits, gold, self.label_smoothing).into_iter())
                .fold(Objective::default(), |objective, (name, value)| objective.with(name, 1.0, value)),
            Task::MultiClass => {
                let gold: Vec<u32> = gold.iter().map(|labels| labels.first().copied().unwrap_or(0)).collect();
                Objective::of("cross-entropy", cross_entropy(logits, &gold, self.label_smoothing))
            }
        }
    }

    /// The F-measure has next to no gradient as long as no label is likely, so it learns as `bce` in the first epoch.
    fn loss_at(&self, moment: &Moment) -> Loss {
        let first = moment.seed.is_some() && moment.epoch < 1.0;
        if self.loss == Loss::FMeasure && first { Loss::Bce } else { self.loss }
    }

    /// Adds recursive regularisation, ½ Σ over edges of |w_parent − w_child|², of rows `[labels, width]`; if only some
    /// labels count, of the edges between them.
    pub(crate) fn regularise(
        &self,
        objective: Objective,
        outputs: impl IntoIterator<Item = Tensor<2>>,
        only: Option<&[u32]>,
    ) -> Objective {
        if self.recursive == 0.0 || self.edges.is_empty() {
            return objective;
        }
        let edges = match only {
            None => Arc::clone(&self.edges),
            Some(only) => Arc::new(between(&self.edges, only)),
        };
        let costs = outputs.into_iter().map(|rows| differences(rows, &edges));
        match costs.reduce(|sum, cost| sum + cost) {
            Some(cost) if !edges.is_empty() => objective.with_regulariser("recursive", self.recursive, cost),
            _ => objective,
        }
    }

    /// Edges between labels, parents first.
    pub(crate) fn edges(&self) -> &Edges {
        &self.edges
    }

    /// Whether the loss of some labels is made of the logits of others.
    pub(crate) fn needs_all_labels(&self) -> bool {
        self.task == Task::MultiClass || self.loss == Loss::Coherent
    }

    /// Rows of probabilities of these labels, whose columns the logits are.
    pub(crate) fn score_of(
        &self,
        logits: Tensor<2>,
        only: &[u32],
        top_k: Option<usize>,
    ) -> Vec<Vec<(LabelId, f32)>> {
        let labels: Vec<LabelId> = only.iter().map(|&label| self.labels[label as usize]).collect();
        rows(activation::sigmoid(logits), &labels, top_k)
    }

    /// Rows of probabilities.
    pub(crate) fn score(&self, logits: Tensor<2>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        let probabilities = match self.task {
            Task::MultiLabel => activation::sigmoid(logits),
            Task::MultiClass => activation::softmax(logits, 1),
        };
        rows(probabilities, &self.labels, top_k)
    }
}

/// The labels that count among those given; all if `None`.
fn kept(given: Option<&[u32]>, only: Option<&[u32]>) -> Option<Vec<u32>> {
    match (given, only) {
        (None, None) => None,
        (Some(labels), None) | (None, Some(labels)) => Some(labels.to_vec()),
        (Some(given), Some(only)) => {
            Some(given.iter().copied().filter(|label| only.binary_search(label).is_ok()).collect())
        }
    }
}

/// The places of labels in an ascending list, of those that are there.
fn places(labels: &[u32], list: &[u32]) -> Vec<u32> {
    let place = |label: &u32| list.binary_search(label).ok().map(|place| place as u32);
    labels.iter().filter_map(place).collect()
}

/// The edges between labels of an ascending list.
fn between(edges: &Edges, labels: &[u32]) -> Edges {
    let is_in = |label: &u32| labels.binary_search(label).is_ok();
    let pairs = edges.sources.iter().zip(&edges.targets);
    let (sources, targets) = pairs.filter(|(source, target)| is_in(source) && is_in(target)).unzip();
    Edges { sources, targets, n_sources: edges.n_sources, n_targets: edges.n_targets }
}

/// Columns by number.
pub(crate) fn select_columns(x: Tensor<2>, columns: &[u32]) -> Tensor<2> {
    let numbers: Vec<i64> = columns.iter().map(|&column| i64::from(column)).collect();
    let shape = [numbers.len()];
    let numbers = Tensor::<1, Int>::from_data(TensorData::new(numbers, shape), &x.device());
    x.select(1, numbers)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    const MEASURED: Moment = Moment { epoch: 0.0, seed: None };

    #[test]
    fn the_f_measure_begins_with_bce() {
        let labels = cladist_core::Taxonomy::flat(["a", "b"]);
        let labelwise = Labelwise {
            labels: labels.labels().collect(),
            edges: Arc::default(),
            task: Task::MultiLabel,
            loss: Loss::FMeasure,
            label_smoothing: 0.0,
            recursive: 0.0,
        };
        let name = |epoch, seed| {
            let z: Tensor<2> = Tensor::from_floats([[0.3, -0.2]], &Device::flex().autodiff());
            labelwise.loss(z, &[vec![0]], &Moment { epoch, seed }).values()[0].0.clone()
        };
        assert_eq!(name(0.9, Some(1)), "bce");
        assert_eq!(name(1.0, Some(1)), "f-measure");
        // What dev is judged by is the same from the first epoch on.
        assert_eq!(name(0.9, None), "f-measure");
    }

    #[test]
    fn labels_that_do_not_count_add_nothing() {
        // Multiplying masked logits by 0 would add ln 2 for each and give .6346971.
        let labels = cladist_core::Taxonomy::flat(["a", "b", "c", "d"]);
        let labelwise = Labelwise {
            labels: labels.labels().collect(),
            edges: Arc::default(),
            task: Task::MultiLabel,
            loss: Loss::Bce,
            label_smoothing: 0.0,
            recursive: 0.0,
        };
        let z: Tensor<2> = Tensor::from_floats([[0.3, -0.2, 1.5, 2.0]], &Device::flex().autodiff());
        let gold: LabelSet = ["a", "c"].iter().map(|id| labels.get(id).unwrap()).collect();
        let value = |only: Option<&[u32]>| {
            labelwise.objective(z.clone(), std::slice::from_ref(&gold), only, &MEASURED).values()[0].1
        };
        assert!((value(Some(&[0, 1])) - 0.576_247_1).abs() < 1e-6);
        assert!((value(Some(&[0])) - 0.554_355_2).abs() < 1e-6);
        assert!((value(Some(&[1])) - 0.598_138_9).abs() < 1e-6);
        // By label, not by branch.
        let by_label =
            labelwise.objective(z.clone(), std::slice::from_ref(&gold), Some(&[0, 1]), &MEASURED).scaled(0.5);
        assert!((by_label.values()[0].1 - 0.288_123_5).abs() < 1e-6);
        let part = |given: &[u32], only: &[u32]| {
            let z = select_columns(z.clone(), given);
            labelwise
                .objective_of(z, std::slice::from_ref(&gold), Some(given), Some(only), &MEASURED)
                .values()
        };
        assert!((part(&[0, 1, 2], &[0, 1, 3])[0].1 - 0.576_247_1).abs() < 1e-6);
        assert!(part(&[2], &[0]).is_empty());
    }
}
