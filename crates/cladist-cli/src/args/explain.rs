//! `cladist explain`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::InputArgs;

/// `cladist explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Run folder or bundle
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Files with documents; `-` or none reads standard input
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Another run folder or bundle to show beside the first
    #[arg(long, value_name = "RUN")]
    pub against: Option<PathBuf>,
    /// How importance is found
    #[arg(long, default_value = "leave-one-out", value_name = "METHOD")]
    pub method: ExplainMethod,
    /// Explain this label; give several [default: the best ones of each document]
    #[arg(long = "label", value_name = "ID")]
    pub labels: Vec<String>,
    /// Labels of each document to explain, the best ones
    #[arg(long, short = 'k', default_value = "3", value_name = "K", conflicts_with = "labels")]
    pub top_k: NonZeroUsize,
    /// Documents to explain at most
    #[arg(long, default_value = "10", value_name = "N")]
    pub limit: NonZeroUsize,
    /// Parts a document is taken into at most: each costs one scoring; with more words, several make a part
    #[arg(long, default_value = "200", value_name = "N")]
    pub max_words: NonZeroUsize,
    /// How files are read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Say how true the explanations are to the model: what is lost without the important words or with nothing else,
    /// against random words, on average over the documents
    #[arg(long)]
    pub check: bool,
    /// Write a page that highlights the texts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How the importance of a word is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExplainMethod {
    /// By how much the probability falls without the word; works with any model
    LeaveOneOut,
    /// How much the label looks at the word: label-attention, caml, laat, lwan, biforest, experts,
    /// attention-xml
    Attention,
    /// Gradient of the label's logit times the word's embedding; heads on encoders
    GradientXInput,
    /// Mean gradient on the way from masked words to the words, times the difference; heads on encoders
    IntegratedGradients,
}
