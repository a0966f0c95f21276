//! What labels say of themselves: descriptions as tokens, and their vectors by the encoder of the documents.

use burn::tensor::{Int, Tensor, TensorData};
use cladist_core::{Cancel, LabelId, Taxonomy};
use serde::{Deserialize, Serialize};

use crate::encoder::{Encoder, LayerSet, Mode, PackedWeights};
use crate::error::{Error, Result};
use crate::seeds;
use crate::tokens::{BUDGET, Sequence, TokenBatch, Tokenizer, TokensConfig, sorted_by_tokens};

/// Ancestors that a description names at most, the nearest.
const ANCESTORS: usize = 8;

/// Tokens of a description at most, if nobody says how many; fewer if the encoder reads fewer.
pub(crate) const MAX_TOKENS: usize = 128;

/// The vector of a description.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DescriptionVector {
    /// `[CLS]` of the last layer.
    #[default]
    Cls,
    /// The mean of all tokens of the last layer.
    Mean,
}

/// How descriptions are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptionConfig {
    /// Whether the names of ancestors come first.
    pub path: bool,
    /// Tokens of a description at most, counting the special ones.
    pub max_tokens: usize,
    /// Its vector.
    pub vector: DescriptionVector,
    /// Whether they are read only once, for the parameters that a new head starts from.
    pub at_start_only: bool,
}

/// The text of every label: names of ancestors from the top if they are wanted, its name, and its description if it
/// has one.
#[must_use]
pub fn texts(taxonomy: &Taxonomy, path: bool) -> Vec<String> {
    let text = |label: LabelId| {
        let mut names: Vec<&str> = if path {
            taxonomy.way_up(label).skip(1).take(ANCESTORS).map(|above| taxonomy.name(above)).collect()
        } else {
            Vec::new()
        };
        names.reverse();
        names.push(taxonomy.name(label));
        let names = names.join(", ");
        match &taxonomy.label(label).description {
            Some(description) => format!("{names}: {description}"),
            None => names,
        }
    };
    taxonomy.labels().map(text).collect()
}

/// The descriptions of all labels, in their order.
#[derive(Debug, Clone)]
pub struct Descriptions {
    sequences: Vec<Sequence>,
    vector: DescriptionVector,
    cut: Option<Cut>,
}

/// Descriptions that are longer than what is read of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// How many are.
    pub n_labels: usize,
    /// Tokens that are read, counting the special ones.
    pub max_tokens: usize,
}

impl Descriptions {
    /// Tokenises what labels say of themselves.
    pub(crate) fn new(
        config: &DescriptionConfig,
        taxonomy: &Taxonomy,
        tokenizer: &Tokenizer,
        encoder: &Encoder,
        cancel: &Cancel,
    ) -> Result<Self> {
        let DescriptionConfig { path, max_tokens, vector, at_start_only: _ } = *config;
        let most = encoder.config().max_tokens();
        let max_tokens = if max_tokens == MAX_TOKENS { max_tokens.min(most) } else { max_tokens };
        if !(8..=most).contains(&max_tokens) {
            let problem =
                format!("descriptions must have 8 to {most} tokens with this encoder: {max_tokens}");
            return Err(Error::Head { problem, remedy: "change `max_tokens` of the head" });
        }
        let texts = texts(taxonomy, path);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let tokens = TokensConfig { max_tokens, ..TokensConfig::default() };
        let sequences: Vec<Sequence> =
            tokenizer.encode_unless(&texts, &tokens, cancel)?.into_iter().flatten().collect();
        // A second window is what does not fit into the first.
        let full = texts.iter().zip(&sequences).filter(|(_, sequence)| sequence.len() == max_tokens);
        let full: Vec<&str> = full.map(|(&text, _)| text).collect();
        let windows = tokenizer.encode_unless(&full, &TokensConfig { windows: 2, ..tokens }, cancel)?;
        let n_labels = windows.iter().filter(|windows| windows.len() > 1).count();
        Ok(Self { sequences, vector, cut: (n_labels > 0).then_some(Cut { n_labels, max_tokens }) })
    }

    /// Those that are cut, if any are.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// The token ids of all labels.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &[u32]> {
        self.sequences.iter().map(|sequence| sequence.ids.as_slice())
    }

    /// Vectors of these labels, or of all, through which the encoder learns: `[labels, hidden]`.
    pub(crate) fn learn(&self, encoder: &Encoder, labels: Option<&[u32]>, seed: u64) -> Tensor<2> {
        let sequences: Vec<&Sequence> = match labels {
            Some(labels) => labels.iter().map(|&label| &self.sequences[label as usize]).collect(),
            None => self.sequences.iter().collect(),
        };
        self.encode(encoder, &sequences, Mode::Training { seed: seeds::derive(seed, seeds::DESCRIPTIONS) })
    }

    /// Vectors of all labels as they are now: `[labels, hidden]`.
    pub(crate) fn read(&self, encoder: &Encoder, packed: Option<&PackedWeights>) -> Tensor<2> {
        self.read_while(encoder, packed, || Some(())).unwrap_or_else(|| unreachable!("nobody stops it"))
    }

    /// The same, unless somebody asks to stop.
    pub(crate) fn read_unless(
        &self,
        encoder: &Encoder,
        packed: Option<&PackedWeights>,
        cancel: &Cancel,
    ) -> Result<Tensor<2>> {
        let going = || (!cancel.is_cancelled()).then_some(());
        Ok(self.read_while(encoder, packed, going).ok_or(cladist_core::Error::Cancelled)?)
    }

    fn read_while(
        &self,
        encoder: &Encoder,
        packed: Option<&PackedWeights>,
        going: impl Fn() -> Option<()>,
    ) -> Option<Tensor<2>> {
        let lengths: Vec<usize> = self.sequences.iter().map(Sequence::len).collect();
        let batches = sorted_by_tokens(&lengths, BUDGET);
        let vectors = batches.iter().map(|batch| {
            going()?;
            let sequences: Vec<&Sequence> = batch.iter().map(|&label| &self.sequences[label]).collect();
            Some(self.encode(encoder, &sequences, Mode::Inference(packed)))
        });
        let vectors = Tensor::cat(vectors.collect::<Option<Vec<_>>>()?, 0);
        let mut rows = vec![0i64; lengths.len()];
        for (row, label) in batches.into_iter().flatten().enumerate() {
            rows[label] = row as i64;
        }
        let rows: Tensor<1, Int> =
            Tensor::from_data(TensorData::new(rows, [lengths.len()]), &vectors.device());
        Some(vectors.select(0, rows))
    }

    fn encode(&self, encoder: &Encoder, sequences: &[&Sequence], mode: Mode<'_>) -> Tensor<2> {
        let layer = encoder.n_layers();
        let layers: LayerSet = [layer].into_iter().collect();
        let batch = TokenBatch::new(sequences);
        match self.vector {
            DescriptionVector::Cls => encoder.encode(&batch, &layers.first_tokens(), mode).cls(layer),
            DescriptionVector::Mean => encoder.encode(&batch, &layers, mode).mean(layer),
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use cladist_core::taxonomy::{Builder, Label, Origin};

    use super::*;
    use crate::parameters::to_vec;
    use crate::source::EncoderSource;

    fn taxonomy() -> Taxonomy {
        let mut builder = Builder::new();
        builder.edge(None, "goods", &Origin::default());
        builder.edge(Some("goods"), "metal", &Origin::default());
        builder.edge(Some("metal"), "cu", &Origin::default());
        let label = Label {
            id: "cu".to_owned(),
            name: Some("copper".to_owned()),
            description: Some("a red metal".to_owned()),
            ..Label::default()
        };
        builder.describe(label);
        builder.build().unwrap()
    }

    #[test]
    fn a_label_says_its_name_its_description_and_where_it_is() {
        assert_eq!(texts(&taxonomy(), false), ["goods", "metal", "copper: a red metal"]);
        assert_eq!(texts(&taxonomy(), true)[2], "goods, metal, copper: a red metal");
    }

    #[test]
    fn vectors_come_in_the_order_of_labels_whatever_their_length() {
        let taxonomy = taxonomy();
        let source = EncoderSource::parse("scratch:tiny").unwrap();
        let texts = || vec!["copper metal goods red a"; 2];
        let (tokenizer, encoder, _) =
            source.open(texts, false, 1, &Device::flex().autodiff(), &Cancel::default()).unwrap();
        for vector in [DescriptionVector::Cls, DescriptionVector::Mean] {
            let config = DescriptionConfig { path: false, max_tokens: 16, vector, at_start_only: false };
            let descriptions =
                Descriptions::new(&config, &taxonomy, &tokenizer, &encoder, &Cancel::default()).unwrap();
            let all = to_vec(descriptions.read(&encoder, encoder.pack().as_ref()));
            for label in 0..3 {
                let alone = descriptions.sequences[label].clone();
                let alone = Descriptions { sequences: vec![alone], vector, cut: None };
                let alone = to_vec(alone.read(&encoder, None));
                let same = alone.iter().zip(&all[label * 64..]).all(|(a, b)| (a - b).abs() < 1e-5);
                assert!(same, "{vector:?}, label {label}");
            }
        }
        // While only the head learns, so that it sees the vectors that it will be asked with.
        let frozen = encoder.with_dropout(0.5).freeze(usize::MAX);
        let config = DescriptionConfig {
            path: false,
            max_tokens: 16,
            vector: DescriptionVector::Cls,
            at_start_only: false,
        };
        let cancel = Cancel::default();
        let descriptions = Descriptions::new(&config, &taxonomy, &tokenizer, &frozen, &cancel).unwrap();
        let (learnt, read) = (descriptions.learn(&frozen, None, 3), descriptions.read(&frozen, None));
        crate::toy::near(&to_vec(learnt), &to_vec(read), 1e-5);
        let encoder = frozen;
        let config = DescriptionConfig {
            path: false,
            max_tokens: 1_000_000,
            vector: DescriptionVector::Cls,
            at_start_only: false,
        };
        let message = Descriptions::new(&config, &taxonomy, &tokenizer, &encoder, &Cancel::default())
            .unwrap_err()
            .to_string();
        assert!(message.contains("1000000"), "{message}");
    }

    #[test]
    fn descriptions_that_are_cut_are_counted_and_the_default_fits_a_small_encoder() {
        let mut builder = Builder::new();
        let label = |id: &str, description: &str| Label {
            id: id.to_owned(),
            description: Some(description.to_owned()),
            ..Label::default()
        };
        builder.edge(None, "short", &Origin::default());
        builder.edge(None, "long", &Origin::default());
        builder.describe(label("short", "the gold"));
        builder.describe(label("long", &"the gold ".repeat(100)));
        let taxonomy = builder.build().unwrap();
        let source = EncoderSource::Folder(crate::toy::golden("bert"));
        let cancel = Cancel::default();
        let (tokenizer, encoder, _) = source.open(Vec::new, false, 1, &Device::flex(), &cancel).unwrap();
        assert_eq!(encoder.config().max_tokens(), 40);
        let read = |max_tokens: usize| {
            let vector = DescriptionVector::Cls;
            let config = DescriptionConfig { path: false, max_tokens, vector, at_start_only: false };
            Descriptions::new(&config, &taxonomy, &tokenizer, &encoder, &cancel)
        };
        assert_eq!(read(MAX_TOKENS).unwrap().cut(), Some(Cut { n_labels: 1, max_tokens: 40 }));
        assert_eq!(read(8).unwrap().cut().map(|cut| cut.max_tokens), Some(8));
        assert!(read(41).is_err());
    }
}
