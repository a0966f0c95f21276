//! SGM: labels in sequence on word vectors, the model that sequence generation for many labels began with.
//!
//! A BiLSTM of several layers, its directions added up, reads the document; an LSTM of as many layers begins with the
//! states in which the forward direction ended. Attention is computed after the cell:
//! ```text
//! q = F_in(h)   α = softmax(q·H)   c = Σ α·H   o = W·F_out([h; c])
//! ```
//! with F_in and F_out of two layers and SELU. With the global embedding, the label that is fed is mixed with the mean
//! of all labels' embeddings under the distribution of the step before, by a gate.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use cladist_core::text::tfidf::SparseRow;
use rand_chacha::ChaCha8Rng;

pub use super::label_sequence::LabelSequencer;
use super::label_sequence::{Emit, Emitter, Memory, ScoresFrom, State, emitting};
use super::settings::{check_rates, check_recurrent, setting};
use super::{HeadConfig, HeadContext};
use crate::blocks::{Bidirectional, Cell, Linear, Matrix, Recurrence, dropout};
use crate::encoder::{Encoded, place};
use crate::error::Result;

/// One line of help.
pub const ABOUT: &str = "label sequences from a BiLSTM encoder and LSTM decoder on word vectors (SGM)";

/// How much sharper than softmax the distribution is that the global embedding averages with.
const SHARPNESS: f64 = 10.0;

emitting! {
    /// Settings of the SGM head.
    SgmConfig of "sgm" {
        /// Units of an LSTM, and width of a label's embedding.
        hidden: usize = 512,
        /// Layers of both LSTMs.
        layers: usize = 3,
        /// Dropout between layers and in attention.
        dropout: f64 = 0.1,
        /// Feed the whole distribution of the step before, not its label alone.
        global_embedding: bool = true,
    }
}

/// The network.
#[derive(Module, Debug)]
pub struct Sgm {
    reader: Bidirectional,
    /// Rows of labels, of the end and of the beginning.
    embeddings: Matrix,
    gate_of_label: Option<Matrix>,
    gate_of_mean: Option<Matrix>,
    inputs: Vec<Linear>,
    cells: Vec<Recurrence>,
    query: Vec<Linear>,
    out: Vec<Linear>,
    output: Linear,
    #[module(skip)]
    n_labels: usize,
    #[module(skip)]
    dropout: f64,
}

impl HeadConfig for SgmConfig {
    type Head = LabelSequencer;

    fn answers_sets(&self) -> bool {
        self.scores == ScoresFrom::Beam
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<LabelSequencer> {
        check_recurrent("sgm.hidden", self.hidden)?;
        if !(1..=16).contains(&self.layers) {
            return Err(setting("sgm.layers", "1 to 16", self.layers));
        }
        check_rates(&[("sgm.dropout", self.dropout)])?;
        LabelSequencer::new(context, self.emission()?, |n_labels, random| {
            Ok(Emitter::Sgm(Sgm::new(self, context.hidden_size, n_labels, random, context.device)))
        })
    }
}

impl Sgm {
    fn new(
        config: &SgmConfig,
        inputs: usize,
        n_labels: usize,
        random: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        let SgmConfig { hidden, layers, dropout, global_embedding, .. } = *config;
        let fed = if global_embedding { 2 * hidden } else { hidden };
        Self {
            reader: Bidirectional::new(Cell::Lstm, inputs, hidden, layers, true, dropout, random, device),
            embeddings: Matrix::new(hidden, n_labels + 2, random, device),
            gate_of_label: global_embedding.then(|| Matrix::new(hidden, hidden, random, device)),
            gate_of_mean: global_embedding.then(|| Matrix::new(hidden, hidden, random, device)),
            inputs: (0..layers)
                .map(|n| Linear::new(if n == 0 { fed } else { hidden }, 4 * hidden, random, device))
                .collect(),
            cells: (0..layers).map(|_| Recurrence::new(Cell::Lstm, hidden, random, device)).collect(),
            query: (0..2).map(|_| Linear::new(hidden, hidden, random, device)).collect(),
            out: [2 * hidden, hidden].map(|inputs| Linear::new(inputs, hidden, random, device)).into(),
            output: Linear::new(hidden, n_labels + 1, random, device),
            n_labels,
            dropout,
        }
    }

    /// What is fed for labels with embeddings `fed`, after a step with these features; `started` is 0 before the first.
    fn input(&self, fed: Tensor<2>, features: Tensor<2>, started: Tensor<2>) -> Tensor<2> {
        let (Some(of_label), Some(of_mean)) = (&self.gate_of_label, &self.gate_of_mean) else { return fed };
        let logits = self.output.forward(features) * started;
        let shares = activation::softmax(logits * SHARPNESS, 1);
        let labels: Vec<u32> = (0..=self.n_labels as u32).collect();
        let mean = shares.matmul(self.embeddings.rows(&labels));
        let gate = activation::sigmoid(of_label.forward(fed.clone()) + of_mean.forward(mean.clone()));
        let mixed = mean.clone() + gate * (fed.clone() - mean);
        Tensor::cat(vec![fed, mixed], 1)
    }

    /// Layers with SELU and dropout after each.
    fn selu(&self, layers: &[Linear], mut x: Tensor<2>, seed: Option<u64>, site: u64) -> Tensor<2> {
        for (n, layer) in (site..).zip(layers) {
            x = selu(layer.forward(x));
            x = dropout(x, self.dropout, seed.map(|seed| place(seed, n)));
        }
        x
    }
}

/// λ·x above 0, λ·α·(eˣ − 1) below.
fn selu(x: Tensor<2>) -> Tensor<2> {
    const LAMBDA: f64 = 1.050_700_987_355_480_5;
    const ALPHA: f64 = 1.673_263_242_354_377_2;
    let below = (x.clone().clamp_max(0.0).exp() - 1.0) * ALPHA;
    (activation::relu(x) + below) * LAMBDA
}

/// A state is that of every layer, the features of the step before, and whether there was one.
impl Emit for Sgm {
    fn begin(&self, documents: &Encoded, layer: usize, seed: Option<u64>) -> (Memory, State) {
        let packing = documents.packing();
        let (states, ends) = self.reader.run(documents.packed(layer), packing, seed);
        let memory = Memory::new(packing.pad(states), packing);
        let mut parts: Vec<Tensor<2>> = ends.into_iter().map(|ends| ends.forward).collect();
        let (device, n, [.., hidden]) = (memory.tokens.device(), memory.n_documents(), memory.tokens.dims());
        parts.extend([Tensor::zeros([n, hidden], &device), Tensor::zeros([n, 1], &device)]);
        (memory, State(parts))
    }

    fn fed(&self, labels: &[u32]) -> Tensor<2> {
        self.embeddings.rows(labels)
    }

    fn step(&self, memory: &Memory, fed: Tensor<2>, before: State, seed: Option<u64>) -> (State, Tensor<2>) {
        let State(mut parts) = before;
        let n_layers = self.cells.len();
        let (started, features) = (parts.remove(n_layers + 1), parts.remove(n_layers));
        let mut x = self.input(fed, features, started.clone());
        for (n, ((input, cell), state)) in self.inputs.iter().zip(&self.cells).zip(&mut parts).enumerate() {
            if n > 0 {
                x = dropout(x, self.dropout, seed.map(|seed| place(seed, n as u64)));
            }
            *state = cell.step(input.forward(x), state.clone());
            x = cell.h(state.clone());
        }
        let [n, hidden] = x.dims();
        let documents = memory.n_documents();
        let queries = self.selu(&self.query, x.clone(), seed, 100);
        let queries: Tensor<3> = queries.reshape([documents, n / documents.max(1), hidden]);
        let context = memory.mix(queries.matmul(memory.tokens.clone().swap_dims(1, 2)));
        let features = self.selu(&self.out, Tensor::cat(vec![x, context], 1), seed, 200);
        parts.extend([features.clone(), started.ones_like()]);
        (State(parts), features)
    }

    fn logits(&self, features: Tensor<2>) -> Tensor<2> {
        self.output.forward(features)
    }

    fn outputs(&self) -> Vec<SparseRow> {
        self.output.outputs()
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::TensorData;

    use super::*;
    use crate::parameters::to_vec;

    #[test]
    fn selu_is_the_published_one() {
        let x = Tensor::<2>::from_data(TensorData::new(vec![1.0f32, 0.0, -1.0], [1, 3]), &Device::flex());
        let y = to_vec(selu(x));
        for (got, wanted) in y.iter().zip([1.050_701, 0.0, -1.111_330_7]) {
            assert!((got - wanted).abs() < 1e-6, "{y:?}");
        }
    }
}
