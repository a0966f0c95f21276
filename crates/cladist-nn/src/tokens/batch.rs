//! Sequences packed one after the other.

/// The tokens of a text, or of one window of it, with the special tokens before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Rows of the vocabulary.
    pub ids: Vec<u32>,
    /// For each token the bytes of the original text that it stands for, `(0, 0)` for special tokens. White space
    /// around is left out, and so may be accents and control characters that the tokenizer deletes.
    pub spans: Vec<(u32, u32)>,
}

impl Sequence {
    /// How many tokens there are, counting the special ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no token at all; a tokenizer gives no such sequence.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// Sequences packed without padding: sequence i is `offsets[i]..offsets[i + 1]` of the other lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenBatch {
    /// The ids of all sequences, one sequence after the other.
    pub ids: Vec<u32>,
    /// The place of each token in its sequence, from 0.
    pub positions: Vec<u32>,
    /// Where sequences begin, and at the end the number of tokens: one more than there are sequences.
    pub offsets: Vec<usize>,
}

impl TokenBatch {
    /// Packs sequences in the order given.
    ///
    /// ```
    /// use cladist_nn::tokens::{Sequence, TokenBatch};
    ///
    /// let long = Sequence { ids: vec![101, 7592, 102], ..Sequence::default() };
    /// let short = Sequence { ids: vec![101, 102], ..Sequence::default() };
    /// let batch = TokenBatch::new(&[&long, &short]);
    /// assert_eq!(batch.ids, [101, 7592, 102, 101, 102]);
    /// assert_eq!(batch.positions, [0, 1, 2, 0, 1]);
    /// assert_eq!(batch.offsets, [0, 3, 5]);
    /// ```
    #[must_use]
    pub fn new(sequences: &[&Sequence]) -> Self {
        let n_tokens = sequences.iter().map(|sequence| sequence.len()).sum();
        let mut ids = Vec::with_capacity(n_tokens);
        let mut positions = Vec::with_capacity(n_tokens);
        let mut offsets = Vec::with_capacity(sequences.len() + 1);
        offsets.push(0);
        for sequence in sequences {
            ids.extend_from_slice(&sequence.ids);
            positions.extend((0u32..).take(sequence.len()));
            offsets.push(ids.len());
        }
        Self { ids, positions, offsets }
    }

    /// How many sequences there are.
    #[must_use]
    pub fn n_sequences(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// How many tokens all sequences have together.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.ids.len()
    }

    /// How many tokens sequence `i` has.
    ///
    /// # Panics
    /// If there is no such sequence.
    #[must_use]
    pub fn length(&self, i: usize) -> usize {
        self.offsets[i + 1] - self.offsets[i]
    }

    /// How many tokens the longest sequence has; 0 for an empty batch.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sequences_can_be_taken_out_of_a_batch_again(
            ids in prop::collection::vec(prop::collection::vec(0u32..50, 0..9), 0..9)
        ) {
            let sequences: Vec<Sequence> =
                ids.iter().map(|ids| Sequence { ids: ids.clone(), spans: Vec::new() }).collect();
            let batch = TokenBatch::new(&sequences.iter().collect::<Vec<_>>());
            prop_assert_eq!(batch.n_sequences(), ids.len());
            prop_assert_eq!(batch.n_tokens(), ids.iter().map(Vec::len).sum::<usize>());
            prop_assert_eq!(batch.longest(), ids.iter().map(Vec::len).max().unwrap_or(0));
            for (i, expected) in ids.iter().enumerate() {
                let range = batch.offsets[i]..batch.offsets[i + 1];
                prop_assert_eq!(batch.length(i), expected.len());
                prop_assert_eq!(&batch.ids[range.clone()], &expected[..]);
                prop_assert!(batch.positions[range].iter().copied().eq(0..expected.len() as u32));
            }
        }
    }
}
