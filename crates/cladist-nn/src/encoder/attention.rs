//! Attention in ordinary tensor operations: what tokens know of each other's places.

use burn::tensor::{Device, Int, Tensor, TensorData, activation};

use super::EncoderConfig;
use super::description::{DistanceBias, Rotary};
use crate::tokens::Packing;

/// Scores of what a token must not see.
const UNSEEN: f32 = -1e30;

/// What attention adds to states, made once for all layers of a batch. Sequences are padded to the longest, `n` tokens.
#[derive(Debug)]
pub(super) struct Relations {
    /// Bias by distance: `[1, heads, n, n]`.
    distance: Option<Tensor<4>>,
    /// 0 at neighbours, −1e30 elsewhere: `[1, 1, n, n]`.
    window: Option<Tensor<4>>,
    /// Cosines and sines `[1, 1, n, width]`, of layers that see everything and of those with a window.
    rotary: Option<[[Tensor<4>; 2]; 2]>,
}

impl Relations {
    /// `table [buckets, heads]` is the bias by distance, if the description has one.
    pub(super) fn new(
        config: &EncoderConfig,
        table: Option<Tensor<2>>,
        packing: &Packing,
        device: &Device,
    ) -> Self {
        let (n, spec) = (packing.longest(), &config.attention);
        let width = config.hidden_size / config.n_heads;
        Self {
            distance: spec.distance.zip(table).map(|(bias, table)| by_distance(bias, table, n)),
            window: spec.window.as_ref().map(|window| neighbours(window.radius, n, device)),
            rotary: spec.rotary.map(|rotary| {
                [rotary.theta, rotary.local_theta].map(|theta| turns(rotary, theta, n, width, device))
            }),
        }
    }
}

/// The heads of a layer over padded sequences: projections `qkv [tokens, (heads + 2·key heads)·width]` → probabilities
/// `[batch, heads, n, n]` and values `[batch, heads, n, width]`. Columns of padding are 0; rows of padding are not defined.
pub(super) fn attend(
    qkv: Tensor<2>,
    config: &EncoderConfig,
    layer: usize,
    packing: &Packing,
    relations: &Relations,
) -> (Tensor<4>, Tensor<4>) {
    let EncoderConfig { hidden_size, n_heads, ref attention, .. } = *config;
    let (batch, n, width) = (packing.n_sequences(), packing.longest(), hidden_size / n_heads);
    let device = qkv.device();
    let padded = packing.cells(qkv); // [batch·n, …]
    let n_keys = attention.n_key_heads;
    let part = |from: usize, heads: usize| -> Tensor<4> {
        let columns = from * width..(from + heads) * width;
        padded.clone().slice([0..batch * n, columns]).reshape([batch, n, heads, width]).swap_dims(1, 2)
    };
    let (mut queries, mut keys) = (part(0, n_heads), part(n_heads, n_keys));
    let values = part(n_heads + n_keys, n_keys);
    let local = attention.window.as_ref().and_then(|window| window.radius(layer)).is_some();
    if let Some(rotary) = &relations.rotary {
        let turns = &rotary[usize::from(local)];
        (queries, keys) = (turn(queries, turns), turn(keys, turns));
    }
    let (keys, values) = (serve(keys, n_heads), serve(values, n_heads));
    let mut scores = queries.matmul(keys.swap_dims(2, 3)) / (width as f64).sqrt();
    if let Some(bias) = &relations.distance {
        scores = scores + bias.clone();
    }
    if let Some(window) = relations.window.as_ref().filter(|_| local) {
        scores = scores + window.clone();
    }
    let scores = scores + packing.bias(&device); // −1e30 where a key is padding
    (activation::softmax(scores, 3), values)
}

/// Heads of keys or values, each as often as heads of queries share it.
fn serve(x: Tensor<4>, n_heads: usize) -> Tensor<4> {
    let [batch, own, n, width] = x.dims();
    if own == n_heads {
        return x;
    }
    let each = n_heads / own;
    x.unsqueeze_dim::<5>(2).repeat_dim(2, each).reshape([batch, n_heads, n, width])
}

fn by_distance(bias: DistanceBias, table: Tensor<2>, n: usize) -> Tensor<4> {
    let [_, n_heads] = table.dims();
    let buckets: Vec<i64> = (0..n)
        .flat_map(|query| (0..n).map(move |key| bias.bucket(key as isize - query as isize) as i64))
        .collect();
    let buckets = Tensor::<1, Int>::from_data(TensorData::new(buckets, [n * n]), &table.device());
    table.select(0, buckets).reshape([1, n, n, n_heads]).permute([0, 3, 1, 2])
}

fn neighbours(radius: usize, n: usize, device: &Device) -> Tensor<4> {
    let seen = |query: usize, key: usize| if query.abs_diff(key) <= radius { 0.0 } else { UNSEEN };
    let cells: Vec<f32> = (0..n).flat_map(|query| (0..n).map(move |key| seen(query, key))).collect();
    Tensor::from_data(TensorData::new(cells, [1, 1, n, n]), device)
}

/// Cosine and sine of each place and dimension; dimension k + d/2 turns as k does.
fn turns(rotary: Rotary, theta: f64, n: usize, width: usize, device: &Device) -> [Tensor<4>; 2] {
    let half = width / 2;
    let base = theta * rotary.factor;
    let scale = rotary.factor.powf(2.0 / width as f64);
    let angle =
        |place: usize, k: usize| place as f64 * base.powf(-2.0 * (k % half) as f64 / width as f64) / scale;
    [f64::cos, f64::sin].map(|of| {
        let cells: Vec<f32> =
            (0..n).flat_map(|place| (0..width).map(move |k| of(angle(place, k)) as f32)).collect();
        Tensor::from_data(TensorData::new(cells, [1, 1, n, width]), device)
    })
}

/// x·cos + [−x₂, x₁]·sin, of the two halves of x.
fn turn(x: Tensor<4>, [cos, sin]: &[Tensor<4>; 2]) -> Tensor<4> {
    let half = x.dims()[3] / 2;
    let (first, second) = (x.clone().narrow(3, 0, half), x.clone().narrow(3, half, half));
    x * cos.clone() + Tensor::cat(vec![-second, first], 3) * sin.clone()
}
