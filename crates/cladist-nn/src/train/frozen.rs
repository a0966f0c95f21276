//! Epochs in which only the head learns: the encoder reads every document once.
//!
//! A head that starts at random sends gradients through the encoder that undo what it was pretrained for (Kumar et al.
//! 2022). Learning the head first, on states that do not change, avoids that and costs little: an epoch is as long as the
//! head takes.

use std::collections::BTreeMap;
use std::ops::Range;

use burn::tensor::{Tensor, TensorData};
use cladist_core::Cancel;

use super::progress::Watcher;
use super::source::Source;
use crate::encoder::{Encoded, Encoder, Mode, PackedWeights, Reads};
use crate::error::Result;
use crate::model::NeuralModel;
use crate::parameters::to_vec;
use crate::tokens::{BUDGET, Sequence, TokenBatch, sorted_by_tokens};

/// Bytes of states that are kept in memory; if there are more, every epoch reads the documents anew.
pub(super) const MEMORY: usize = 4 << 30;

/// States of all training documents.
pub(super) struct Frozen {
    layers: BTreeMap<usize, Kept>,
    /// The tokens of example i are `offsets[i]..offsets[i + 1]`.
    offsets: Vec<usize>,
    width: usize,
}

/// States of a layer.
struct Kept {
    /// A row for each token of each example, or for each example.
    values: Vec<f32>,
    reads: Reads,
}

impl Kept {
    fn range(&self, offsets: &[usize], width: usize, example: usize) -> Range<usize> {
        let rows = match self.reads {
            Reads::First | Reads::Mean => example..example + 1,
            Reads::Tokens => offsets[example]..offsets[example + 1],
        };
        rows.start * width..rows.end * width
    }
}

impl Frozen {
    /// Reads all examples; `None` if their states take more than so many bytes.
    pub(super) fn read(
        model: &NeuralModel,
        source: &dyn Source,
        memory: usize,
        watcher: &dyn Watcher,
        cancel: &Cancel,
    ) -> Result<Option<Self>> {
        let (keep, width) = (&model.layers, model.network.encoder.hidden_size());
        let mut offsets = vec![0];
        for length in source.lengths() {
            offsets.push(offsets.last().unwrap_or(&0) + length);
        }
        let n_examples = source.lengths().len();
        let n_tokens = offsets.last().copied().unwrap_or(0);
        let rows = |layer| match keep.reads(layer) {
            Some(Reads::First | Reads::Mean) => n_examples,
            _ => n_tokens,
        };
        if keep.iter().map(rows).sum::<usize>() * width * size_of::<f32>() > memory {
            return Ok(None);
        }
        let empty = |layer| {
            let values = vec![0.0; rows(layer) * width];
            (layer, Kept { values, reads: keep.reads(layer).unwrap_or(Reads::Tokens) })
        };
        let mut layers: BTreeMap<usize, Kept> = keep.iter().map(empty).collect();
        let mut done = 0;
        for batch in sorted_by_tokens(source.lengths(), BUDGET) {
            cancel.check()?;
            let examples = source.fetch(&batch)?;
            let sequences: Vec<&Sequence> = examples.iter().map(|example| &*example.sequence).collect();
            let encoded = model.encode(&sequences, keep);
            for (&layer, kept) in &mut layers {
                let states = to_vec(match kept.reads {
                    Reads::First => encoded.cls(layer),
                    Reads::Mean => encoded.mean(layer),
                    Reads::Tokens => encoded.packed(layer),
                });
                let mut rest = states.as_slice();
                for &n in &batch {
                    let range = kept.range(&offsets, width, n);
                    let (own, others) = rest.split_at(range.len());
                    kept.values[range].copy_from_slice(own);
                    rest = others;
                }
            }
            done += batch.len() as u64;
            watcher.reading(done, n_examples as u64);
        }
        Ok(Some(Self { layers, offsets, width }))
    }

    fn batch(&self, encoder: &Encoder, batch: &[usize], tokens: &TokenBatch) -> Encoded {
        let device = encoder.device();
        let states = self.layers.iter().map(|(&layer, kept)| {
            let of = |&n: &usize| &kept.values[kept.range(&self.offsets, self.width, n)];
            let values: Vec<f32> = batch.iter().flat_map(of).copied().collect();
            let shape = [values.len() / self.width, self.width];
            (layer, (kept.reads, Tensor::from_data(TensorData::new(values, shape), &device)))
        });
        encoder.encoded(&tokens.offsets, states.collect())
    }
}

/// A batch as the encoder reads it without learning: from kept states, or anew.
pub(super) fn encode(
    frozen: Option<&Frozen>,
    encoder: &Encoder,
    model: &NeuralModel,
    batch: &[usize],
    tokens: &TokenBatch,
) -> Encoded {
    let anew =
        |packed: Option<&PackedWeights>| encoder.encode(tokens, &model.layers, Mode::Inference(packed));
    frozen.map_or_else(|| anew(model.packed.as_ref()), |frozen| frozen.batch(encoder, batch, tokens))
}

#[cfg(test)]
mod tests {
    use cladist_core::job::Silent;

    use super::*;
    use crate::heads::experts::ExpertsConfig;
    use crate::heads::flat::FlatConfig;
    use crate::heads::light_xml::LightXmlConfig;
    use crate::heads::{AnyHeadConfig, Pool, Task};
    use crate::tokens::numbered;
    use crate::toy::{Toy, design};
    use crate::train::source::Resident;

    #[test]
    fn what_is_kept_is_what_the_encoder_says() {
        let toy = Toy::new(Task::MultiLabel);
        for head in [
            AnyHeadConfig::Flat(FlatConfig { pool: Pool::Pooled, ..FlatConfig::default() }),
            AnyHeadConfig::Flat(FlatConfig { pool: Pool::Mean, ..FlatConfig::default() }),
            AnyHeadConfig::LightXml(LightXmlConfig::default()),
            AnyHeadConfig::LightXml(LightXmlConfig { pool: Pool::Mean, ..LightXmlConfig::default() }),
            AnyHeadConfig::Experts(ExpertsConfig::default()),
        ] {
            let model = toy.model(design(head, Task::MultiLabel), 1).ready();
            let tokens = model.tokenize(&toy.documents).unwrap();
            let examples = numbered(&tokens);
            let cancel = Cancel::default();
            let source = Resident::new(&model, &toy.examples(), &cancel).unwrap();
            let kept = Frozen::read(&model, &source, MEMORY, &Silent, &cancel).unwrap().unwrap();
            assert!(Frozen::read(&model, &source, 64, &Silent, &cancel).unwrap().is_none());
            let batch = [5, 0, 4];
            let sequences: Vec<&Sequence> = batch.iter().map(|&n| examples[n].1).collect();
            let packed = TokenBatch::new(&sequences);
            let of = |kept| encode(kept, &model.network.encoder, &model, &batch, &packed);
            let (from_kept, anew) = (of(Some(&kept)), of(None));
            let close = |a: Tensor<2>, b: Tensor<2>| {
                let (a, b) = (to_vec(a), to_vec(b));
                assert_eq!(a.len(), b.len());
                assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5));
            };
            for (layer, own) in &kept.layers {
                let width = model.network.encoder.hidden_size();
                let rows = own.values.len() / width;
                match own.reads {
                    Reads::First => close(from_kept.cls(*layer), anew.cls(*layer)),
                    Reads::Mean => close(from_kept.mean(*layer), anew.mean(*layer)),
                    Reads::Tokens => close(from_kept.packed(*layer), anew.packed(*layer)),
                }
                assert_eq!(rows == examples.len(), own.reads != Reads::Tokens, "one row a document");
            }
            if let (Some(a), Some(b)) = (from_kept.pooled(), anew.pooled()) {
                close(a, b);
            }
        }
    }

    #[test]
    fn reading_can_be_stopped() {
        let toy = Toy::new(Task::MultiLabel);
        let model = toy.model(crate::toy::flat(), 1).ready();
        let cancel = Cancel::default();
        let source = Resident::new(&model, &toy.examples(), &cancel).unwrap();
        cancel.cancel();
        assert!(Frozen::read(&model, &source, MEMORY, &Silent, &cancel).is_err());
    }
}
