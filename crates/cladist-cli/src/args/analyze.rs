//! `cladist analyze`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{BadLineArgs, CorpusArgs};

/// `cladist analyze …`.
#[derive(Debug, Subcommand)]
pub enum AnalyzeCommand {
    /// Where the labels of a model lie to each other: their output vectors on a plane
    Labels(AnalyzeLabelsArgs),
    /// How an encoder uses its layers: distances of `[CLS]` vectors, divergence and entropy of attention
    Layers(Box<AnalyzeLayersArgs>),
    /// How a model does on labels that were held out of its training (`data.hold_out_labels`), beside nearest
    /// descriptions and chance
    ZeroShot(Box<AnalyzeZeroShotArgs>),
}

/// `cladist analyze layers`.
#[derive(Debug, Args)]
#[command(override_usage = "cladist analyze layers --bundle <RUN> [--bundle <RUN> …] [OPTIONS]")]
pub struct AnalyzeLayersArgs {
    /// Run folder or bundle; several are shown side by side
    #[arg(long = "bundle", value_name = "RUN", required = true)]
    pub bundles: Vec<PathBuf>,
    /// The corpus; a run folder remembers its own.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// What becomes of bad lines.
    #[command(flatten)]
    pub bad_lines: BadLineArgs,
    /// Which split [default: dev, or test if the corpus has no dev]
    #[arg(long, value_name = "NAME")]
    pub split: Option<String>,
    /// Only the first documents of the split
    #[arg(long, value_name = "N")]
    pub limit: Option<NonZeroUsize>,
    /// Folder for the figures and layers.json [default: `analysis` in the first run folder; for a bundle, here]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cladist analyze zero-shot`.
#[derive(Debug, Args)]
#[command(override_usage = "cladist analyze zero-shot --bundle <RUN> [OPTIONS]")]
pub struct AnalyzeZeroShotArgs {
    /// Run folder or bundle of a head that reads descriptions
    #[arg(long, value_name = "RUN")]
    pub bundle: PathBuf,
    /// The corpus; a run folder remembers its own.
    #[command(flatten)]
    pub corpus: CorpusArgs,
    /// What becomes of bad lines.
    #[command(flatten)]
    pub bad_lines: BadLineArgs,
    /// Which split [default: test, or dev if the corpus has no test]
    #[arg(long, value_name = "NAME")]
    pub split: Option<String>,
    /// Folder for zero-shot.json [default: `analysis` in the run folder; for a bundle, here]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cladist analyze labels`.
#[derive(Debug, Args)]
#[command(override_usage = "cladist analyze labels --bundle <RUN> [--bundle <RUN> …] [OPTIONS]")]
pub struct AnalyzeLabelsArgs {
    /// Run folder or bundle; give several
    #[arg(long = "bundle", value_name = "RUN", required = true)]
    pub bundles: Vec<PathBuf>,
    /// How vectors come to the plane
    #[arg(long, default_value = "pca", value_name = "METHOD")]
    pub method: PlaneMethod,
    /// About how many neighbours a label attends to, with `--method tsne` [default: 30]
    #[arg(long, value_name = "X")]
    pub perplexity: Option<f64>,
    /// Folder for the figures, pages and labels.json [default: `analysis` in the first run folder; for a bundle, here]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How vectors come to the plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlaneMethod {
    /// Principal components: the plane on which vectors differ most
    Pca,
    /// t-SNE: neighbours stay neighbours, distances between groups say little
    Tsne,
}
