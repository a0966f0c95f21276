//! Transformer encoders: token ids in, the states of any layer out.

mod config;
mod encoded;
mod layer;
mod names;
mod packing;
mod scratch;
mod weights;

use std::collections::BTreeMap;
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
pub use packing::Packing;
pub use scratch::Scratch;
pub use weights::LoadReport;

use crate::fused::{EmbeddingParameters, embed, is_cpu};
use crate::tokens::TokenBatch;
use layer::Setting;

/// Word, position and type tables with their normalisation.
#[derive(Module, Debug)]
pub struct Embeddings {
    words: Param<Tensor<2>>,
    positions: Param<Tensor<2>>,
    types: Option<Param<Tensor<2>>>,
    norm_gain: Param<Tensor<1>>,
    norm_bias: Param<Tensor<1>>,
}

/// tanh(W·`[CLS]` + b), which BERT learnt with its next-sentence task.
#[derive(Module, Debug)]
pub struct Pooler {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

/// A BERT-like encoder.
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
        self.run(batch, keep, mode, &LayerSet::default())
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
        self.run(batch, keep, mode, attention)
    }

    fn run(&self, batch: &TokenBatch, keep: &LayerSet, mode: Mode<'_>, watched: &LayerSet) -> Encoded {
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
        let mut x = self.embed(batch, Dropout { rate: rates.hidden, seed: place(seed, 0) });
        let last = keep.last().max(watched.last()).unwrap_or(0);
        // Only the last layer may leave tokens out: the layer above reads all of them.
        let first = keep.last().filter(|&layer| keep.only_first_tokens() && layer == last && layer > 0);
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
        Encoded::new(packing, states, first, attention, self.pooler.as_ref())
    }

    fn embed(&self, batch: &TokenBatch, dropout: Dropout) -> Tensor<2> {
        let Embeddings { words, positions, types, norm_gain, norm_bias } = &self.embeddings;
        let first = self.config.first_position;
        let device = self.device();
        if is_cpu(&device) {
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
                gain: norm_gain.val(),
                bias: norm_bias.val(),
            };
            return embed(parameters, tokens, self.config.epsilon, dropout);
        }
        self.embed_plain(batch, dropout)
    }

    /// The same in ordinary operations: what every device but the CPU runs.
    fn embed_plain(&self, batch: &TokenBatch, dropout: Dropout) -> Tensor<2> {
        let Embeddings { words, positions, types, norm_gain, norm_bias } = &self.embeddings;
        let first = self.config.first_position;
        let device = self.device();
        let rows = |values: Vec<i64>| -> Tensor<1, Int> {
            let n = values.len();
            Tensor::from_data(TensorData::new(values, [n]), &device)
        };
        let ids = rows(batch.ids.iter().map(|&id| i64::from(id)).collect());
        let places = rows(batch.positions.iter().map(|&p| i64::from(p) + first as i64).collect());
        let mut x = words.val().select(0, ids) + positions.val().select(0, places);
        if let Some(types) = types {
            x = x + types.val().slice([0..1, 0..self.config.hidden_size]);
        }
        let x = normalise(x, norm_gain.val(), norm_bias.val(), self.config.epsilon);
        layer::drop(x, dropout)
    }
}

/// The seed of one place of the network in one step.
pub(crate) fn place(seed: u64, place: u64) -> u64 {
    let mut h = seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

#[cfg(test)]
mod tests;
