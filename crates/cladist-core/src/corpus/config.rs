//! The `[data]` section: how a corpus is read, and what becomes of documents that are not as they should be.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::readers::{Format, ReadOptions};
use crate::text::normalise::Normalise;

/// How to read a corpus. Every policy is counted in the [`super::DataReport`], whatever it decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct DataConfig {
    /// The format of all files; sniffed file by file if not given.
    pub format: Option<Format>,
    /// Field or column of the id; by default `id`.
    pub id_field: Option<String>,
    /// Fields or columns of the text, separated by commas and joined in that order; by default `title` and `text`, see
    /// [`ReadOptions::text_field`].
    pub text_field: Option<String>,
    /// Field or column of the labels; by default `labels` or `label`.
    pub labels_field: Option<String>,
    /// Documents whose field of this name is true are left out.
    pub drop_field: Option<String>,
    /// Between the labels in a cell of csv and tsv-columns.
    pub label_separator: String,
    /// Before each label in fastText files.
    pub label_prefix: String,
    /// The language of texts that come in several, and of the names in a vocabulary.
    pub language: Option<String>,
    /// What to take out of each text.
    pub normalise: Normalise,
    /// Gold labels that the taxonomy does not have.
    pub unknown_labels: UnknownLabels,
    /// Ancestors that a document's labels imply and its gold does not name.
    pub ancestors: Ancestors,
    /// Levels to drop at the top; their children become roots.
    pub drop_top_levels: usize,
    /// Levels to keep below them; gold labels deeper down move to their nearest kept ancestors.
    pub max_levels: Option<usize>,
    /// Labels of the taxonomy that no training document has, nor any of their descendants.
    pub labels_without_documents: LabelsWithoutDocuments,
    /// The share of labels at the bottom that training documents have to hold out of training, with the documents that
    /// have no others; 0 for none.
    pub hold_out_labels: f64,
    /// Documents without text after normalisation, or without features.
    pub empty_documents: KeepOrDrop,
    /// Documents without labels; in some corpora that means that none applies.
    pub unlabelled_documents: KeepOrDrop,
    /// Ids that occur twice in a split.
    pub duplicate_ids: DuplicateIds,
    /// Documents of one split whose text is in another one too, white space aside.
    pub duplicates_across_splits: DuplicatesAcrossSplits,
    /// The share of train to hold out as dev if the corpus has no dev split; 0 for none.
    pub dev: f64,
    /// Whether held-out documents have each label in about the same share as the rest.
    pub stratified: bool,
    /// Decides which documents and labels are held out.
    pub seed: u64,
}

/// What becomes of gold labels that the taxonomy does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownLabels {
    /// Stop and list them: most often the wrong taxonomy or labels field was given.
    #[default]
    Error,
    /// Leave them out of the gold.
    Drop,
    /// Put them into the taxonomy, directly under the root.
    Add,
}

/// What becomes of ancestors that the gold does not name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ancestors {
    /// The gold stays as it is.
    #[default]
    Keep,
    /// They are added to the gold.
    Add,
}

/// What becomes of labels without training documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelsWithoutDocuments {
    /// They stay in the taxonomy.
    #[default]
    Keep,
    /// They leave the taxonomy, and the gold of dev and test. Ancestors of labels with documents stay.
    Drop,
}

/// Whether documents of a kind stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeepOrDrop {
    /// They stay.
    #[default]
    Keep,
    /// They go.
    Drop,
}

/// What becomes of ids that occur twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DuplicateIds {
    /// Stop and name the id.
    #[default]
    Error,
    /// The second `x` becomes `x#2`.
    Rename,
    /// Only the first stays.
    Drop,
}

/// What becomes of texts that are in two splits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DuplicatesAcrossSplits {
    /// They stay.
    #[default]
    Keep,
    /// Those that are in dev or test leave train.
    DropFromTrain,
}

impl Default for DataConfig {
    fn default() -> Self {
        let read = ReadOptions::default();
        Self {
            format: None,
            id_field: None,
            text_field: None,
            labels_field: None,
            drop_field: None,
            label_separator: read.label_separator,
            label_prefix: read.label_prefix,
            language: None,
            normalise: Normalise::default(),
            unknown_labels: UnknownLabels::default(),
            ancestors: Ancestors::default(),
            drop_top_levels: 0,
            max_levels: None,
            labels_without_documents: LabelsWithoutDocuments::default(),
            hold_out_labels: 0.0,
            empty_documents: KeepOrDrop::default(),
            unlabelled_documents: KeepOrDrop::default(),
            duplicate_ids: DuplicateIds::default(),
            duplicates_across_splits: DuplicatesAcrossSplits::default(),
            dev: 0.0,
            stratified: true,
            seed: 13,
        }
    }
}

impl DataConfig {
    /// Checks what types cannot.
    pub fn validate(&self) -> Result<()> {
        let refuse = |key, value: String, expected| Err(Error::setting(key, expected, value));
        if !(0.0..1.0).contains(&self.dev) {
            return refuse("data.dev", self.dev.to_string(), "a share from 0 to below 1");
        }
        if !(0.0..1.0).contains(&self.hold_out_labels) {
            let expected = "a share from 0 to below 1";
            return refuse("data.hold_out_labels", self.hold_out_labels.to_string(), expected);
        }
        if self.max_levels == Some(0) {
            return refuse("data.max_levels", "0".to_owned(), "at least 1");
        }
        if self.label_separator.is_empty() {
            return refuse("data.label_separator", String::new(), "at least one character");
        }
        if self.label_prefix.is_empty() || self.label_prefix.contains(char::is_whitespace) {
            let expected = "characters other than white space";
            return refuse("data.label_prefix", self.label_prefix.clone(), expected);
        }
        for (key, value) in [
            ("data.id_field", &self.id_field),
            ("data.text_field", &self.text_field),
            ("data.labels_field", &self.labels_field),
            ("data.drop_field", &self.drop_field),
        ] {
            if value.as_deref().is_some_and(|name| name.split(',').all(|name| name.trim().is_empty())) {
                return refuse(key, value.clone().unwrap_or_default(), "the name of a field");
            }
        }
        Ok(())
    }

    /// Whether levels are cut off.
    pub(super) fn truncates(&self) -> bool {
        self.drop_top_levels > 0 || self.max_levels.is_some()
    }

    /// What of this concerns the reader of a file: how text is made from a record, above all. For documents to be
    /// classified, [`ReadOptions::expecting`] makes options that read text in the same way and no labels; what is read
    /// is still to be normalised by [`Self::normalise`].
    #[must_use]
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions {
            id_field: self.id_field.clone(),
            text_field: self.text_field.clone(),
            labels_field: self.labels_field.clone(),
            drop_field: self.drop_field.clone(),
            label_separator: self.label_separator.clone(),
            label_prefix: self.label_prefix.clone(),
            language: self.language.clone(),
            ..ReadOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_setting_is_named_with_its_value() {
        let config = DataConfig { dev: 1.5, ..DataConfig::default() };
        let message = config.validate().unwrap_err().to_string();
        assert_eq!(message, "`data.dev` must be a share from 0 to below 1: 1.5");
        let config = DataConfig { labels_field: Some(" ".into()), ..DataConfig::default() };
        assert!(config.validate().unwrap_err().to_string().contains("data.labels_field"));
        assert!(DataConfig { dev: f64::NAN, ..DataConfig::default() }.validate().is_err());
        DataConfig::default().validate().unwrap();
    }

    #[test]
    fn unknown_keys_are_refused_and_values_are_kebab_case() {
        let config: DataConfig =
            serde_json::from_str(r#"{"duplicates_across_splits": "drop-from-train"}"#).unwrap();
        assert_eq!(config.duplicates_across_splits, DuplicatesAcrossSplits::DropFromTrain);
        assert!(serde_json::from_str::<DataConfig>(r#"{"dedup": true}"#).is_err());
    }
}
