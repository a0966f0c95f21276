//! What labels say of themselves, if the head reads it. Nothing of it is saved: the encoder and the taxonomy are, so that a label
//! described anew, or a new one, is read as it is.

use burn::tensor::Tensor;
use cladist_core::Cancel;
use cladist_core::bundle::Writer;

use super::{Component, Ground, Lent, Origin};
use crate::descriptions::{Cut, Descriptions};
use crate::encoder::PackedWeights;
use crate::error::Result;
use crate::heads::{HeadContext, LabelStates};
use crate::model::Network;

/// Descriptions and their vectors.
#[derive(Debug, Default)]
pub(crate) struct Described {
    /// If the head reads them in every batch.
    pub(crate) descriptions: Option<Descriptions>,
    /// Their vectors, made once for all batches.
    states: Option<LabelStates>,
    /// Vectors that a new head starts from, until it is built.
    start: Option<Tensor<2>>,
    /// Those that are cut, if any are.
    pub(crate) cut: Option<Cut>,
}

impl Described {
    /// Vectors by a copy of the network, as constants.
    pub(crate) fn by(&self, network: &Network, cancel: &Cancel) -> Result<Option<LabelStates>> {
        let Some(descriptions) = &self.descriptions else { return Ok(None) };
        let vectors = descriptions.read_unless(&network.encoder, None, cancel)?.detach();
        Ok(Some(LabelStates { vectors, labels: None }))
    }
}

impl Component for Described {
    fn begin(&mut self, origin: &Origin<'_>, ground: &Ground<'_>) -> Result<()> {
        let Some(config) = ground.design.head.describes() else { return Ok(()) };
        let Ground { taxonomy, tokenizer, encoder, cancel, .. } = *ground;
        let read = Descriptions::new(&config, taxonomy, tokenizer, encoder, cancel)?;
        self.cut = read.cut();
        if !config.at_start_only {
            self.descriptions = Some(read);
        } else if let Origin::New { .. } = origin {
            self.start = Some(read.read_unless(encoder, None, cancel)?);
        }
        Ok(())
    }

    fn inform<'a>(&'a self, context: &mut HeadContext<'a>) {
        context.labels = self.start.as_ref();
    }

    fn complete(&mut self, _origin: &Origin<'_>, _ground: &Ground<'_>, _network: &Network) -> Result<()> {
        self.start = None;
        Ok(())
    }

    fn save(&self, _writer: &Writer) -> Result<()> {
        Ok(())
    }

    fn prepare(&mut self, network: &Network, packed: Option<&PackedWeights>, cancel: &Cancel) -> Result<()> {
        self.states = None;
        if let Some(descriptions) = &self.descriptions {
            let vectors = descriptions.read_unless(&network.encoder, packed, cancel)?;
            self.states = Some(LabelStates { vectors, labels: None });
        }
        Ok(())
    }

    fn lend<'a>(&'a self, network: &Network, packed: Option<&PackedWeights>, lent: &mut Lent<'a>) {
        let now = |descriptions: &Descriptions| LabelStates {
            vectors: descriptions.read(&network.encoder, packed),
            labels: None,
        };
        lent.labels = self.states.clone().or_else(|| self.descriptions.as_ref().map(now));
    }
}
