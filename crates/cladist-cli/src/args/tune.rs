//! Flags of `cladist tune`.

use clap::Args;

use super::TrainArgs;

/// `cladist tune`.
#[derive(Debug, Args)]
#[command(
    override_usage = "cladist tune --corpus <DIR> --out <DIR> --try KEY=V1,V2 [--try …] [OPTIONS]",
    mut_arg("members", |arg| arg.hide(true)),
)]
pub struct TuneArgs {
    /// What every trial shares.
    #[command(flatten)]
    pub train: TrainArgs,
    /// Values of a setting to try, such as `train.learning_rate=5e-5,1e-4`; all combinations are run
    #[arg(long = "try", value_name = "KEY=V1,V2,…", required = true)]
    pub tries: Vec<String>,
    /// Run only this many combinations, drawn at random
    #[arg(long, value_name = "N")]
    pub random: Option<usize>,
    /// The metric on dev that ranks trials
    #[arg(long, value_name = "METRIC", default_value = "micro-f1")]
    pub metric: String,
}
