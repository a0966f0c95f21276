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
use burn::tensor::{Device, Tensor, TensorData, activation};
use cladist_core::text::tfidf::SparseRow;
use rand_chacha::ChaCha8Rng;

use crate::blocks::{Linear, Lstm, Matrix};
use crate::encoder::Encoded;

/// The parameters.
#[derive(Module, Debug)]
pub struct Decoder {
    start: Matrix,
    /// Rows of labels, of the end and of the beginning.
    embeddings: Matrix,
    from_label: Matrix,
    from_context: Matrix,
    cell: Lstm,
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

/// What a decoder attends to.
#[derive(Debug)]
pub(super) struct Memory {
    /// `[documents, tokens, hidden]`
    tokens: Tensor<3>,
    /// 0 at words, −1e30 elsewhere: `[documents, 1, tokens]`
    bias: Tensor<3>,
}

impl Memory {
    /// The word pieces of each document: not the marks at its ends, unless there is nothing else.
    pub(super) fn new(documents: &Encoded, layer: usize) -> Self {
        let (tokens, _) = documents.tokens(layer);
        let [n, longest, _] = tokens.dims();
        let packing = documents.packing();
        let mut cells = vec![-1e30f32; n * longest];
        for (sequence, cells) in cells.chunks_exact_mut(longest.max(1)).enumerate() {
            let length = packing.length(sequence);
            let words = if length > 2 { 1..length - 1 } else { 0..length };
            cells[words].fill(0.0);
        }
        let bias = Tensor::from_data(TensorData::new(cells, [n, 1, longest]), &tokens.device());
        Self { tokens, bias }
    }

    #[cfg(test)]
    pub(super) fn of(tokens: Tensor<3>, bias: Tensor<3>) -> Self {
        Self { tokens, bias }
    }

    pub(super) fn n_documents(&self) -> usize {
        self.tokens.dims()[0]
    }
}

/// Where decoding is, a row for each hypothesis, document by document.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) state: Tensor<2>,
    memory: Tensor<2>,
    /// The context of the step before.
    context: Tensor<2>,
}

impl State {
    /// Rows by number.
    pub(super) fn select(self, rows: &[usize]) -> Self {
        let numbers: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let rows = Tensor::from_data(TensorData::new(numbers, [rows.len()]), &self.state.device());
        let pick = |tensor: Tensor<2>| tensor.select(0, rows.clone());
        Self { state: pick(self.state), memory: pick(self.memory), context: pick(self.context) }
    }
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
            cell: Lstm::new(hidden, random, device),
            of_state: Matrix::new(hidden, hidden, random, device),
            of_context: Matrix::new(hidden, hidden, random, device),
            output: Linear::new(hidden, n_labels + 1, random, device),
            options,
        }
    }

    /// The state before the first step, from `[CLS]` vectors `[documents, hidden]`.
    pub(super) fn begin(&self, cls: Tensor<2>, memory: &Memory) -> State {
        let state = self.start.forward(cls);
        let context =
            if self.options.lagged_context { self.attend(memory, state.clone()) } else { state.zeros_like() };
        State { memory: state.zeros_like(), state, context }
    }

    /// The share of the gates that the labels emitted before have: `[n, 4·hidden]`.
    pub(super) fn fed(&self, labels: &[u32]) -> Tensor<2> {
        self.from_label.forward(self.embeddings.rows(labels))
    }

    /// Contexts `[n, hidden]` for states `[n, hidden]`, as many for each document.
    pub(super) fn attend(&self, memory: &Memory, states: Tensor<2>) -> Tensor<2> {
        let [n, hidden] = states.dims();
        let [documents, ..] = memory.tokens.dims();
        let queries = states.reshape([documents, n / documents.max(1), hidden]);
        let mut scores = queries.matmul(memory.tokens.clone().swap_dims(1, 2));
        if self.options.scale_attention {
            scores = scores / (hidden as f64).sqrt();
        }
        let weights = activation::softmax(scores + memory.bias.clone(), 2);
        weights.matmul(memory.tokens.clone()).reshape([n, hidden])
    }

    /// One step with what was fed; gives tanh(W_d·s + V_d·c).
    pub(super) fn step(&self, memory: &Memory, fed: Tensor<2>, before: State) -> (State, Tensor<2>) {
        let context = self.attend(memory, before.state.clone());
        let seen = if self.options.lagged_context { before.context } else { context.clone() };
        let input = fed + self.from_context.forward(seen);
        let (state, cell) = self.cell.step(input, before.state, before.memory);
        let features = self.features(state.clone(), context.clone());
        (State { state, memory: cell, context }, features)
    }

    pub(super) fn features(&self, state: Tensor<2>, context: Tensor<2>) -> Tensor<2> {
        (self.of_state.forward(state) + self.of_context.forward(context)).tanh()
    }

    /// Logits of labels and of the end: `[n, labels + 1]`.
    pub(super) fn logits(&self, features: Tensor<2>) -> Tensor<2> {
        self.output.forward(features)
    }

    /// The rows of W_o: of labels, and of the end.
    pub(super) fn outputs(&self) -> Vec<SparseRow> {
        self.output.outputs()
    }
}
