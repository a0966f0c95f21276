//! One transformer layer: fused on the CPU, ordinary tensor operations elsewhere.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use cladist_kernels::attention::{Heads, Outputs};
use cladist_kernels::dropout::Dropout;
use cladist_kernels::layer::{Dropouts, Panels, Shape};

use super::config::EncoderConfig;
use crate::fused::{LayerParameters, Values, encoder_layer, is_cpu};
use crate::tokens::Packing;

/// Query, key, value, output and feed-forward parameters of a post-norm layer. Matrices are `[out, in]`.
#[derive(Module, Debug)]
pub struct Layer {
    pub(super) qkv_weight: Param<Tensor<2>>,
    pub(super) qkv_bias: Param<Tensor<1>>,
    pub(super) out_weight: Param<Tensor<2>>,
    pub(super) out_bias: Param<Tensor<1>>,
    pub(super) norm1_gain: Param<Tensor<1>>,
    pub(super) norm1_bias: Param<Tensor<1>>,
    pub(super) up_weight: Param<Tensor<2>>,
    pub(super) up_bias: Param<Tensor<1>>,
    pub(super) down_weight: Param<Tensor<2>>,
    pub(super) down_bias: Param<Tensor<1>>,
    pub(super) norm2_gain: Param<Tensor<1>>,
    pub(super) norm2_bias: Param<Tensor<1>>,
}

/// What a layer needs beside its parameters.
pub(super) struct Setting<'a> {
    pub(super) shape: Shape,
    pub(super) packing: &'a Packing,
    /// Rate and seed of each place; `None` outside training.
    pub(super) dropouts: Option<Dropouts>,
    pub(super) panels: Option<Arc<Panels>>,
    /// The tokens whose state is wanted.
    pub(super) outputs: Outputs,
}

/// The layer's sizes for the kernels.
pub(super) fn shape(config: &EncoderConfig) -> Shape {
    Shape {
        heads: Heads { hidden: config.hidden_size, n_heads: config.n_heads },
        intermediate: config.intermediate_size,
        epsilon: config.epsilon,
    }
}

impl Layer {
    /// `x [tokens, hidden]` → the layer's output, same shape, or its rows of first tokens.
    pub(super) fn forward(&self, x: Tensor<2>, setting: &Setting<'_>) -> Tensor<2> {
        if is_cpu(&x.device()) {
            let dropouts = setting.dropouts.unwrap_or(Dropouts::NONE);
            let Setting { packing, outputs, shape, .. } = *setting;
            let panels = setting.panels.clone();
            encoder_layer(x, self.parameters(), &packing.offsets, outputs, shape, dropouts, panels)
        } else {
            self.forward_plain(x, setting)
        }
    }

    fn parameters(&self) -> LayerParameters {
        LayerParameters {
            qkv_weight: self.qkv_weight.val(),
            qkv_bias: self.qkv_bias.val(),
            out_weight: self.out_weight.val(),
            out_bias: self.out_bias.val(),
            norm1_gain: self.norm1_gain.val(),
            norm1_bias: self.norm1_bias.val(),
            up_weight: self.up_weight.val(),
            up_bias: self.up_bias.val(),
            down_weight: self.down_weight.val(),
            down_bias: self.down_bias.val(),
            norm2_gain: self.norm2_gain.val(),
            norm2_bias: self.norm2_bias.val(),
        }
    }

    /// The same layer in ordinary operations: what every device but the CPU runs.
    pub(super) fn forward_plain(&self, x: Tensor<2>, setting: &Setting<'_>) -> Tensor<2> {
        let Setting { shape, packing, dropouts, .. } = setting;
        let [_, hidden] = x.dims();
        let device = x.device();
        let drops = dropouts.unwrap_or(Dropouts::NONE);
        let (probabilities, values) = self.attend(x.clone(), setting);
        let context = drop(probabilities, drops.attention).matmul(values); // [batch, heads, longest, width]
        let [batch, _, longest, _] = context.dims();
        let context = context.swap_dims(1, 2).reshape([batch * longest, hidden]);
        let (context, x) = match setting.outputs {
            Outputs::All => (context.select(0, packing.rows(&device)), x),
            Outputs::First => {
                (context.select(0, packing.first_cells(&device)), x.select(0, packing.first_rows(&device)))
            }
        };
        let out = linear(context, self.out_weight.val(), self.out_bias.val());
        let h = normalise(
            x + drop(out, drops.hidden1),
            self.norm1_gain.val(),
            self.norm1_bias.val(),
            shape.epsilon,
        );
        let wide = activation::gelu(linear(h.clone(), self.up_weight.val(), self.up_bias.val()));
        let down = linear(wide, self.down_weight.val(), self.down_bias.val());
        normalise(h + drop(down, drops.hidden2), self.norm2_gain.val(), self.norm2_bias.val(), shape.epsilon)
    }

    /// Attention probabilities `[batch, heads, longest, longest]` and values `[batch, heads, longest, width]`.
    /// Columns of padding are 0; rows of padding are not defined.
    pub(super) fn attend(&self, x: Tensor<2>, setting: &Setting<'_>) -> (Tensor<4>, Tensor<4>) {
        let Heads { hidden, n_heads } = setting.shape.heads;
        let packing = setting.packing;
        let (batch, longest, width) = (packing.n_sequences(), packing.longest(), hidden / n_heads);
        let device = x.device();
        let qkv = linear(x, self.qkv_weight.val(), self.qkv_bias.val()); // [tokens, 3·hidden]
        let padded = qkv.select(0, packing.padded_rows(&device)); // [batch·longest, 3·hidden]
        let split = padded.reshape([batch, longest, 3, n_heads, width]);
        let part = |n: usize| -> Tensor<4> {
            split
                .clone()
                .slice([0..batch, 0..longest, n..n + 1, 0..n_heads, 0..width])
                .reshape([batch, longest, n_heads, width])
                .swap_dims(1, 2)
        };
        let scores = part(0).matmul(part(1).swap_dims(2, 3)) / (width as f64).sqrt();
        let scores = scores + packing.bias(&device); // −1e30 where a key is padding
        (activation::softmax(scores, 3), part(2))
    }

    /// The weights in the kernels' layout, for many batches with the same weights.
    pub(super) fn pack(&self, shape: Shape) -> Arc<Panels> {
        let matrices = [&self.qkv_weight, &self.out_weight, &self.up_weight, &self.down_weight]
            .map(|weight| Values::of(weight.val()));
        let [qkv, out, up, down] = matrices.each_ref();
        let mut panels = Panels::default();
        panels.pack(shape, qkv, out, up, down);
        Arc::new(panels)
    }
}

/// `x·Wᵀ + b` with `W [out, in]`.
pub(crate) fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    x.matmul(weight.transpose()) + bias.unsqueeze()
}

/// Layer normalisation of each row.
pub(crate) fn normalise(x: Tensor<2>, gain: Tensor<1>, bias: Tensor<1>, epsilon: f32) -> Tensor<2> {
    let (variance, mean) = x.clone().var_mean_bias(1);
    let scaled = (x - mean) / (variance + f64::from(epsilon)).sqrt();
    scaled * gain.unsqueeze() + bias.unsqueeze()
}

/// Dropout where no fused operation does it: burn's generator draws the mask.
pub(super) fn drop<const D: usize>(x: Tensor<D>, dropout: Dropout) -> Tensor<D> {
    if !dropout.is_active() {
        return x;
    }
    let keep = 1.0 - f64::from(dropout.rate);
    let device: Device = x.device();
    device.seed(dropout.seed);
    let mask = x.random_like(burn::tensor::Distribution::Bernoulli(keep));
    x * mask / keep
}
