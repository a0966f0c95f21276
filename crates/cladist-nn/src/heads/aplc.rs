//! Labels in clusters by frequency: frequent ones have outputs of their own, rare ones share a gate and fewer parameters
//! (Ye et al. 2020).
//!
//! Labels are sorted by the number of their training documents and cut into a head and tails. With f the document vector
//! through a layer with tanh:
//! ```text
//! [z_head; c] = W·f     t_i = V_i·relu(LN(U_i·f))     p = σ(z) in the head, σ(c_i)·σ(t) in tail i
//! ```
//! U_i halves the width once more from tail to tail. A document without gold labels in a tail learns only that its
//! gate is closed, so the tail is not computed for it.
//!
//! Everything is done with log-odds: those of σ(c)·σ(t) are −ln(e⁻ᶜ + e⁻ᵗ + e⁻ᶜ⁻ᵗ), which no rare label underflows.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelCounts, LabelId, LabelSet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::levels::LevelColumns;
use super::mixture::log_sum_exp;
use super::{
    DROPOUT, DocumentVector, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Pool, Task, rows,
    setting,
};
use crate::blocks::{LayerNorm, Linear, Matrix, dropout};
use crate::encoder::{LayerSet, place};
use crate::error::{Error, Result};
use crate::losses::{softplus, targets};

/// One line of help.
pub const ABOUT: &str = "labels in clusters by frequency, rare ones behind a gate (APLC)";

/// Settings of the head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AplcConfig {
    /// The document vector: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Numbers of labels before each tail, the most frequent first; half of them if there is none.
    pub cuts: Vec<usize>,
    /// By how much each tail is narrower than what is before it.
    pub divisor: usize,
    /// Width of the layer on the document vector; 0 is the encoder's.
    pub hidden: usize,
    /// Dropout on the document vector.
    pub dropout: f64,
}

impl Default for AplcConfig {
    fn default() -> Self {
        Self { pool: Pool::default(), cuts: Vec::new(), divisor: 2, hidden: 0, dropout: 0.1 }
    }
}

/// The outputs of a cluster of rare labels.
#[derive(Module, Debug)]
pub struct Tail {
    narrow: Matrix,
    norm: LayerNorm,
    output: Matrix,
}

/// The head.
#[derive(Module, Debug)]
pub struct Aplc {
    summary: Linear,
    /// Labels of the head, then a gate for each tail.
    head: Matrix,
    tails: Vec<Tail>,
    #[module(skip)]
    clusters: Clusters,
    #[module(skip)]
    vector: DocumentVector,
    #[module(skip)]
    config: AplcConfig,
    #[module(skip)]
    label_smoothing: f64,
}

/// The labels of the head and of each tail.
#[derive(Debug, Clone)]
struct Clusters {
    labels: Vec<Vec<LabelId>>,
    columns: LevelColumns,
}

impl Clusters {
    fn new(labels: impl Iterator<Item = LabelId>, counts: &LabelCounts, cuts: &[usize]) -> Self {
        let mut labels: Vec<LabelId> = labels.collect();
        let n_labels = labels.len();
        // Equals stay in the order of their numbers.
        labels.sort_by_key(|label| std::cmp::Reverse(counts.counts.get(label.index()).copied()));
        let mut clusters = Vec::with_capacity(cuts.len() + 1);
        for &cut in cuts.iter().rev() {
            clusters.push(labels.split_off(cut));
        }
        clusters.push(labels);
        clusters.reverse();
        Self { columns: LevelColumns::new(&clusters, n_labels), labels: clusters }
    }
}

impl HeadConfig for AplcConfig {
    type Head = Aplc;

    fn pooled(&self) -> bool {
        self.pool == Pool::Pooled
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<Aplc> {
        let (taxonomy, device) = (context.taxonomy, context.device);
        let cuts = self.checked_cuts(taxonomy.n_labels(), context.task)?;
        let clusters = Clusters::new(taxonomy.labels(), context.label_counts, &cuts);
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let random = &mut random;
        let width = if self.hidden == 0 { context.hidden_size } else { self.hidden };
        let mut narrow = width;
        let summary = Linear::new(context.hidden_size, width, random, device);
        let head = Matrix::new(width, clusters.labels[0].len() + cuts.len(), random, device);
        let tail = |labels: &Vec<LabelId>| {
            narrow = (narrow / self.divisor).max(1);
            Tail {
                narrow: Matrix::new(width, narrow, random, device),
                norm: LayerNorm::new(narrow, device),
                output: Matrix::new(narrow, labels.len(), random, device),
            }
        };
        Ok(Aplc {
            summary,
            head,
            tails: clusters.labels[1..].iter().map(tail).collect(),
            clusters,
            vector: self.pool.at(context)?,
            config: self.clone(),
            label_smoothing: context.label_smoothing,
        })
    }
}

impl AplcConfig {
    fn checked_cuts(&self, n_labels: usize, task: Task) -> Result<Vec<usize>> {
        let Self { pool: _, cuts, divisor, hidden: _, dropout } = self;
        if *divisor == 0 {
            return Err(setting("aplc.divisor", "at least 1", divisor));
        }
        if !(0.0..1.0).contains(dropout) {
            return Err(setting("aplc.dropout", "at least 0 and below 1", dropout));
        }
        if task == Task::MultiClass {
            return Err(Error::Head {
                problem: "`aplc` decides on every label for itself, so a document has several".to_owned(),
                hint: "use `task = \"multi-label\"`",
            });
        }
        if cuts.is_empty() {
            return Ok(if n_labels > 1 { vec![n_labels / 2] } else { Vec::new() });
        }
        let rising = cuts.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising || cuts.iter().any(|cut| !(1..n_labels).contains(cut)) {
            let expected = "rising numbers above 0 and below the number of labels";
            return Err(setting("aplc.cuts", expected, format!("{cuts:?}")));
        }
        Ok(cuts.clone())
    }
}

/// The log-odds of σ(a)·σ(b).
fn both(a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    let (a, b) = (a.neg(), b.neg());
    let either = [a.clone() + b.zeros_like(), b.clone() + a.zeros_like(), a + b];
    log_sum_exp(&either).map_or_else(|| unreachable!("there are three"), Tensor::neg)
}

/// Numbers of documents for whom a cluster is open.
fn open(gold: &[Vec<u32>]) -> Vec<usize> {
    (0..gold.len()).filter(|&document| !gold[document].is_empty()).collect()
}

impl Aplc {
    fn summary(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let vector = self.vector.of(input.documents);
        let vector = self.summary.forward(vector).tanh();
        dropout(vector, self.config.dropout, seed.map(|seed| place(seed, DROPOUT)))
    }

    /// Logits of the head's labels and of the gates.
    fn of_head(&self, summary: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let n_labels = self.clusters.labels[0].len();
        let logits = self.head.forward(summary);
        let n_tails = self.tails.len();
        if n_tails == 0 {
            let none = logits.clone().narrow(1, 0, 1).zeros_like();
            return (logits, none);
        }
        (logits.clone().narrow(1, 0, n_labels), logits.narrow(1, n_labels, n_tails))
    }

    /// Log-odds of all labels, cluster by cluster.
    fn compute(&self, input: &HeadInput<'_>) -> Tensor<2> {
        let summary = self.summary(input, None);
        let (head, gates) = self.of_head(summary.clone());
        let tails = self.tails.iter().enumerate();
        let tails = tails.map(|(n, tail)| both(gates.clone().narrow(1, n, 1), tail.forward(summary.clone())));
        Tensor::cat(std::iter::once(head).chain(tails).collect(), 1)
    }

    /// Mean over documents of the mean binary cross-entropy over what is open for them: labels of the head and of tails with
    /// gold labels, and gates of other tails. `gold` has columns by cluster and document.
    fn loss(&self, summary: Tensor<2>, gold: &[Vec<Vec<u32>>]) -> Tensor<1> {
        let (head, gates) = self.of_head(summary.clone());
        let device = summary.device();
        let n = gold[0].len();
        let mut sizes = vec![self.clusters.labels[0].len(); n];
        for (gold, labels) in gold[1..].iter().zip(&self.clusters.labels[1..]) {
            for (size, gold) in sizes.iter_mut().zip(gold) {
                *size += if gold.is_empty() { 1 } else { labels.len() };
            }
        }
        let share = |document: usize| 1.0 / (n * sizes[document]) as f32;
        let shares = |documents: &[usize]| column(documents.iter().map(|&d| share(d)).collect(), &device);
        let all: Vec<usize> = (0..n).collect();
        let mut loss = (self.cells(head, &gold[0]) * shares(&all)).sum();
        for (number, (tail, gold)) in self.tails.iter().zip(&gold[1..]).enumerate() {
            let gate = gates.clone().narrow(1, number, 1);
            let closed = (0..n).map(|d| if gold[d].is_empty() { share(d) } else { 0.0 }).collect();
            loss = loss + (softplus(gate.clone()) * column(closed, &device)).sum();
            let documents = open(gold);
            if documents.is_empty() {
                continue;
            }
            let rows: Vec<i64> = documents.iter().map(|&document| document as i64).collect();
            let rows: Tensor<1, Int> = Tensor::from_data(TensorData::new(rows, [documents.len()]), &device);
            let logits = both(gate.select(0, rows.clone()), tail.forward(summary.clone().select(0, rows)));
            let gold: Vec<Vec<u32>> = documents.iter().map(|&document| gold[document].clone()).collect();
            loss = loss + (self.cells(logits, &gold) * shares(&documents)).sum();
        }
        loss
    }

    /// Binary cross-entropy of every cell.
    fn cells(&self, logits: Tensor<2>, gold: &[Vec<u32>]) -> Tensor<2> {
        let targets = targets(logits.dims(), gold, self.label_smoothing, &logits.device());
        softplus(logits.clone()) - targets * logits
    }

    fn labels(&self) -> Vec<LabelId> {
        self.clusters.labels.concat()
    }
}

fn column(values: Vec<f32>, device: &Device) -> Tensor<2> {
    let shape = [values.len(), 1];
    Tensor::from_data(TensorData::new(values, shape), device)
}

impl Tail {
    fn forward(&self, summary: Tensor<2>) -> Tensor<2> {
        self.output.forward(self.norm.rectified(self.narrow.forward(summary)))
    }
}

impl Head for Aplc {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let summary = self.summary(input, moment.seed);
        Objective::of("bce", self.loss(summary, &self.clusters.columns.of(gold)))
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        self.vector.layers()
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        Some((self.compute(input), self.labels()))
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        rows(activation::sigmoid(self.compute(input)), &self.labels(), top_k)
    }

    /// Every cluster has columns of its own, for its outputs read something else.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        let mut vectors = vec![SparseRow::new(); self.labels().len()];
        let mut first = 0;
        let outputs = std::iter::once(&self.head).chain(self.tails.iter().map(|tail| &tail.output));
        for (labels, output) in self.clusters.labels.iter().zip(outputs) {
            let mut width = 0;
            for (label, row) in labels.iter().zip(output.outputs()) {
                width = row.len() as u32;
                vectors[label.index()] =
                    row.into_iter().map(|(column, value)| (first + column, value)).collect();
            }
            first += width;
        }
        Some(vectors)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::heads::{AnyHead, AnyHeadConfig};
    use crate::parameters::{names, replace, to_vec};
    use crate::toy::{Toy, design};

    fn close(got: &[f32], expected: &[f64]) -> bool {
        got.iter().zip(expected).all(|(got, expected)| (f64::from(*got) - expected).abs() < 1e-6)
    }

    #[test]
    fn odds_of_two_at_once_are_those_of_the_product() {
        let device = Device::flex();
        let a: Tensor<2> = Tensor::from_floats([[0.0], [-60.0]], &device);
        let b: Tensor<2> = Tensor::from_floats([[0.3, -0.4], [-50.0, 80.0]], &device);
        let odds = both(a, b);
        let got = to_vec(odds.clone());
        // e⁻¹¹⁰ is no number of 32 bits.
        assert!((got[2] + 110.0).abs() < 1e-4 && (got[3] + 60.0).abs() < 1e-4, "{got:?}");
        let p = to_vec(activation::sigmoid(odds));
        assert!(close(&p[..2], &[0.287_221_3, 0.200_656_2]), "{p:?}");
    }

    /// Two labels in the head and two behind a gate, with outputs on x = (1, −1) as worked out by hand.
    fn by_hand(device: &Device) -> (Aplc, Tensor<2>) {
        let toy = Toy::new(Task::MultiLabel);
        let labels: Vec<LabelId> = toy.taxonomy.labels().take(4).collect();
        let config = AplcConfig { cuts: vec![2], ..AplcConfig::default() };
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let clusters = vec![labels[..2].to_vec(), labels[2..].to_vec()];
        let head = Aplc {
            summary: Linear::new(2, 2, &mut random, device),
            head: Matrix::new(2, 3, &mut random, device),
            tails: vec![Tail {
                narrow: Matrix::new(2, 2, &mut random, device),
                norm: LayerNorm::new(2, device),
                output: Matrix::new(2, 2, &mut random, device),
            }],
            clusters: Clusters { columns: LevelColumns::new(&clusters, 4), labels: clusters },
            vector: DocumentVector::default(),
            config,
            label_smoothing: 0.0,
        };
        let values = BTreeMap::from([
            ("summary.weight".to_owned(), (vec![2, 2], vec![0.0; 4])),
            ("summary.bias".to_owned(), (vec![2], vec![0.0; 2])),
            ("head.weight".to_owned(), (vec![3, 2], vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5])),
            // (1, −1) is normalised already; ReLU leaves (1, 0).
            ("tails.0.narrow.weight".to_owned(), (vec![2, 2], vec![1.0, 0.0, 0.0, 1.0])),
            ("tails.0.norm.gain".to_owned(), (vec![2], vec![1.0; 2])),
            ("tails.0.norm.bias".to_owned(), (vec![2], vec![0.0; 2])),
            ("tails.0.output.weight".to_owned(), (vec![2, 2], vec![0.3, 0.0, -0.4, 0.0])),
        ]);
        assert_eq!(names(&head).len(), values.len());
        (replace(head, values).unwrap(), Tensor::from_floats([[1.0, -1.0]], device))
    }

    #[test]
    fn the_loss_is_as_worked_out_by_hand() {
        let device = Device::flex();
        let (head, x) = by_hand(&device);
        let (logits, gates) = head.of_head(x.clone());
        assert!(close(&to_vec(activation::sigmoid(logits)), &[0.731_058_6, 0.268_941_4]));
        assert!(close(&to_vec(activation::sigmoid(gates)), &[0.5]));
        let loss = |head_gold: &[u32], tail_gold: &[u32]| {
            let gold = [vec![head_gold.to_vec()], vec![tail_gold.to_vec()]];
            head.loss(x.clone(), &gold).into_scalar::<f32>()
        };
        assert!((loss(&[], &[0]) - 0.774_497_5).abs() < 1e-6, "{}", loss(&[], &[0]));
        assert!((loss(&[0], &[]) - 0.439_890_2).abs() < 1e-6, "{}", loss(&[0], &[]));
        // Documents count alike.
        let two = Tensor::cat(vec![x.clone(), x.clone()], 0);
        let gold = [vec![vec![], vec![0]], vec![vec![0], vec![]]];
        let mean = head.loss(two, &gold).into_scalar::<f32>();
        assert!((f64::from(mean) - (0.774_497_5 + 0.439_890_2) / 2.0).abs() < 1e-6, "{mean}");
    }

    #[test]
    fn clusters_are_of_frequent_and_of_rare_labels() {
        let toy = Toy::new(Task::MultiLabel);
        let counts = toy.counts();
        for (cuts, expected) in [(vec![], vec![4, 4]), (vec![1, 3], vec![1, 2, 5])] {
            let config = AplcConfig { cuts, ..AplcConfig::default() };
            let model = toy.model(design(AnyHeadConfig::Aplc(config), Task::MultiLabel), 1);
            let AnyHead::Aplc(head) = &model.network.head else { panic!("another head") };
            let sizes: Vec<usize> = head.clusters.labels.iter().map(Vec::len).collect();
            assert_eq!(sizes, expected);
            assert!(head.labels().is_sorted_by_key(|label| {
                (std::cmp::Reverse(counts.counts[label.index()]), label.index())
            }));
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        let refused = |config: AplcConfig, key: &str| {
            let message = config.checked_cuts(8, Task::MultiLabel).unwrap_err().to_string();
            assert!(message.contains(key), "{message}");
        };
        let default = AplcConfig::default;
        for cuts in [vec![0], vec![8], vec![3, 3], vec![5, 2]] {
            refused(AplcConfig { cuts, ..default() }, "aplc.cuts");
        }
        refused(AplcConfig { divisor: 0, ..default() }, "aplc.divisor");
        refused(AplcConfig { dropout: -1.0, ..default() }, "aplc.dropout");
        assert!(default().checked_cuts(1, Task::MultiLabel).unwrap().is_empty());
        assert!(default().checked_cuts(8, Task::MultiClass).is_err());
    }
}
