//! A function of each row of a matrix, some rows at a time, of which nothing is kept for backward but its inputs.
//!
//! Backward computes it again, as many rows at a time, so that memory grows with the rows at once and not with all of
//! them. What the function does inside is ordinary tensor operations.

use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};

use super::{Fused, Operand, apply, is_cpu};

/// From the number of the first row, rows `[n, …]`, a module and other inputs to a row for each row.
pub(crate) type Work<M> = Arc<dyn Fn(usize, Tensor<2>, &M, &[Tensor<2>]) -> Tensor<2> + Send + Sync>;

/// `work` on `at_once` rows at a time, the results one below the other.
///
/// On the CPU backward computes it again; elsewhere everything is kept.
pub(crate) fn by_rows<M: Module + Sync + 'static>(
    rows: Tensor<2>,
    module: &M,
    inputs: Vec<Tensor<2>>,
    at_once: usize,
    work: Work<M>,
) -> Tensor<2> {
    let n_rows = rows.dims()[0];
    let learns = rows.is_autodiff() || inputs.iter().any(Tensor::is_autodiff);
    if !learns || !is_cpu(&rows.device()) {
        let part = |span: Range<usize>| work(span.start, of(&rows, span), module, &inputs);
        return Tensor::cat(spans(n_rows, at_once).map(part).collect(), 0);
    }
    let n_inputs = inputs.len();
    let tensors: Vec<Tensor<2>> = inputs.into_iter().chain(parameters(module)).collect();
    let shapes: Vec<[usize; 2]> = tensors.iter().map(Tensor::dims).collect();
    let flat = tensors.into_iter().map(|tensor| flat(tensor).autodiff()).collect();
    let operation = Rows { module: module.clone(), shapes, n_inputs, at_once, work };
    apply(operation, [Operand::new(rows.autodiff()), Operand::new(Tensor::cat(flat, 0))])
}

fn spans(n_rows: usize, at_once: usize) -> impl Iterator<Item = Range<usize>> {
    let at_once = at_once.max(1);
    (0..n_rows).step_by(at_once).map(move |start| start..n_rows.min(start + at_once))
}

fn of(rows: &Tensor<2>, span: Range<usize>) -> Tensor<2> {
    rows.clone().narrow(0, span.start, span.len())
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let n = tensor.dims().iter().product::<usize>();
    tensor.reshape([n])
}

/// Every parameter of a module as one row, in the order of its fields.
fn parameters(module: &impl Module) -> Vec<Tensor<2>> {
    struct Collect(Vec<Tensor<2>>);
    impl ModuleVisitor for Collect {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(flat(param.val()).unsqueeze());
        }
    }
    let mut collect = Collect(Vec::new());
    module.visit(&mut collect);
    collect.0
}

/// The module with other parameters, given as [`parameters`] gives them.
fn with_parameters<M: Module>(module: M, parameters: &[Tensor<2>]) -> M {
    struct Replace<'a>(std::slice::Iter<'a, Tensor<2>>);
    impl ModuleMapper for Replace<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let Some(value) = self.0.next() else { return param };
            param.map(|old| value.clone().reshape(old.dims()))
        }
    }
    module.map(&mut Replace(parameters.iter()))
}

struct Rows<M> {
    module: M,
    /// Of the inputs and then of the module's parameters, which come as one vector.
    shapes: Vec<[usize; 2]>,
    n_inputs: usize,
    at_once: usize,
    work: Work<M>,
}

impl<M> Debug for Rows<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rows")
    }
}

impl<M: Module + Sync + 'static> Rows<M> {
    fn run(&self, span: &Range<usize>, rows: Tensor<2>, tensors: &[Tensor<2>]) -> Tensor<2> {
        let (inputs, parameters) = tensors.split_at(self.n_inputs);
        let module = with_parameters(self.module.clone(), parameters);
        (self.work)(span.start, rows, &module, inputs)
    }

    fn tensors(&self, flat: &FlexTensor) -> Vec<Tensor<2>> {
        let flat: Tensor<1> = Tensor::from_primitive::<Flex>(flat.clone());
        let mut start = 0;
        let mut next = |shape: &[usize; 2]| {
            let n = shape[0] * shape[1];
            start += n;
            flat.clone().narrow(0, start - n, n).reshape(*shape)
        };
        self.shapes.iter().map(&mut next).collect()
    }
}

fn primitive<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    match tensor.try_into_primitive::<Flex>() {
        Ok(tensor) => tensor,
        Err(_) => unreachable!("callers have checked the device"),
    }
}

impl<M: Module + Sync + 'static> Fused<2> for Rows<M> {
    type Saved = ();

    fn forward(&self, [rows, flat]: &[FlexTensor; 2], keep: bool) -> (FlexTensor, Option<()>) {
        let tensors = self.tensors(flat);
        let rows: Tensor<2> = Tensor::from_primitive::<Flex>(rows.clone());
        let part = |span: Range<usize>| self.run(&span, of(&rows, span.clone()), &tensors);
        let parts = spans(rows.dims()[0], self.at_once).map(part).collect();
        (primitive(Tensor::cat(parts, 0)), keep.then_some(()))
    }

    fn backward(
        self,
        [rows, all]: [FlexTensor; 2],
        (): (),
        slope: &[f32],
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let tensors = self.tensors(&all);
        let rows: Tensor<2> = Tensor::from_primitive::<Flex>(rows);
        let n_rows = rows.dims()[0];
        let width = slope.len() / n_rows.max(1);
        let mut of_rows = Vec::new();
        let mut sums: Vec<Option<Tensor<2>>> = vec![None; tensors.len()];
        for span in spans(n_rows, self.at_once) {
            // A graph of its own for each part, gone before the next.
            let leaf = |tensor: Tensor<2>| tensor.autodiff().require_grad();
            let part = leaf(of(&rows, span.clone()));
            let leaves: Vec<Tensor<2>> = tensors.iter().cloned().map(leaf).collect();
            let result = self.run(&span, part.clone(), &leaves);
            let cells = slope[span.start * width..span.end * width].to_vec();
            let slope: Tensor<2> =
                Tensor::from_data(TensorData::new(cells, [span.len(), width]), &rows.device());
            let mut gradients = (result * slope.autodiff()).sum().backward();
            let gradient = part.grad_remove(&mut gradients);
            of_rows.push(gradient.unwrap_or_else(|| of(&rows, span).zeros_like()));
            for (sum, leaf) in sums.iter_mut().zip(&leaves) {
                let Some(gradient) = leaf.grad_remove(&mut gradients) else { continue };
                *sum = Some(match sum.take() {
                    Some(sum) => sum + gradient,
                    None => gradient,
                });
            }
        }
        let sums = sums
            .into_iter()
            .zip(&tensors)
            .map(|(sum, tensor)| flat(sum.unwrap_or_else(|| tensor.zeros_like())));
        [
            wanted[0].then(|| primitive(Tensor::cat(of_rows, 0))),
            wanted[1].then(|| primitive(Tensor::cat(sums.collect(), 0))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::blocks::Linear;
    use crate::parameters::to_vec;
    use crate::random::normal;

    fn random(shape: [usize; 2], seed: u64) -> Tensor<2> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| normal(&mut random)).collect();
        Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff())
    }

    /// tanh(tanh(r·Wᵀ + b)·Xᵀ) + the row's number.
    fn work() -> Work<Linear> {
        Arc::new(|first, rows, linear, inputs| {
            let [n, _] = rows.dims();
            let numbers: Vec<f32> = (first..first + n).map(|n| n as f32).collect();
            let numbers = Tensor::from_data(TensorData::new(numbers, [n, 1]), &rows.device());
            linear.forward(rows).tanh().matmul(inputs[0].clone().transpose()).tanh() + numbers
        })
    }

    #[test]
    fn parts_have_the_values_and_gradients_of_the_whole() {
        let device = Device::flex().autodiff();
        let linear = Linear::new(3, 4, &mut ChaCha8Rng::seed_from_u64(1), &device);
        let slope = random([7, 5], 9);
        let run = |at_once: Option<usize>| {
            let (rows, input) = (random([7, 3], 2).require_grad(), random([5, 4], 3).require_grad());
            let result = match at_once {
                Some(n) => by_rows(rows.clone(), &linear, vec![input.clone()], n, work()),
                None => work()(0, rows.clone(), &linear, std::slice::from_ref(&input)),
            };
            // Twice, as a tensor that others use too.
            let loss = (result.clone() * slope.clone()).sum() + (rows.clone() * rows.clone()).sum();
            let gradients = loss.backward();
            let mut values = vec![to_vec(result)];
            values.push(to_vec(rows.grad(&gradients).unwrap()));
            values.push(to_vec(input.grad(&gradients).unwrap()));
            let mut sum = crate::optim::GradientSum::default();
            sum.add(&linear, gradients);
            values.extend(["weight", "bias"].map(|name| sum.values(name).unwrap()));
            values
        };
        let whole = run(None);
        for at_once in [1, 3, 7, 100] {
            for (n, (part, whole)) in run(Some(at_once)).iter().zip(&whole).enumerate() {
                let same = part.iter().zip(whole).all(|(a, b)| (a - b).abs() < 1e-5);
                assert!(part.len() == whole.len() && same, "{at_once} at once, {n}: {part:?} {whole:?}");
            }
        }
    }

    #[test]
    fn nothing_is_recorded_where_nothing_learns() {
        let device = Device::flex();
        let linear = Linear::new(3, 4, &mut ChaCha8Rng::seed_from_u64(1), &device);
        let result = by_rows(random([4, 3], 2).inner(), &linear, vec![random([2, 4], 3).inner()], 3, work());
        assert!(!result.is_autodiff());
        assert_eq!(result.dims(), [4, 2]);
    }
}
