//! What scores the labels of groups in place of their rows, if it was trained.

use cladist_core::bundle::Writer;
use cladist_core::linear::Ranker;

use super::{Component, Ground, Origin};
use crate::error::Result;
use crate::heads::Outputs;
use crate::model::Network;

/// The ranker.
#[derive(Debug, Default)]
pub(crate) struct Ranking(pub(crate) Option<Ranker>);

impl Component for Ranking {
    fn complete(&mut self, origin: &Origin<'_>, ground: &Ground<'_>, network: &Network) -> Result<()> {
        let config = &ground.design.ranker;
        let listed = network.head.outputs().and_then(Outputs::listed);
        if let (Origin::Bundle(folder), true, Some(listed)) = (origin, config.on, listed) {
            let width = network.encoder.hidden_size();
            self.0 = Some(Ranker::load(folder, config, listed.partition(), width)?);
        }
        Ok(())
    }

    fn save(&self, writer: &Writer) -> Result<()> {
        Ok(self.0.as_ref().map_or(Ok(()), |ranker| ranker.save(writer))?)
    }
}
