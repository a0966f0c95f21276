//! Sums along the edges of a graph, and distances between its neighbours, as one operation each.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};
use cladist_kernels::graph::{self, Edges};
use cladist_kernels::pool;

use super::{Fused, Operand, apply, is_cpu, shaped, tensor, values, wanted_of};

/// Σ over the edges that end at a node of weight·x of where they begin.
///
/// # Shapes
/// `x [documents, n_sources, width]`, `weights [edges]` → `[documents, n_targets, width]`
pub(crate) fn sum_along(x: Tensor<3>, weights: Tensor<1>, edges: &Arc<Edges>) -> Tensor<3> {
    let device = x.device();
    if is_cpu(&device) {
        let operands = if x.is_autodiff() || weights.is_autodiff() {
            [Operand::new(x.autodiff()), Operand::new(weights.autodiff())]
        } else {
            [Operand::new(x), Operand::new(weights)]
        };
        return apply(SumAlong(Arc::clone(edges)), operands);
    }
    let [documents, _, width] = x.dims();
    let messages = x.select(1, numbers(&edges.sources, &device)) * weights.reshape([1, edges.len(), 1]);
    let zeros = Tensor::zeros([documents, edges.n_targets, width], &device);
    zeros.select_assign(1, numbers(&edges.targets, &device), messages, IndexingUpdateOp::Add)
}

/// Nodes that look at those their edges come from: for each attention head Σ of softmax(scores)·x, the softmax over the
/// edges that end at a node.
///
/// # Shapes
/// `x [documents, n_sources, width]`, `scores [documents, edges, heads]` → `[documents, n_targets, width]`
pub(crate) fn attend_along(x: Tensor<3>, scores: Tensor<3>, edges: &Arc<Edges>) -> Tensor<3> {
    let device = x.device();
    if is_cpu(&device) {
        return apply(AttendAlong(Arc::clone(edges)), [Operand::new(x), Operand::new(scores)]);
    }
    let ([documents, _, width], [_, n, heads]) = (x.dims(), scores.dims());
    let [sources, targets] = [&edges.sources, &edges.targets].map(|nodes| numbers(nodes, &device));
    let add = |width: usize, values: Tensor<3>| {
        let zeros = Tensor::zeros([documents, edges.n_targets, width], &device);
        zeros.select_assign(1, targets.clone(), values, IndexingUpdateOp::Add)
    };
    let powers = (scores.clone() - scores.max_dim(1).detach()).exp();
    let weights = powers.clone() / add(heads, powers).select(1, targets.clone());
    let messages = x.select(1, sources).reshape([documents, n, heads, width / heads.max(1)]);
    add(width, (messages * weights.unsqueeze_dim(3)).reshape([documents, n, width]))
}

/// ½ Σ over edges of |row(source) − row(target)|²: `rows [nodes, width]` → `[1]`
pub(crate) fn differences(rows: Tensor<2>, edges: &Arc<Edges>) -> Tensor<1> {
    let device = rows.device();
    if is_cpu(&device) {
        return apply(Differences(Arc::clone(edges)), [Operand::new(rows)]);
    }
    let of = |nodes: &[u32]| rows.clone().select(0, numbers(nodes, &device));
    (of(&edges.sources) - of(&edges.targets)).powi_scalar(2).sum() / 2.0
}

fn numbers(nodes: &[u32], device: &Device) -> Tensor<1, Int> {
    let nodes: Vec<i64> = nodes.iter().map(|&node| i64::from(node)).collect();
    let shape = [nodes.len()];
    Tensor::from_data(TensorData::new(nodes, shape), device)
}

#[derive(Debug)]
struct SumAlong(Arc<Edges>);

impl Fused<2> for SumAlong {
    type Saved = ();

    fn forward(&self, inputs: &[FlexTensor; 2], keep: bool) -> (FlexTensor, Option<()>) {
        let shape = inputs[0].layout().shape();
        let (documents, width) = (shape[0], shape[2]);
        let [x, weights] = inputs.each_ref().map(values);
        let mut out = pool::take(documents * self.0.n_targets * width);
        graph::sum_along(&self.0, weights, x, width, &mut out);
        (tensor(out, [documents, self.0.n_targets, width]), keep.then_some(()))
    }

    fn backward(
        self,
        [x, weights]: [FlexTensor; 2],
        (): (),
        slope: &[f32],
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let width = x.layout().shape()[2];
        let of_x = wanted[0].then(|| {
            let mut out = pool::take(values(&x).len());
            graph::sum_back(&self.0, values(&weights), slope, width, &mut out);
            shaped(out, &x)
        });
        let of_weights =
            wanted[1].then(|| shaped(graph::weight_gradient(&self.0, values(&x), slope, width), &weights));
        [of_x, of_weights]
    }
}

#[derive(Debug)]
struct AttendAlong(Arc<Edges>);

impl Fused<2> for AttendAlong {
    /// The weights.
    type Saved = Vec<f32>;

    fn forward(&self, [x, scores]: &[FlexTensor; 2], keep: bool) -> (FlexTensor, Option<Vec<f32>>) {
        let shape = x.layout().shape();
        let (documents, width) = (shape[0], shape[2]);
        let n_heads = scores.layout().shape()[2];
        let mut weights = values(scores).to_vec();
        let mut out = pool::take(documents * self.0.n_targets * width);
        graph::attend_along(&self.0, n_heads, &mut weights, values(x), width, &mut out);
        (tensor(out, [documents, self.0.n_targets, width]), keep.then_some(weights))
    }

    fn backward(
        self,
        inputs: [FlexTensor; 2],
        weights: Vec<f32>,
        slope: &[f32],
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let [width, n_heads] = inputs.each_ref().map(|input| input.layout().shape()[2]);
        let gradients = graph::attend_back(&self.0, n_heads, &weights, values(&inputs[0]), width, slope);
        wanted_of(gradients, inputs, wanted)
    }
}

#[derive(Debug)]
struct Differences(Arc<Edges>);

impl Fused<1> for Differences {
    type Saved = ();

    fn forward(&self, [rows]: &[FlexTensor; 1], keep: bool) -> (FlexTensor, Option<()>) {
        let width = rows.layout().shape()[1];
        let sum = graph::differences(&self.0, values(rows), width);
        (tensor(vec![sum as f32], [1]), keep.then_some(()))
    }

    fn backward(
        self,
        [rows]: [FlexTensor; 1],
        (): (),
        slope: &[f32],
        [wanted]: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        let width = rows.layout().shape()[1];
        let gradient = || graph::differences_gradient(&self.0, values(&rows), width, slope[0]);
        [wanted.then(|| shaped(gradient(), &rows))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::to_vec;

    #[test]
    fn sums_and_slopes_go_along_the_edges() {
        let device = Device::flex().autodiff();
        let edges = Arc::new(Edges { sources: vec![1, 2], targets: vec![0, 0], n_sources: 3, n_targets: 3 });
        let x: Tensor<3> = Tensor::from_floats([[[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]]], &device);
        let (x, weights) = (x.require_grad(), Tensor::from_floats([1.0f32, 0.5], &device).require_grad());
        let out = sum_along(x.clone(), weights.clone(), &edges);
        assert_eq!(to_vec(out.clone()), [3.0, -0.5, 0.0, 0.0, 0.0, 0.0]);
        let gradients = (out.clone() * out).sum().backward();
        assert_eq!(to_vec(x.grad(&gradients).unwrap()), [0.0, 0.0, 6.0, -1.0, 3.0, -0.5]);
        assert_eq!(to_vec(weights.grad(&gradients).unwrap()), [19.0, -1.0]);
    }

    #[test]
    fn neighbours_that_differ_cost_half_the_square() {
        let device = Device::flex().autodiff();
        let edges = Arc::new(Edges { sources: vec![0, 0], targets: vec![1, 2], n_sources: 3, n_targets: 3 });
        let rows: Tensor<2> = Tensor::from_floats([[1.0, 2.0], [0.0, 2.0], [1.0, -1.0]], &device);
        let rows = rows.require_grad();
        let cost = differences(rows.clone(), &edges);
        assert_eq!(cost.clone().inner().into_scalar::<f32>(), 5.0);
        let slopes = to_vec(rows.grad(&(cost * 2.0).backward()).unwrap());
        assert_eq!(slopes, [2.0, 6.0, -2.0, 0.0, 0.0, -6.0]);
    }
}
