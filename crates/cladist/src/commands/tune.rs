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
use crate::config::{Recipe, RunConfig};
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
        let said: Vec<String> = combination.iter().map(|(key, value)| format!("{key}={value}")).collect();
        session.output.note(format!("{name} of {}: {}", combinations.len(), said.join(" ")));
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
    let keys: Vec<&str> = combinations.first().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
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

/// One trial. A run that diverges is a result; anything else that goes wrong ends the search.
fn one(
    args: &TuneArgs,
    folder: &Path,
    combination: &[(String, String)],
    session: &Session,
) -> anyhow::Result<Trial> {
    let mut train_args = with(&args.train, combination);
    // Trials that are done are not done again.
    train_args.resume = args.train.resume;
    let outcome = train::one(&train_args, folder, session);
    let settings: BTreeMap<String, String> = combination.iter().cloned().collect();
    let trial = Trial { folder: String::new(), settings, value: None, seconds: 0.0, problem: None };
    match outcome {
        Ok(summary) => {
            let value = summary.dev.get(&args.metric).copied();
            if value.is_none() {
                bail!(ConfigError::Missing(format!(
                    "there is no `{}` on dev to rank by\nhint: give a dev split, hold one out with `--dev 0.1`, and set `refit=never`",
                    args.metric
                )));
            }
            Ok(Trial { value, seconds: summary.seconds, ..trial })
        }
        Err(error) if matches!(error.downcast_ref(), Some(cladist_nn::Error::Diverged { .. })) => {
            session.output.warn(format!("{error}"));
            Ok(Trial { problem: Some(error.to_string()), ..trial })
        }
        Err(error) => Err(error),
    }
}

fn with(train: &TrainArgs, combination: &[(String, String)]) -> TrainArgs {
    let mut args = TrainArgs { json: false, ..train.clone() };
    // A model that is trained again on dev cannot be ranked on dev.
    args.set.push("refit=never".to_owned());
    args.set.extend(combination.iter().map(|(key, value)| format!("{key}={value}")));
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
fn combinations(args: &TuneArgs) -> anyhow::Result<Vec<Vec<(String, String)>>> {
    const MOST: usize = 10_000;
    let mut all: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for argument in &args.tries {
        let Some((key, values)) = argument.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
            bail!(ConfigError::Missing(format!(
                "`--try {argument}` has no values\nhint: write `--try key=v1,v2`, such as `--try train.learning_rate=5e-5,1e-4`"
            )));
        };
        let values: Vec<&str> = values.split(',').map(str::trim).filter(|value| !value.is_empty()).collect();
        if values.is_empty() {
            bail!(ConfigError::Missing(format!("`--try {argument}` has no values")));
        }
        if all.len() * values.len() > MOST {
            bail!(ConfigError::Missing(format!("more than {MOST} combinations: try fewer values")));
        }
        all = (all.iter())
            .flat_map(|combination| {
                values.iter().map(|value| {
                    let mut longer = combination.clone();
                    longer.push((key.trim().to_owned(), (*value).to_owned()));
                    longer
                })
            })
            .collect();
    }
    if let Some(n) = args.random {
        if n == 0 {
            bail!(ConfigError::Missing("`--random` must be at least 1".to_owned()));
        }
        let seed = match RunConfig::resolve(&args.train)?.recipe {
            Recipe::Linear(recipe) => recipe.train.seed,
            Recipe::Neural(recipe) => recipe.train.seed,
        };
        all.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        all.truncate(n);
    }
    Ok(all)
}
