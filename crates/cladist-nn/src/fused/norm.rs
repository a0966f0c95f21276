//! Layer normalisation of rows as one operation, with ReLU after it if that is wanted.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use cladist_kernels::norm::{Moments, normalise, normalise_backward};
use cladist_kernels::pool;
use rayon::prelude::*;

use super::{Fused, Operand, apply, shaped, values, wanted_of};

/// Rows that are worth a task of their own, unless they are wide; sums over rows are made in such parts, whatever the threads.
const ROWS: usize = 64;
/// Cells that are, too.
const CELLS: usize = 1 << 16;

fn rows_at_once(width: usize) -> usize {
    (CELLS / width.max(1)).clamp(1, ROWS)
}

/// `(x − mean) / √(variance + ε) · gain + bias` of each row, on the CPU: `[rows, width]` → the same; what is below 0 becomes 0
/// if it is `rectified`.
pub(crate) fn normalise_rows(
    x: Tensor<2>,
    gain: Tensor<1>,
    bias: Tensor<1>,
    epsilon: f32,
    rectified: bool,
) -> Tensor<2> {
    let operands = if x.is_autodiff() || gain.is_autodiff() {
        [Operand::new(x.autodiff()), Operand::new(gain.autodiff()), Operand::new(bias.autodiff())]
    } else {
        [Operand::new(x), Operand::new(gain), Operand::new(bias)]
    };
    apply(NormaliseRows { epsilon, rectified }, operands)
}

#[derive(Debug)]
struct NormaliseRows {
    epsilon: f32,
    rectified: bool,
}

impl Fused<3> for NormaliseRows {
    type Saved = Vec<Moments>;

    fn forward(&self, inputs: &[FlexTensor; 3], keep: bool) -> (FlexTensor, Option<Vec<Moments>>) {
        let [x, gain, bias] = inputs.each_ref().map(values);
        let width = gain.len().max(1);
        let mut out = pool::take(x.len());
        let mut moments = vec![Moments::default(); x.len() / width];
        let rows = out.par_chunks_exact_mut(width).zip(x.par_chunks_exact(width)).zip(&mut moments);
        rows.with_min_len(rows_at_once(width)).for_each(|((out, x), moments)| {
            *moments = normalise(x, gain, bias, self.epsilon, out);
            if self.rectified {
                out.iter_mut().for_each(|out| *out = out.max(0.0));
            }
        });
        (shaped(out, &inputs[0]), keep.then_some(moments))
    }

    fn backward(
        self,
        inputs: [FlexTensor; 3],
        moments: Vec<Moments>,
        slope: &[f32],
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let [x, gain, bias] = inputs.each_ref().map(values);
        let width = gain.len();
        let mut of_x = pool::take(slope.len());
        of_x.copy_from_slice(slope);
        let rows = rows_at_once(width);
        let some = (rows * width).max(1);
        let parts = of_x.par_chunks_mut(some).zip(x.par_chunks(some)).zip(moments.par_chunks(rows));
        let parts: Vec<[Vec<f32>; 2]> = parts
            .map(|((slope, x), moments)| {
                let mut sums = [vec![0.0; width], vec![0.0; width]];
                let [of_gain, of_bias] = &mut sums;
                let rows = slope.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(moments);
                for ((slope, x), &moments) in rows {
                    if self.rectified {
                        stop_below(slope, x, moments, gain, bias);
                    }
                    normalise_backward(x, moments, gain, slope, of_gain, of_bias);
                }
                sums
            })
            .collect();
        let sum = |which: usize| {
            let mut sum = vec![0.0; width];
            for part in &parts {
                sum.iter_mut().zip(&part[which]).for_each(|(sum, part)| *sum += part);
            }
            sum
        };
        wanted_of([of_x, sum(0), sum(1)], inputs, wanted)
    }
}

/// Slopes of what ReLU made 0 are 0. The values are computed again as they were, rather than kept.
fn stop_below(slope: &mut [f32], x: &[f32], moments: Moments, gain: &[f32], bias: &[f32]) {
    let Moments { mean, rstd } = moments;
    for (((slope, &x), &gain), &bias) in slope.iter_mut().zip(x).zip(gain).zip(bias) {
        let value = (x - mean) * rstd * gain + bias;
        *slope = if value > 0.0 { *slope } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData, activation};

    use super::*;
    use crate::encoder::normalise as plain;
    use crate::parameters::to_vec;

    #[test]
    fn values_and_slopes_are_those_of_plain_operations() {
        let device = Device::flex().autodiff();
        let wave = |n: usize, step: f32| -> Vec<f32> { (0..n).map(|n| (n as f32 * step).sin()).collect() };
        let run = |[rows, width]: [usize; 2], fused: bool, rectified: bool| {
            let x = Tensor::<2>::from_data(TensorData::new(wave(rows * width, 0.7), [rows, width]), &device);
            let of_features =
                |step| Tensor::<1>::from_data(TensorData::new(wave(width, step), [width]), &device);
            let (x, gain, bias) =
                (x.require_grad(), of_features(0.9).require_grad(), of_features(1.3).require_grad());
            let (of_x, of_gain, of_bias) = (x.clone(), gain.clone(), bias.clone());
            let out = match (fused, rectified) {
                (true, _) => normalise_rows(of_x, of_gain, of_bias, 1e-5, rectified),
                (false, true) => activation::relu(plain(of_x, of_gain, of_bias, 1e-5)),
                (false, false) => plain(of_x, of_gain, of_bias, 1e-5),
            };
            // Not a power: its slope would be 0 where ReLU's is.
            let gradients = (out.clone().powi_scalar(3) + out.clone()).sum().backward();
            let slopes = [
                to_vec(x.grad(&gradients).unwrap()),
                to_vec(gain.grad(&gradients).unwrap()),
                to_vec(bias.grad(&gradients).unwrap()),
            ];
            [to_vec(out)].into_iter().chain(slopes).collect::<Vec<_>>()
        };
        // Narrow rows, and rows so wide that there are two of them in a part.
        let shapes = [[2 * ROWS + 3, 5], [5, CELLS / 2 - 1]];
        for (shape, rectified) in shapes.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
            for (got, expected) in run(shape, true, rectified).iter().zip(run(shape, false, rectified)) {
                assert_eq!(got.len(), expected.len());
                for (a, b) in got.iter().zip(expected) {
                    assert!((a - b).abs() < 1e-3 * b.abs().max(1.0), "{shape:?} {rectified}: {a} {b}");
                }
            }
        }
    }
}
