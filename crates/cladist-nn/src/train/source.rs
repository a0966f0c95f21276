//! Where training examples come from.
//!
//! The loop asks for lengths, of which it makes the plan of batches, and then for the examples of one batch at a time. So they
//! need not all be in memory, and of several processes each fetches its part of a batch alone.

use std::borrow::Cow;

use cladist_core::{Cancel, LabelSet};

use crate::error::Result;
use crate::examples::Examples;
use crate::model::NeuralModel;
use crate::tokens::Sequence;

/// A window of a document, as tokens, with the labels of the document.
#[derive(Debug, Clone)]
pub struct Example<'a> {
    /// The tokens.
    pub sequence: Cow<'a, Sequence>,
    /// The labels.
    pub gold: Cow<'a, LabelSet>,
}

/// What tells examples from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Of the texts.
    pub texts: String,
    /// Of their labels.
    pub labels: String,
}

/// Training examples.
pub trait Source {
    /// Tokens of each example, whose number is its place here.
    fn lengths(&self) -> &[usize];

    /// Some of them, in the order asked for.
    fn fetch(&self, numbers: &[usize]) -> Result<Vec<Example<'_>>>;

    /// The document that an example is of.
    fn id(&self, number: usize) -> String;

    /// Documents; a long one may be several examples.
    fn n_documents(&self) -> usize;

    /// What tells these examples from others.
    fn fingerprint(&self) -> Fingerprint;
}

/// The part of a batch that a rank learns from: every `size`th of its examples.
pub(super) fn shard(batch: &[usize], rank: usize, size: usize) -> Vec<usize> {
    batch.iter().skip(rank).step_by(size.max(1)).copied().collect()
}

/// Examples in memory.
#[derive(Debug)]
pub struct Resident<'a> {
    examples: Examples<'a>,
    tokens: Vec<Vec<Sequence>>,
    /// The document and the window of each example.
    places: Vec<(usize, usize)>,
    lengths: Vec<usize>,
}

impl<'a> Resident<'a> {
    /// Tokenises documents as a model reads them.
    pub fn new(model: &NeuralModel, examples: &Examples<'a>, cancel: &Cancel) -> Result<Self> {
        let tokens = model.tokenize_unless(examples.documents, cancel)?;
        let windows =
            |(n, windows): (usize, &Vec<Sequence>)| (0..windows.len()).map(move |window| (n, window));
        let places: Vec<(usize, usize)> = tokens.iter().enumerate().flat_map(windows).collect();
        let lengths = places.iter().map(|&(document, window)| tokens[document][window].len()).collect();
        Ok(Self { examples: *examples, tokens, places, lengths })
    }
}

impl Source for Resident<'_> {
    fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    fn fetch(&self, numbers: &[usize]) -> Result<Vec<Example<'_>>> {
        let example = |&number: &usize| {
            let (document, window) = self.places[number];
            Example {
                sequence: Cow::Borrowed(&self.tokens[document][window]),
                gold: Cow::Borrowed(&self.examples.gold[document]),
            }
        };
        Ok(numbers.iter().map(example).collect())
    }

    fn id(&self, number: usize) -> String {
        self.examples.documents[self.places[number].0].id.clone()
    }

    fn n_documents(&self) -> usize {
        self.examples.documents.len()
    }

    fn fingerprint(&self) -> Fingerprint {
        let mut texts = blake3::Hasher::new();
        for &(document, window) in &self.places {
            texts.update(&(document as u64).to_le_bytes());
            hash_ids(&mut texts, &self.tokens[document][window].ids);
        }
        Fingerprint { texts: texts.finalize().to_hex().to_string(), labels: hash_labels(self.examples.gold) }
    }
}

/// Takes token ids into a hash.
pub(super) fn hash_ids(hasher: &mut blake3::Hasher, ids: &[u32]) {
    hasher.update(&(ids.len() as u64).to_le_bytes());
    ids.iter().for_each(|id| {
        hasher.update(&id.to_le_bytes());
    });
}

/// A hash of the labels of documents.
pub(super) fn hash_labels(gold: &[LabelSet]) -> String {
    let mut hasher = blake3::Hasher::new();
    for labels in gold {
        hasher.update(&(labels.len() as u64).to_le_bytes());
        labels.iter().for_each(|label| {
            hasher.update(&(label.index() as u64).to_le_bytes());
        });
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_of_a_batch_are_all_of_it() {
        let batch = [7, 3, 9, 1, 4];
        assert_eq!(shard(&batch, 0, 1), batch);
        assert_eq!((shard(&batch, 0, 2), shard(&batch, 1, 2)), (vec![7, 9, 4], vec![3, 1]));
        assert_eq!(shard(&batch[..1], 1, 2), Vec::<usize>::new());
    }
}
