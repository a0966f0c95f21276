//! Transformer encoders and word vectors: token ids in, the states of any layer out.

mod config;
mod encoded;
mod layer;
mod names;
mod scratch;
mod weights;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use cladist_kernels::attention::Outputs;
use cladist_kernels::dropout::Dropout;
use cladist_kernels::embedding::Token;
use cladist_kernels::layer::{Dropouts, Panels};

pub use config::{EncoderConfig, Family};
pub use encoded::{Encoded, LayerSet};
pub use layer::Layer;
pub(crate) use layer::{linear, normalise};
pub use scratch::Scratch;
pub use weights::LoadReport;

pub(crate) use crate::seeds::derive as place;
pub use crate::tokens::Packing;

use crate::fused::{EmbeddingParameters, embed, is_cpu};
use crate::tokens::TokenBatch;
use layer::Setting;

/// Word, position and type tables with their normalisation; word vectors have the first alone.
#[derive(Module, Debug)]
pub struct Embeddings {
    words: Param<Tensor<2>>,
    positions: Option<Param<Tensor<2>>>,
    types: Option<Param<Tensor<2>>>,
    norm_gain: Option<Param<Tensor<1>>>,
    norm_bias: Option<Param<Tensor<1>>>,
}

/// tanh(W·`[CLS]` + b), which BERT learnt with its next-sentence task.
#[derive(Module, Debug)]
pub struct Pooler {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

/// A BERT-like encoder, or word vectors: an encoder without layers.
#[derive(Module, Debug)]
pub struct Encoder {
    embeddings: Embeddings,
    layers: Vec<Layer>,
    pooler: Option<Pooler>,
    #[module(skip)]
    config: Arc<EncoderConfig>,
}

/// How a batch is run.
#[derive(Debug, Clone, Copy)]
pub enum Mode<'a> {
    /// With dropout, drawn from a seed that changes with every step.
    Training {
        /// The seed of this step.
        seed: u64,
    },
    /// Without dropout; with weights packed before, if there are some.
    Inference(Option<&'a PackedWeights>),
}

/// Weights in the layout of the CPU kernels: made once when many batches follow with the same weights.
#[derive(Debug, Clone)]
pub struct PackedWeights(Vec<Arc<Panels>>);

/// Dropout rates in use, which may differ from those the encoder was trained with.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rates {
    hidden: f32,
    attention: f32,
}

impl Encoder {
    /// Sizes and constants.
    #[must_use]
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Width of token states.
    #[must_use]
    pub fn hidden_size(&self) -> usize {
        self.config.hidden_size
    }

    /// Transformer layers.
    #[must_use]
    pub fn n_layers(&self) -> usize {
        self.layers.len()
    }

    /// Where its parameters are.
    #[must_use]
    pub fn device(&self) -> Device {
        self.embeddings.words.device()
    }

    /// Whether [`Encoded::pooled`] will be there.
    #[must_use]
    pub fn has_pooler(&self) -> bool {
        self.pooler.is_some()
    }

    /// The same encoder with dropout at another rate than its `config.json` says.
    #[must_use]
    pub fn with_dropout(mut self, rate: f32) -> Self {
        let config = Arc::make_mut(&mut self.config);
        config.hidden_dropout = rate;
        config.attention_dropout = rate;
        self
    }

    /// The same encoder whose embeddings and first `n_layers` layers no longer learn.
    #[must_use]
    pub fn freeze(mut self, n_layers: usize) -> Self {
        self.embeddings = self.embeddings.no_grad();
        self.layers = (self.layers.into_iter().enumerate())
            .map(|(n, layer)| if n < n_layers { layer.no_grad() } else { layer })
            .collect();
        if n_layers >= self.layers.len() {
            self.pooler = self.pooler.map(Module::no_grad);
        }
        self
    }

    /// Packs the weights for many batches; `None` on devices that need no packing.
    #[must_use]
    pub fn pack(&self) -> Option<PackedWeights> {
        let shape = layer::shape(&self.config);
        is_cpu(&self.device())
            .then(|| PackedWeights(self.layers.iter().map(|layer| layer.pack(shape)).collect()))
    }

    /// The states of the layers in `keep`: 0 is the embeddings, 1 the first layer. Layers above the highest one
    /// kept are not run, nor is what [`LayerSet::first_tokens`] says nobody reads of the highest.
    #[must_use]
    pub fn encode(&self, batch: &TokenBatch, keep: &LayerSet, mode: Mode<'_>) -> Encoded {
        self.run(batch, keep, mode, &LayerSet::default(), &|x| x)
    }

    /// As [`Encoder::encode`], with embeddings `[tokens, hidden]` that go through `probe` before the first layer reads them.
    #[must_use]
    pub fn encode_probed(
        &self,
        batch: &TokenBatch,
        keep: &LayerSet,
        mode: Mode<'_>,
        probe: &dyn Fn(Tensor<2>) -> Tensor<2>,
    ) -> Encoded {
        self.run(batch, keep, mode, &LayerSet::default(), probe)
    }

    /// As [`Encoder::encode`], with the attention probabilities of the layers in `attention` (from 1).
    #[must_use]
    pub fn encode_with_attention(
        &self,
        batch: &TokenBatch,
        keep: &LayerSet,
        attention: &LayerSet,
        mode: Mode<'_>,
    ) -> Encoded {
        self.run(batch, keep, mode, attention, &|x| x)
    }

    fn run(
        &self,
        batch: &TokenBatch,
        keep: &LayerSet,
        mode: Mode<'_>,
        watched: &LayerSet,
        probe: &dyn Fn(Tensor<2>) -> Tensor<2>,
    ) -> Encoded {
        let packing = Packing::new(&batch.offsets);
        let rates = match mode {
            Mode::Training { .. } => {
                Rates { hidden: self.config.hidden_dropout, attention: self.config.attention_dropout }
            }
            Mode::Inference(_) => Rates { hidden: 0.0, attention: 0.0 },
        };
        let (seed, panels) = match mode {
            Mode::Training { seed } => (seed, None),
            Mode::Inference(packed) => (0, packed),
        };
        let mut states = BTreeMap::new();
        let mut attention = BTreeMap::new();
        let mut x = probe(self.embed(batch, Dropout { rate: rates.hidden, seed: place(seed, 0) }));
        let last = keep.last().max(watched.last()).unwrap_or(0);
        // Only the last layer may leave tokens out: the layer above reads all of them.
        let first = keep.last().filter(|&layer| keep.only_first_tokens(layer) && layer == last && layer > 0);
        if keep.contains(0) {
            states.insert(0, x.clone());
        }
        for (n, layer) in self.layers.iter().enumerate().take(last) {
            let number = n + 1;
            let at = |site: u64| place(seed, 4 * number as u64 + site);
            let setting = Setting {
                shape: layer::shape(&self.config),
                packing: &packing,
                dropouts: matches!(mode, Mode::Training { .. }).then(|| Dropouts {
                    attention: Dropout { rate: rates.attention, seed: at(0) },
                    hidden1: Dropout { rate: rates.hidden, seed: at(1) },
                    hidden2: Dropout { rate: rates.hidden, seed: at(2) },
                }),
                panels: panels.map(|packed| Arc::clone(&packed.0[n])),
                outputs: if Some(number) == first { Outputs::First } else { Outputs::All },
            };
            if watched.contains(number) {
                attention.insert(number, layer.attend(x.clone(), &setting).0);
            }
            x = layer.forward(x, &setting);
            if keep.contains(number) {
                states.insert(number, x.clone());
            }
        }
        Encoded::new(packing, states, first.into_iter().collect(), attention, self.pooler.as_ref())
    }

    /// What [`Encoder::encode`] would return, of states that it returned before of sequences with these offsets: of all
    /// their tokens, or of the first ones.
    pub(crate) fn encoded(
        &self,
        offsets: &[usize],
        states: BTreeMap<usize, Tensor<2>>,
        first: BTreeSet<usize>,
    ) -> Encoded {
        Encoded::new(Packing::new(offsets), states, first, BTreeMap::new(), self.pooler.as_ref())
    }

    fn embed(&self, batch: &TokenBatch, dropout: Dropout) -> Tensor<2> {
        let Embeddings { words, positions, types, norm_gain, norm_bias } = &self.embeddings;
        let first = self.config.first_position;
        let device = self.device();
        if is_cpu(&device)
            && let (Some(positions), Some(gain), Some(bias)) = (positions, norm_gain, norm_bias)
        {
            let tokens = (batch.ids.iter().zip(&batch.positions))
                .map(|(&word, &position)| Token { word, position: position + first as u32, kind: 0 })
                .collect();
            let types = types
                .as_ref()
                .map_or_else(|| Tensor::zeros([1, self.config.hidden_size], &device), Param::val);
            let parameters = EmbeddingParameters {
                words: words.val(),
                positions: positions.val(),
                types,
                gain: gain.val(),
                bias: bias.val(),
            };
            return embed(parameters, tokens, self.config.epsilon, dropout);
        }
        self.embed_plain(batch, dropout)
    }

    /// The same in ordinary operations: for word vectors, and what every device but the CPU runs.
    fn embed_plain(&self, batch: &TokenBatch, dropout: Dropout) -> Tensor<2> {
        let Embeddings { words, positions, types, norm_gain, norm_bias } = &self.embeddings;
        let first = self.config.first_position;
        let device = self.device();
        let rows = |values: Vec<i64>| -> Tensor<1, Int> {
            let n = values.len();
            Tensor::from_data(TensorData::new(values, [n]), &device)
        };
        let ids = rows(batch.ids.iter().map(|&id| i64::from(id)).collect());
        let mut x = words.val().select(0, ids);
        if let Some(positions) = positions {
            let places = rows(batch.positions.iter().map(|&p| i64::from(p) + first as i64).collect());
            x = x + positions.val().select(0, places);
        }
        if let Some(types) = types {
            x = x + types.val().slice([0..1, 0..self.config.hidden_size]);
        }
        if let (Some(gain), Some(bias)) = (norm_gain, norm_bias) {
            x = normalise(x, gain.val(), bias.val(), self.config.epsilon);
        }
        layer::drop(x, dropout)
    }
}

#[cfg(test)]
mod tests;
