//! The command line as typed. Commands turn it into checked configuration.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Assign documents to labels of large hierarchical vocabularies.
#[derive(Debug, Parser)]
#[command(name = "cladist", version, about, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Start with `cladist demo`, then `cladist train --corpus DIR --head svm --out RUN`.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Say nothing but results and errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Worker threads [default: one per core]
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<usize>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model on a corpus and write a run folder
    Train(TrainArgs),
    /// Score a split and report the metrics of the literature
    #[command(visible_alias = "eval")]
    Evaluate(EvaluateArgs),
    /// Label documents
    #[command(visible_alias = "suggest")]
    Predict(PredictArgs),
    /// Test whether two runs differ on the same documents
    Compare(CompareArgs),
    /// Look at, check, split and convert corpora
    #[command(subcommand)]
    Data(DataCommand),
    /// Look at, check, convert and compare taxonomies
    #[command(subcommand)]
    Taxonomy(TaxonomyCommand),
    /// Train, evaluate and predict on the built-in corpus, in under a minute
    Demo(DemoArgs),
    /// List the heads that `train --head` accepts
    Heads(JsonArgs),
    /// List every metric with its definition
    Metrics(JsonArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Only `--json`.
#[derive(Debug, Args)]
pub struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

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
    /// Where bad lines go when nothing better is known.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.rejects.clone().unwrap_or_else(|| PathBuf::from("rejects.jsonl"))
    }
}

impl CorpusArgs {
    /// Whether a flag names other documents than a run remembers.
    #[must_use]
    pub fn names_documents(&self) -> bool {
        self.corpus.is_some() || self.train.is_some() || self.dev_file.is_some() || self.test.is_some()
    }
}

/// `cladist train`.
#[derive(Debug, Args)]
#[command(override_usage = "cladist train --corpus <DIR> --out <RUN> [OPTIONS]")]
pub struct TrainArgs {
    /// The corpus.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// What becomes of bad lines.
    #[command(flatten)]
    pub bad_lines: BadLineArgs,
    /// What to train (see `cladist heads`) [default: svm]
    #[arg(long, value_name = "NAME")]
    pub head: Option<String>,
    /// Run folder to write
    #[arg(long, value_name = "RUN", required_unless_present = "print_config")]
    pub out: Option<PathBuf>,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting, such as `train.seed=7`; wins over --config
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Fit decision thresholds on dev for this F1
    #[arg(long, value_name = "F1", num_args = 0..=1, default_missing_value = "micro")]
    pub fit_thresholds: Option<FitThresholds>,
    /// Hold out this share of train as dev when the corpus has none
    #[arg(long, value_name = "SHARE")]
    pub dev: Option<f64>,
    /// Seed of everything random
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Replace the run folder if it exists
    #[arg(long)]
    pub overwrite: bool,
    /// Print the resolved settings and stop
    #[arg(long)]
    pub print_config: bool,
    /// Print a JSON summary
    #[arg(long)]
    pub json: bool,
}

/// What thresholds are fitted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FitThresholds {
    /// Thresholds for the best micro-F1 (the default)
    Micro,
    /// Thresholds for the best macro-F1
    Macro,
    /// None: decide at `decode.threshold`, 0.5 if not set
    None,
}

/// `cladist evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// Run folder or bundle
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The corpus; a run folder remembers its own.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// What becomes of bad lines.
    #[command(flatten)]
    pub bad_lines: BadLineArgs,
    /// Which split
    #[arg(long, default_value = "test", value_name = "NAME")]
    pub split: String,
    /// How scores become label sets.
    #[command(flatten)]
    pub decode: DecodeArgs,
    /// Labels that macro averages run over: `seen` in training or here, `all`, or `gold` here
    #[arg(long, value_name = "WHICH")]
    pub macro_over: Option<String>,
    /// Propensity of PSP@k: `standard`, `wiki-500k`, `amazon-670k`, or numbers `A,B`
    #[arg(long, value_name = "A,B")]
    pub propensity: Option<String>,
    /// Bootstrap confidence intervals from this many resamples
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1000")]
    pub bootstrap: Option<usize>,
    /// Write a table of all labels here
    #[arg(long, value_name = "FILE")]
    pub per_label: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How scores become label sets; unset flags keep what was fitted in training.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct DecodeArgs {
    /// At most this many labels per document
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

/// `cladist predict`.
#[derive(Debug, Clone, Args)]
pub struct PredictArgs {
    /// Run folder or bundle
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Files to label; `-` or none reads standard input
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// How scores become label sets.
    #[command(flatten)]
    pub decode: DecodeArgs,
    /// Output format
    #[arg(long, default_value = "jsonl", value_name = "FORMAT")]
    pub format: PredictFormat,
    /// Input format [default: by file ending, then by the first character]
    #[arg(long, value_name = "FORMAT")]
    pub input_format: Option<InputFormat>,
    /// JSON field with the text
    #[arg(long, value_name = "NAME")]
    pub text_field: Option<String>,
    /// Set bad lines aside instead of stopping at the first
    #[arg(long)]
    pub skip_bad: bool,
    /// Where --skip-bad sets them aside
    #[arg(long, value_name = "FILE", default_value = "rejects.jsonl")]
    pub rejects: PathBuf,
    /// Write here instead of standard output; the file appears when it is whole
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What `predict` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PredictFormat {
    /// One object a document: id and labels, best first
    Jsonl,
    /// One line a label: document, label, name, score, level
    Tsv,
}

/// What `predict` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// One object a line, with `text` and perhaps `id`
    Jsonl,
    /// One `id TAB text` a line
    Tsv,
    /// One document a line
    Text,
    /// The whole file is one document
    Document,
    /// Columns `text` and perhaps `id`, with a header
    Csv,
    /// Features: `documents features labels`, then one document a line
    Xmc,
    /// Features: one document a line
    Libsvm,
}

/// `cladist compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The first run folder or bundle
    #[arg(value_name = "RUN_A")]
    pub a: PathBuf,
    /// The second, whose gain over the first is tested
    #[arg(value_name = "RUN_B")]
    pub b: PathBuf,
    /// The corpus; a run folder remembers its own.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// What becomes of bad lines.
    #[command(flatten)]
    pub bad_lines: BadLineArgs,
    /// Which split
    #[arg(long, default_value = "test", value_name = "NAME")]
    pub split: String,
    /// Resamples of the tests
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub resamples: usize,
    /// Seed of the resamples
    #[arg(long, default_value_t = 42, value_name = "N")]
    pub seed: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

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
    /// Format to write
    #[arg(long, default_value = "jsonl", value_name = "NAME")]
    pub to: String,
    /// JSON field or column with the labels
    #[arg(long, value_name = "NAME")]
    pub labels_field: Option<String>,
    /// JSON field or column with the text
    #[arg(long, value_name = "NAME")]
    pub text_field: Option<String>,
    /// Drop documents whose field of this name is true
    #[arg(long, value_name = "NAME")]
    pub drop_field: Option<String>,
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
    /// Set bad lines aside in rejects.jsonl instead of stopping at the first
    #[arg(long)]
    pub skip_bad: bool,
}

/// How a taxonomy file is read.
#[derive(Debug, Clone, Default, Args)]
pub struct TaxonomyReadArgs {
    /// Format, if it cannot be told from the file (see `cladist taxonomy formats`)
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Language of names in SKOS
    #[arg(long, default_value = "en", value_name = "CODE")]
    pub language: String,
    /// Names and descriptions: id, name, description in columns
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Drop an edge of each cycle instead of refusing the file
    #[arg(long)]
    pub break_cycles: bool,
    /// Ids of SKOS concepts: the last part of the address instead of all of it
    #[arg(long)]
    pub local_ids: bool,
}

/// `cladist taxonomy …`.
#[derive(Debug, Subcommand)]
pub enum TaxonomyCommand {
    /// Statistics and the tree
    Show {
        /// Taxonomy file or corpus folder
        file: PathBuf,
        /// How it is read.
        #[command(flatten)]
        read: TaxonomyReadArgs,
        /// Show the tree down to this level
        #[arg(long, default_value_t = 2, value_name = "LEVEL")]
        depth: usize,
        /// Show only what is below this label
        #[arg(long, value_name = "ID")]
        below: Option<String>,
        /// Print statistics as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a taxonomy in another format
    Convert {
        /// Taxonomy file
        input: PathBuf,
        /// File to write; `-` is standard output
        #[arg(default_value = "-")]
        output: PathBuf,
        /// Format to write [default: by file ending, then json]
        #[arg(long, value_name = "NAME")]
        to: Option<String>,
        /// Drop this many levels at the top
        #[arg(long, default_value_t = 0, value_name = "N")]
        drop_top: usize,
        /// Keep only this many levels
        #[arg(long, value_name = "N")]
        max_levels: Option<usize>,
        /// How it is read.
        #[command(flatten)]
        read: TaxonomyReadArgs,
    },
    /// Find everything that is wrong with a taxonomy file
    Check {
        /// Taxonomy file
        file: PathBuf,
        /// How it is read.
        #[command(flatten)]
        read: TaxonomyReadArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// What changed between two versions: added, removed, renamed, moved
    Diff {
        /// The older file
        old: PathBuf,
        /// The newer file
        new: PathBuf,
        /// How both are read.
        #[command(flatten)]
        read: TaxonomyReadArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the taxonomy formats
    Formats(JsonArgs),
}

/// `cladist demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Run folder to write
    #[arg(long, default_value = "runs/demo", value_name = "RUN")]
    pub out: PathBuf,
    /// Head to train
    #[arg(long, default_value = "svm", value_name = "NAME")]
    pub head: String,
    /// Seed of corpus and training
    #[arg(long, default_value_t = 42, value_name = "N")]
    pub seed: u64,
    /// Only write the corpus folder here, and stop
    #[arg(long, value_name = "DIR")]
    pub corpus_only: Option<PathBuf>,
}
