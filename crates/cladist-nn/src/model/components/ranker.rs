//! What scores the labels of groups in place of their rows, if it was trained.

use cladist_core::LabelId;
use cladist_core::bundle::Writer;
use cladist_core::linear::Ranker;
use rayon::prelude::*;

use super::{Answers, Chunk, Component, Ground, Origin, Pass};
use crate::counts;
use crate::encoder::LayerSet;
use crate::error::Result;
use crate::heads::{HeadInput, Listed, Outputs};
use crate::model::Network;
use crate::ranker::Seen;

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

    fn pass<'a>(
        &'a self,
        network: &'a Network,
        layers: &LayerSet,
        n_windows: usize,
    ) -> Option<Box<dyn Pass + 'a>> {
        let ranker = self.0.as_ref()?;
        let listed = network.head.outputs().and_then(Outputs::listed)?;
        let (layers, seen) = (layers.clone(), Seen::new(n_windows));
        Some(Box::new(Matching { ranker, listed, network, layers, seen }))
    }
}

/// Groups that the network finds, and what the ranker reads.
struct Matching<'a> {
    ranker: &'a Ranker,
    listed: &'a Listed,
    network: &'a Network,
    layers: LayerSet,
    seen: Seen,
}

impl Pass for Matching<'_> {
    fn scores_labels(&self) -> bool {
        true
    }

    fn take(&mut self, batch: &[usize], input: &HeadInput<'_>) {
        let vectors = counts::vectors(input.documents, &self.layers);
        self.seen.take(batch, vectors, self.network.head.groups(input));
    }

    fn finish(self: Box<Self>, chunk: &Chunk<'_>, answers: &mut Answers) {
        let seen = self.seen.of_documents(chunk.tokens, chunk.pool);
        let (ranker, listed) = (self.ranker, self.listed);
        answers.rows = (seen.into_par_iter().zip(chunk.documents))
            .map(|((vector, logits), document)| {
                let scores = ranker.score(document, &vector, &listed.best_groups(&logits));
                let known = |(label, score)| Some((chunk.taxonomy.at(label as usize)?, score));
                let mut row: Vec<(LabelId, f32)> = scores.into_iter().filter_map(known).collect();
                chunk.request.narrow(&mut row, chunk.taxonomy);
                row
            })
            .collect();
    }
}
