//! Label sequences: an LSTM decoder with attention emits a document's labels autoregressively.
//!
//! Gold labels become a sequence by a fixed order, the most frequent first or depth first, and the loss is the mean of
//! −ln P over labels and ends. A label is emitted at most once. The probability of a label, for thresholds, rankings and
//! ensembles, is its highest one over the steps of the greedy sequence.

mod config;
mod decoder;
mod emit;
mod search;

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use cladist_core::classifier::LabelSequence;
use cladist_core::scores::keep_top;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{LabelId, LabelSet, Taxonomy};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub(crate) use config::emitting;
pub use config::{Constrain, Emission, Order, ScoresFrom};
pub use decoder::Decoder;
pub use emit::Emitter;
pub(super) use emit::{Emit, Memory, State};

use super::{DROPOUT, Head, HeadConfig, HeadContext, HeadInput, Moment, Objective, Task};
use crate::encoder::{LayerSet, place};
use crate::error::{Error, Result};
use crate::losses::cross_entropy;
use crate::parameters::to_vec;
use decoder::Options;
use search::{Beam, Hypothesis, Rules};

/// One line of help.
pub const ABOUT: &str = "label sequences from an LSTM decoder on the encoder (BERT + SGM)";

/// A head that emits labels, whatever network it does it with.
#[derive(Module, Debug)]
pub struct LabelSequencer {
    decoder: Emitter,
    #[module(skip)]
    labels: Vec<LabelId>,
    /// The place of each label in the order.
    #[module(skip)]
    ranks: Vec<u32>,
    #[module(skip)]
    rules: Rules,
    #[module(skip)]
    emission: Emission,
    #[module(skip)]
    layer: usize,
    #[module(skip)]
    label_smoothing: f64,
}

emitting! {
    /// Settings of the label-sequence head.
    LabelSequenceConfig of "label-sequence" {
        /// Feed the decoder the context of the step before, as the paper's algorithm is printed.
        lagged_context: bool = false,
        /// Divide attention scores by the square root of the width.
        scale_attention: bool = false,
    }
}

impl HeadConfig for LabelSequenceConfig {
    type Head = LabelSequencer;

    fn answers_sets(&self) -> bool {
        self.scores == ScoresFrom::Beam
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<LabelSequencer> {
        let emission = self.emission()?;
        if context.n_layers == 0 {
            return Err(Error::Head {
                problem: "`label-sequence` starts decoding from `[CLS]`, and word vectors have no context"
                    .to_owned(),
                remedy: "use a transformer, or the head `sgm` or `enc-dec` on word vectors",
            });
        }
        let options = Options { lagged_context: self.lagged_context, scale_attention: self.scale_attention };
        LabelSequencer::new(context, emission, |n_labels, random| {
            let decoder = Decoder::new(context.hidden_size, n_labels, options, random, context.device);
            Ok(Emitter::Encoder(decoder))
        })
    }
}

impl LabelSequencer {
    /// A head around a network, which is made from the number of labels.
    pub(super) fn new(
        context: &HeadContext<'_>,
        emission: Emission,
        network: impl FnOnce(usize, &mut ChaCha8Rng) -> Result<Emitter>,
    ) -> Result<Self> {
        if context.task == Task::MultiClass {
            return Err(Error::Head {
                problem: "a label sequence has any number of labels".to_owned(),
                remedy: "use `task = \"multi-label\"`",
            });
        }
        let taxonomy = context.taxonomy;
        let order = match emission.order {
            Order::Frequency => taxonomy.by_frequency(context.label_counts),
            Order::DepthFirst => taxonomy.depth_first(),
        };
        let mut ranks = vec![0; taxonomy.n_labels()];
        for (rank, label) in order.into_iter().enumerate() {
            ranks[label.index()] = rank as u32;
        }
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let n_labels = taxonomy.n_labels();
        Ok(Self {
            decoder: network(n_labels, &mut random)?,
            labels: taxonomy.labels().collect(),
            ranks,
            rules: Rules {
                n_labels,
                min_labels: emission.min_labels,
                max_labels: emission.max_labels.min(n_labels),
                parents: (emission.constrain == Constrain::Taxonomy).then(|| parents(taxonomy)),
            },
            emission,
            layer: context.n_layers,
            label_smoothing: context.label_smoothing,
        })
    }
}

fn parents(taxonomy: &Taxonomy) -> Vec<Vec<u32>> {
    let number = |label: &LabelId| label.index() as u32;
    taxonomy.labels().map(|label| taxonomy.parents(label).iter().map(number).collect()).collect()
}

/// Labels by number, in order, and the end.
type Targets = Vec<Vec<u32>>;

impl LabelSequencer {
    fn end(&self) -> u32 {
        self.rules.n_labels as u32
    }

    fn beginning(&self) -> u32 {
        self.rules.n_labels as u32 + 1
    }

    fn targets(&self, gold: &[LabelSet]) -> Targets {
        gold.iter()
            .map(|labels| {
                let mut sequence: Vec<u32> = labels.iter().map(|label| label.index() as u32).collect();
                sequence.sort_by_key(|&label| self.ranks[label as usize]);
                sequence.push(self.end());
                sequence
            })
            .collect()
    }

    /// Logits at every step of the targets, document by document, each after the labels before it.
    fn forced(&self, input: &HeadInput<'_>, targets: &Targets, seed: Option<u64>) -> Tensor<2> {
        let network = self.decoder.network();
        let at = |number: usize| seed.map(|seed| place(seed, DROPOUT + number as u64));
        let (memory, mut state) = network.begin(input.documents, self.layer, at(0));
        let (n, steps) = (targets.len(), targets.iter().map(Vec::len).max().unwrap_or(0));
        // Step by step; a document past its end goes on with the end, and nothing is made of it.
        let before = |step: usize| {
            targets.iter().map(move |target| match step {
                0 => self.beginning(),
                _ => target.get(step - 1).copied().unwrap_or(self.end()),
            })
        };
        let fed = network.fed(&(0..steps).flat_map(before).collect::<Vec<u32>>());
        let [_, width] = fed.dims();
        let mut features = Vec::with_capacity(steps);
        for step in 0..steps {
            let fed = fed.clone().slice([step * n..(step + 1) * n, 0..width]);
            let (next, feature) = network.step(&memory, fed, state, at(step + 1));
            state = next;
            features.push(feature);
        }
        let rows = targets
            .iter()
            .enumerate()
            .flat_map(|(document, target)| (0..target.len()).map(move |step| (step * n + document) as i64));
        let rows: Vec<i64> = rows.collect();
        let features = Tensor::cat(features, 0);
        let rows =
            Tensor::<1, Int>::from_data(TensorData::new(rows.clone(), [rows.len()]), &features.device());
        network.logits(features.select(0, rows))
    }

    /// −1e30 at the labels before each step of the targets.
    fn past(&self, targets: &Targets, device: &Device) -> Tensor<2> {
        let width = self.rules.n_labels + 1;
        let n: usize = targets.iter().map(Vec::len).sum();
        let mut cells = vec![0.0f32; n * width];
        let mut rows = cells.chunks_exact_mut(width);
        for target in targets {
            for (step, row) in (0..target.len()).zip(rows.by_ref()) {
                target[..step].iter().for_each(|&label| row[label as usize] = -1e30);
            }
        }
        Tensor::from_data(TensorData::new(cells, [n, width]), device)
    }

    /// One step after the labels in `last`; gives the logits of each row.
    fn expand(&self, memory: &Memory, last: &[u32], state: State) -> (State, Vec<f32>) {
        let network = self.decoder.network();
        let (state, features) = network.step(memory, network.fed(last), state, None);
        (state, to_vec(network.logits(features)))
    }

    /// The highest probability of each label over the steps of the greedy sequence: a row per document.
    fn pooled(&self, input: &HeadInput<'_>) -> Vec<Vec<f32>> {
        let (memory, mut state) = self.decoder.network().begin(input.documents, self.layer, None);
        let (n, n_labels) = (memory.n_documents(), self.rules.n_labels);
        let mut pooled = vec![vec![0.0f32; n_labels]; n];
        let mut emitted: Vec<Vec<u32>> = vec![Vec::new(); n];
        let mut open = vec![true; n];
        for _ in 0..=self.rules.max_labels {
            let last: Vec<u32> =
                emitted.iter().map(|labels| labels.last().copied().unwrap_or(self.beginning())).collect();
            let (next, mut logits) = self.expand(&memory, &last, state);
            state = next;
            for (document, row) in logits.chunks_exact_mut(n_labels + 1).enumerate() {
                if !open[document] {
                    continue;
                }
                self.rules.log_probabilities(row, &emitted[document]);
                let best =
                    row.iter().enumerate().fold(0, |best, (n, log)| if *log > row[best] { n } else { best });
                open[document] = best < n_labels;
                if open[document] || self.emission.pool_eos_step {
                    for (pooled, log) in pooled[document].iter_mut().zip(row.iter()) {
                        *pooled = pooled.max(log.exp());
                    }
                }
                if open[document] {
                    emitted[document].push(best as u32);
                }
            }
            if !open.contains(&true) {
                break;
            }
        }
        pooled
    }

    /// The best sequences of each document.
    fn search(&self, input: &HeadInput<'_>, n_best: usize) -> Vec<Vec<Hypothesis>> {
        let (memory, mut state) = self.decoder.network().begin(input.documents, self.layer, None);
        let row_width = self.rules.n_labels + 1;
        let mut beams: Vec<Beam> = (0..memory.n_documents())
            .map(|_| Beam::new(self.emission.beam, n_best, self.emission.length_normalisation))
            .collect();
        // Hypotheses of a document; those with fewer repeat their first, and nothing is made of it.
        let mut slots = 1;
        for step in 0..=self.rules.max_labels {
            let last: Vec<u32> = (beams.iter())
                .flat_map(|beam| {
                    (0..slots).map(|slot| {
                        let live = beam.live.get(slot).or_else(|| beam.live.first());
                        live.and_then(|live| live.labels.last().copied()).unwrap_or(self.beginning())
                    })
                })
                .collect();
            let (next, mut logits) = self.expand(&memory, &last, state);
            let mut sources: Vec<Vec<usize>> = Vec::with_capacity(beams.len());
            for (beam, rows) in beams.iter_mut().zip(logits.chunks_exact_mut(slots * row_width)) {
                if beam.is_done() {
                    sources.push(Vec::new());
                    continue;
                }
                let mut rows: Vec<&mut [f32]> = rows.chunks_exact_mut(row_width).collect();
                for (row, live) in rows.iter_mut().zip(&beam.live) {
                    self.rules.log_probabilities(row, &live.labels);
                }
                let rows: Vec<&[f32]> = rows.iter().map(|row| &**row).collect();
                sources.push(beam.advance(&rows, &self.rules));
            }
            if step == self.rules.max_labels || beams.iter().all(Beam::is_done) {
                break;
            }
            let most = sources.iter().map(Vec::len).max().unwrap_or(0).max(1);
            let rows: Vec<usize> = (sources.iter().enumerate())
                .flat_map(|(document, sources)| {
                    (0..most).map(move |slot| {
                        document * slots + sources.get(slot).or_else(|| sources.first()).copied().unwrap_or(0)
                    })
                })
                .collect();
            state = next.select(&rows);
            slots = most;
        }
        beams.into_iter().map(Beam::into_best).collect()
    }
}

impl Head for LabelSequencer {
    fn objective(&self, input: &HeadInput<'_>, gold: &[LabelSet], moment: &Moment) -> Objective {
        let targets = self.targets(gold);
        let mut logits = self.forced(input, &targets, moment.seed);
        if self.emission.mask_in_training {
            logits = logits.clone() + self.past(&targets, &logits.device());
        }
        Objective::of("sequence", cross_entropy(logits, &targets.concat(), self.label_smoothing))
    }

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        [self.layer].into_iter().collect()
    }

    fn score(&self, input: &HeadInput<'_>, top_k: Option<usize>) -> Vec<Vec<(LabelId, f32)>> {
        let rows = match self.emission.scores {
            ScoresFrom::Steps => self.pooled(input),
            ScoresFrom::Beam => (self.search(input, 1).iter())
                .map(|best| {
                    let mut row = vec![0.0; self.labels.len()];
                    for (&label, step) in best.iter().flat_map(|best| best.labels.iter().zip(&best.steps)) {
                        row[label as usize] = 0.5 + 0.5 * step.exp();
                    }
                    row
                })
                .collect(),
        };
        (rows.into_iter())
            .map(|values| {
                let mut row: Vec<(LabelId, f32)> = self.labels.iter().copied().zip(values).collect();
                if let Some(k) = top_k {
                    keep_top(&mut row, k);
                }
                row
            })
            .collect()
    }

    fn sequences(&self, input: &HeadInput<'_>, n_best: usize) -> Option<Vec<Vec<LabelSequence>>> {
        let sequence = |hypothesis: Hypothesis| LabelSequence {
            labels: hypothesis.labels.iter().map(|&label| self.labels[label as usize]).collect(),
            log_probability: hypothesis.log,
        };
        let best = self.search(input, n_best);
        Some(best.into_iter().map(|best| best.into_iter().map(sequence).collect()).collect())
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        let mut vectors = self.decoder.network().outputs();
        // The last one is the end's.
        vectors.truncate(self.rules.n_labels);
        Some(vectors)
    }
}

#[cfg(test)]
mod tests;
