//! `cladist tune`: many settings, ranked by a metric on dev.

use cladist::Error;
use cladist::results::four_decimals;
use cladist_lab::tune::{self, TuneOptions};

use crate::args::TuneArgs;
use crate::flags::{layers_of_one, spec};
use crate::output::Table;
use crate::session::Session;

/// Runs the trials and prints them, best first.
pub fn run(args: &TuneArgs, session: &Session) -> anyhow::Result<()> {
    let options = TuneOptions {
        spec: spec(layers_of_one(&args.train)?, &args.train, session)?,
        out: args.train.out.clone().ok_or(Error::NoFolder)?,
        tries: args.tries.clone(),
        random: args.random,
        metric: args.metric.clone(),
        resume: args.train.resume,
        overwrite: args.train.overwrite,
    };
    let tuned = tune::run(&options)?;
    session.view.clear();
    if args.train.json {
        return session.output.json(&tuned.trials);
    }
    let keys = tuned.keys.iter().map(String::as_str);
    let heads = ["trial"].into_iter().chain(keys).chain([args.metric.as_str(), "seconds"]);
    let mut table = Table::new(1, heads);
    for trial in &tuned.trials {
        let value =
            trial.problem.as_ref().map_or_else(|| four_decimals(trial.value), |_| "failed".to_owned());
        let settings = tuned.keys.iter().map(|key| trial.settings[key].clone());
        let row = [trial.folder.clone()].into_iter().chain(settings);
        table.row(row.chain([value, format!("{:.0}", trial.seconds)]));
    }
    session.output.line(table)
}
