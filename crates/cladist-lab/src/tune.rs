//! Many settings, ranked by a metric on dev.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cladist::{Event, RunConfig};
use cladist_core::bundle::write_atomically;
use cladist_core::metrics::METRICS;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::error::{LabError, Result};
use crate::spec::Spec;
use crate::trials::{self, Axis, Combination, Ended};

/// What is tried.
#[derive(Debug, Clone)]
pub struct TuneOptions<'a> {
    /// What every trial shares.
    pub spec: Spec<'a>,
    /// Folder of all trials.
    pub out: PathBuf,
    /// Values of settings to try, each `key=v1,v2`; all combinations are run.
    pub tries: Vec<String>,
    /// Only this many combinations, drawn at random.
    pub random: Option<usize>,
    /// The metric on dev that ranks trials.
    pub metric: String,
    /// Trials that are done are not done again.
    pub resume: bool,
    /// Replace trials of an earlier call.
    pub overwrite: bool,
}

/// One combination of values and what it reached.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    /// Below the folder of all trials.
    pub folder: String,
    /// What varies, with its value here.
    pub settings: BTreeMap<String, String>,
    /// The metric on dev; none if the run failed.
    pub value: Option<f64>,
    /// Time of training.
    pub seconds: f64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The trials, the best first, and the settings that were varied.
#[derive(Debug)]
pub struct Tuned {
    /// Keys of the settings.
    pub keys: Vec<String>,
    /// The trials.
    pub trials: Vec<Trial>,
}

/// Runs the trials; `tune.json` and `best.toml` are written as it goes.
pub fn run(options: &TuneOptions<'_>) -> Result<Tuned> {
    let out = &options.out;
    let Some(metric) = METRICS.iter().find(|info| info.name == options.metric) else {
        let known = METRICS.iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
        return Err(
            cladist::Error::UnknownChoice { what: "metric", name: options.metric.clone(), known }.into()
        );
    };
    let combinations = combinations(options)?;
    // A fault in the settings shows before hours of work.
    for combination in &combinations {
        resolve(options, combination)?;
    }
    std::fs::create_dir_all(out).map_err(LabError::io("create", out))?;
    let mut trials = Vec::new();
    for (n, combination) in combinations.iter().enumerate() {
        let name = format!("trial-{:03}", n + 1);
        let said = combination.arguments().join(" ");
        options.spec.work.tell(&Event::Note(format!("{name} of {}: {said}", combinations.len())));
        let trial = one(options, &out.join(&name), combination)?;
        trials.push(Trial { folder: name, ..trial });
        rank(&mut trials, metric.higher_is_better);
        write_atomically(&out.join("tune.json"), &serde_json::to_vec_pretty(&trials)?)?;
    }
    if let Some(best) = trials.first().filter(|trial| trial.value.is_some()) {
        let path = out.join(&best.folder).join(cladist::folders::CONFIG);
        let config = std::fs::read(&path).map_err(LabError::io("read", &path))?;
        let best = out.join("best.toml");
        write_atomically(&best, &config)?;
        options.spec.work.tell(&Event::Note(format!("the best settings are in {}", best.display())));
    }
    let keys = combinations.iter().take(1).flat_map(Combination::settings).map(|(key, _)| key.to_owned());
    Ok(Tuned { keys: keys.collect(), trials })
}

/// One trial.
fn one(options: &TuneOptions<'_>, folder: &Path, combination: &Combination) -> Result<Trial> {
    let spec = &options.spec;
    let ended = trials::attempt(folder, options.resume, &spec.work, || {
        let training = spec.training(resolve(options, combination)?, folder);
        cladist::memory::forget_peak();
        Ok(training.resume(options.resume).overwrite(options.overwrite).run()?.summary)
    })?;
    let settings = combination.settings().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let trial = Trial { folder: String::new(), settings, value: None, seconds: 0.0, problem: None };
    match ended {
        Ended::Finished(summary) => {
            let value = summary.dev.get(&options.metric).copied();
            if value.is_none() {
                return Err(LabError::NothingToChooseBy(folder.display().to_string()));
            }
            Ok(Trial { value, seconds: summary.seconds, ..trial })
        }
        Ended::Failed(problem) => Ok(Trial { problem: Some(problem), ..trial }),
    }
}

fn resolve(options: &TuneOptions<'_>, combination: &Combination) -> Result<RunConfig> {
    let mut layers = options.spec.layers.clone();
    // A model that is trained again on dev cannot be ranked on dev.
    layers.set.push("refit=never".to_owned());
    layers.set.extend(combination.arguments());
    Ok(layers.resolve()?)
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
fn combinations(options: &TuneOptions<'_>) -> Result<Vec<Combination>> {
    let axes = options.tries.iter().map(|argument| Axis::parse(argument)).collect::<Result<Vec<_>>>()?;
    let mut all = trials::combinations(&axes)?;
    if let Some(n) = options.random {
        if n == 0 {
            return Err(LabError::Zero("random"));
        }
        let seed = options.spec.layers.resolve()?.seed();
        all.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        all.truncate(n);
    }
    Ok(all)
}
