//! What layers are made of, in ordinary tensor operations.

use burn::module::Param;
use burn::tensor::{Device, Distribution, Tensor, activation};
use cladist_kernels::dropout::Dropout;

use super::description::{Activation, NormKind, NormSpec};
use crate::fused::{drop_rows, is_cpu};

/// A parameter that some descriptions leave out.
pub(super) type Maybe<const D: usize> = Option<Param<Tensor<D>>>;

/// `x·Wᵀ + b` with `W [out, in]`.
pub(crate) fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    x.matmul(weight.transpose()) + bias.unsqueeze()
}

/// The same, where there may be no b.
pub(super) fn affine(x: Tensor<2>, weight: &Param<Tensor<2>>, bias: &Maybe<1>) -> Tensor<2> {
    match bias {
        Some(bias) => linear(x, weight.val(), bias.val()),
        None => x.matmul(weight.val().transpose()),
    }
}

/// Layer normalisation of each row.
pub(crate) fn normalise(x: Tensor<2>, gain: Tensor<1>, bias: Tensor<1>, epsilon: f32) -> Tensor<2> {
    standardise(x, epsilon) * gain.unsqueeze() + bias.unsqueeze()
}

fn standardise(x: Tensor<2>, epsilon: f32) -> Tensor<2> {
    let (variance, mean) = x.clone().var_mean_bias(1);
    (x - mean) / (variance + f64::from(epsilon)).sqrt()
}

/// Normalisation as described; a row without gain stays as it is.
pub(super) fn norm(x: Tensor<2>, gain: &Maybe<1>, bias: &Maybe<1>, spec: NormSpec) -> Tensor<2> {
    let Some(gain) = gain else { return x };
    let scaled = match spec.kind {
        NormKind::Layer => standardise(x, spec.epsilon),
        NormKind::Rms => {
            let squares = x.clone().powi_scalar(2).mean_dim(1);
            x / (squares + f64::from(spec.epsilon)).sqrt()
        }
    } * gain.val().unsqueeze();
    match bias {
        Some(bias) => scaled + bias.val().unsqueeze(),
        None => scaled,
    }
}

pub(super) fn activate(x: Tensor<2>, by: Activation) -> Tensor<2> {
    match by {
        Activation::Gelu => activation::gelu(x),
        Activation::GeluTanh => activation::gelu_approximate(x),
        Activation::Silu => activation::silu(x),
        Activation::Relu => activation::relu(x),
    }
}

/// Dropout inside layers. On the CPU the mask is a function of the seed alone, whatever else draws numbers meanwhile.
pub(super) fn drop<const D: usize>(x: Tensor<D>, dropout: Dropout) -> Tensor<D> {
    if !dropout.is_active() {
        return x;
    }
    if !is_cpu(&x.device()) {
        return drop_by_device(x, dropout);
    }
    let shape = x.dims();
    let columns = shape.last().copied().unwrap_or(1);
    let rows = shape.iter().take(D - 1).product();
    drop_rows(x.reshape([rows, columns]), dropout, 0).reshape(shape)
}

/// Dropout whose mask burn's generator draws.
pub(super) fn drop_by_device<const D: usize>(x: Tensor<D>, dropout: Dropout) -> Tensor<D> {
    if !dropout.is_active() {
        return x;
    }
    let keep = 1.0 - f64::from(dropout.rate);
    let device: Device = x.device();
    device.seed(dropout.seed);
    let mask = x.random_like(Distribution::Bernoulli(keep));
    x * mask / keep
}
