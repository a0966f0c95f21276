//! `cladist data`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{BadLineArgs, CorpusArgs, FieldArgs, JsonArgs};

/// `cladist data …`.
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Counts, lengths, label frequencies, co-occurrence, shot classes
    Stats(DataStatsArgs),
    /// Find everything that is wrong with a corpus
    Check(DataCheckArgs),
    /// Split one file into train, dev and test
    Split(DataSplitArgs),
    /// Write documents in another format
    Convert(DataConvertArgs),
    /// List the corpus formats
    Formats(JsonArgs),
}

/// `cladist data stats`.
#[derive(Debug, Args)]
pub struct DataStatsArgs {
    /// The corpus.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// What becomes of bad lines.
    #[command(flatten)]
    pub bad_lines: BadLineArgs,
    /// How many labels and pairs to list
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub top: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cladist data check`.
#[derive(Debug, Args)]
pub struct DataCheckArgs {
    /// The corpus.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cladist data split`.
#[derive(Debug, Args)]
pub struct DataSplitArgs {
    /// File or folder to split
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Share of documents for dev
    #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
    pub dev: f64,
    /// Share of documents for test
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub test: f64,
    /// Seed of the split
    #[arg(long, default_value_t = 42, value_name = "N")]
    pub seed: u64,
    /// Ignore labels: split at random
    #[arg(long)]
    pub random: bool,
    /// Corpus format, if it cannot be told from the file
    #[arg(long, value_name = "NAME")]
    pub corpus_format: Option<String>,
    /// Where a record keeps what.
    #[command(flatten)]
    pub fields: FieldArgs,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
}

/// `cladist data convert`.
#[derive(Debug, Args)]
pub struct DataConvertArgs {
    /// File or folder to read
    #[arg(value_name = "INPUT")]
    pub input: PathBuf,
    /// File to write; `-` is standard output
    #[arg(value_name = "OUTPUT", default_value = "-")]
    pub output: PathBuf,
    /// Format to read [default: sniffed]
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Format to write [default: by file ending, then jsonl]
    #[arg(long, value_name = "NAME")]
    pub to: Option<String>,
    /// Where a record keeps what.
    #[command(flatten)]
    pub fields: FieldArgs,
    /// Lower-case the text
    #[arg(long)]
    pub lowercase: bool,
    /// Drop tokens that are numbers
    #[arg(long)]
    pub drop_numbers: bool,
    /// Drop punctuation
    #[arg(long)]
    pub drop_punctuation: bool,
    /// Drop English stop-words
    #[arg(long)]
    pub drop_stopwords: bool,
    /// Write `_` for white space in labels where the format cannot hold it
    #[arg(long)]
    pub replace_spaces: bool,
    /// What becomes of bad lines.
    #[command(flatten)]
    pub bad_lines: BadLineArgs,
    /// Replace the file if it exists
    #[arg(long)]
    pub overwrite: bool,
}
