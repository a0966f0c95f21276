//! How much labels look at tokens, for heads whose labels do.

use cladist_core::{Document, LabelId, Request};

use crate::error::Result;
use crate::model::NeuralModel;
use crate::parameters;
use crate::tokens::numbered;

/// The bytes of a token in the text, and a label's weight on it.
pub type TokenWeight = ((u32, u32), f32);

impl NeuralModel {
    /// How much each of these labels looks at each token of a document; `None` if the head does not look at tokens
    /// label by label. The windows of a long document count alike. Marks at the ends
    /// of a window are left out, so the weights of a label come to less than 1.
    pub fn attention(
        &self,
        document: &Document,
        labels: &[LabelId],
    ) -> Result<Option<Vec<Vec<TokenWeight>>>> {
        let tokens = self.tokenize(std::slice::from_ref(document))?;
        let windows = numbered(&tokens);
        let mut looks = !labels.is_empty();
        let mut of_windows: Vec<Vec<f32>> = vec![Vec::new(); windows.len()];
        self.each_batch(&windows, &self.layers, &Request::default(), |batch, input| {
            match self.network.head.attention(input, labels).filter(|_| !labels.is_empty()) {
                Some(weights) => {
                    let row = labels.len() * input.documents.packing().longest();
                    let weights = parameters::to_vec(weights);
                    for (&n, weights) in batch.iter().zip(weights.chunks_exact(row)) {
                        of_windows[n] = weights.to_vec();
                    }
                }
                None => looks = false,
            }
        })?;
        let share = 1.0 / windows.len().max(1) as f32;
        let of_label = |label: usize| {
            let tokens = windows.iter().zip(&of_windows).flat_map(|((_, window), weights)| {
                let longest = weights.len() / labels.len();
                window
                    .spans
                    .iter()
                    .copied()
                    .zip(weights[label * longest..].iter().map(|weight| weight * share))
            });
            tokens.filter(|((start, end), _)| start < end).collect()
        };
        Ok(looks.then(|| (0..labels.len()).map(of_label).collect()))
    }
}
