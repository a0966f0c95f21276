//! A trained network with its tokenizer, its labels and its components: a classifier.

pub(crate) mod components;
mod learn;
mod score;

use std::path::Path;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Device;
use cladist_core::bundle::Writer;
use cladist_core::linear::{Ranker, RankerConfig};
use cladist_core::taxonomy::CodingTrees;
use cladist_core::{Cancel, Document, LabelCounts, Taxonomy};

use crate::descriptions::{self, Cut, Descriptions};
use crate::encoder::{Encoder, LayerSet, LoadReport, PackedWeights};
use crate::error::{Error, Result};
use crate::examples::Examples;
use crate::heads::branches::BranchesConfig;
use crate::heads::{AnyHead, AnyHeadConfig, HeadContext, LabelStates, Pool, Task};
use crate::shortlist::{Rows, Shortlist, ShortlistConfig, Table};
use crate::source::EncoderSource;
use crate::tokens::{Sequence, Tokenizer, TokensConfig};
use crate::{parameters, ranker, seeds};
use components::{Components, Ground, Origin};

/// The file of the head's parameters.
const HEAD: &str = "head.safetensors";

/// What decides the form of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// The head.
    pub head: AnyHeadConfig,
    /// Whether each branch of the taxonomy has one of its own.
    pub branches: BranchesConfig,
    /// What is to be predicted.
    pub task: Task,
    /// From text to tokens.
    pub tokens: TokensConfig,
    /// Label smoothing of the losses.
    pub label_smoothing: f64,
    /// Whether outputs of labels begin at how often each occurs.
    pub prior_bias: bool,
    /// Which labels are learnt and scored at a time.
    pub shortlist: ShortlistConfig,
    /// Whether linear classifiers score the labels of groups, and how they are trained.
    pub ranker: RankerConfig,
}

impl Design {
    /// Refuses settings that make no sense, naming the key.
    fn validate(&self) -> Result<()> {
        self.tokens.validate()?;
        ranker::check(&self.shortlist, &self.ranker)
    }
}

/// Where and how a network is made.
#[derive(Debug, Clone)]
pub struct Start<'a> {
    /// Seed of parameters that start at random.
    pub seed: u64,
    /// What tensors are computed on.
    pub device: &'a Device,
    /// When to stop.
    pub cancel: Cancel,
}

impl<'a> Start<'a> {
    /// With a seed on a device; nobody stops it.
    #[must_use]
    pub fn new(seed: u64, device: &'a Device) -> Self {
        Self { seed, device, cancel: Cancel::default() }
    }
}

/// Encoder and head.
#[derive(Module, Debug)]
pub struct Network {
    pub(crate) encoder: Encoder,
    pub(crate) head: AnyHead,
}

/// A network that labels documents.
#[derive(Debug)]
pub struct NeuralModel {
    pub(crate) network: Network,
    /// Its weights in the layout of the kernels, until they change.
    pub(crate) packed: Option<PackedWeights>,
    /// Layers that the head reads.
    pub(crate) layers: LayerSet,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) taxonomy: Taxonomy,
    pub(crate) design: Design,
    pub(crate) components: Components,
}

impl NeuralModel {
    /// A network with a new head on a pretrained or new encoder.
    pub fn create(
        mut design: Design,
        source: &EncoderSource,
        examples: &Examples<'_>,
        taxonomy: Taxonomy,
        counts: &LabelCounts,
        start: &Start<'_>,
    ) -> Result<(Self, LoadReport)> {
        design.validate()?;
        let described = design.head.describes().map(|config| descriptions::texts(&taxonomy, config.path));
        let texts = || {
            let texts = examples.documents.iter().map(|document| document.text.as_str());
            texts.chain(described.iter().flatten().map(String::as_str)).collect::<Vec<_>>()
        };
        let Start { seed, device, cancel } = start;
        let (tokenizer, encoder, report) = source.open(texts, design.head.pooled(), *seed, device, cancel)?;
        design.head.suit(encoder.config());
        let origin = Origin::New { examples, seed: *seed };
        Ok((Self::build(origin, design, tokenizer, encoder, taxonomy, counts, start)?, report))
    }

    /// Label descriptions that are longer than what the head reads of them, if there are any.
    #[must_use]
    pub fn cut_descriptions(&self) -> Option<Cut> {
        self.components.descriptions.cut
    }

    /// Settings of its head, with what followed from the encoder when it was made: what [`NeuralModel::load`] needs.
    #[must_use]
    pub fn head_config(&self) -> &AnyHeadConfig {
        &self.design.head
    }

    /// Reads what [`NeuralModel::save`] wrote.
    pub fn load(
        folder: &Path,
        design: Design,
        taxonomy: Taxonomy,
        counts: &LabelCounts,
        device: &Device,
        cancel: &Cancel,
    ) -> Result<Self> {
        design.validate()?;
        cancel.check()?;
        parameters::check_finite(folder)?;
        let tokenizer = Tokenizer::from_folder(folder)?;
        let (encoder, _) = Encoder::load(folder, design.head.pooled(), 0, device)?;
        let origin = Origin::Bundle(folder);
        // The seed is that of parameters which are read from a file at once.
        let start = Start { seed: 0, device, cancel: cancel.clone() };
        let mut model = Self::build(origin, design, tokenizer, encoder, taxonomy, counts, &start)?;
        let path = folder.join(HEAD);
        let values = parameters::read(&path)?;
        if let Some(name) = values.keys().find(|name| name.contains(".first_norm.")) {
            let reason = format!(
                "tensor `{name}` is of a coding tree that normalises each node by itself, as earlier versions did; it has to be trained again"
            );
            return Err(parameters::unfit(&path, reason));
        }
        model.network.head = parameters::replace(model.network.head, values)
            .map_err(|reason| parameters::unfit(&path, reason))?;
        model.prepare(cancel)?;
        Ok(model)
    }

    /// Puts the parts together: components that the head is built from, the head, and components that it decides on.
    fn build(
        origin: Origin<'_>,
        design: Design,
        tokenizer: Tokenizer,
        encoder: Encoder,
        taxonomy: Taxonomy,
        counts: &LabelCounts,
        start: &Start<'_>,
    ) -> Result<Self> {
        let Start { seed, device, cancel } = start;
        let config = encoder.config();
        tokenizer.fits(config.vocab_size, config.max_tokens(), &design.tokens)?;
        let mut components = Components::default();
        let ground = Ground {
            design: &design,
            taxonomy: &taxonomy,
            counts,
            tokenizer: &tokenizer,
            encoder: &encoder,
            cancel,
        };
        components.all_mut().into_iter().try_for_each(|component| component.begin(&origin, &ground))?;
        let no_trees = CodingTrees::default();
        let mut context = HeadContext {
            only: None,
            taxonomy: &taxonomy,
            label_counts: counts,
            hidden_size: encoder.hidden_size(),
            n_layers: encoder.n_layers(),
            task: design.task,
            label_smoothing: design.label_smoothing,
            prior_bias: design.prior_bias,
            labels: None,
            shortlist: None,
            trees: &no_trees,
            device,
            seed: seeds::derive(*seed, seeds::HEAD),
        };
        components.all().into_iter().for_each(|component| component.inform(&mut context));
        let head = design.branches.build(&design.head, &context)?;
        let layers = head.layers(None);
        let network = Network { encoder, head };
        let encoder = &network.encoder;
        let ground =
            Ground { design: &design, taxonomy: &taxonomy, counts, tokenizer: &tokenizer, encoder, cancel };
        for component in components.all_mut() {
            component.complete(&origin, &ground, &network)?;
        }
        Ok(Self { network, packed: None, layers, tokenizer, taxonomy, design, components })
    }

    /// Writes its files into a bundle: an encoder folder as Hugging Face's tools have it, the head, and what components have.
    pub fn save(&self, writer: &Writer) -> cladist_core::Result<()> {
        let core = |error: Error| error.into_core();
        let pooling = self.design.head.pool().and_then(Pool::pretrained);
        let (config, weights) = self.network.encoder.export(pooling).map_err(core)?;
        writer.write("config.json", &config)?;
        writer.write("model.safetensors", &weights)?;
        writer.write("tokenizer.json", self.tokenizer.to_json())?;
        let head = parameters::write(&parameters::named(&self.network.head)).map_err(core)?;
        writer.write(HEAD, &head)?;
        self.components.all().into_iter().try_for_each(|component| component.save(writer)).map_err(core)
    }

    /// Makes what inference needs, for all batches until the weights change.
    pub(crate) fn prepare(&mut self, cancel: &Cancel) -> Result<()> {
        self.packed = self.network.encoder.pack();
        let (network, packed) = (&self.network, self.packed.as_ref());
        let all = self.components.all_mut();
        all.into_iter().try_for_each(|component| component.prepare(network, packed, cancel))
    }

    /// Prepared for inference.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn ready(mut self) -> Self {
        self.prepare(&Cancel::default()).unwrap();
        self
    }

    /// What labels say of themselves, if the head reads it.
    pub(crate) fn descriptions(&self) -> Option<&Descriptions> {
        self.components.descriptions.descriptions.as_ref()
    }

    /// Vectors of labels by a copy of the network, as constants.
    pub(crate) fn label_states_of(&self, network: &Network, cancel: &Cancel) -> Result<Option<LabelStates>> {
        self.components.descriptions.by(network, cancel)
    }

    /// Groups of labels, if there is a shortlist.
    pub(crate) fn shortlist(&self) -> Option<&Arc<Shortlist>> {
        self.components.rows.shortlist.as_ref()
    }

    /// Rows of labels outside the network, if there are any.
    pub(crate) fn table(&self) -> Option<&Table> {
        self.components.rows.table.as_ref()
    }

    /// The same, to be changed.
    #[cfg(test)]
    pub(crate) fn table_mut(&mut self) -> Option<&mut Table> {
        self.components.rows.table.as_mut()
    }

    /// Rows of labels as they are, if the head has a shortlist.
    pub(crate) fn rows(&self) -> Option<Rows<'_>> {
        self.table().map(Rows::new)
    }

    /// What scores the labels of groups, if it was trained.
    pub(crate) fn ranker(&self) -> Option<&Ranker> {
        self.components.ranker.0.as_ref()
    }

    /// The number of weights of the ranker, if there is one.
    #[must_use]
    pub fn n_ranker_weights(&self) -> Option<usize> {
        self.ranker().map(Ranker::n_weights)
    }

    /// Groups of labels, if there is a shortlist.
    #[must_use]
    pub fn n_groups(&self) -> Option<usize> {
        self.shortlist().map(|shortlist| shortlist.partition.n_groups())
    }

    /// The number of parameters, those of components included.
    #[must_use]
    pub fn n_parameters(&self) -> usize {
        let outside = self.components.outside().map(|(_, _, values)| values.len());
        self.network.num_params() + outside.sum::<usize>()
    }

    /// Windows of each text.
    pub(crate) fn tokenize(&self, documents: &[Document]) -> Result<Vec<Vec<Sequence>>> {
        let texts: Vec<&str> = documents.iter().map(|document| document.text.as_str()).collect();
        self.tokenizer.encode(&texts, &self.design.tokens)
    }

    /// The same of many documents, unless somebody asks to stop.
    pub(crate) fn tokenize_unless(
        &self,
        documents: &[Document],
        cancel: &Cancel,
    ) -> Result<Vec<Vec<Sequence>>> {
        let texts: Vec<&str> = documents.iter().map(|document| document.text.as_str()).collect();
        self.tokenizer.encode_unless(&texts, &self.design.tokens, cancel)
    }
}

#[cfg(test)]
mod tests;
