//! One transformer layer: fused on the CPU if its description allows it, ordinary tensor operations otherwise.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use cladist_kernels::attention::{Heads, Outputs};
use cladist_kernels::layer::{Dropouts, Panels, Shape};

use super::EncoderConfig;
use super::attention::{self, Relations};
use super::description::{Gate, NormPlace};
use super::ops::{Maybe, activate, affine, drop, norm};
use crate::fused::{LayerParameters, Values, encoder_layer, is_cpu};
use crate::tokens::Packing;

/// Query, key, value, output and feed-forward parameters of a layer. Matrices are `[out, in]`.
#[derive(Module, Debug)]
pub struct Layer {
    pub(super) qkv_weight: Param<Tensor<2>>,
    pub(super) qkv_bias: Maybe<1>,
    pub(super) out_weight: Param<Tensor<2>>,
    pub(super) out_bias: Maybe<1>,
    pub(super) norm1_gain: Maybe<1>,
    pub(super) norm1_bias: Maybe<1>,
    pub(super) up_weight: Param<Tensor<2>>,
    pub(super) up_bias: Maybe<1>,
    pub(super) down_weight: Param<Tensor<2>>,
    pub(super) down_bias: Maybe<1>,
    pub(super) norm2_gain: Maybe<1>,
    pub(super) norm2_bias: Maybe<1>,
}

/// What a layer needs beside its parameters.
pub(super) struct Setting<'a> {
    pub(super) config: &'a EncoderConfig,
    /// Which layer it is, from 0.
    pub(super) number: usize,
    pub(super) packing: &'a Packing,
    pub(super) relations: &'a Relations,
    /// Rate and seed of each place.
    pub(super) dropouts: Dropouts,
    pub(super) panels: Option<Arc<Panels>>,
    /// The tokens whose state is wanted.
    pub(super) outputs: Outputs,
}

/// The layer's sizes for the kernels.
fn shape(config: &EncoderConfig) -> Shape {
    Shape {
        heads: Heads { hidden: config.hidden_size, n_heads: config.n_heads },
        intermediate: config.mlp.width,
        epsilon: config.norm.epsilon,
    }
}

impl Layer {
    /// `x [tokens, hidden]` → the layer's output, same shape, or its rows of first tokens.
    pub(super) fn forward(&self, x: Tensor<2>, setting: &Setting<'_>) -> Tensor<2> {
        let Setting { config, packing, outputs, dropouts, .. } = *setting;
        if is_cpu(&x.device())
            && config.fuses_layers()
            && let Some(parameters) = self.parameters()
        {
            let panels = setting.panels.clone();
            return encoder_layer(x, parameters, &packing.offsets, outputs, shape(config), dropouts, panels);
        }
        self.forward_plain(x, setting)
    }

    /// What the fused operation takes; `None` if this layer has less.
    fn parameters(&self) -> Option<LayerParameters> {
        let value = |maybe: &Maybe<1>| maybe.as_ref().map(Param::val);
        Some(LayerParameters {
            qkv_weight: self.qkv_weight.val(),
            qkv_bias: value(&self.qkv_bias)?,
            out_weight: self.out_weight.val(),
            out_bias: value(&self.out_bias)?,
            norm1_gain: value(&self.norm1_gain)?,
            norm1_bias: value(&self.norm1_bias)?,
            up_weight: self.up_weight.val(),
            up_bias: value(&self.up_bias)?,
            down_weight: self.down_weight.val(),
            down_bias: value(&self.down_bias)?,
            norm2_gain: value(&self.norm2_gain)?,
            norm2_bias: value(&self.norm2_bias)?,
        })
    }

    /// The layer in ordinary operations, whatever its description.
    pub(super) fn forward_plain(&self, x: Tensor<2>, setting: &Setting<'_>) -> Tensor<2> {
        let Setting { config, packing, dropouts, .. } = *setting;
        let [_, hidden] = x.dims();
        let device = x.device();
        let (probabilities, values) = self.attend(x.clone(), setting);
        let context = drop(probabilities, dropouts.attention).matmul(values); // [batch, heads, longest, width]
        let [batch, _, longest, _] = context.dims();
        let context = context.swap_dims(1, 2).reshape([batch * longest, hidden]);
        let (context, x) = match setting.outputs {
            Outputs::All => (context.select(0, packing.rows(&device)), x),
            Outputs::First => {
                (context.select(0, packing.first_cells(&device)), x.select(0, packing.first_rows(&device)))
            }
        };
        let out = drop(affine(context, &self.out_weight, &self.out_bias), dropouts.hidden1);
        let normalise1 = |x| norm(x, &self.norm1_gain, &self.norm1_bias, config.norm);
        let normalise2 = |x| norm(x, &self.norm2_gain, &self.norm2_bias, config.norm);
        match config.norm.place {
            NormPlace::Post => {
                let h = normalise1(x + out);
                normalise2(h.clone() + drop(self.feed_forward(h, config), dropouts.hidden2))
            }
            NormPlace::Pre { .. } => {
                let h = x + out;
                h.clone() + drop(self.feed_forward(normalise2(h), config), dropouts.hidden2)
            }
        }
    }

    /// Attention probabilities `[batch, heads, longest, longest]` and values `[batch, heads, longest, width]` of the
    /// layer's input.
    pub(super) fn attend(&self, x: Tensor<2>, setting: &Setting<'_>) -> (Tensor<4>, Tensor<4>) {
        let Setting { config, number, packing, relations, .. } = *setting;
        let x = match config.norm.place {
            NormPlace::Post => x,
            NormPlace::Pre { .. } => norm(x, &self.norm1_gain, &self.norm1_bias, config.norm),
        };
        let qkv = affine(x, &self.qkv_weight, &self.qkv_bias);
        attention::attend(qkv, config, number, packing, relations)
    }

    fn feed_forward(&self, x: Tensor<2>, config: &EncoderConfig) -> Tensor<2> {
        let spec = config.mlp;
        let up = affine(x, &self.up_weight, &self.up_bias);
        let half = |from: usize| up.clone().narrow(1, from, spec.width);
        let middle = match spec.gate {
            Gate::None => activate(up, spec.activation),
            Gate::First => activate(half(0), spec.activation) * half(spec.width),
            Gate::Second => half(0) * activate(half(spec.width), spec.activation),
        };
        affine(middle, &self.down_weight, &self.down_bias)
    }

    /// The weights in the kernels' layout, for many batches with the same weights.
    pub(super) fn pack(&self, config: &EncoderConfig) -> Arc<Panels> {
        let matrices = [&self.qkv_weight, &self.out_weight, &self.up_weight, &self.down_weight]
            .map(|weight| Values::of(weight.val()));
        let [qkv, out, up, down] = matrices.each_ref();
        let mut panels = Panels::default();
        panels.pack(shape(config), qkv, out, up, down);
        Arc::new(panels)
    }
}
