//! What a network must do to emit labels one after the other.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData, activation};
use cladist_core::text::tfidf::SparseRow;

use super::decoder::Decoder;
use crate::encoder::{Encoded, Packing};
use crate::heads::enc_dec::EncDec;
use crate::heads::sgm::Sgm;

/// A network that emits labels. Rows of states are hypotheses, as many for each document, document by document.
pub(in crate::heads) trait Emit {
    /// Reads the documents; gives what is attended to, and the state before the first step.
    fn begin(&self, documents: &Encoded, layer: usize, seed: Option<u64>) -> (Memory, State);
    /// What labels that were just emitted bring to the next step, a row each.
    fn fed(&self, labels: &[u32]) -> Tensor<2>;
    /// One step with what was fed: the state after it, and the features of its logits.
    fn step(&self, memory: &Memory, fed: Tensor<2>, before: State, seed: Option<u64>) -> (State, Tensor<2>);
    /// Logits of labels and of the end: `[n, labels + 1]`.
    fn logits(&self, features: Tensor<2>) -> Tensor<2>;
    /// The weights of the logits: of labels, and of the end.
    fn outputs(&self) -> Vec<SparseRow>;
}

/// The networks there are.
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "a model has one")]
pub enum Emitter {
    /// A decoder right on the encoder.
    Encoder(Decoder),
    /// SGM.
    Sgm(Sgm),
    /// EncDec.
    EncDec(EncDec),
}

impl Emitter {
    pub(super) fn network(&self) -> &dyn Emit {
        match self {
            Self::Encoder(network) => network,
            Self::Sgm(network) => network,
            Self::EncDec(network) => network,
        }
    }
}

/// What a decoder attends to.
#[derive(Debug)]
pub(in crate::heads) struct Memory {
    /// `[documents, tokens, width]`
    pub(in crate::heads) tokens: Tensor<3>,
    /// 0 at words, −1e30 elsewhere: `[documents, 1, tokens]`
    pub(in crate::heads) bias: Tensor<3>,
    /// What queries are compared with, if not the tokens themselves.
    pub(in crate::heads) keys: Option<Tensor<3>>,
}

impl Memory {
    /// The words of each document: not the marks at its ends, unless there is nothing else.
    pub(in crate::heads) fn new(tokens: Tensor<3>, packing: &Packing) -> Self {
        let [n, longest, _] = tokens.dims();
        let mut cells = vec![-1e30f32; n * longest];
        for (sequence, cells) in cells.chunks_exact_mut(longest.max(1)).enumerate() {
            let length = packing.length(sequence);
            let words = if length > 2 { 1..length - 1 } else { 0..length };
            cells[words].fill(0.0);
        }
        let bias = Tensor::from_data(TensorData::new(cells, [n, 1, longest]), &tokens.device());
        Self { tokens, bias, keys: None }
    }

    pub(in crate::heads) fn n_documents(&self) -> usize {
        self.tokens.dims()[0]
    }

    /// Means of tokens `[n, width]`, weighted by the softmax of scores `[documents, n / documents, tokens]`.
    pub(in crate::heads) fn mix(&self, scores: Tensor<3>) -> Tensor<2> {
        let [documents, each, _] = scores.dims();
        let [.., width] = self.tokens.dims();
        let weights = activation::softmax(scores + self.bias.clone(), 2);
        weights.matmul(self.tokens.clone()).reshape([documents * each, width])
    }
}

/// Where decoding is: tensors with a row for each hypothesis.
#[derive(Debug, Clone)]
pub(in crate::heads) struct State(pub(in crate::heads) Vec<Tensor<2>>);

impl State {
    /// Rows by number.
    pub(super) fn select(self, rows: &[usize]) -> Self {
        let numbers: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let pick = |tensor: Tensor<2>| {
            let rows = Tensor::from_data(TensorData::new(numbers.clone(), [rows.len()]), &tensor.device());
            tensor.select(0, rows)
        };
        Self(self.0.into_iter().map(pick).collect())
    }

    /// A fixed number of parts, which the network that made the state knows.
    #[expect(clippy::expect_used, reason = "a network reads its own states")]
    pub(in crate::heads) fn parts<const N: usize>(self) -> [Tensor<2>; N] {
        self.0.try_into().expect("as many parts as were made")
    }
}
