//! A whole encoder layer as one operation.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use cladist_kernels::attention::{Outputs, Sequences};
use cladist_kernels::layer::{self, Dropouts, Panels, Parameters, Saved, Shape};
use cladist_kernels::pool;

use super::{Fused, Operand, apply, tensor, values, wanted_of, zeros_like};

/// Matrices and vectors of a layer, in the order of [`Parameters`].
pub(crate) struct LayerParameters {
    pub(crate) qkv_weight: Tensor<2>,
    pub(crate) qkv_bias: Tensor<1>,
    pub(crate) out_weight: Tensor<2>,
    pub(crate) out_bias: Tensor<1>,
    pub(crate) norm1_gain: Tensor<1>,
    pub(crate) norm1_bias: Tensor<1>,
    pub(crate) up_weight: Tensor<2>,
    pub(crate) up_bias: Tensor<1>,
    pub(crate) down_weight: Tensor<2>,
    pub(crate) down_bias: Tensor<1>,
    pub(crate) norm2_gain: Tensor<1>,
    pub(crate) norm2_bias: Tensor<1>,
}

#[derive(Debug)]
struct EncoderLayer {
    shape: Shape,
    dropouts: Dropouts,
    offsets: Arc<[usize]>,
    outputs: Outputs,
    /// Made before, when the same weights serve many batches.
    panels: Option<Arc<Panels>>,
}

/// One layer over packed token states `x [tokens, hidden]`; sequence i is `offsets[i]..offsets[i + 1]`. Gives a row for
/// each token, or for the first of each sequence.
pub(crate) fn encoder_layer(
    x: Tensor<2>,
    parameters: LayerParameters,
    offsets: &Arc<[usize]>,
    outputs: Outputs,
    shape: Shape,
    dropouts: Dropouts,
    panels: Option<Arc<Panels>>,
) -> Tensor<2> {
    let p = parameters;
    apply(
        EncoderLayer { shape, dropouts, offsets: Arc::clone(offsets), outputs, panels },
        [
            Operand::new(x),
            Operand::new(p.qkv_weight),
            Operand::new(p.qkv_bias),
            Operand::new(p.out_weight),
            Operand::new(p.out_bias),
            Operand::new(p.norm1_gain),
            Operand::new(p.norm1_bias),
            Operand::new(p.up_weight),
            Operand::new(p.up_bias),
            Operand::new(p.down_weight),
            Operand::new(p.down_bias),
            Operand::new(p.norm2_gain),
            Operand::new(p.norm2_bias),
        ],
    )
}

/// Names the inputs after `x`.
fn named<T>(inputs: impl IntoIterator<Item = T>) -> Option<Parameters<T>> {
    let mut inputs = inputs.into_iter();
    let mut next = || inputs.next();
    Some(Parameters {
        qkv_weight: next()?,
        qkv_bias: next()?,
        out_weight: next()?,
        out_bias: next()?,
        norm1_gain: next()?,
        norm1_bias: next()?,
        up_weight: next()?,
        up_bias: next()?,
        down_weight: next()?,
        down_bias: next()?,
        norm2_gain: next()?,
        norm2_bias: next()?,
    })
}

/// The weights among the inputs.
#[expect(clippy::expect_used, reason = "the number of inputs is in the type")]
fn weights(inputs: &[FlexTensor; 13]) -> Parameters<&[f32]> {
    named(inputs[1..].iter().map(values)).expect("twelve parameters")
}

impl Fused<13> for EncoderLayer {
    type Saved = Saved;

    fn forward(&self, inputs: &[FlexTensor; 13], keep: bool) -> (FlexTensor, Option<Saved>) {
        let weights = weights(inputs);
        let x = values(&inputs[0]);
        let panels = self.panels.clone().unwrap_or_else(|| {
            let mut panels = Panels::default();
            panels.pack(
                self.shape,
                weights.qkv_weight,
                weights.out_weight,
                weights.up_weight,
                weights.down_weight,
            );
            Arc::new(panels)
        });
        let sequences = Sequences::new(&self.offsets);
        let shape = [sequences.n_rows(self.outputs), self.shape.heads.hidden];
        let mut y = pool::take(shape[0] * shape[1]);
        let Self { outputs, dropouts, .. } = *self;
        let saved =
            layer::forward(self.shape, &weights, &panels, x, sequences, outputs, dropouts, &mut y, keep);
        (tensor(y, shape), saved)
    }

    #[expect(clippy::expect_used, reason = "the number of inputs is in the type")]
    fn backward(
        self,
        inputs: [FlexTensor; 13],
        saved: Saved,
        slope: &[f32],
        wanted: [bool; 13],
    ) -> [Option<FlexTensor>; 13] {
        let mut gradients: [Vec<f32>; 13] = inputs.each_ref().map(zeros_like);
        let (dx, rest) = gradients.split_at_mut(1);
        let mut places = named(rest.iter_mut().map(Vec::as_mut_slice)).expect("twelve parameters");
        layer::backward(
            self.shape,
            &weights(&inputs),
            values(&inputs[0]),
            Sequences::new(&self.offsets),
            self.outputs,
            self.dropouts,
            saved,
            slope,
            &mut dx[0],
            &mut places,
        );
        wanted_of(gradients, inputs, wanted)
    }
}
