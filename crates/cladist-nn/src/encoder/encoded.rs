//! What an encoder returns: states of the layers asked for.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::Tensor;

use super::{Packing, Pooler, linear};

/// A set of layers: 0 is the embeddings, 1 the first layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerSet {
    /// Whether nothing is read of a layer but first tokens.
    layers: BTreeMap<usize, bool>,
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
        Self { layers: self.layers.into_keys().map(|layer| (layer, true)).collect() }
    }

    /// The layers of both; all tokens of a layer if either reads them.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        for (layer, first) in other.layers {
            self.layers.entry(layer).and_modify(|own| *own &= first).or_insert(first);
        }
        self
    }

    /// Whether only first tokens of a layer are read.
    #[must_use]
    pub fn only_first_tokens(&self, layer: usize) -> bool {
        self.layers.get(&layer).copied().unwrap_or(false)
    }

    /// Adds a layer, all of whose tokens are read.
    pub fn insert(&mut self, layer: usize) {
        self.layers.insert(layer, false);
    }

    /// The layers, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.layers.keys().copied()
    }
}

impl FromIterator<usize> for LayerSet {
    fn from_iter<I: IntoIterator<Item = usize>>(layers: I) -> Self {
        Self { layers: layers.into_iter().map(|layer| (layer, false)).collect() }
    }
}

/// States of a batch. Tokens are packed end to end inside; heads see sequences.
#[derive(Debug)]
pub struct Encoded {
    packing: Packing,
    states: BTreeMap<usize, Tensor<2>>,
    /// The layers of which there are only first tokens.
    first: BTreeSet<usize>,
    attention: BTreeMap<usize, Tensor<4>>,
    pooled: Option<Tensor<2>>,
}

impl Encoded {
    pub(super) fn new(
        packing: Packing,
        states: BTreeMap<usize, Tensor<2>>,
        first: BTreeSet<usize>,
        attention: BTreeMap<usize, Tensor<4>>,
        pooler: Option<&Pooler>,
    ) -> Self {
        let mut encoded = Self { packing, states, first, attention, pooled: None };
        if let (Some(pooler), Some(&last)) = (pooler, encoded.states.keys().last()) {
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
    /// If the layer was not asked for, or only its first tokens.
    #[must_use]
    pub fn packed(&self, layer: usize) -> Tensor<2> {
        assert!(!self.first.contains(&layer), "only first tokens of layer {layer} were asked for");
        assert!(self.has(layer), "layer {layer} was not kept");
        self.states[&layer].clone()
    }

    /// The first token (`[CLS]`) of each sequence at a layer: `[sequences, hidden]`.
    ///
    /// # Panics
    /// If the layer was not asked for.
    #[must_use]
    pub fn cls(&self, layer: usize) -> Tensor<2> {
        if self.first.contains(&layer) {
            return self.states[&layer].clone();
        }
        let states = self.packed(layer);
        let rows = self.packing.first_rows(&states.device());
        states.select(0, rows)
    }

    /// The mean of each sequence's token states at a layer: `[sequences, hidden]`.
    ///
    /// # Panics
    /// If the layer was not asked for.
    #[must_use]
    pub fn mean(&self, layer: usize) -> Tensor<2> {
        let states = self.packed(layer);
        // A product over all tokens of the batch costs less than a padded copy of them.
        self.packing.averages(&states.device()).matmul(states)
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
