//! An LSTM or GRU layer over packed sequences as one operation.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use cladist_kernels::attention::Sequences;
use cladist_kernels::pool;
use cladist_kernels::recurrent::{self, Gradients, Saved, Shape};

use super::{Fused, Operand, apply, tensor, values, wanted_of, zeros_like};

#[derive(Debug)]
struct Recurrent {
    shape: Shape,
    offsets: Arc<[usize]>,
}

/// States after every token `[tokens, outputs]` from the inputs' share of the gates `[tokens, gates]`.
pub(crate) fn recurrent(
    shape: Shape,
    offsets: Arc<[usize]>,
    input: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
) -> Tensor<2> {
    let operands = [Operand::new(input), Operand::new(weight), Operand::new(bias)];
    apply(Recurrent { shape, offsets }, operands)
}

impl Fused<3> for Recurrent {
    /// The output is needed again: each step begins with the one before.
    type Saved = (Vec<f32>, Saved);

    fn forward(&self, inputs: &[FlexTensor; 3], keep: bool) -> (FlexTensor, Option<Self::Saved>) {
        let [x, weight, bias] = inputs.each_ref().map(values);
        let sequences = Sequences::new(&self.offsets);
        let shape = [sequences.n_tokens(), self.shape.outputs()];
        let mut out = pool::take(shape[0] * shape[1]);
        let saved = recurrent::forward(self.shape, x, weight, bias, sequences, &mut out, keep);
        let saved = saved.map(|saved| (out.clone(), saved));
        (tensor(out, shape), saved)
    }

    fn backward(
        self,
        inputs: [FlexTensor; 3],
        (out, saved): Self::Saved,
        slope: &[f32],
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let mut gradients = inputs.each_ref().map(zeros_like);
        let [x, weight, bias] = &mut gradients;
        let sequences = Sequences::new(&self.offsets);
        let mut places = Gradients { x, weight, bias };
        recurrent::backward(self.shape, values(&inputs[1]), sequences, &out, saved, slope, &mut places);
        wanted_of(gradients, inputs, wanted)
    }
}
