//! Linear classifiers for the labels of the groups that the network finds (see [`cladist_core::linear::Ranker`]), in place of
//! the rows of a shortlist.
//!
//! They are trained once the network is. Their features are the TF-IDF of a document and the vector that the network has of
//! it: `[CLS]` of the highest layer that the head reads, or the mean of the tokens if it reads more of them. A document of
//! several windows has the mean of their vectors, and its groups have the highest or the mean logit of all, as
//! `tokens.pool` says.

use burn::tensor::Tensor;
use cladist_core::linear::RankerConfig;

use crate::error::Result;
use crate::heads::setting;
use crate::parameters::to_vec;
use crate::shortlist::ShortlistConfig;
use crate::tokens::{Pool, Sequence};

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
    pub(crate) fn of_documents(&self, documents: &[Vec<Sequence>], pool: Pool) -> Vec<(Vec<f32>, Vec<f32>)> {
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

#[cfg(test)]
mod tests;
