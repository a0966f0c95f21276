//! A head of one's own: `docs/your-own-head.md` explains it, and shows this file.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use cladist_core::scores::keep_top;
use cladist_core::{LabelCounts, LabelId, LabelSet, Taxonomy};
use cladist_nn::blocks::{Linear, dropout};
use cladist_nn::encoder::{Encoder, EncoderConfig, LayerSet, Mode};
use cladist_nn::heads::{Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Task};
use cladist_nn::losses::bce_with_logits;
use cladist_nn::optim::{AdamW, AdamWConfig, GradientSum};
use cladist_nn::tokens::{Sequence, TokenBatch};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Settings of the head: its section in the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TwoViewsConfig {
    /// Dropout on both views.
    pub dropout: f64,
}

impl Default for TwoViewsConfig {
    fn default() -> Self {
        Self { dropout: 0.1 }
    }
}

/// One output per label on `[CLS]` and on the mean of all tokens, side by side.
#[derive(Module, Debug)]
pub struct TwoViews {
    output: Linear,
    #[module(skip)]
    labels: Vec<LabelId>,
    #[module(skip)]
    layer: usize,
    #[module(skip)]
    dropout: f64,
    #[module(skip)]
    label_smoothing: f64,
}

impl HeadConfig for TwoViewsConfig {
    type Head = TwoViews;

    fn pooled(&self) -> bool {
        false
    }

    fn build(&self, context: &HeadContext<'_>) -> cladist_nn::Result<TwoViews> {
        let Self { dropout } = *self;
        if !(0.0..1.0).contains(&dropout) {
            let expected = "at least 0 and below 1";
            return Err(cladist_core::Error::setting("two-views.dropout", expected, dropout).into());
        }
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let (width, n_labels) = (2 * context.hidden_size, context.taxonomy.n_labels());
        Ok(TwoViews {
            output: Linear::new(width, n_labels, &mut random, context.device),
            labels: context.taxonomy.labels().collect(),
            layer: context.n_layers,
            dropout,
            label_smoothing: context.label_smoothing,
        })
    }
}

impl TwoViews {
    /// Logits `[documents, labels]`; dropout only with a seed.
    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let documents = input.documents;
        let views = Tensor::cat(vec![documents.cls(self.layer), documents.mean(self.layer)], 1);
        self.output.forward(dropout(views, self.dropout, seed))
    }
}

impl Head for TwoViews {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let gold: Vec<Vec<u32>> =
            gold.iter().map(|labels| labels.iter().map(|label| label.index() as u32).collect()).collect();
        let logits = self.compute(input, moment.seed);
        Objective::of("bce", bce_with_logits(logits, &gold, self.label_smoothing))
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        [self.layer].into_iter().collect()
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        let probabilities = activation::sigmoid(self.compute(input, None)).into_data();
        let probabilities: Vec<f32> = probabilities.try_into_vec().unwrap_or_default();
        let row = |row: &[f32]| {
            let mut row: Vec<(LabelId, f32)> = self.labels.iter().copied().zip(row.iter().copied()).collect();
            if let Some(k) = top_k {
                keep_top(&mut row, k);
            }
            row
        };
        probabilities.chunks(self.labels.len().max(1)).map(row).collect()
    }

    fn logits(&self, input: &HeadInput<'_>) -> Option<(Tensor<2>, Vec<LabelId>)> {
        Some((self.compute(input, None), self.labels.clone()))
    }
}

/// An encoder and the head.
#[derive(Module, Debug)]
struct Network {
    encoder: Encoder,
    head: TwoViews,
}

/// A few updates on two documents.
#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let encoder = Encoder::random(EncoderConfig::bert(50, 32, 2, 2), false, 1, &device);
    let taxonomy = Taxonomy::flat(["goods", "money"]);
    let gold: Vec<LabelSet> = taxonomy.labels().map(|label| [label].into_iter().collect()).collect();
    let context = HeadContext {
        taxonomy: &taxonomy,
        only: None,
        label_counts: &LabelCounts::of(&gold, taxonomy.n_labels()),
        hidden_size: encoder.hidden_size(),
        n_layers: encoder.n_layers(),
        task: Task::MultiLabel,
        label_smoothing: 0.0,
        prior_bias: true,
        labels: None,
        shortlist: None,
        trees: &Default::default(),
        device: &device,
        seed: 1,
    };
    let head = TwoViewsConfig::default().build(&context)?;
    let layers = head.layers(None);
    let mut network = Network { encoder, head }.train();
    let texts = [vec![1, 7, 9, 2], vec![1, 30, 41, 33, 2]];
    let texts = texts.map(|ids| Sequence { ids, ..Sequence::default() });
    let batch = TokenBatch::new(&texts.iter().collect::<Vec<_>>());
    let mut optimiser = AdamW::new(AdamWConfig::default());
    for seed in 0..20 {
        let encoded = network.encoder.encode(&batch, &layers, Mode::Training { seed });
        let moment = Moment { epoch: 0.0, thawed: 0.0, seed: Some(seed) };
        let objective = network.head.objective(&HeadInput::new(&encoded), &gold, &moment);
        println!("step {seed}: {:?}", objective.values());
        let mut sum = GradientSum::default();
        if let Some(loss) = objective.total() {
            sum.add(&network, loss.backward());
        }
        let norm = sum.norm();
        network = optimiser.step(network, sum, norm, Some(1.0), &|_| 1e-2);
    }
    let encoded = network.encoder.encode(&batch, &layers, Mode::Inference(None));
    println!("scores: {:?}", network.head.score(&HeadInput::new(&encoded), None));
    Ok(())
}
