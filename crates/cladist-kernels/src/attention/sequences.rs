//! Which tokens belong together, and which of them give an output.

use std::ops::Range;

/// Tokens of a batch laid end to end: sequence i is `offsets[i]..offsets[i + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct Sequences<'a>(&'a [usize]);

impl<'a> Sequences<'a> {
    /// Offsets that start at 0 and never fall.
    ///
    /// # Panics
    /// If they do not.
    #[must_use]
    pub fn new(offsets: &'a [usize]) -> Self {
        assert!(
            offsets.first() == Some(&0) && offsets.is_sorted(),
            "sequence offsets must start at 0 and rise"
        );
        Self(offsets)
    }

    /// Tokens in all.
    #[must_use]
    pub fn n_tokens(self) -> usize {
        self.0.last().copied().unwrap_or(0)
    }

    /// The number of sequences.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len() - 1
    }

    /// Whether there is no sequence.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The tokens of a sequence.
    #[must_use]
    pub fn range(self, sequence: usize) -> Range<usize> {
        self.0[sequence]..self.0[sequence + 1]
    }

    /// Rows of output in all.
    #[must_use]
    pub fn n_rows(self, outputs: Outputs) -> usize {
        match outputs {
            Outputs::All => self.n_tokens(),
            Outputs::First => self.len(),
        }
    }

    /// The token of a row of output.
    #[must_use]
    pub fn token(self, outputs: Outputs, row: usize) -> usize {
        match outputs {
            Outputs::All => row,
            Outputs::First => self.0[row],
        }
    }

    /// The rows of output of a sequence.
    pub(super) fn rows(self, outputs: Outputs, sequence: usize) -> Range<usize> {
        match outputs {
            Outputs::All => self.range(sequence),
            Outputs::First => sequence..sequence + 1,
        }
    }
}

/// The tokens whose output is wanted: each token still sees all of its sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outputs {
    /// Every token.
    #[default]
    All,
    /// The first token of each sequence, which must not be empty.
    First,
}

/// Width of the model and number of heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Width of token states.
    pub hidden: usize,
    /// Attention heads.
    pub n_heads: usize,
}

impl Heads {
    pub(super) fn width(self) -> usize {
        self.hidden / self.n_heads
    }

    pub(super) fn scale(self) -> f32 {
        1.0 / (self.width() as f32).sqrt()
    }
}
