//! Linear classifiers for the labels of the groups that the network finds (see [`cladist_core::linear::Ranker`]), in place of
//! the rows of a shortlist.
//!
//! They are trained once the network is. Their features are the TF-IDF of a document and the vector that the network has of
//! it: `[CLS]` of the highest layer that the head reads, or the mean of the tokens if it reads more of them. A document of
//! several windows has the mean of their vectors, and its groups have the highest or the mean logit of all, as
//! `tokens.pool` says.

use std::path::Path;

use burn::tensor::Tensor;
use cladist_core::bundle::Writer;
use cladist_core::linear::{Matched, Ranker, RankerConfig};
use cladist_core::{Document, Job, LabelId, LabelSet, Request};
use rayon::prelude::*;

use crate::counts;
use crate::error::Result;
use crate::heads::setting;
use crate::model::{CHUNK, NeuralModel, numbered};
use crate::parameters::to_vec;
use crate::shortlist::{Listed, Outputs, ShortlistConfig};
use crate::tokens::{Pool, Sequence};

/// The place of the ranker in a seed.
const PLACE: u64 = 1 << 51;

/// Refuses settings of the two that make no sense, alone or together, naming the key.
pub fn check(shortlist: &ShortlistConfig, ranker: &RankerConfig) -> Result<()> {
    shortlist.validate()?;
    ranker.validate()?;
    if ranker.on && !shortlist.is_on() {
        return Err(setting("ranker.on", "false without `shortlist.group_size`", true));
    }
    if shortlist.match_only && !ranker.on {
        return Err(setting("shortlist.match_only", "false without `ranker.on`", true));
    }
    Ok(())
}

/// What the network says of windows: a vector each, and logits of groups.
#[derive(Debug)]
pub(crate) struct Seen {
    vectors: Vec<Vec<f32>>,
    /// Empty if there is a single group.
    groups: Vec<Vec<f32>>,
}

impl Seen {
    pub(crate) fn new(n_windows: usize) -> Self {
        Self { vectors: vec![Vec::new(); n_windows], groups: vec![Vec::new(); n_windows] }
    }

    /// Takes what is said of the windows of a batch.
    pub(crate) fn take(&mut self, batch: &[usize], vectors: Tensor<2>, groups: Option<Tensor<2>>) {
        put(&mut self.vectors, batch, vectors);
        if let Some(groups) = groups {
            put(&mut self.groups, batch, groups);
        }
    }

    /// Vectors and logits of documents, given the windows of each.
    fn of_documents(&self, documents: &[Vec<Sequence>], pool: Pool) -> Vec<(Vec<f32>, Vec<f32>)> {
        let mut start = 0;
        let of_document = |windows: &Vec<Sequence>| {
            let range = start..start + windows.len();
            start = range.end;
            (pooled(&self.vectors[range.clone()], Pool::Mean), pooled(&self.groups[range], pool))
        };
        documents.iter().map(of_document).collect()
    }
}

fn put(rows: &mut [Vec<f32>], batch: &[usize], values: Tensor<2>) {
    let [_, width] = values.dims();
    let values = to_vec(values);
    batch.iter().zip(values.chunks_exact(width.max(1))).for_each(|(&n, row)| rows[n] = row.to_vec());
}

/// One row of several, number by number.
fn pooled(rows: &[Vec<f32>], pool: Pool) -> Vec<f32> {
    let [first, others @ ..] = rows else { return Vec::new() };
    let mut pooled = first.clone();
    for row in others {
        for (cell, &value) in pooled.iter_mut().zip(row) {
            *cell = match pool {
                Pool::Max => cell.max(value),
                Pool::Mean => *cell + value,
            };
        }
    }
    if pool == Pool::Mean {
        pooled.iter_mut().for_each(|cell| *cell /= rows.len() as f32);
    }
    pooled
}

impl NeuralModel {
    /// Trains the ranker on the documents that the network was trained on; from then on it scores labels.
    pub fn learn_ranker(
        &mut self,
        documents: &[Document],
        gold: &[LabelSet],
        seed: u64,
        job: &Job<'_>,
    ) -> Result<()> {
        check(&self.design.shortlist, &self.design.ranker)?;
        let (Some(shortlist), Some(listed)) = (&self.shortlist, self.listed()) else { return Ok(()) };
        let mut vectors: Vec<f32> = Vec::new();
        let mut groups: Vec<Vec<u32>> = Vec::with_capacity(documents.len());
        let request = Request { job: job.clone(), ..Request::default() };
        job.progress.stage("read documents for the ranker", documents.len() as u64);
        for chunk in documents.chunks(CHUNK) {
            let tokens = self.tokenize(chunk)?;
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
        let seed = crate::encoder::place(seed, PLACE);
        let ranker = Ranker::train(&self.design.ranker, &examples, &shortlist.partition, seed, job)?;
        self.ranker = Some(ranker);
        Ok(())
    }

    /// Rows of scores by the ranker, if there is one; else those that there are.
    pub(crate) fn ranked(
        &self,
        rows: Vec<Vec<(LabelId, f32)>>,
        seen: Option<Seen>,
        documents: &[Document],
        tokens: &[Vec<Sequence>],
        request: &Request<'_>,
    ) -> Vec<Vec<(LabelId, f32)>> {
        let (Some(ranker), Some(listed), Some(seen)) = (&self.ranker, self.listed(), seen) else {
            return rows;
        };
        let seen = seen.of_documents(tokens, self.design.tokens.pool);
        (seen.into_par_iter().zip(documents))
            .map(|((vector, logits), document)| {
                let scores = ranker.score(document, &vector, &listed.best_groups(&logits));
                let known = |(label, score)| Some((self.taxonomy.at(label as usize)?, score));
                let mut row: Vec<(LabelId, f32)> = scores.into_iter().filter_map(known).collect();
                request.narrow(&mut row, &self.taxonomy);
                row
            })
            .collect()
    }

    /// The number of weights of the ranker, if there is one.
    #[must_use]
    pub fn n_ranker_weights(&self) -> Option<usize> {
        self.ranker.as_ref().map(Ranker::n_weights)
    }

    fn listed(&self) -> Option<&Listed> {
        self.network.head.outputs().and_then(Outputs::listed)
    }

    pub(crate) fn load_ranker(&mut self, folder: &Path) -> Result<()> {
        if let (true, Some(shortlist)) = (self.design.ranker.on, &self.shortlist) {
            let width = self.network.encoder.hidden_size();
            self.ranker = Some(Ranker::load(folder, &self.design.ranker, &shortlist.partition, width)?);
        }
        Ok(())
    }

    pub(crate) fn save_ranker(&self, writer: &Writer) -> cladist_core::Result<()> {
        self.ranker.as_ref().map_or(Ok(()), |ranker| ranker.save(writer))
    }
}

#[cfg(test)]
mod tests;
