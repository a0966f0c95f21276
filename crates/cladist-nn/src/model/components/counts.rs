//! How many labels a document has, if that was learnt.

use cladist_core::bundle::Writer;

use super::{Answers, Chunk, Component, Ground, Origin, Pass};
use crate::counts::{self, CountNetwork};
use crate::encoder::LayerSet;
use crate::error::Result;
use crate::heads::HeadInput;
use crate::model::Network;
use crate::parameters::{self, unfit};
use crate::tokens::numbered;

/// The file of the network.
const FILE: &str = "counts.safetensors";

/// The count network.
#[derive(Debug, Default)]
pub(crate) struct Counts(pub(crate) Option<CountNetwork>);

impl Component for Counts {
    fn complete(&mut self, origin: &Origin<'_>, _ground: &Ground<'_>, network: &Network) -> Result<()> {
        let Origin::Bundle(folder) = origin else { return Ok(()) };
        let path = folder.join(FILE);
        if path.exists() {
            let values = parameters::read(&path)?;
            let counts = CountNetwork::of(values, &network.encoder.device());
            self.0 = Some(counts.map_err(|reason| unfit(&path, reason))?);
        }
        Ok(())
    }

    fn save(&self, writer: &Writer) -> Result<()> {
        let Some(counts) = &self.0 else { return Ok(()) };
        Ok(writer.write(FILE, &parameters::write(&parameters::named(counts))?)?)
    }

    fn pass<'a>(
        &'a self,
        _network: &'a Network,
        layers: &LayerSet,
        n_windows: usize,
    ) -> Option<Box<dyn Pass + 'a>> {
        let network = self.0.as_ref()?;
        Some(Box::new(Counting { network, layers: layers.clone(), numbers: vec![Vec::new(); n_windows] }))
    }
}

/// Probabilities of each number of labels, by window.
struct Counting<'a> {
    network: &'a CountNetwork,
    layers: LayerSet,
    numbers: Vec<Vec<f32>>,
}

impl Pass for Counting<'_> {
    fn take(&mut self, batch: &[usize], input: &HeadInput<'_>) {
        let probabilities = self.network.probabilities(counts::vectors(input.documents, &self.layers));
        batch.iter().zip(probabilities).for_each(|(&n, row)| self.numbers[n] = row);
    }

    fn finish(self: Box<Self>, chunk: &Chunk<'_>, answers: &mut Answers) {
        answers.counts = counts::likeliest(&numbered(chunk.tokens), chunk.tokens.len(), &self.numbers);
    }
}
