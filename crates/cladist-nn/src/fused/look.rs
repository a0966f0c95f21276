//! Labels that look at packed tokens, as one operation.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use cladist_kernels::attention::Sequences;
use cladist_kernels::attention::look::{Look, backward, forward};
use cladist_kernels::pool;

use super::{Fused, Operand, apply, tensor, values, wanted_of};
use crate::tokens::Packing;

/// softmax(Q·Kᵀ·scale)·V over the tokens of each document, for each attention head. On the CPU only.
///
/// # Shapes
/// `queries [labels, 1 or documents, width]`, `keys [tokens, width]`, `values [tokens, out]` → `[labels, documents, out]`
pub(crate) fn look(
    queries: Tensor<3>,
    keys: Tensor<2>,
    values: Tensor<2>,
    packing: &Packing,
    n_heads: usize,
    scale: f64,
) -> Tensor<3> {
    let operation = LookAt { offsets: Arc::clone(&packing.offsets), n_heads, scale: scale as f32 };
    let learns = queries.is_autodiff() || keys.is_autodiff() || values.is_autodiff();
    let operands = if learns {
        [Operand::new(queries.autodiff()), Operand::new(keys.autodiff()), Operand::new(values.autodiff())]
    } else {
        [Operand::new(queries), Operand::new(keys), Operand::new(values)]
    };
    apply(operation, operands)
}

#[derive(Debug)]
struct LookAt {
    offsets: Arc<[usize]>,
    n_heads: usize,
    scale: f32,
}

impl LookAt {
    fn of(&self, [queries, _, values]: &[FlexTensor; 3]) -> Look<'_> {
        let (queries, values) = (queries.layout().shape(), values.layout().shape());
        Look {
            sequences: Sequences::new(&self.offsets),
            n_labels: queries[0],
            copies: queries[1],
            n_heads: self.n_heads,
            width: queries[2],
            out: values[1],
            scale: self.scale,
        }
    }
}

impl Fused<3> for LookAt {
    /// The output, and the logarithm of each row's normaliser.
    type Saved = (FlexTensor, Vec<f32>);

    fn forward(&self, inputs: &[FlexTensor; 3], keep: bool) -> (FlexTensor, Option<Self::Saved>) {
        let look = self.of(inputs);
        let (mut out, mut normaliser) = (pool::take(look.n_outputs()), pool::take(look.n_rows()));
        let [queries, keys, tokens] = inputs.each_ref().map(values);
        forward(&look, queries, keys, tokens, &mut out, &mut normaliser);
        let out = tensor(out, [look.n_labels, look.sequences.len(), look.out]);
        let saved = keep.then(|| (out.clone(), normaliser));
        (out, saved)
    }

    fn backward(
        self,
        inputs: [FlexTensor; 3],
        (out, normaliser): Self::Saved,
        slope: &[f32],
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let look = self.of(&inputs);
        let slopes = backward(&look, inputs.each_ref().map(values), values(&out), &normaliser, slope);
        pool::give(normaliser);
        wanted_of(slopes, inputs, wanted)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::heads::label_attention::weights;
    use crate::parameters::to_vec;
    use crate::random::normal;

    fn random<const D: usize>(shape: [usize; D], seed: u64) -> Tensor<D> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let cells: Vec<f32> = (0..shape.iter().product()).map(|_| normal(&mut random)).collect();
        Tensor::from_data(TensorData::new(cells, shape), &Device::flex().autodiff()).require_grad()
    }

    #[test]
    fn what_labels_see_and_its_slopes_are_those_of_plain_operations() {
        let packing = Packing::new(&[0, 4, 5, 11]);
        for copies in [1, 3] {
            let run = |fused: bool| {
                let (queries, keys, values) =
                    (random([7, copies, 6], 1), random([11, 6], 2), random([11, 4], 3));
                let out = if fused {
                    look(queries.clone(), keys.clone(), values.clone(), &packing, 2, 0.6)
                } else {
                    let cells = packing.cells(values.clone()).reshape([3, 6, 2, 2]).swap_dims(1, 2);
                    let seen = weights(queries.clone(), keys.clone(), &packing, 2, 0.6).matmul(cells);
                    seen.permute([2, 0, 1, 3]).reshape([7, 3, 4])
                };
                let gradients = (out.clone() * random([7, 3, 4], 4).detach()).sum().backward();
                [
                    to_vec(out),
                    to_vec(queries.grad(&gradients).unwrap()),
                    to_vec(keys.grad(&gradients).unwrap()),
                    to_vec(values.grad(&gradients).unwrap()),
                ]
            };
            for (fused, plain) in run(true).iter().zip(run(false)) {
                assert_eq!(fused.len(), plain.len());
                let close = fused.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-5);
                assert!(close, "{copies}: {fused:?} {plain:?}");
            }
        }
    }
}
