//! Which words a label rests on, by the gradient of its logit.
//!
//! A token's part is Σ over its embedding of gradient·value, or with integrated gradients of the mean gradient on the
//! way from an embedding that says nothing, times the difference; parts of a word's pieces are added up.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use cladist_core::explain::words;
use cladist_core::{Cancel, Document, Job, LabelId, Request};

use crate::encoder::{LayerSet, Mode};
use crate::error::{Error, Result};
use crate::heads::{HeadInput, LabelStates};
use crate::model::{Network, NeuralModel};
use crate::tokens::{Sequence, TokenBatch};

/// How a network is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gradients {
    /// The gradient where the document is.
    AtDocument,
    /// The mean of gradients at so many places between nothing and the document.
    Integrated(usize),
}

/// Parts of a text by bytes, each with what it adds to the label's logit.
pub type Parts = Vec<(Range<usize>, f32)>;

impl NeuralModel {
    /// What each word adds to the logit of each of the labels. Of a document in windows, the one that the label scores
    /// highest in is looked at; words outside it have no part.
    pub fn attribute(
        &self,
        text: &str,
        labels: &[LabelId],
        how: Gradients,
        cancel: &Cancel,
    ) -> Result<Vec<Parts>> {
        if self.ranker().is_some() {
            return Err(Error::Head {
                problem: "labels are scored by a ranker, which has no logits to take gradients of".to_owned(),
                remedy: "leave words out instead, which works with any model",
            });
        }
        let windows = self.tokenizer.encode(&[text], &self.design.tokens)?.into_iter().flatten();
        let windows: Vec<Sequence> = windows.collect();
        let each: Vec<Vec<Sequence>> = windows.iter().map(|window| vec![window.clone()]).collect();
        let job = Job { cancel: cancel.clone(), ..Job::silent() };
        let rows = self.run(&each, None, &Request { job, ..Request::default() }, &mut [])?.rows;
        let network = self.network.clone().train();
        let states = self.label_states_of(&network, cancel)?;
        labels
            .iter()
            .map(|&label| {
                cancel.check()?;
                let score = |row: &Vec<(LabelId, f32)>| {
                    row.iter().find(|(other, _)| *other == label).map_or(0.0, |(_, score)| *score)
                };
                let best = (0..windows.len())
                    .fold(0, |best, n| if score(&rows[n]) > score(&rows[best]) { n } else { best });
                let Some(window) = windows.get(best) else { return Ok(Vec::new()) };
                let parts = self.token_parts(&network, states.as_ref(), window, label, how)?;
                let tokens = window.spans.iter().copied().zip(parts);
                Ok(by_word(text, tokens))
            })
            .collect()
    }

    /// How much each of the labels looks at each word; `None` if the head does not look at words label by label.
    pub fn attend(&self, text: &str, labels: &[LabelId]) -> Result<Option<Vec<Parts>>> {
        let found = self.attention(&Document::from_text("", text), labels)?;
        Ok(found.map(|found| found.into_iter().map(|tokens| by_word(text, tokens.into_iter())).collect()))
    }

    /// What each token adds.
    fn token_parts(
        &self,
        network: &Network,
        states: Option<&LabelStates>,
        window: &Sequence,
        label: LabelId,
        how: Gradients,
    ) -> Result<Vec<f32>> {
        let places = match how {
            Gradients::AtDocument => vec![1.0f32],
            Gradients::Integrated(n) => (0..n.max(1)).map(|k| (k as f32 + 0.5) / n.max(1) as f32).collect(),
        };
        let copies: Vec<&Sequence> = vec![window; places.len()];
        let batch = TokenBatch::new(&copies);
        let n_tokens = window.len();
        let nothing = match how {
            Gradients::AtDocument => None,
            Gradients::Integrated(_) => Some(self.nothing(network, window)),
        };
        let mut keep: LayerSet = network.head.layers(None).iter().collect();
        keep.insert(0);
        let probe = |x: Tensor<2>| {
            let [rows, _] = x.dims();
            let x = x.detach();
            let x = match &nothing {
                None => x,
                Some(nothing) => {
                    let cells: Vec<f32> =
                        places.iter().flat_map(|&place| std::iter::repeat_n(place, n_tokens)).collect();
                    let share = Tensor::<2>::from_data(TensorData::new(cells, [rows, 1]), &x.device());
                    let nothing = nothing.clone().repeat_dim(0, places.len());
                    nothing.clone() + (x - nothing) * share
                }
            };
            x.require_grad()
        };
        let encoded = network.encoder.encode_probed(&batch, &keep, Mode::Inference(None), &probe);
        let rows = self.rows();
        let input = HeadInput { rows: rows.as_ref(), ..HeadInput::of(&encoded, states) };
        let Some((logits, of)) = network.head.logits(&input) else {
            return Err(Error::Head {
                problem: format!("the head `{}` has no logits to take gradients of", self.design.head.name()),
                remedy: "leave words out instead, which works with any model",
            });
        };
        let Some(column) = of.iter().position(|&other| other == label) else {
            return Ok(vec![0.0; n_tokens]);
        };
        let [n, _] = logits.dims();
        let x = encoded.packed(0);
        let mut gradients = logits.slice([0..n, column..column + 1]).sum().backward();
        let Some(slope) = x.grad_remove(&mut gradients) else { return Ok(vec![0.0; n_tokens]) };
        let [_, width] = x.dims();
        let slope: Tensor<2> =
            slope.reshape([places.len(), n_tokens, width]).mean_dim(0).reshape([n_tokens, width]);
        // The document itself, not a place on the way to it.
        let at = network.encoder.encode(
            &TokenBatch::new(&[window]),
            &[0].into_iter().collect(),
            Mode::Inference(None),
        );
        let mut at = at.packed(0).inner();
        if let Some(nothing) = nothing {
            at = at - nothing.inner();
        }
        Ok(crate::parameters::to_vec((slope * at).sum_dim(1)))
    }

    /// Embeddings of the same sequence with a mask, or the unknown token, at every word.
    fn nothing(&self, network: &Network, window: &Sequence) -> Tensor<2> {
        let special = self.tokenizer.special();
        let blank = special.mask.or(special.unknown).unwrap_or(special.pad);
        let ids = window.ids.iter().zip(&window.spans);
        let ids = ids.map(|(&id, &(start, end))| if start < end { blank } else { id }).collect();
        let blank = Sequence { ids, spans: window.spans.clone() };
        let layers: LayerSet = [0].into_iter().collect();
        let encoded = network.encoder.encode(&TokenBatch::new(&[&blank]), &layers, Mode::Inference(None));
        encoded.packed(0).detach()
    }
}

/// Adds the parts of tokens up to those of the words they overlap with.
fn by_word(text: &str, tokens: impl Iterator<Item = ((u32, u32), f32)>) -> Parts {
    let mut words: Parts = words(text).into_iter().map(|word| (word, 0.0)).collect();
    for ((start, end), part) in tokens {
        let (start, end) = (start as usize, end as usize);
        // Words are in order and apart.
        let first = words.partition_point(|(word, _)| word.end <= start);
        if let Some((word, sum)) = words.get_mut(first)
            && word.start < end
            && start < end
        {
            *sum += part;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::{AnyHeadConfig, HEADS, Task};
    use crate::toy::{Toy, design, fitting, flat};

    fn document() -> &'static str {
        "Größe: gold-bars of the 金 fund"
    }

    #[test]
    fn integrated_gradients_add_up_to_the_change_of_the_logit() {
        let toy = Toy::new(Task::MultiLabel);
        let mut model = toy.model(flat(), 1);
        model.network = model.network.valid();
        let label = toy.taxonomy.get("fund").unwrap();
        let window = &model.tokenizer.encode(&[document()], &model.design.tokens).unwrap()[0][0];
        let network = model.network.clone().train();
        let parts = model.token_parts(&network, None, window, label, Gradients::Integrated(64)).unwrap();
        let logit = |window: &Sequence| {
            let layers = network.head.layers(None);
            let encoded = network.encoder.encode(&TokenBatch::new(&[window]), &layers, Mode::Inference(None));
            let (logits, of) = network.head.logits(&HeadInput::new(&encoded)).unwrap();
            crate::parameters::to_vec(logits)[of.iter().position(|&other| other == label).unwrap()]
        };
        let special = model.tokenizer.special();
        let blank: Vec<u32> = (window.ids.iter().zip(&window.spans))
            .map(|(&id, &(start, end))| if start < end { special.mask.unwrap() } else { id })
            .collect();
        let change = logit(window) - logit(&Sequence { ids: blank, spans: window.spans.clone() });
        let sum: f32 = parts.iter().sum();
        assert!(change.abs() > 1e-4 && (sum - change).abs() < 0.02 * change.abs() + 1e-4, "{sum} {change}");
    }

    #[test]
    fn words_get_the_parts_of_their_pieces_whatever_the_script() {
        let text = document();
        let spans = [(0, 0), (0, 3), (3, 7), (7, 8), (9, 13), (13, 14), (14, 18), (0, 0)];
        let parts = [9.0, 1.0, 2.0, 50.0, 4.0, 50.0, 8.0, 9.0];
        let parts = by_word(text, spans.into_iter().zip(parts));
        let found: Vec<(&str, f32)> = parts.iter().map(|(word, part)| (&text[word.clone()], *part)).collect();
        assert_eq!(found[..3], [("Größe", 3.0), ("gold", 4.0), ("bars", 8.0)]);
        assert_eq!(
            found.iter().map(|(word, _)| *word).collect::<Vec<_>>(),
            ["Größe", "gold", "bars", "of", "the", "金", "fund"]
        );
    }

    #[test]
    fn every_head_with_logits_can_be_asked_and_the_others_say_so() {
        for (name, _, config) in HEADS {
            let toy = Toy::new(Task::MultiLabel);
            let config: AnyHeadConfig = fitting(config());
            let mut model = toy.model(design(config, Task::MultiLabel), 1);
            model.network = model.network.valid();
            let label = toy.taxonomy.get("fund").unwrap();
            let emits = ["label-sequence", "sgm", "enc-dec", "hilap"].contains(name);
            for how in [Gradients::AtDocument, Gradients::Integrated(4)] {
                match model.attribute(document(), &[label, label], how, &Cancel::default()) {
                    Ok(parts) => {
                        assert!(!emits, "{name}");
                        assert_eq!(parts.len(), 2, "{name}");
                        assert_eq!(parts[0], parts[1], "{name}");
                        assert!(parts[0].iter().any(|(_, part)| *part != 0.0), "{name}: {parts:?}");
                    }
                    Err(error) => assert!(emits && error.to_string().contains("logits"), "{name}: {error}"),
                }
            }
        }
    }
}
