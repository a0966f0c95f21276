//! What an encoder returns: states of the layers asked for.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use super::{Packing, Pooler, linear};

/// What is read of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The first token (`[CLS]`) of each sequence.
    First,
    /// The mean of each sequence's tokens.
    Mean,
    /// Every token.
    Tokens,
}

/// A set of layers: 0 is the embeddings, 1 the first layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerSet {
    layers: BTreeMap<usize, Reads>,
}

impl LayerSet {
    /// Whether a layer is in the set.
    #[must_use]
    pub fn contains(&self, layer: usize) -> bool {
        self.layers.contains_key(&layer)
    }

    /// The highest layer.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        self.layers.keys().last().copied()
    }

    /// The same layers, of which nothing is read but the first token (`[CLS]`) of each sequence. The highest layer
    /// then computes no other token, which saves most of its work.
    #[must_use]
    pub fn first_tokens(self) -> Self {
        self.all_by(Reads::First)
    }

    /// The same layers, of which nothing is read but the mean of each sequence's tokens. Only means are then kept.
    #[must_use]
    pub fn means(self) -> Self {
        self.all_by(Reads::Mean)
    }

    fn all_by(self, reads: Reads) -> Self {
        Self { layers: self.layers.into_keys().map(|layer| (layer, reads)).collect() }
    }

    /// The layers of both; all tokens of a layer if they do not read the same.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        for (layer, reads) in other.layers {
            let own = self.layers.entry(layer).or_insert(reads);
            if *own != reads {
                *own = Reads::Tokens;
            }
        }
        self
    }

    /// Whether only first tokens of a layer are read.
    #[must_use]
    pub fn only_first_tokens(&self, layer: usize) -> bool {
        self.reads(layer) == Some(Reads::First)
    }

    /// What is read of a layer, if anything.
    pub(crate) fn reads(&self, layer: usize) -> Option<Reads> {
        self.layers.get(&layer).copied()
    }

    /// Adds a layer, all of whose tokens are read.
    pub fn insert(&mut self, layer: usize) {
        self.layers.insert(layer, Reads::Tokens);
    }

    /// The layers, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.layers.keys().copied()
    }
}

impl FromIterator<usize> for LayerSet {
    fn from_iter<I: IntoIterator<Item = usize>>(layers: I) -> Self {
        Self { layers: layers.into_iter().map(|layer| (layer, Reads::Tokens)).collect() }
    }
}

/// States of a batch. Tokens are packed end to end inside; heads see sequences.
#[derive(Debug)]
pub struct Encoded {
    packing: Packing,
    states: BTreeMap<usize, (Reads, Tensor<2>)>,
    attention: BTreeMap<usize, Tensor<4>>,
    pooled: Option<Tensor<2>>,
}

impl Encoded {
    pub(super) fn new(
        packing: Packing,
        states: BTreeMap<usize, (Reads, Tensor<2>)>,
        attention: BTreeMap<usize, Tensor<4>>,
        pooler: Option<&Pooler>,
    ) -> Self {
        let mut encoded = Self { packing, states, attention, pooled: None };
        let last = encoded.states.iter().next_back().filter(|(_, (reads, _))| *reads != Reads::Mean);
        if let (Some(pooler), Some((&last, _))) = (pooler, last) {
            encoded.pooled = Some(linear(encoded.cls(last), pooler.weight.val(), pooler.bias.val()).tanh());
        }
        encoded
    }

    /// Sequences of the batch.
    #[must_use]
    pub fn n_sequences(&self) -> usize {
        self.packing.n_sequences()
    }

    /// Where sequences lie among the packed tokens.
    #[must_use]
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// Whether the states of a layer were kept.
    #[must_use]
    pub fn has(&self, layer: usize) -> bool {
        self.states.contains_key(&layer)
    }

    /// Token states of a layer, packed: `[tokens, hidden]`.
    ///
    /// # Panics
    /// If the layer was not asked for, or only its first tokens or means.
    #[must_use]
    pub fn packed(&self, layer: usize) -> Tensor<2> {
        let (reads, states) = self.kept(layer);
        assert!(reads == Reads::Tokens, "of layer {layer} only {reads:?} was asked for");
        states
    }

    fn kept(&self, layer: usize) -> (Reads, Tensor<2>) {
        assert!(self.has(layer), "layer {layer} was not kept");
        self.states[&layer].clone()
    }

    /// The first token (`[CLS]`) of each sequence at a layer: `[sequences, hidden]`.
    ///
    /// # Panics
    /// If the layer was not asked for, or only its means.
    #[must_use]
    pub fn cls(&self, layer: usize) -> Tensor<2> {
        if let (Reads::First, states) = self.kept(layer) {
            return states;
        }
        let states = self.packed(layer);
        let rows = self.packing.first_rows(&states.device());
        states.select(0, rows)
    }

    /// The mean of each sequence's token states at a layer: `[sequences, hidden]`.
    ///
    /// # Panics
    /// If the layer was not asked for, or only its first tokens.
    #[must_use]
    pub fn mean(&self, layer: usize) -> Tensor<2> {
        if let (Reads::Mean, states) = self.kept(layer) {
            return states;
        }
        means(&self.packing, self.packed(layer))
    }

    /// Token states of a layer in a padded rectangle `[sequences, longest, hidden]`, and the mask
    /// `[sequences, longest]`: 1 at tokens, 0 at padding. Padding holds zeros.
    ///
    /// # Panics
    /// If the layer was not asked for.
    #[must_use]
    pub fn tokens(&self, layer: usize) -> (Tensor<3>, Tensor<2>) {
        let states = self.packed(layer);
        let mask = self.packing.mask(&states.device());
        (self.packing.pad(states), mask)
    }

    /// tanh(W·`[CLS]` + b) of the highest layer kept: `[sequences, hidden]`; `None` without a pooler.
    #[must_use]
    pub fn pooled(&self) -> Option<Tensor<2>> {
        self.pooled.clone()
    }

    /// Attention probabilities of a layer, `[sequences, heads, longest, longest]`, if they were asked for.
    /// Padded columns are 0; padded rows mean nothing.
    #[must_use]
    pub fn attention(&self, layer: usize) -> Option<Tensor<4>> {
        self.attention.get(&layer).cloned()
    }
}

/// The mean of each sequence's tokens: `[sequences, hidden]`.
pub(super) fn means(packing: &Packing, states: Tensor<2>) -> Tensor<2> {
    // A product over all tokens of the batch costs less than a padded copy of them.
    packing.averages(&states.device()).matmul(states)
}
