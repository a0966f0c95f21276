//! EncDec: labels in sequence from a GRU with additive attention on word vectors.
//!
//! A BiGRU reads the document, its directions side by side. With s₀ = W_i·[its two ends], step t is
//! ```text
//! e = v·tanh(W_q·s₋ + W_k·hᵢ)   α = softmax(e)   c = Σ αᵢ·hᵢ
//! s = GRU([g(y₋); c], s₋)       o = W_o·tanh(W_d·s + V_d·c) + b
//! ```

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use cladist_core::text::tfidf::SparseRow;
use rand_chacha::ChaCha8Rng;

pub use super::label_sequence::LabelSequencer;
use super::label_sequence::{Emit, Emitter, Memory, ScoresFrom, State, emitting};
use super::settings::check_recurrent;
use super::{HeadConfig, HeadContext};
use crate::blocks::{Bidirectional, Cell, Linear, Matrix, Recurrence};
use crate::encoder::Encoded;
use crate::error::Result;

/// One line of help.
pub const ABOUT: &str = "label sequences from a GRU encoder-decoder on word vectors (EncDec)";

emitting! {
    /// Settings of the EncDec head.
    EncDecConfig of "enc-dec" {
        /// Units of a GRU, and width of a label's embedding.
        hidden: usize = 512,
    }
}

/// The network.
#[derive(Module, Debug)]
pub struct EncDec {
    reader: Bidirectional,
    start: Matrix,
    /// Rows of labels, of the end and of the beginning.
    embeddings: Matrix,
    of_query: Matrix,
    of_key: Matrix,
    /// v, as a matrix of one row.
    score: Matrix,
    from_label: Linear,
    from_context: Matrix,
    cell: Recurrence,
    of_state: Matrix,
    of_context: Matrix,
    output: Linear,
}

impl HeadConfig for EncDecConfig {
    type Head = LabelSequencer;

    fn answers_sets(&self) -> bool {
        self.scores == ScoresFrom::Beam
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<LabelSequencer> {
        check_recurrent("enc-dec.hidden", self.hidden)?;
        LabelSequencer::new(context, self.emission()?, |n_labels, random| {
            let network = EncDec::new(self.hidden, context.hidden_size, n_labels, random, context.device);
            Ok(Emitter::EncDec(network))
        })
    }
}

impl EncDec {
    fn new(hidden: usize, inputs: usize, n_labels: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
        Self {
            reader: Bidirectional::new(Cell::Gru, inputs, hidden, 1, false, 0.0, random, device),
            start: Matrix::new(2 * hidden, hidden, random, device),
            embeddings: Matrix::new(hidden, n_labels + 2, random, device),
            of_query: Matrix::new(hidden, hidden, random, device),
            of_key: Matrix::new(2 * hidden, hidden, random, device),
            score: Matrix::new(hidden, 1, random, device),
            from_label: Linear::new(hidden, 3 * hidden, random, device),
            from_context: Matrix::new(2 * hidden, 3 * hidden, random, device),
            cell: Recurrence::new(Cell::Gru, hidden, random, device),
            of_state: Matrix::new(hidden, hidden, random, device),
            of_context: Matrix::new(2 * hidden, hidden, random, device),
            output: Linear::new(hidden, n_labels + 1, random, device),
        }
    }

    /// Contexts `[n, 2·hidden]` for states `[n, hidden]`.
    fn attend(&self, memory: &Memory, states: Tensor<2>) -> Tensor<2> {
        let [n, hidden] = states.dims();
        let documents = memory.n_documents();
        let each = n / documents.max(1);
        let keys = memory.keys.clone().unwrap_or_else(|| memory.tokens.clone());
        let [_, longest, _] = keys.dims();
        let queries = self.of_query.forward(states).reshape([documents, each, 1, hidden]);
        let sums = (queries + keys.unsqueeze_dim::<4>(1)).tanh();
        let scores = self.score.forward(sums.reshape([n * longest, hidden]));
        memory.mix(scores.reshape([documents, each, longest]))
    }
}

impl Emit for EncDec {
    fn begin(&self, documents: &Encoded, layer: usize, seed: Option<u64>) -> (Memory, State) {
        let packing = documents.packing();
        let (states, ends) = self.reader.run(documents.packed(layer), packing, seed);
        let keys = packing.pad(self.of_key.forward(states.clone()));
        let memory = Memory { keys: Some(keys), ..Memory::new(packing.pad(states), packing) };
        let both = ends.into_iter().flat_map(|ends| [ends.forward, ends.backward]);
        let start = self.start.forward(Tensor::cat(both.collect(), 1));
        (memory, State(vec![start]))
    }

    fn fed(&self, labels: &[u32]) -> Tensor<2> {
        self.from_label.forward(self.embeddings.rows(labels))
    }

    fn step(&self, memory: &Memory, fed: Tensor<2>, before: State, _: Option<u64>) -> (State, Tensor<2>) {
        let [state] = before.parts();
        let context = self.attend(memory, state.clone());
        let state = self.cell.step(fed + self.from_context.forward(context.clone()), state);
        let features = (self.of_state.forward(state.clone()) + self.of_context.forward(context)).tanh();
        (State(vec![state]), features)
    }

    fn logits(&self, features: Tensor<2>) -> Tensor<2> {
        self.output.forward(features)
    }

    fn outputs(&self) -> Vec<SparseRow> {
        self.output.outputs()
    }
}
