//! Label-wise attention over tokens with learnt queries, and one perceptron that all labels share.
//!
//! With h the token states and w_l the vector of a label:
//! ```text
//! α = softmax(h·w_l)     e = Σ αₜ·hₜ     z = MLP(e)
//! ```
//! Weights add up to 1, so the first layer of the MLP can be applied to tokens instead of e, and what is made for each
//! label is as wide as that layer's output: one number if the MLP is linear.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use cladist_core::LabelId;
use cladist_core::text::tfidf::SparseRow;
use rand_chacha::ChaCha8Rng;

use crate::blocks::{Linear, Matrix, Perceptron};
use crate::encoder::Packing;
use crate::fused::by_rows;
use crate::heads::label_attention::{labels_at_once, seen, select, weights};

/// The vectors of labels and the network that all share.
#[derive(Module, Debug)]
pub struct LabelLook {
    /// None where labels' vectors are rows of a table.
    pub(super) queries: Option<Matrix>,
    pub(super) first: Linear,
    pub(super) rest: Perceptron,
}

impl LabelLook {
    /// New parameters for states of this width; the MLP has `hidden` layers. Without a number of labels there are no vectors
    /// of labels.
    pub(crate) fn new(
        width: usize,
        hidden: &[usize],
        n_labels: Option<usize>,
        random: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        let widths = [hidden, &[1]].concat();
        Self {
            queries: n_labels.map(|n_labels| Matrix::new(width, n_labels, random, device)),
            first: Linear::new(width, widths[0], random, device),
            rest: Perceptron::new(&widths, random, device),
        }
    }

    /// The same, with this bias for every label.
    pub(crate) fn with_bias(mut self, bias: f32) -> Self {
        if self.rest.is_empty() {
            self.first = self.first.with_bias(vec![bias]);
        } else {
            self.rest = self.rest.with_bias(vec![bias]);
        }
        self
    }

    /// The vectors of all labels, where they are parameters.
    pub(crate) fn own(&self) -> Tensor<2> {
        match &self.queries {
            Some(queries) => queries.weight(),
            // Whoever builds this without vectors of labels brings them along.
            None => unreachable!("vectors of labels are missing"),
        }
    }

    /// Logits `[documents, labels]` of labels with these vectors, from packed token states.
    pub(crate) fn logits(&self, queries: Tensor<2>, tokens: Tensor<2>, packing: &Packing) -> Tensor<2> {
        self.logits_in_parts(queries, tokens, packing, None)
    }

    /// The same with so many labels at once; as many as memory allows if `None`.
    pub(super) fn logits_in_parts(
        &self,
        queries: Tensor<2>,
        tokens: Tensor<2>,
        packing: &Packing,
        at_once: Option<usize>,
    ) -> Tensor<2> {
        let values = self.first.forward(tokens.clone());
        let cells = packing.n_sequences() * packing.longest().max(values.dims()[1]);
        let at_once = at_once.unwrap_or_else(|| labels_at_once(cells));
        let inputs = vec![tokens, values];
        let packing = packing.clone();
        let work = Arc::new(move |_, queries: Tensor<2>, rest: &Perceptron, inputs: &[Tensor<2>]| {
            let (keys, values) = (inputs[0].clone(), inputs[1].clone());
            let seen = seen(queries.unsqueeze_dim(1), keys, values, &packing, 1, 1.0);
            let [labels, documents, width] = seen.dims();
            let seen = seen.reshape([labels * documents, width]);
            let logits = if rest.is_empty() { seen } else { rest.forward(activation::relu(seen)) };
            logits.reshape([labels, documents])
        });
        by_rows(queries, &self.rest, inputs, at_once, work).transpose()
    }

    /// Attention weights of labels with these queries: `[documents, labels, longest]`.
    pub(crate) fn weights(queries: Tensor<2>, tokens: Tensor<2>, packing: &Packing) -> Tensor<3> {
        weights(queries.unsqueeze_dim(1), tokens, packing, 1, 1.0).squeeze_dim(1)
    }

    /// The vectors of these labels, where they are parameters.
    pub(crate) fn own_of(&self, labels: &[LabelId]) -> Tensor<2> {
        let numbers: Vec<u32> = labels.iter().map(|label| label.index() as u32).collect();
        select(self.own(), Some(&numbers))
    }

    /// The attention query of each label.
    pub(crate) fn vectors(&self) -> Vec<SparseRow> {
        self.queries.as_ref().map(Matrix::outputs).unwrap_or_default()
    }
}
