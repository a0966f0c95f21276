//! What learns once the network is trained: the count network and the ranker.

use burn::tensor::{Tensor, TensorData};
use cladist_core::linear::{Matched, Ranker};
use cladist_core::{Document, Job, LabelSet, Request};

use super::NeuralModel;
use crate::counts::{self, CountNetwork};
use crate::error::Result;
use crate::heads::{Listed, Outputs};
use crate::parameters::to_vec;
use crate::ranker::{self, Seen};
use crate::seeds;
use crate::tokens::{CHUNK, numbered};

impl NeuralModel {
    /// Learns how many labels documents have; from then on scores say it of every document.
    pub fn learn_counts(
        &mut self,
        documents: &[Document],
        gold: &[LabelSet],
        seed: u64,
        job: &Job<'_>,
    ) -> Result<()> {
        let mut rows: Vec<f32> = Vec::new();
        let mut numbers = Vec::new();
        let request = Request { job: job.clone(), ..Request::default() };
        for (chunk, gold) in documents.chunks(CHUNK).zip(gold.chunks(CHUNK)) {
            let tokens = self.tokenize_unless(chunk, &job.cancel)?;
            let windows = numbered(&tokens);
            self.each_batch(&windows, &self.layers, &request, |batch, input| {
                rows.extend(to_vec(counts::vectors(input.documents, &self.layers)));
                numbers.extend(batch.iter().map(|&n| gold[windows[n].0].len().min(counts::MOST) as u32));
            })?;
        }
        let width = self.network.encoder.hidden_size();
        let shape = [numbers.len(), width];
        let vectors = Tensor::from_data(TensorData::new(rows, shape), &self.network.encoder.device());
        let network = CountNetwork::learn(&vectors, &numbers, self.taxonomy.n_labels(), seed, job)?;
        self.components.counts.0 = Some(network);
        Ok(())
    }

    /// Trains the ranker on the documents that the network was trained on; from then on it scores labels.
    pub fn learn_ranker(
        &mut self,
        documents: &[Document],
        gold: &[LabelSet],
        seed: u64,
        job: &Job<'_>,
    ) -> Result<()> {
        ranker::check(&self.design.shortlist, &self.design.ranker)?;
        let (Some(shortlist), Some(listed)) = (self.shortlist(), self.listed()) else { return Ok(()) };
        let mut vectors: Vec<f32> = Vec::new();
        let mut groups: Vec<Vec<u32>> = Vec::with_capacity(documents.len());
        let request = Request { job: job.clone(), ..Request::default() };
        job.progress.stage("read documents for the ranker", documents.len() as u64);
        for chunk in documents.chunks(CHUNK) {
            let tokens = self.tokenize_unless(chunk, &job.cancel)?;
            let windows = numbered(&tokens);
            let mut seen = Seen::new(windows.len());
            self.each_batch(&windows, &self.layers, &request, |batch, input| {
                let vectors = counts::vectors(input.documents, &self.layers);
                seen.take(batch, vectors, self.network.head.groups(input));
            })?;
            for (mut vector, logits) in seen.of_documents(&tokens, self.design.tokens.pool) {
                vector.resize(self.network.encoder.hidden_size(), 0.0);
                vectors.extend(vector);
                groups.push(listed.best_groups(&logits).into_iter().map(|(group, _)| group).collect());
            }
        }
        let examples = Matched { documents, gold, vectors: &vectors, groups: &groups };
        let seed = seeds::derive(seed, seeds::RANKER);
        let trained = Ranker::train(&self.design.ranker, &examples, &shortlist.partition, seed, job)?;
        self.components.ranker.0 = Some(trained);
        Ok(())
    }

    pub(crate) fn listed(&self) -> Option<&Listed> {
        self.network.head.outputs().and_then(Outputs::listed)
    }
}
