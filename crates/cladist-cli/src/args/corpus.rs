//! Flags that say which documents, and how they are read and decoded.

use std::path::PathBuf;

use cladist::{BadLinePolicy, Cancel};
use cladist_core::readers::ReadOptions;
use clap::{Args, ValueEnum};

/// Which files make up a corpus, and how they are read.
#[derive(Debug, Clone, Default, Args)]
pub struct CorpusArgs {
    /// Folder with train/dev/test files, hierarchy.tsv and labels.tsv
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// Training documents, instead of DIR/train.*
    #[arg(long, value_name = "FILE")]
    pub train: Option<PathBuf>,
    /// Development documents, instead of DIR/dev.*
    #[arg(long, value_name = "FILE")]
    pub dev_file: Option<PathBuf>,
    /// Test documents, instead of DIR/test.*
    #[arg(long, value_name = "FILE")]
    pub test: Option<PathBuf>,
    /// Taxonomy in any known format, instead of DIR/hierarchy.tsv
    #[arg(long, value_name = "FILE")]
    pub taxonomy: Option<PathBuf>,
    /// Label names and descriptions (id, name, description), instead of DIR/labels.tsv
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Corpus format, if it cannot be told from the file (see `cladist data formats`)
    #[arg(long, value_name = "NAME")]
    pub corpus_format: Option<String>,
    /// Where a record keeps what.
    #[command(flatten)]
    pub fields: FieldArgs,
    /// Language of names and texts where a format has several [default: en]
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,
}

/// What becomes of bad lines.
#[derive(Debug, Clone, Default, Args)]
pub struct BadLineArgs {
    /// Set bad lines aside instead of stopping at the first
    #[arg(long)]
    pub skip_bad: bool,
    /// Where --skip-bad sets them aside [default: rejects.jsonl; `train` puts it into the run folder]
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
}

impl BadLineArgs {
    /// For the library.
    #[must_use]
    pub fn policy(&self) -> BadLinePolicy {
        if self.skip_bad { BadLinePolicy::SetAside(self.rejects.clone()) } else { BadLinePolicy::Stop }
    }
}

impl CorpusArgs {
    /// Whether a flag names other documents than a run remembers.
    #[must_use]
    pub fn names_documents(&self) -> bool {
        self.corpus.is_some() || self.train.is_some() || self.dev_file.is_some() || self.test.is_some()
    }
}

/// Where a record keeps what.
#[derive(Debug, Clone, Default, Args)]
pub struct FieldArgs {
    /// JSON field or column with the labels
    #[arg(long, value_name = "NAME")]
    pub labels_field: Option<String>,
    /// JSON field or column with the text
    #[arg(long, value_name = "NAME")]
    pub text_field: Option<String>,
    /// JSON field or column with the id
    #[arg(long, value_name = "NAME")]
    pub id_field: Option<String>,
    /// Drop documents whose field of this name is true
    #[arg(long, value_name = "NAME")]
    pub drop_field: Option<String>,
}

impl FieldArgs {
    /// For a reader that has no other settings.
    #[must_use]
    pub fn read_options(&self, cancel: &Cancel) -> ReadOptions {
        ReadOptions {
            id_field: self.id_field.clone(),
            text_field: self.text_field.clone(),
            labels_field: self.labels_field.clone(),
            drop_field: self.drop_field.clone(),
            cancel: cancel.clone(),
            ..ReadOptions::default()
        }
    }
}

/// How scores become label sets; unset flags keep what was fitted in training.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct DecodeArgs {
    /// The best K labels per document, whatever their probability; with --threshold, at most K
    #[arg(long, short = 'k', visible_alias = "limit", value_name = "K")]
    pub top_k: Option<usize>,
    /// Only labels with a probability above this
    #[arg(long, value_name = "T")]
    pub threshold: Option<f32>,
    /// At least this many labels per document, even below the threshold
    #[arg(long, value_name = "N")]
    pub at_least: Option<usize>,
    /// Never a label with this probability or less
    #[arg(long, value_name = "P")]
    pub floor: Option<f32>,
    /// Raise each parent's probability to at least its children's
    #[arg(long)]
    pub coherent: bool,
    /// Make label sets agree with the taxonomy
    #[arg(long, value_name = "HOW")]
    pub paths: Option<PathsArg>,
    /// Answer with the deepest ancestor that passes when a label does not
    #[arg(long)]
    pub coarser_when_unsure: bool,
    /// Answer with this label alone, or with those of `ID/**`: the label and all below it; give several
    #[arg(long, value_name = "ID")]
    pub include: Vec<String>,
    /// Never answer with this label, or with those of `ID/**`; give several
    #[arg(long, value_name = "ID")]
    pub exclude: Vec<String>,
}

/// How label sets are made to agree with the taxonomy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PathsArg {
    /// Leave sets as they are
    None,
    /// Add the ancestors of every label
    CloseUpward,
    /// Drop labels that no chosen path leads to
    Prune,
}
