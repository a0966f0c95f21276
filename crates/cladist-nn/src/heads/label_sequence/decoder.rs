//! The network that emits labels one after the other.
//!
//! With H the token states, s₀ = W_i·`[CLS]` and m₀ = 0, step t is
//! ```text
//! α = softmax(H·s₋)          c = Σ αᵢ·hᵢ
//! (s, m) = LSTM([g(y₋); c], (s₋, m₋))
//! o = W_o·tanh(W_d·s + V_d·c) + b
//! ```
//! where ₋ marks the step before and y₀ is the mark of the beginning.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use cladist_core::text::tfidf::SparseRow;
use rand_chacha::ChaCha8Rng;

use super::emit::{Emit, Memory, State};
use crate::blocks::{Cell, Linear, Matrix, Recurrence};
use crate::encoder::Encoded;

/// The parameters.
#[derive(Module, Debug)]
pub struct Decoder {
    start: Matrix,
    /// Rows of labels, of the end and of the beginning.
    embeddings: Matrix,
    from_label: Matrix,
    from_context: Matrix,
    cell: Recurrence,
    of_state: Matrix,
    of_context: Matrix,
    output: Linear,
    #[module(skip)]
    options: Options,
}

/// Readings of the paper that differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Feed the context of the step before.
    pub(super) lagged_context: bool,
    /// Divide scores by the square root of the width.
    pub(super) scale_attention: bool,
}

impl Decoder {
    pub(super) fn new(
        hidden: usize,
        n_labels: usize,
        options: Options,
        random: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        Self {
            start: Matrix::new(hidden, hidden, random, device),
            embeddings: Matrix::new(hidden, n_labels + 2, random, device),
            from_label: Matrix::new(hidden, 4 * hidden, random, device),
            from_context: Matrix::new(hidden, 4 * hidden, random, device),
            cell: Recurrence::new(Cell::Lstm, hidden, random, device),
            of_state: Matrix::new(hidden, hidden, random, device),
            of_context: Matrix::new(hidden, hidden, random, device),
            output: Linear::new(hidden, n_labels + 1, random, device),
            options,
        }
    }

    /// Contexts `[n, hidden]` for states `[n, hidden]`, as many for each document.
    pub(super) fn attend(&self, memory: &Memory, states: Tensor<2>) -> Tensor<2> {
        let [n, hidden] = states.dims();
        let queries = states.reshape([memory.n_documents(), n / memory.n_documents().max(1), hidden]);
        let mut scores = queries.matmul(memory.tokens.clone().swap_dims(1, 2));
        if self.options.scale_attention {
            scores = scores / (hidden as f64).sqrt();
        }
        memory.mix(scores)
    }

    /// The state before the first step, from `[CLS]` vectors `[documents, hidden]`.
    pub(super) fn start(&self, cls: Tensor<2>, memory: &Memory) -> State {
        let state = self.start.forward(cls);
        let context =
            if self.options.lagged_context { self.attend(memory, state.clone()) } else { state.zeros_like() };
        State(vec![self.cell.begin(state), context])
    }

    pub(super) fn features(&self, state: Tensor<2>, context: Tensor<2>) -> Tensor<2> {
        (self.of_state.forward(state) + self.of_context.forward(context)).tanh()
    }
}

/// A state is that of the cell, and the context of the step before.
impl Emit for Decoder {
    fn begin(&self, documents: &Encoded, layer: usize, _seed: Option<u64>) -> (Memory, State) {
        let memory = Memory::new(documents.tokens(layer).0, documents.packing());
        let state = self.start(documents.cls(layer), &memory);
        (memory, state)
    }

    /// The share of the gates that the labels emitted before have: `[n, 4·hidden]`.
    fn fed(&self, labels: &[u32]) -> Tensor<2> {
        self.from_label.forward(self.embeddings.rows(labels))
    }

    /// Features are tanh(W_d·s + V_d·c).
    fn step(&self, memory: &Memory, fed: Tensor<2>, before: State, _: Option<u64>) -> (State, Tensor<2>) {
        let [state, last] = before.parts();
        let context = self.attend(memory, self.cell.h(state.clone()));
        let seen = if self.options.lagged_context { last } else { context.clone() };
        let state = self.cell.step(fed + self.from_context.forward(seen), state);
        let features = self.features(self.cell.h(state.clone()), context.clone());
        (State(vec![state, context]), features)
    }

    fn logits(&self, features: Tensor<2>) -> Tensor<2> {
        self.output.forward(features)
    }

    fn outputs(&self) -> Vec<SparseRow> {
        self.output.outputs()
    }
}
