//! `cladist tune`: many settings, ranked by a metric on dev.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use cladist_core::Error;
use cladist_core::bundle::write_atomically;
use cladist_core::metrics::METRICS;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::args::{TrainArgs, TuneArgs};
use crate::commands::train;
use crate::commands::trials::{self, Axis, Combination, Ended};
use crate::config::RunConfig;
use crate::error::ConfigError;
use crate::output::{Table, figure};
use crate::session::Session;

/// One combination of values and what it reached.
#[derive(Debug, Clone, Serialize)]
struct Trial {
    folder: String,
    settings: BTreeMap<String, String>,
    /// The metric on dev; none if the run failed.
    value: Option<f64>,
    seconds: f64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Runs the trials and prints them, best first.
pub fn run(args: &TuneArgs, session: &Session) -> anyhow::Result<()> {
    let Some(out) = &args.train.out else {
        bail!(ConfigError::Missing("no folder given\nhint: pass `--out DIR`".to_owned()))
    };
    let Some(metric) = METRICS.iter().find(|info| info.name == args.metric) else {
        bail!(ConfigError::UnknownChoice {
            what: "metric",
            name: args.metric.clone(),
            known: "those that `cladist metrics` lists".to_owned()
        })
    };
    let combinations = combinations(args)?;
    // A fault in the settings shows before hours of work.
    for combination in &combinations {
        RunConfig::resolve(&with(&args.train, combination))?;
    }
    std::fs::create_dir_all(out).map_err(Error::io("create", out))?;
    let mut trials = Vec::new();
    for (n, combination) in combinations.iter().enumerate() {
        let name = format!("trial-{:03}", n + 1);
        let said = combination.arguments().join(" ");
        session.output.note(format!("{name} of {}: {said}", combinations.len()));
        let trial = one(args, &out.join(&name), combination, session)?;
        trials.push(Trial { folder: name, ..trial });
        rank(&mut trials, metric.higher_is_better);
        write_atomically(&out.join("tune.json"), &serde_json::to_vec_pretty(&trials)?)?;
    }
    if let Some(best) = trials.first().filter(|trial| trial.value.is_some()) {
        let config = std::fs::read(out.join(&best.folder).join("config.toml"))?;
        write_atomically(&out.join("best.toml"), &config)?;
        session.output.note(format!("the best settings are in {}", out.join("best.toml").display()));
    }
    if args.train.json {
        return session.output.json(&trials);
    }
    let keys: Vec<&str> =
        combinations.iter().take(1).flat_map(Combination::settings).map(|(key, _)| key).collect();
    let heads = ["trial"].into_iter().chain(keys.iter().copied()).chain([metric.name, "seconds"]);
    let mut table = Table::new(1, heads);
    for trial in &trials {
        let value = trial.problem.as_ref().map_or_else(|| figure(trial.value), |_| "failed".to_owned());
        let settings = keys.iter().map(|&key| trial.settings[key].clone());
        let row = [trial.folder.clone()].into_iter().chain(settings);
        table.row(row.chain([value, format!("{:.0}", trial.seconds)]));
    }
    session.output.line(table)
}

/// One trial.
fn one(
    args: &TuneArgs,
    folder: &Path,
    combination: &Combination,
    session: &Session,
) -> anyhow::Result<Trial> {
    // Trials that are done are not done again if `--resume` is given.
    let train_args = with(&args.train, combination);
    let ended =
        trials::attempt(folder, args.train.resume, session, || train::one(&train_args, folder, session))?;
    let settings = combination.settings().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let trial = Trial { folder: String::new(), settings, value: None, seconds: 0.0, problem: None };
    match ended {
        Ended::Finished(summary) => {
            let value = summary.dev.get(&args.metric).copied();
            if value.is_none() {
                bail!(ConfigError::Missing(format!(
                    "there is no `{}` on dev to rank by\nhint: give a dev split, hold one out with `--dev 0.1`, and set `refit=never`",
                    args.metric
                )));
            }
            Ok(Trial { value, seconds: summary.seconds, ..trial })
        }
        Ended::Failed(problem) => Ok(Trial { problem: Some(problem), ..trial }),
    }
}

fn with(train: &TrainArgs, combination: &Combination) -> TrainArgs {
    let mut args = TrainArgs { json: false, ..train.clone() };
    // A model that is trained again on dev cannot be ranked on dev.
    args.set.push("refit=never".to_owned());
    args.set.extend(combination.arguments());
    args
}

fn rank(trials: &mut [Trial], higher_is_better: bool) {
    let key = |trial: &Trial| {
        let value = trial.value.unwrap_or(f64::NAN);
        let value = if higher_is_better { -value } else { value };
        if value.is_nan() { f64::INFINITY } else { value }
    };
    trials.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.folder.cmp(&b.folder)));
}

/// Every combination of the values to try, or some of them drawn at random, in a fixed order.
fn combinations(args: &TuneArgs) -> anyhow::Result<Vec<Combination>> {
    let axes = args.tries.iter().map(|argument| Axis::parse(argument)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut all = trials::combinations(&axes)?;
    if let Some(n) = args.random {
        if n == 0 {
            bail!(ConfigError::Missing("`--random` must be at least 1".to_owned()));
        }
        let seed = RunConfig::resolve(&args.train)?.seed();
        all.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        all.truncate(n);
    }
    Ok(all)
}
