//! AttentionXML: a BiLSTM over words, label-wise attention over its states, and one perceptron that all labels share (You et al. 2019).
//!
//! For up to some ten thousand labels at once; the paper's trees over more labels are not here. Its cells start from
//! learnt states, these from zeros.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::Tensor;
use cladist_core::LabelId;
use cladist_core::text::tfidf::SparseRow;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::experts::LabelLook;
use super::per_label::by_logits;
use super::settings::{check_hidden, check_layers, check_rates, check_recurrent};
use super::{DROPOUT, Group, Head, HeadConfig, HeadContext, HeadInput, Labelwise, Masking};
use crate::blocks::{Bidirectional, Cell, dropout};
use crate::encoder::{LayerSet, place};
use crate::error::Result;
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "label-wise attention over a BiLSTM on word vectors (AttentionXML)";

/// Settings of the head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttentionXmlConfig {
    /// Units of the LSTM in each direction.
    pub units: usize,
    /// Layers of the LSTM.
    pub layers: usize,
    /// Hidden layers of the network that all labels share.
    pub hidden: Vec<usize>,
    /// Dropout on word vectors.
    pub word_dropout: f64,
    /// Dropout on what the LSTM gives.
    pub dropout: f64,
}

impl Default for AttentionXmlConfig {
    fn default() -> Self {
        Self { units: 256, layers: 1, hidden: vec![256], word_dropout: 0.2, dropout: 0.5 }
    }
}

/// The head.
#[derive(Module, Debug)]
pub struct AttentionXml {
    reader: Bidirectional,
    look: LabelLook,
    #[module(skip)]
    labelwise: Labelwise,
    #[module(skip)]
    layer: usize,
    #[module(skip)]
    rates: (f64, f64),
}

impl HeadConfig for AttentionXmlConfig {
    type Head = AttentionXml;

    fn masking(&self) -> Masking {
        Masking::Alone
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<AttentionXml> {
        let Self { units, layers, hidden, word_dropout, dropout } = self;
        check_recurrent("attention-xml.units", *units)?;
        check_layers("attention-xml.layers", *layers)?;
        check_hidden(&[("attention-xml.hidden", hidden.as_slice())])?;
        check_rates(&[("attention-xml.word_dropout", *word_dropout), ("attention-xml.dropout", *dropout)])?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let random = &mut random;
        let (n_labels, device) = (context.taxonomy.n_labels(), context.device);
        let width = context.hidden_size;
        Ok(AttentionXml {
            reader: Bidirectional::new(Cell::Lstm, width, *units, *layers, false, *dropout, random, device),
            look: LabelLook::new(2 * units, hidden, Some(n_labels), random, device)
                .with_bias(context.shared_bias()),
            labelwise: Labelwise::new(context, Loss::default()),
            layer: context.n_layers,
            rates: (*word_dropout, *dropout),
        })
    }
}

impl AttentionXml {
    /// States of the LSTM, packed.
    fn states(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        let at = |site: u64| seed.map(|seed| place(seed, DROPOUT + site));
        let (of_words, of_states) = self.rates;
        let words = dropout(input.documents.packed(self.layer), of_words, at(0));
        let (states, _) = self.reader.run(words, input.documents.packing(), at(1));
        dropout(states, of_states, at(2))
    }

    fn compute(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Tensor<2> {
        self.look.logits(self.look.own(), self.states(input, seed), input.documents.packing())
    }
}

impl Head for AttentionXml {
    by_logits!(labelwise);

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        [self.layer].into_iter().collect()
    }

    /// The attention query of each label.
    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        Some(self.look.vectors())
    }

    fn attention(&self, input: &HeadInput<'_>, labels: &[LabelId]) -> Option<Tensor<3>> {
        let states = self.states(input, None);
        Some(LabelLook::weights(self.look.own_of(labels), states, input.documents.packing()))
    }

    fn group(&self, parameter: &str) -> Group {
        if parameter.starts_with("look.queries") { Group::Labels } else { Group::Output }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::{AnyHeadConfig, Task};
    use crate::parameters::{names, to_vec};
    use crate::toy::{Toy, design};

    #[test]
    fn labels_look_at_all_words_and_have_a_rate_of_their_own() {
        let toy = Toy::new(Task::MultiLabel);
        let config = AttentionXmlConfig { units: 8, hidden: vec![8], ..AttentionXmlConfig::default() };
        let model = toy.model(design(AnyHeadConfig::AttentionXml(config), Task::MultiLabel), 1);
        let documents = toy.encoded(&model);
        let labels: Vec<LabelId> = toy.taxonomy.labels().take(2).collect();
        let head = &model.network.head;
        let weights = head.attention(&HeadInput::new(&documents), &labels).unwrap();
        for row in to_vec(weights).chunks_exact(documents.packing().longest()) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
        }
        let of_labels = names(head).into_iter().filter(|name| head.group(name) == Group::Labels);
        assert_eq!(of_labels.collect::<Vec<_>>(), ["look.queries.weight"]);
    }
}
