//! Families of encoders: what their `config.json` says, and what their tensors are called.
//!
//! A family is a file with two things: a function from `config.json` to a description, and a table from places of
//! parameters to names of tensors. [`FAMILIES`] lists them.

pub(super) mod bert;
mod distilbert;
mod electra;
mod mpnet;
mod roberta;
pub(super) mod words;

use serde::{Deserialize, Serialize};

use super::EncoderConfig;
use super::fields::Fields;

/// Which code an encoder was trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// BERT and everything trained with its code: MiniLM, SciBERT, BioBERT, LegalBERT, …
    Bert,
    /// RoBERTa, XLM-R, CamemBERT: positions start after the padding id.
    Roberta,
    /// DistilBERT: no token types, no pooler.
    Distilbert,
    /// ELECTRA: embeddings narrower than states, no pooler.
    Electra,
    /// MPNet: attention scores with a bias by distance, no token types.
    Mpnet,
    /// A vector for each word and no layer: what networks were built on before transformers.
    Words,
}

/// The place of a parameter, with `#` for the number of a layer, and the tensors it is made of, one under the other.
pub(super) type Row = (&'static str, &'static [&'static str]);

struct Entry {
    family: Family,
    /// Values of `model_type`.
    model_types: &'static [&'static str],
    describe: fn(&Fields<'_>) -> Result<EncoderConfig, String>,
    /// Names of tensors, without the prefix that heads put before them.
    names: &'static [&'static [Row]],
}

static FAMILIES: [Entry; 6] = [
    Entry {
        family: Family::Bert,
        model_types: &["bert"],
        describe: bert::describe,
        names: &[bert::EMBEDDINGS, bert::TYPES, bert::ATTENTION, bert::MLP, bert::POOLER],
    },
    Entry {
        family: Family::Roberta,
        model_types: &["roberta", "xlm-roberta", "camembert"],
        describe: roberta::describe,
        names: &[bert::EMBEDDINGS, bert::TYPES, bert::ATTENTION, bert::MLP, bert::POOLER],
    },
    Entry {
        family: Family::Distilbert,
        model_types: &["distilbert"],
        describe: distilbert::describe,
        names: &[bert::EMBEDDINGS, distilbert::LAYERS, bert::POOLER],
    },
    Entry {
        family: Family::Electra,
        model_types: &["electra"],
        describe: electra::describe,
        names: &[
            bert::EMBEDDINGS,
            bert::TYPES,
            electra::PROJECTION,
            bert::ATTENTION,
            bert::MLP,
            bert::POOLER,
        ],
    },
    Entry {
        family: Family::Mpnet,
        model_types: &["mpnet"],
        describe: mpnet::describe,
        names: &[bert::EMBEDDINGS, mpnet::ATTENTION, bert::MLP, bert::POOLER],
    },
    Entry {
        family: Family::Words,
        model_types: &["words"],
        describe: words::describe,
        names: &[words::NAMES],
    },
];

impl Family {
    /// By the `model_type` of a `config.json`.
    pub(super) fn parse(model_type: &str) -> Result<Self, String> {
        let found = FAMILIES.iter().find(|entry| entry.model_types.contains(&model_type));
        found.map(|entry| entry.family).ok_or_else(|| {
            let known: Vec<&str> = FAMILIES.iter().flat_map(|entry| entry.model_types).copied().collect();
            format!("unknown `model_type`: {model_type}; one of {} is needed", known.join(", "))
        })
    }

    fn entry(self) -> Option<&'static Entry> {
        FAMILIES.iter().find(|entry| entry.family == self)
    }

    /// What a `config.json` of this family describes, without the file itself.
    pub(super) fn describe(self, fields: &Fields<'_>) -> Result<EncoderConfig, String> {
        let entry = self.entry().ok_or_else(|| format!("no description of {self:?}"))?;
        (entry.describe)(fields)
    }

    /// Its rows.
    pub(super) fn rows(self) -> impl Iterator<Item = &'static Row> {
        self.entry().into_iter().flat_map(|entry| entry.names.iter().copied().flatten())
    }

    /// The tensors that a parameter is made of, one under the other; none if the family has no such parameter.
    pub(super) fn tensors(self, path: &str) -> Vec<String> {
        let (pattern, number) = match path.strip_prefix("layers.").and_then(|rest| rest.split_once('.')) {
            Some((number, field)) => (format!("layers.#.{field}"), number),
            None => (path.to_owned(), ""),
        };
        let row = self.rows().find(|(place, _)| *place == pattern);
        row.map_or_else(Vec::new, |(_, names)| names.iter().map(|name| name.replace('#', number)).collect())
    }
}
