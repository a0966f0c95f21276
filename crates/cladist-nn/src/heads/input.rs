//! What heads are given.

use burn::tensor::Tensor;

use crate::encoder::Encoded;
use crate::shortlist::Rows;

/// What a head sees of a batch.
#[derive(Debug, Clone, Copy)]
pub struct HeadInput<'a> {
    /// The documents.
    pub documents: &'a Encoded,
    /// Encoded label descriptions, if the head reads them.
    pub labels: Option<&'a LabelStates>,
    /// Rows of labels outside the network, if the head has a shortlist.
    pub rows: Option<&'a Rows<'a>>,
}

/// Vectors of label descriptions.
#[derive(Debug, Clone)]
pub struct LabelStates {
    /// `[labels, hidden]`
    pub vectors: Tensor<2>,
    /// Which labels they are, ascending; all if `None`.
    pub labels: Option<Vec<u32>>,
}

/// The labels whose descriptions a training step encodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelBatch {
    /// All, and the encoder learns from them.
    All,
    /// These, ascending, and the encoder learns from them; other labels do not count in the step.
    Of(Vec<u32>),
    /// All, as the encoder had them when the number of updates was last a multiple of this; it does not learn from them.
    Every(u64),
}

impl<'a> HeadInput<'a> {
    /// Documents alone.
    #[must_use]
    pub fn new(documents: &'a Encoded) -> Self {
        Self::of(documents, None)
    }

    /// Documents, and encoded label descriptions.
    #[must_use]
    pub fn of(documents: &'a Encoded, labels: Option<&'a LabelStates>) -> Self {
        Self { documents, labels, rows: None }
    }
}

/// Where training is.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Epochs done, with the part of this one: 1.5 is the middle of the second.
    pub epoch: f64,
    /// The same from when the encoder learns; 0 while only the head does.
    pub thawed: f64,
    /// Seed of this step's dropout; `None` when the loss is only measured.
    pub seed: Option<u64>,
}
