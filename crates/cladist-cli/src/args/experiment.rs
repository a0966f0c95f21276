//! Flags of `cladist experiment`.

use std::path::PathBuf;

use clap::{Arg, Args, value_parser};

use super::TrainArgs;

/// `cladist experiment`.
#[derive(Debug, Args)]
#[command(
    override_usage = "cladist experiment <NAME> --corpus <DIR> --encoder <ENCODER> --out <DIR> [OPTIONS]\n       cladist experiment --list",
    after_help = "The same command again goes on where an interrupted one stopped, and trains nothing twice.",
    mut_arg("out", |_| folder()),
    mut_arg("head", |arg| arg.hide(true)),
    mut_arg("members", |arg| arg.hide(true)),
    mut_arg("print_config", |arg| arg.hide(true)),
    mut_arg("seeds", |arg| arg.help("Seeds that the chosen settings of each variant are trained with [default: 3]")),
    mut_arg("overwrite", |arg| arg.help("Start anew, if the folder holds an experiment")),
    mut_arg("resume", |arg| arg.help("Go on with an interrupted experiment; needs not be said")),
    mut_arg("json", |arg| arg.help("Print JSON")),
)]
pub struct ExperimentArgs {
    /// The experiment (see `--list`)
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// What every run shares.
    #[command(flatten)]
    pub train: TrainArgs,
    /// List the experiments
    #[arg(long, conflicts_with = "name")]
    pub list: bool,
    /// Only these variants
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub variants: Vec<String>,
    /// Values of a setting to choose from on dev, instead of the experiment's grid; `head.` is the section of the
    /// variant's head, `KEY+KEY=…` lets settings vary together
    #[arg(long = "try", value_name = "KEY=V1,V2,…")]
    pub tries: Vec<String>,
    /// Choose nothing: settings as they are given
    #[arg(long, conflicts_with = "tries")]
    pub no_grid: bool,
}

/// Not needed for a list, unlike the run folder of `train`.
fn folder() -> Arg {
    Arg::new("out")
        .long("out")
        .value_name("DIR")
        .help("Folder of all runs and of the results")
        .value_parser(value_parser!(PathBuf))
        .display_order(0)
}
