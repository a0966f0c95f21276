//! Heads: from the states of an encoder to losses and scores.
//!
//! A new head is a file beside this one and a line in `table.rs`.

pub mod aplc;
pub mod attention_xml;
pub mod biforest;
pub mod branches;
mod context;
mod document;
pub mod enc_dec;
pub mod experts;
pub mod flat;
mod head;
pub mod hilap;
pub mod hmcn;
mod input;
pub mod label_attention;
pub mod label_pooling;
pub mod label_sequence;
mod labelwise;
pub mod layer_guided;
mod levels;
pub mod light_xml;
mod mixture;
mod objective;
mod outputs;
mod per_label;
mod settings;
pub mod sgm;
pub mod structure;
mod table;
pub mod text_cnn;
pub mod xml_cnn;

use burn::tensor::Tensor;
use cladist_core::scores::keep_top;
use cladist_core::{LabelId, LabelSet};

pub use context::HeadContext;
pub use document::Pool;
pub use head::{Group, Head, HeadConfig, Masking, Task};
pub use input::{HeadInput, LabelBatch, LabelStates, Moment};
pub use objective::Objective;
pub use outputs::{Listed, Outputs, Vectors};
pub use table::{AnyHead, AnyHeadConfig, HEADS};

pub(crate) use crate::seeds::DROPOUT;
pub(crate) use document::DocumentVector;
pub(crate) use labelwise::{BCE_EPOCHS, Labelwise, select_columns};
pub(crate) use objective::Measured;
pub(crate) use outputs::rows_of;
pub(crate) use settings::setting;

/// Rows of `(label, probability)` from a matrix `[documents, labels]`.
pub(crate) fn rows(
    probabilities: Tensor<2>,
    labels: &[LabelId],
    top_k: Option<usize>,
) -> Vec<Vec<(LabelId, f32)>> {
    let values = crate::parameters::to_vec(probabilities);
    let row = |values: &[f32]| {
        let mut row: Vec<(LabelId, f32)> = labels.iter().copied().zip(values.iter().copied()).collect();
        if let Some(k) = top_k {
            keep_top(&mut row, k);
        }
        row
    };
    values.chunks_exact(labels.len().max(1)).map(row).collect()
}

/// Columns of gold labels.
pub(crate) fn columns(gold: &[LabelSet]) -> Vec<Vec<u32>> {
    gold.iter().map(|labels| labels.iter().map(|label| label.index() as u32).collect()).collect()
}

#[cfg(test)]
mod tests;
