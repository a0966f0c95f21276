//! x·Wᵀ + b as one operation whose gradient of W comes out as W is stored.
//!
//! burn's own backward of a product by a transposed W makes the gradient transposed, and a copy as large as W turns it; heads have
//! larger weights than inputs.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::{Fused, Operand, apply, contiguous, tensor, update_in_place, values};

/// `x [n, in]`, `weight [out, in]`, `bias [out]` → `[n, out]`, on the CPU
pub(crate) fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    let operands = if x.is_autodiff() || weight.is_autodiff() {
        [Operand::new(x.autodiff()), Operand::new(weight.autodiff()), Operand::new(bias.autodiff())]
    } else {
        [Operand::new(x), Operand::new(weight), Operand::new(bias)]
    };
    apply(Product, operands)
}

#[derive(Debug)]
struct Product;

fn matrix(tensor: &FlexTensor) -> Tensor<2> {
    Tensor::from_primitive::<Flex>(tensor.clone())
}

#[expect(clippy::expect_used, reason = "it was made of one on the CPU")]
fn primitive(tensor: Tensor<2>) -> FlexTensor {
    contiguous(tensor.try_into_primitive::<Flex>().expect("a tensor on the CPU"))
}

impl Fused<3> for Product {
    type Saved = ();

    fn forward(&self, [x, weight, bias]: &[FlexTensor; 3], keep: bool) -> (FlexTensor, Option<()>) {
        let bias = values(bias);
        let out = update_in_place(matrix(x).matmul(matrix(weight).transpose()), |out| {
            for row in out.chunks_exact_mut(bias.len().max(1)) {
                row.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
            }
        });
        (primitive(out), keep.then_some(()))
    }

    fn backward(
        self,
        [x, weight, bias]: [FlexTensor; 3],
        (): (),
        slope: &[f32],
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let n_outputs = values(&bias).len();
        let rows = x.layout().shape()[0];
        let of_output = tensor(slope.to_vec(), [rows, n_outputs]);
        let of_x = wanted[0].then(|| primitive(matrix(&of_output).matmul(matrix(&weight))));
        let of_weight = wanted[1].then(|| primitive(matrix(&of_output).transpose().matmul(matrix(&x))));
        let of_bias = wanted[2].then(|| {
            let mut sums = vec![0.0; n_outputs];
            for row in slope.chunks_exact(n_outputs.max(1)) {
                sums.iter_mut().zip(row).for_each(|(sum, slope)| *sum += slope);
            }
            tensor(sums, [n_outputs])
        });
        [of_x, of_weight, of_bias]
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::encoder::linear as plain;
    use crate::parameters::to_vec;

    #[test]
    fn values_and_slopes_are_those_of_plain_operations() {
        let device = Device::flex().autodiff();
        let wave = |n: usize, step: f32| -> Vec<f32> { (0..n).map(|n| (n as f32 * step).sin()).collect() };
        for (rows, inputs, outputs) in [(5, 3, 7), (1, 4, 1), (9, 40, 2), (0, 3, 2)] {
            let run = |fused: bool| {
                let matrix = |rows: usize, columns: usize, step: f32| {
                    let data = TensorData::new(wave(rows * columns, step), [rows, columns]);
                    Tensor::<2>::from_data(data, &device).require_grad()
                };
                let (x, weight) = (matrix(rows, inputs, 0.7), matrix(outputs, inputs, 0.9));
                let bias = Tensor::<1>::from_data(TensorData::new(wave(outputs, 1.3), [outputs]), &device);
                let bias = bias.require_grad();
                let product = if fused { linear } else { plain };
                let out = product(x.clone(), weight.clone(), bias.clone());
                let gradients = out.clone().powi_scalar(2).sum().backward();
                [
                    to_vec(out),
                    to_vec(x.grad(&gradients).unwrap()),
                    to_vec(weight.grad(&gradients).unwrap()),
                    to_vec(bias.grad(&gradients).unwrap()),
                ]
            };
            for (got, expected) in run(true).iter().zip(run(false)) {
                assert_eq!(got.len(), expected.len());
                for (a, b) in got.iter().zip(expected) {
                    assert!((a - b).abs() < 1e-4 * b.abs().max(1.0), "{a} {b}");
                }
            }
        }
    }
}
