//! The command line as typed. Commands turn it into checked configuration.

mod analyze;
mod corpus;
mod data;
mod experiment;
mod explain;
mod neural;
mod taxonomy;
mod tune;

pub use analyze::{AnalyzeCommand, AnalyzeLabelsArgs, AnalyzeLayersArgs, AnalyzeZeroShotArgs, PlaneMethod};
pub use corpus::{BadLineArgs, CorpusArgs, DecodeArgs, FieldArgs, PathsArg};
pub use data::{DataCheckArgs, DataCommand, DataConvertArgs, DataSplitArgs, DataStatsArgs};
pub use experiment::ExperimentArgs;
pub use explain::{ExplainArgs, ExplainMethod};
pub use neural::NeuralArgs;
pub use taxonomy::{TaxonomyCommand, TaxonomyReadArgs};
pub use tune::TuneArgs;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use cladist::PredictOptions;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Assign documents to labels of large hierarchical vocabularies.
#[derive(Debug, Parser)]
#[command(
    name = "cladist",
    version,
    about = "Assign documents to labels of large hierarchical vocabularies",
    max_term_width = 100,
    disable_help_subcommand = true
)]
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
    #[arg(long, short, global = true, display_order = 1000)]
    pub quiet: bool,
    /// Worker threads [default: one per core]
    #[arg(long, global = true, display_order = 1001, value_name = "N")]
    pub threads: Option<usize>,
    /// Where tensors live: `cpu`, or a device that this program was built for
    #[arg(long, global = true, display_order = 1002, value_name = "DEVICE", default_value = "cpu")]
    pub device: String,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model on a corpus and write a run folder
    Train(TrainArgs),
    /// Train with many settings and rank them by a metric on dev
    Tune(TuneArgs),
    /// Compare variants as an experiment of the literature does: grid, seeds, table, significance
    Experiment(ExperimentArgs),
    /// Score a split and report the metrics of the literature
    #[command(visible_alias = "eval")]
    Evaluate(EvaluateArgs),
    /// Label documents
    #[command(visible_alias = "suggest")]
    Predict(PredictArgs),
    /// Show which words a label rests on
    Explain(ExplainArgs),
    /// Test whether two runs differ on the same documents
    Compare(CompareArgs),
    /// Look inside models
    #[command(subcommand)]
    Analyze(AnalyzeCommand),
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

/// `cladist train`.
#[derive(Debug, Clone, Args)]
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
    /// Train this many times with seeds that follow each other, and report mean and deviation
    #[arg(long, value_name = "N", conflicts_with = "print_config")]
    pub seeds: Option<u32>,
    /// Flags of heads on encoders.
    #[command(flatten)]
    pub neural: NeuralArgs,
    /// A run folder or bundle to take into the ensemble of `--head mixed`; give several
    #[arg(long = "member", value_name = "RUN")]
    pub members: Vec<PathBuf>,
    /// Replace the run folder if it exists
    #[arg(long)]
    pub overwrite: bool,
    /// Go on with an interrupted run in the run folder, with its settings and corpus
    #[arg(long, conflicts_with_all = ["overwrite", "print_config"])]
    pub resume: bool,
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
    /// Change a setting of the head or of its tokens, e.g. `--set label-sequence.beam=9`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
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
    /// Only labels of these levels, such as `1..3` or `2`; a layer-guided model runs no layer in vain
    #[arg(long, value_name = "LEVELS", value_parser = levels)]
    pub levels: Option<RangeInclusive<usize>>,
    /// Add the likeliest sequences of labels, this many, of a model that emits labels in sequence
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", value_parser = RangedU64ValueParser::<usize>::new().range(1..=PredictOptions::MAX_SEQUENCES as u64))]
    pub sequences: Option<usize>,
    /// Output format
    #[arg(long, default_value = "jsonl", value_name = "FORMAT")]
    pub format: PredictFormat,
    /// How files are read.
    #[command(flatten)]
    pub input: InputArgs,
    /// What becomes of bad lines.
    #[command(flatten)]
    pub bad_lines: BadLineArgs,
    /// Write here instead of standard output; the file appears when it is whole
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How documents without labels are read.
#[derive(Debug, Clone, Default, Args)]
pub struct InputArgs {
    /// Input format (see `cladist data formats`; `tsv` is `id TAB text`) [default: by file ending, then by content]
    #[arg(long, value_name = "FORMAT")]
    pub input_format: Option<String>,
    /// Fields or columns with the text, separated by commas [default: as in training]
    #[arg(long, value_name = "NAME")]
    pub text_field: Option<String>,
    /// Field or column with the id [default: as in training]
    #[arg(long, value_name = "NAME")]
    pub id_field: Option<String>,
}

/// `2`, `1..3` (with both ends) or `2..`.
fn levels(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|level| *level > 0);
    let range = match text.split_once("..") {
        None => number(text).map(|level| level..=level),
        Some((first, "")) => number(first).map(|first| first..=usize::MAX),
        Some((first, last)) => number(first).zip(number(last.trim_start_matches('='))).map(|(a, b)| a..=b),
    };
    range
        .filter(|range| !range.is_empty())
        .ok_or_else(|| "levels count from 1: `2`, `1..3` or `2..`".to_owned())
}

/// What `predict` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PredictFormat {
    /// One object a document: id and labels, best first
    Jsonl,
    /// One line a label: document, label, name, score, level
    Tsv,
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

/// `cladist demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Run folder to write
    #[arg(long, default_value = "runs/demo", value_name = "RUN")]
    pub out: PathBuf,
    /// Head to train
    #[arg(long, default_value = "svm", value_name = "NAME")]
    pub head: String,
    /// Encoder of heads that have one [default: scratch:mini]
    #[arg(long, value_name = "ENCODER")]
    pub encoder: Option<String>,
    /// Seed of corpus and training
    #[arg(long, default_value_t = 42, value_name = "N")]
    pub seed: u64,
    /// Only write the corpus folder here, and stop
    #[arg(long, value_name = "DIR")]
    pub corpus_only: Option<PathBuf>,
}
