//! Learning and answering with one output per label.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData, activation};
use cladist_core::{LabelId, LabelSet};
use cladist_kernels::graph::Edges;

use super::{HeadContext, Moment, Objective, Task, columns, rows};
use crate::fused::differences;
use crate::losses::{Loss, SoftCounts, coherent, cross_entropy};

/// Epochs that an F-measure learns as `bce` if nobody says otherwise.
pub(crate) const BCE_EPOCHS: usize = 1;

/// What a head with one output per label knows beside its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Labelwise {
    /// The labels that are answered for, ascending. Shared, as networks are copied and labels may be very many.
    pub(crate) labels: Arc<[LabelId]>,
    /// Whether there are others.
    some: bool,
    /// Edges between their columns, parents first, ascending.
    edges: Arc<Edges>,
    task: Task,
    loss: Loss,
    /// Epochs of `bce` before an F-measure, from when the encoder learns.
    bce_epochs: f64,
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
        let all = edges(context);
        let edges = match context.only {
            None => all,
            Some(only) => {
                let numbers: Vec<u32> = only.iter().map(|label| label.index() as u32).collect();
                Arc::new(all.between(&numbers).0)
            }
        };
        Self {
            labels: context.answered().into(),
            some: context.only.is_some(),
            edges,
            task: context.task,
            loss,
            bce_epochs: BCE_EPOCHS as f64,
            label_smoothing: context.label_smoothing,
            recursive: 0.0,
        }
    }

    /// With a weight of [`Labelwise::regularise`].
    pub(crate) fn with_recursive(self, recursive: f64) -> Self {
        Self { recursive, ..self }
    }

    /// With so many epochs of `bce` before an F-measure.
    pub(crate) fn with_bce_epochs(self, epochs: usize) -> Self {
        Self { bce_epochs: epochs as f64, ..self }
    }

    /// The columns of gold labels.
    fn columns(&self, gold: &[LabelSet]) -> Vec<Vec<u32>> {
        if !self.some {
            return columns(gold);
        }
        let column = |label: &LabelId| self.labels.binary_search(label).ok().map(|column| column as u32);
        gold.iter().map(|labels| labels.iter().filter_map(column).collect()).collect()
    }

    /// The objective of logits `[documents, labels]`.
    pub(crate) fn objective(&self, logits: Tensor<2>, gold: &[LabelSet], moment: &Moment) -> Objective {
        self.objective_of(logits, gold, None, moment)
    }

    /// The same where the columns are `given`, ascending, among which all gold labels are.
    pub(crate) fn objective_of(
        &self,
        logits: Tensor<2>,
        gold: &[LabelSet],
        given: Option<&[u32]>,
        moment: &Moment,
    ) -> Objective {
        let gold = self.columns(gold);
        if self.task == Task::MultiLabel && self.loss == Loss::Coherent {
            let value = coherent(logits, &gold, &self.edges, self.label_smoothing);
            return Objective::of("coherent", value);
        }
        match given {
            None => self.loss(logits, &gold, moment),
            Some([]) => Objective::default(),
            Some(given) => {
                let gold: Vec<_> = gold.iter().map(|row| places(row, given)).collect();
                self.loss(logits, &gold, moment)
            }
        }
    }

    /// The objective of logits of any labels, with the columns of gold labels among them.
    pub(crate) fn loss(&self, logits: Tensor<2>, gold: &[Vec<u32>], moment: &Moment) -> Objective {
        if self.task == Task::MultiClass {
            let gold: Vec<u32> = gold.iter().map(|labels| labels.first().copied().unwrap_or(0)).collect();
            return Objective::of("cross-entropy", cross_entropy(logits, &gold, self.label_smoothing));
        }
        let (loss, smoothing) = (self.loss_at(moment), self.label_smoothing);
        let [documents, labels] = logits.dims();
        let mut objective = Objective::default();
        for (name, value) in loss.terms(logits.clone(), gold, smoothing) {
            objective = match name {
                // A step has no use for counts, which only what is measured in several batches adds up.
                "f-measure" | "macro-f-measure" if moment.seed.is_none() => {
                    let by_label = loss == Loss::MacroFMeasure;
                    let counts = SoftCounts::new(logits.clone(), gold, smoothing, by_label);
                    objective.with_counts(name, 1.0, value, counts)
                }
                "ranking" => objective.with(name, 1.0, value),
                _ => objective.with_mean(name, 1.0, value, documents * labels),
            };
        }
        if self.loss.is_f_measure() {
            // What an F-measure learns by is multiplied by p·(1 − p): a plateau shows here, not in the loss.
            let p = activation::sigmoid(logits.detach());
            let variance = (p.clone() * (-p + 1.0)).mean();
            objective = objective.with_mean("variance", 0.0, variance, documents * labels);
        }
        objective
    }

    /// Where all probabilities are alike, an F-measure pushes labels apart by how frequent they are, before anything is known of
    /// documents; so it learns as `bce` in its first epochs.
    fn loss_at(&self, moment: &Moment) -> Loss {
        let first = moment.seed.is_some() && moment.thawed < self.bce_epochs;
        if self.loss.is_f_measure() && first { Loss::Bce } else { self.loss }
    }

    /// Adds recursive regularisation, ½ Σ over edges of |w_parent − w_child|², of rows `[labels, width]`.
    pub(crate) fn regularise(
        &self,
        objective: Objective,
        outputs: impl IntoIterator<Item = Tensor<2>>,
    ) -> Objective {
        if self.recursive == 0.0 || self.edges.is_empty() {
            return objective;
        }
        let costs = outputs.into_iter().map(|rows| differences(rows, &self.edges));
        match costs.reduce(|sum, cost| sum + cost) {
            Some(cost) => objective.with_regulariser("recursive", self.recursive, cost),
            None => objective,
        }
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

/// The places of labels in an ascending list, of those that are there.
fn places(labels: &[u32], list: &[u32]) -> Vec<u32> {
    let place = |label: &u32| list.binary_search(label).ok().map(|place| place as u32);
    labels.iter().filter_map(place).collect()
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

    const MEASURED: Moment = Moment { epoch: 0.0, thawed: 0.0, seed: None };

    fn labelwise(taxonomy: &cladist_core::Taxonomy, loss: Loss) -> Labelwise {
        Labelwise {
            labels: taxonomy.labels().collect(),
            some: false,
            edges: Arc::default(),
            task: Task::MultiLabel,
            loss,
            bce_epochs: 1.0,
            label_smoothing: 0.0,
            recursive: 0.0,
        }
    }

    #[test]
    fn an_f_measure_begins_with_bce_once_the_encoder_learns() {
        let labels = cladist_core::Taxonomy::flat(["a", "b"]);
        for (loss, own) in [(Loss::FMeasure, "f-measure"), (Loss::MacroFMeasure, "macro-f-measure")] {
            let of = |bce_epochs: usize, epoch: f64, thawed: f64, seed: Option<u64>| {
                let z: Tensor<2> = Tensor::from_floats([[0.3, -0.2]], &Device::flex().autodiff());
                let labelwise = labelwise(&labels, loss).with_bce_epochs(bce_epochs);
                labelwise.loss(z, &[vec![0]], &Moment { epoch, thawed, seed }).terms()
            };
            let name = |bce_epochs, epoch, thawed, seed| of(bce_epochs, epoch, thawed, seed)[0].0.clone();
            assert_eq!(name(1, 0.9, 0.9, Some(1)), "bce");
            assert_eq!(name(1, 1.0, 1.0, Some(1)), own);
            // Epochs in which only the head learns do not count.
            assert_eq!(name(1, 2.5, 0.5, Some(1)), "bce");
            assert_eq!(name(2, 3.5, 1.5, Some(1)), "bce");
            assert_eq!(name(0, 0.0, 0.0, Some(1)), own);
            // What dev is judged by is the same from the first epoch on.
            assert_eq!(name(1, 0.9, 0.9, None), own);
            let expected = (0.574_442_5 * 0.425_557_5 + 0.450_166 * 0.549_834) / 2.0;
            for (name, weight, value) in [&of(1, 0.0, 0.0, Some(1))[1], &of(1, 0.0, 0.0, None)[1]] {
                assert_eq!((name.as_str(), *weight), ("variance", 0.0));
                assert!((value - expected).abs() < 1e-6, "{value} {expected}");
            }
        }
    }

    #[test]
    fn labels_that_do_not_count_add_nothing() {
        // Multiplying masked logits by 0 would add ln 2 for each and give .6346971.
        let taxonomy = cladist_core::Taxonomy::flat(["a", "b", "c", "d"]);
        let all: Vec<LabelId> = taxonomy.labels().collect();
        let z: Tensor<2> = Tensor::from_floats([[0.3, -0.2, 1.5, 2.0]], &Device::flex().autodiff());
        let gold: LabelSet = ["a", "c"].iter().map(|id| taxonomy.get(id).unwrap()).collect();
        let objective = |only: &[LabelId]| {
            let labelwise = Labelwise { labels: only.into(), some: true, ..labelwise(&taxonomy, Loss::Bce) };
            let columns: Vec<u32> = only.iter().map(|label| label.index() as u32).collect();
            let z = select_columns(z.clone(), &columns);
            labelwise.objective(z, std::slice::from_ref(&gold), &MEASURED)
        };
        let value = |objective: Objective| objective.values()[0].1;
        assert!((value(objective(&all[..2])) - 0.576_247_1).abs() < 1e-6);
        assert!((value(objective(&all[..1])) - 0.554_355_2).abs() < 1e-6);
        assert!((value(objective(&all[1..2])) - 0.598_138_9).abs() < 1e-6);
        // By label, not by branch.
        assert!((value(objective(&all[..2]).scaled(0.5)) - 0.288_123_5).abs() < 1e-6);
        let given = |given: &[u32]| {
            let z = select_columns(z.clone(), given);
            let gold = std::slice::from_ref(&gold);
            labelwise(&taxonomy, Loss::Bce).objective_of(z, gold, Some(given), &MEASURED).values()
        };
        assert!((given(&[0, 1])[0].1 - 0.576_247_1).abs() < 1e-6);
        assert!(given(&[]).is_empty());
    }
}
