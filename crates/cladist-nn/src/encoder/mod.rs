//! Transformer encoders and word vectors: token ids in, the states of any layer out.

mod attention;
mod check;
mod config;
pub mod description;
mod embeddings;
mod encoded;
mod families;
mod fields;
mod files;
mod layer;
mod ops;
mod pooling;
mod scratch;
mod slots;
mod weights;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use cladist_kernels::attention::Outputs;
use cladist_kernels::dropout::Dropout;
use cladist_kernels::layer::{Dropouts, Panels};

pub use config::EncoderConfig;
pub use embeddings::Embeddings;
pub(crate) use encoded::Reads;
use encoded::means;
pub use encoded::{Encoded, LayerSet};
pub use families::Family;
pub use layer::Layer;
pub(crate) use ops::{linear, normalise};
pub use pooling::Pooling;
pub use scratch::Scratch;
pub use weights::LoadReport;

pub(crate) use crate::seeds::derive as place;
pub use crate::tokens::Packing;

use crate::fused::is_cpu;
use crate::tokens::TokenBatch;
use attention::Relations;
use description::{DropoutRates, NormPlace};
use layer::Setting;
use ops::{Maybe, norm};

/// tanh(W·`[CLS]` + b), which BERT learnt with its next-sentence task.
#[derive(Module, Debug)]
pub struct Pooler {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

/// A transformer encoder as its [`EncoderConfig`] describes it, or word vectors: an encoder without layers.
#[derive(Module, Debug)]
pub struct Encoder {
    embeddings: Embeddings,
    /// Layers with parameters of their own; several may share one.
    layers: Vec<Layer>,
    /// `[buckets, heads]`
    distance_bias: Maybe<2>,
    last_norm_gain: Maybe<1>,
    last_norm_bias: Maybe<1>,
    pooler: Option<Pooler>,
    #[module(skip)]
    config: Arc<EncoderConfig>,
    /// Which of `layers` do not learn; `None` if embeddings learn too.
    #[module(skip)]
    frozen: Option<BTreeSet<usize>>,
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
        self.config.n_layers
    }

    /// Where its parameters are.
    #[must_use]
    pub fn device(&self) -> Device {
        self.embeddings.device()
    }

    /// Whether [`Encoded::pooled`] will be there.
    #[must_use]
    pub fn has_pooler(&self) -> bool {
        self.pooler.is_some()
    }

    /// The same encoder with dropout at another rate than its `config.json` says.
    #[must_use]
    pub fn with_dropout(mut self, rate: f32) -> Self {
        Arc::make_mut(&mut self.config).dropout = DropoutRates::new(rate, rate);
        self
    }

    /// The same encoder whose embeddings and first `n_layers` layers no longer learn, nor what they share with others.
    /// They run without dropout: what does not learn gains nothing from noise, and says the same of a document every time.
    #[must_use]
    pub fn freeze(mut self, n_layers: usize) -> Self {
        let frozen = n_layers.min(self.n_layers());
        let groups: BTreeSet<usize> = (0..frozen).map(|layer| self.config.group_of(layer)).collect();
        self.embeddings = self.embeddings.no_grad();
        self.layers = (self.layers.into_iter().enumerate())
            .map(|(n, layer)| if groups.contains(&n) { layer.no_grad() } else { layer })
            .collect();
        if frozen > 0 {
            self.distance_bias = self.distance_bias.map(Module::no_grad);
        }
        if frozen == self.config.n_layers {
            self.last_norm_gain = self.last_norm_gain.map(Module::no_grad);
            self.last_norm_bias = self.last_norm_bias.map(Module::no_grad);
            self.pooler = self.pooler.map(Module::no_grad);
        }
        self.frozen.get_or_insert_default().extend(groups);
        self
    }

    /// Packs the weights for many batches; `None` where ordinary operations run, which need no packing.
    #[must_use]
    pub fn pack(&self) -> Option<PackedWeights> {
        (is_cpu(&self.device()) && self.config.fuses_layers())
            .then(|| PackedWeights(self.layers.iter().map(|layer| layer.pack(&self.config)).collect()))
    }

    /// The states of the layers in `keep`: 0 is the embeddings, 1 the first layer. Layers above the highest one
    /// kept are not run, nor is what [`LayerSet::first_tokens`] says nobody reads of the highest.
    ///
    /// Where layers normalise before they read, the state of every layer from 1 is its output through the last norm.
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
        let table = self.distance_bias.as_ref().map(Param::val);
        let relations = Relations::new(&self.config, table, &packing, &self.device());
        let (rates, seed, panels) = match mode {
            Mode::Training { seed } => (self.config.dropout, seed, None),
            Mode::Inference(packed) => (DropoutRates::new(0.0, 0.0), 0, packed),
        };
        let mut states = BTreeMap::new();
        let mut attention = BTreeMap::new();
        let rate = if self.frozen.is_some() { 0.0 } else { rates.embeddings };
        let dropout = Dropout { rate, seed: place(seed, 0) };
        let mut x = probe(self.embeddings.forward(&self.config, batch, dropout));
        let last = keep.last().max(watched.last()).unwrap_or(0).min(self.n_layers());
        // Only the last layer may leave tokens out: the layer above reads all of them.
        let first = keep.last().filter(|&layer| keep.only_first_tokens(layer) && layer == last && layer > 0);
        let mut keep_state = |number: usize, x: &Tensor<2>| {
            let Some(reads) = keep.reads(number) else { return };
            let state = if number == 0 { x.clone() } else { self.finish(x.clone()) };
            let kept = match reads {
                Reads::First if Some(number) == first => (Reads::First, state),
                Reads::First | Reads::Tokens => (Reads::Tokens, state),
                Reads::Mean => (Reads::Mean, means(&packing, state)),
            };
            states.insert(number, kept);
        };
        keep_state(0, &x);
        for n in 0..last {
            let number = n + 1;
            let group = self.config.group_of(n);
            let layer = &self.layers[group];
            let frozen = self.frozen.as_ref().is_some_and(|frozen| frozen.contains(&group));
            let drop = |rate: f32, site: u64| {
                let rate = if frozen { 0.0 } else { rate };
                Dropout { rate, seed: place(seed, 4 * number as u64 + site) }
            };
            let setting = Setting {
                config: &self.config,
                number: n,
                packing: &packing,
                relations: &relations,
                dropouts: Dropouts {
                    attention: drop(rates.attention, 0),
                    hidden1: drop(rates.attention_output, 1),
                    hidden2: drop(rates.mlp_output, 2),
                },
                panels: panels.map(|packed| Arc::clone(&packed.0[group])),
                outputs: if Some(number) == first { Outputs::First } else { Outputs::All },
            };
            if watched.contains(number) {
                attention.insert(number, layer.attend(x.clone(), &setting).0);
            }
            x = layer.forward(x, &setting);
            keep_state(number, &x);
        }
        Encoded::new(packing, states, attention, self.pooler.as_ref())
    }

    /// A layer's output as it is read.
    fn finish(&self, x: Tensor<2>) -> Tensor<2> {
        match self.config.norm.place {
            NormPlace::Post => x,
            NormPlace::Pre { .. } => norm(x, &self.last_norm_gain, &self.last_norm_bias, self.config.norm),
        }
    }

    /// What [`Encoder::encode`] would return, of states that it returned before of sequences with these offsets.
    pub(crate) fn encoded(&self, offsets: &[usize], states: BTreeMap<usize, (Reads, Tensor<2>)>) -> Encoded {
        Encoded::new(Packing::new(offsets), states, BTreeMap::new(), self.pooler.as_ref())
    }
}

#[cfg(test)]
mod tests;
