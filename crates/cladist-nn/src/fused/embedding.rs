//! Embeddings as one operation: gather, sum, normalise, dropout; backward scatters.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use cladist_kernels::dropout::Dropout;
use cladist_kernels::embedding::{self, Gradients, Saved, Tables, Token};

use super::{Fused, Operand, apply, tensor, values, wanted_of, zeros_like};

/// Tables and normalisation of an encoder's embeddings.
pub(crate) struct EmbeddingParameters {
    pub(crate) words: Tensor<2>,
    pub(crate) positions: Tensor<2>,
    pub(crate) types: Tensor<2>,
    pub(crate) gain: Tensor<1>,
    pub(crate) bias: Tensor<1>,
}

#[derive(Debug)]
struct Embed {
    tokens: Vec<Token>,
    epsilon: f32,
    dropout: Dropout,
}

/// `drop(LN(words[w] + positions[p] + types[t]))` for each token: `[tokens, hidden]`.
pub(crate) fn embed(
    parameters: EmbeddingParameters,
    tokens: Vec<Token>,
    epsilon: f32,
    dropout: Dropout,
) -> Tensor<2> {
    let EmbeddingParameters { words, positions, types, gain, bias } = parameters;
    apply(
        Embed { tokens, epsilon, dropout },
        [
            Operand::new(words),
            Operand::new(positions),
            Operand::new(types),
            Operand::new(gain),
            Operand::new(bias),
        ],
    )
}

impl Embed {
    fn tables<'a>(&self, inputs: &'a [FlexTensor; 5]) -> Tables<'a> {
        let [words, positions, types, gain, bias] = inputs.each_ref().map(values);
        Tables { words, positions, types, gain, bias, epsilon: self.epsilon }
    }

    fn drop(&self, rows: &mut [f32], hidden: usize) {
        if self.dropout.is_active() {
            let mut factors = vec![0.0; hidden];
            for (number, row) in rows.chunks_exact_mut(hidden).enumerate() {
                self.dropout.factors(number as u64, &mut factors);
                row.iter_mut().zip(&factors).for_each(|(value, factor)| *value *= factor);
            }
        }
    }
}

impl Fused<5> for Embed {
    type Saved = Saved;

    fn forward(&self, inputs: &[FlexTensor; 5], keep: bool) -> (FlexTensor, Option<Saved>) {
        let tables = self.tables(inputs);
        let hidden = tables.gain.len();
        let mut out = vec![0.0; self.tokens.len() * hidden];
        let saved = embedding::forward(tables, &self.tokens, &mut out);
        self.drop(&mut out, hidden);
        (tensor(out, [self.tokens.len(), hidden]), keep.then_some(saved))
    }

    fn backward(
        self,
        inputs: [FlexTensor; 5],
        saved: Saved,
        slope: &[f32],
        wanted: [bool; 5],
    ) -> [Option<FlexTensor>; 5] {
        let mut gradients = inputs.each_ref().map(zeros_like);
        let mut slope = slope.to_vec();
        let hidden = values(&inputs[3]).len();
        self.drop(&mut slope, hidden);
        let [words, positions, types, gain, bias] = &mut gradients;
        embedding::backward(
            self.tables(&inputs),
            &self.tokens,
            &saved,
            &slope,
            &mut Gradients { words, positions, types, gain, bias },
        );
        wanted_of(gradients, inputs, wanted)
    }
}
