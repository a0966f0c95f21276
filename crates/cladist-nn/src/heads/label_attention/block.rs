//! The block: attention from labels to tokens, with what a transformer layer has around it.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use rand_chacha::ChaCha8Rng;

use super::attend::{seen, weights};
use crate::blocks::{LayerNorm, Linear, Matrix, dropout_from};
use crate::encoder::{Packing, place};
use crate::heads::DROPOUT;

/// Keys and values of tokens. A bias of keys would not change any softmax, so there is none.
#[derive(Module, Debug)]
pub struct Source {
    pub(super) key: Matrix,
    pub(super) value: Linear,
}

impl Source {
    pub(super) fn new(hidden: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
        let key = Matrix::new(hidden, hidden, random, device);
        Self { key, value: Linear::new(hidden, hidden, random, device) }
    }
}

/// Two layers with a GELU between.
#[derive(Module, Debug)]
pub struct FeedForward {
    up: Linear,
    down: Linear,
    norm: LayerNorm,
}

/// X₁ = LN(X + W_O·A·V), X₂ = LN(X₁ + W₂·gelu(W₁·X₁)) with one query for each label.
#[derive(Module, Debug)]
pub struct Block {
    query: Linear,
    out: Linear,
    norm: LayerNorm,
    feed_forward: Option<FeedForward>,
}

/// Blocks on top of each other, and the output that all labels share.
#[derive(Module, Debug)]
pub struct Stack {
    pub(super) blocks: Vec<Block>,
    pub(super) output: Option<Linear>,
}

/// What a stack needs beside parameters.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) packing: Packing,
    pub(super) hidden: usize,
    pub(super) n_heads: usize,
    pub(super) dropout: f64,
    pub(super) seed: Option<u64>,
}

impl Setting {
    fn scale(&self) -> f64 {
        1.0 / ((self.hidden / self.n_heads) as f64).sqrt()
    }

    fn drop(&self, first: usize, x: Tensor<2>, site: usize) -> Tensor<2> {
        let seed = self.seed.map(|seed| place(seed, DROPOUT + site as u64));
        dropout_from(first * self.packing.n_sequences(), x, self.dropout, seed)
    }
}

impl Block {
    pub(super) fn new(hidden: usize, feed_forward: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
        let wide = feed_forward * hidden;
        Self {
            query: Linear::new(hidden, hidden, random, device),
            out: Linear::new(hidden, hidden, random, device),
            norm: LayerNorm::new(hidden, device),
            feed_forward: (wide > 0).then(|| FeedForward {
                up: Linear::new(hidden, wide, random, device),
                down: Linear::new(wide, hidden, random, device),
                norm: LayerNorm::new(hidden, device),
            }),
        }
    }

    fn queries(&self, x: Tensor<3>) -> Tensor<3> {
        let [labels, copies, hidden] = x.dims();
        self.query.forward(x.reshape([labels * copies, hidden])).reshape([labels, copies, hidden])
    }

    /// The next queries `[labels, documents, hidden]`. Label 0 has the number `first`.
    fn forward(
        &self,
        x: Tensor<3>,
        [keys, values]: [Tensor<2>; 2],
        setting: &Setting,
        first: usize,
        site: usize,
    ) -> Tensor<3> {
        let Setting { packing, hidden, n_heads, .. } = setting;
        let ([labels, _, _], documents) = (x.dims(), packing.n_sequences());
        let seen = seen(self.queries(x.clone()), keys, values, packing, *n_heads, setting.scale());
        // Label by label, so that a row has the same number however many labels are at work.
        let seen = self.out.forward(seen.reshape([labels * documents, *hidden]));
        let x = x.expand([labels, documents, *hidden]).reshape([labels * documents, *hidden]);
        let mut x = self.norm.forward(x + setting.drop(first, seen, 2 * site));
        if let Some(FeedForward { up, down, norm }) = &self.feed_forward {
            let more = down.forward(activation::gelu(up.forward(x.clone())));
            x = norm.forward(x + setting.drop(first, more, 2 * site + 1));
        }
        x.reshape([labels, documents, *hidden])
    }
}

impl Stack {
    /// What labels have seen after so many blocks: `[labels, documents, hidden]`. `sources` holds keys and values of
    /// each block.
    fn look(
        &self,
        n_blocks: usize,
        queries: Tensor<2>,
        sources: &[Tensor<2>],
        setting: &Setting,
        first: usize,
    ) -> Tensor<3> {
        let pairs = sources.chunks_exact(2).map(|pair| [pair[0].clone(), pair[1].clone()]);
        let blocks = self.blocks.iter().zip(pairs).take(n_blocks).enumerate();
        blocks.fold(queries.unsqueeze_dim::<3>(1), |x, (site, (block, source))| {
            block.forward(x, source, setting, first, site)
        })
    }

    /// Attention weights of the last block: `[documents, heads, labels, longest]`.
    pub(super) fn weights(
        &self,
        queries: Tensor<2>,
        sources: &[Tensor<2>],
        setting: &Setting,
    ) -> Option<Tensor<4>> {
        let last = self.blocks.len().checked_sub(1)?;
        let x = self.look(last, queries, sources, setting, 0);
        let keys = sources.get(2 * last)?.clone();
        let queries = self.blocks[last].queries(x);
        Some(weights(queries, keys, &setting.packing, setting.n_heads, setting.scale()))
    }

    /// Logits `[labels, documents]` from rows that hold the queries and, without an output for all, W and b of each
    /// label.
    pub(super) fn logits(
        &self,
        rows: Tensor<2>,
        sources: &[Tensor<2>],
        setting: &Setting,
        first: usize,
    ) -> Tensor<2> {
        let (hidden, documents) = (setting.hidden, setting.packing.n_sequences());
        let [labels, _] = rows.dims();
        let x = self.look(self.blocks.len(), rows.clone().narrow(1, 0, hidden), sources, setting, first);
        match &self.output {
            Some(output) => {
                output.forward(x.reshape([labels * documents, hidden])).reshape([labels, documents])
            }
            None => answer(x, rows.narrow(1, hidden, hidden + 1)),
        }
    }
}

/// w·x + b with W and b of each label: `x [labels, documents, width]`, `rows [labels, width + 1]` →
/// `[labels, documents]`.
pub(crate) fn answer(x: Tensor<3>, rows: Tensor<2>) -> Tensor<2> {
    let [labels, documents, width] = x.dims();
    let weights = rows.clone().narrow(1, 0, width).unsqueeze_dim::<3>(2);
    x.matmul(weights).reshape([labels, documents]) + rows.narrow(1, width, 1)
}
