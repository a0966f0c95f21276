//! The CPU operations of `cladist-kernels` as differentiable burn operations.
//!
//! burn records one node per operation here, whatever happens inside; backward is the hand-written one of the
//! kernels. On any other device the callers use ordinary tensor operations instead.

mod bce;
mod dropout;
mod embedding;
mod graph;
mod layer;
mod linear;
mod look;
mod norm;
mod recurrent;
mod rows;

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{Device, Shape, Tensor, TensorData};
use cladist_kernels::pool;

pub(crate) use bce::bce;
pub(crate) use dropout::drop_rows;
pub(crate) use embedding::{EmbeddingParameters, embed};
pub(crate) use graph::{attend_along, differences, sum_along};
pub(crate) use layer::{LayerParameters, encoder_layer};
pub(crate) use linear::linear;
pub(crate) use look::look;
pub(crate) use norm::normalise_rows;
pub(crate) use recurrent::recurrent;
pub(crate) use rows::by_rows;

/// Whether tensors of this device can go through the fused operations.
pub(crate) fn is_cpu(device: &Device) -> bool {
    *device == Device::flex()
}

/// An operation of `N` tensors with a hand-written backward pass.
trait Fused<const N: usize>: Debug + Send + 'static {
    /// What backward needs beside the inputs.
    type Saved: Debug + Send + 'static;

    /// The output, and what to keep if backward will follow.
    fn forward(&self, inputs: &[FlexTensor; N], keep: bool) -> (FlexTensor, Option<Self::Saved>);

    /// The gradient of each input; `None` where there is none.
    fn backward(
        self,
        inputs: [FlexTensor; N],
        saved: Self::Saved,
        slope: &[f32],
        wanted: [bool; N],
    ) -> [Option<FlexTensor>; N];
}

type Tracked = <Autodiff<Flex> as burn::backend::BackendTypes>::FloatTensorPrimitive;

/// A tensor of any rank on the CPU, with or without a place in the graph.
enum Operand {
    Tracked(Tracked),
    Plain(FlexTensor),
}

impl Operand {
    #[expect(clippy::expect_used, reason = "callers have checked the device")]
    fn new<const D: usize>(tensor: Tensor<D>) -> Self {
        if tensor.is_autodiff() {
            Self::Tracked(tensor.try_into_primitive::<Autodiff<Flex>>().expect("a tensor on the CPU"))
        } else {
            Self::Plain(tensor.try_into_primitive::<Flex>().expect("a tensor on the CPU"))
        }
    }
}

/// Runs an operation, recording it if any operand is in a graph.
#[expect(clippy::panic, reason = "a fault of the caller, not of the input")]
fn apply<F: Fused<N>, const N: usize, const D: usize>(operation: F, operands: [Operand; N]) -> Tensor<D> {
    if operands.iter().all(|operand| matches!(operand, Operand::Plain(_))) {
        let inputs = operands.map(|operand| match operand {
            Operand::Plain(tensor) => contiguous(tensor),
            Operand::Tracked(_) => unreachable!("checked above"),
        });
        return Tensor::from_primitive::<Flex>(operation.forward(&inputs, false).0);
    }
    let operands = operands.map(|operand| match operand {
        Operand::Tracked(tensor) => tensor,
        Operand::Plain(_) => panic!("operands of a fused operation must agree on autodiff"),
    });
    let guards = operands.each_ref().map(Tracked::node);
    let inputs = operands.map(|tensor| contiguous(tensor.into_primitive()));
    let output = match Adapter::<F>::default().prepare::<NoCheckpointing>(guards).compute_bound().stateful() {
        OpsKind::Tracked(preparation) => {
            let (output, saved) = operation.forward(&inputs, true);
            let state = saved.map(|saved| Kept { operation, inputs, saved });
            preparation.finish(State(Arc::new(Mutex::new(state))), output)
        }
        OpsKind::UnTracked(preparation) => preparation.finish(operation.forward(&inputs, false).0),
    };
    Tensor::from_primitive::<Autodiff<Flex>>(output)
}

fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.as_slice::<f32>().is_some() { tensor } else { tensor.to_contiguous() }
}

/// The values of a contiguous tensor.
#[expect(clippy::expect_used, reason = "inputs were made contiguous when they came in")]
fn values(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("contiguous values of type f32")
}

/// A tensor that takes over a buffer.
fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, Shape::from(shape)))
}

/// As many zeros as another tensor has values, in a buffer that [`recycle`] gives back.
fn zeros_like(tensor: &FlexTensor) -> Vec<f32> {
    pool::take_zeros(values(tensor).len())
}

/// A gradient with the shape of its input.
fn shaped(gradient: Vec<f32>, like: &FlexTensor) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(gradient, like.layout().shape().clone()))
}

/// Gradients that are wanted, each with the shape of its input.
fn wanted_of<const N: usize>(
    gradients: [Vec<f32>; N],
    inputs: [FlexTensor; N],
    wanted: [bool; N],
) -> [Option<FlexTensor>; N] {
    let mut numbered = gradients.into_iter().zip(inputs).zip(wanted);
    std::array::from_fn(|_| {
        numbered.next().and_then(|((gradient, input), wanted)| wanted.then(|| shaped(gradient, &input)))
    })
}

struct Adapter<F>(std::marker::PhantomData<fn() -> F>);

impl<F> Default for Adapter<F> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<F> Debug for Adapter<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fused")
    }
}

#[derive(Debug)]
struct Kept<F: Fused<N>, const N: usize> {
    operation: F,
    inputs: [FlexTensor; N],
    saved: F::Saved,
}

/// burn wants a state that clones; it is used once.
#[derive(Debug)]
struct State<F: Fused<N>, const N: usize>(Arc<Mutex<Option<Kept<F, N>>>>);

impl<F: Fused<N>, const N: usize> Clone for State<F, N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: Fused<N>, const N: usize> Backward<Flex, N> for Adapter<F> {
    type State = State<F, N>;

    fn backward(self, ops: Ops<Self::State, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let slope = contiguous(gradients.consume::<Flex>(&ops.node));
        let Some(Kept { operation, inputs, saved }) =
            ops.state.0.lock().unwrap_or_else(PoisonError::into_inner).take()
        else {
            return;
        };
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let results = operation.backward(inputs, saved, values(&slope), wanted);
        for (parent, result) in ops.parents.into_iter().zip(results) {
            if let (Some(parent), Some(result)) = (parent, result) {
                gradients.register::<Flex>(parent.id, result);
            }
        }
    }
}

/// Calls `f` with the values of a parameter, changing them in place when nobody else holds them.
pub(crate) fn update_in_place<const D: usize>(tensor: Tensor<D>, f: impl FnOnce(&mut [f32])) -> Tensor<D> {
    debug_assert!(!tensor.is_autodiff());
    match tensor.try_into_primitive::<Flex>() {
        Ok(tensor) => {
            let mut tensor = contiguous(tensor);
            // A view into a larger buffer would expose its neighbours.
            if tensor.layout().num_elements() * size_of::<f32>() != tensor.bytes().len() {
                tensor = FlexTensor::from_data(tensor.into_data());
            }
            f(tensor.storage_mut());
            Tensor::from_primitive::<Flex>(tensor)
        }
        Err(_) => unreachable!("callers have checked the device"),
    }
}

/// The values of a CPU tensor, without a copy if they are contiguous.
pub(crate) struct Values(FlexTensor);

impl Values {
    #[expect(clippy::expect_used, reason = "callers have checked the device")]
    pub(crate) fn of<const D: usize>(tensor: Tensor<D>) -> Self {
        Self(contiguous(tensor.inner().try_into_primitive::<Flex>().expect("a tensor on the CPU")))
    }
}

/// Gives the buffer of a tensor that nobody else holds back to the pool, for the gradients of the next step.
pub(crate) fn recycle(values: Values) {
    let Values(tensor) = values;
    if tensor.is_unique()
        && let Ok(buffer) = tensor.into_data().try_into_vec::<f32>()
    {
        pool::give(buffer);
    }
}

impl std::ops::Deref for Values {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        values(&self.0)
    }
}
