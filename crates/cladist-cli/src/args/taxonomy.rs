//! `cladist taxonomy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::JsonArgs;

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
    /// Give a trained model labels that it has not met: it scores them by their descriptions, without retraining
    #[command(override_usage = "cladist taxonomy add-labels --bundle <RUN> --labels <FILE> [OPTIONS]")]
    AddLabels {
        /// Run folder or bundle of a head that reads descriptions
        #[arg(long, value_name = "RUN")]
        bundle: PathBuf,
        /// Taxonomy with the new labels, if they have parents: labels that the model knows stay as they are
        #[arg(long, value_name = "FILE")]
        taxonomy: Option<PathBuf>,
        /// How it is read.
        #[command(flatten)]
        read: TaxonomyReadArgs,
        /// Write a new bundle here instead of changing the model
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the taxonomy formats
    Formats(JsonArgs),
}
