//! What tokens are before the first layer.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use cladist_kernels::dropout::Dropout;
use cladist_kernels::embedding::Token;

use super::EncoderConfig;
use super::description::{Positions, Projection};
use super::ops::{Maybe, affine, drop, drop_by_device, norm};
use crate::fused::{self, EmbeddingParameters, embed, is_cpu};
use crate::tokens::TokenBatch;

/// Word, position and type tables with normalisation and projection; word vectors have the first alone.
#[derive(Module, Debug)]
pub struct Embeddings {
    pub(super) words: Param<Tensor<2>>,
    pub(super) positions: Maybe<2>,
    pub(super) types: Maybe<2>,
    pub(super) norm_gain: Maybe<1>,
    pub(super) norm_bias: Maybe<1>,
    pub(super) projection_weight: Maybe<2>,
    pub(super) projection_bias: Maybe<1>,
}

impl Embeddings {
    pub(super) fn device(&self) -> Device {
        self.words.device()
    }

    /// A row for each token: `[tokens, hidden]`.
    pub(super) fn forward(&self, config: &EncoderConfig, batch: &TokenBatch, dropout: Dropout) -> Tensor<2> {
        let Self { words, positions, types, norm_gain, norm_bias, projection_weight, projection_bias } = self;
        let device = self.device();
        if is_cpu(&device)
            && config.fuses_embeddings()
            && let (Some(positions), Some(gain), Some(bias)) = (positions, norm_gain, norm_bias)
        {
            let first = first_position(config);
            let tokens = (batch.ids.iter().zip(&batch.positions))
                .map(|(&word, &position)| Token { word, position: position + first, kind: 0 })
                .collect();
            let none = || Tensor::zeros([1, config.embeddings.width], &device);
            let parameters = EmbeddingParameters {
                words: words.val(),
                positions: positions.val(),
                types: types.as_ref().map_or_else(none, Param::val),
                gain: gain.val(),
                bias: bias.val(),
            };
            let x = embed(parameters, tokens, config.norm.epsilon, dropout);
            return match (projection_weight, projection_bias) {
                (Some(weight), Some(bias)) => fused::linear(x, weight.val(), bias.val()),
                _ => x,
            };
        }
        self.forward_plain(config, batch, dropout)
    }

    /// The same in ordinary operations, whatever the description.
    pub(super) fn forward_plain(
        &self,
        config: &EncoderConfig,
        batch: &TokenBatch,
        dropout: Dropout,
    ) -> Tensor<2> {
        let Self { words, positions, types, norm_gain, norm_bias, projection_weight, projection_bias } = self;
        let device = self.device();
        let rows = |values: Vec<i64>| -> Tensor<1, Int> {
            let n = values.len();
            Tensor::from_data(TensorData::new(values, [n]), &device)
        };
        let ids = rows(batch.ids.iter().map(|&id| i64::from(id)).collect());
        let mut x = words.val().select(0, ids);
        if let Some(positions) = positions {
            let first = first_position(config);
            let places = rows(batch.positions.iter().map(|&p| i64::from(p + first)).collect());
            x = x + positions.val().select(0, places);
        }
        if let Some(types) = types {
            x = x + types.val().slice([0..1, 0..config.embeddings.width]);
        }
        let project = |x: Tensor<2>, here: Projection| match projection_weight {
            Some(weight) if config.embeddings.projection == here => affine(x, weight, projection_bias),
            _ => x,
        };
        let x = project(x, Projection::BeforeNorm);
        let x = norm(x, norm_gain, norm_bias, config.norm);
        // Masks of word vectors stay those that burn's generator draws, so that a seed gives what it always gave.
        let x = if config.n_layers == 0 { drop_by_device(x, dropout) } else { drop(x, dropout) };
        project(x, Projection::AfterNorm)
    }
}

/// The row of the first token in the position table.
fn first_position(config: &EncoderConfig) -> u32 {
    match config.embeddings.positions {
        Positions::Learned { first, .. } => first as u32,
        Positions::None { .. } => 0,
    }
}
