//! How many labels a document has, if that was learnt.

use cladist_core::bundle::Writer;

use super::{Component, Ground, Origin};
use crate::counts::CountNetwork;
use crate::error::Result;
use crate::model::Network;
use crate::parameters::{self, unfit};

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
}
