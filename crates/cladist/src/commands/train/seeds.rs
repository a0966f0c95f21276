//! `cladist train --seeds N`: the same run with several seeds, and how much the seed matters.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use serde::Serialize;

use super::{Summary, one, write_json};
use crate::args::{BadLineArgs, CorpusArgs, DecodeArgs, TrainArgs};
use crate::commands::evaluate::{self, HEADLINE};
use crate::config::{Recipe, RunConfig};
use crate::error::ConfigError;
use crate::judge::Answers;
use crate::model;
use crate::output::Table;
use crate::session::Session;
use crate::settings::Settings;

/// Mean and standard deviation (of a sample) over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Spread {
    /// The mean.
    pub mean: f64,
    /// √(Σ(x − mean)² / (n − 1)); 0 for one run.
    pub std: f64,
}

impl Spread {
    /// Of values, of which there is at least one.
    #[must_use]
    fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, std: if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 } }
    }
}

/// What is written and, with `--json`, printed.
#[derive(Debug, Serialize)]
struct Report {
    seeds: Vec<u64>,
    runs: Vec<Summary>,
    dev: BTreeMap<String, Spread>,
    test: BTreeMap<String, Spread>,
    seconds: Spread,
}

/// Trains with `n` seeds in folders of their own, judges each on test, and reports.
pub(super) fn run(args: &TrainArgs, out: &Path, n: u32, session: &Session) -> anyhow::Result<()> {
    if n == 0 {
        bail!(ConfigError::Missing("`--seeds` must be at least 1".to_owned()));
    }
    let first = first_seed(args, out)?;
    let seeds: Vec<u64> = (0..u64::from(n)).map(|k| first + k).collect();
    let (mut runs, mut dev, mut test) = (Vec::new(), Metrics::default(), Metrics::default());
    for &seed in &seeds {
        session.output.note(format!("seed {seed}"));
        let folder = out.join(format!("seed-{seed}"));
        // The split of train and dev stays the same: only training differs.
        let mut one_args = TrainArgs { seeds: None, json: false, ..args.clone() };
        one_args.set.push(format!("train.seed={seed}"));
        let summary = one(&one_args, &folder, session)?;
        dev.add(&summary.dev);
        test.add(&on_test(&folder, session)?);
        runs.push(summary);
    }
    let seconds = Spread::of(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
    let report = Report { seeds, runs, dev: dev.spread(), test: test.spread(), seconds };
    write_json(&out.join("seeds.json"), &report)?;
    if args.json {
        return session.output.json(&report);
    }
    let mut table = Table::new(1, ["metric", "dev", "test"]);
    for &name in HEADLINE {
        let cell = |values: &BTreeMap<String, Spread>| {
            values.get(name).map_or_else(String::new, |s| format!("{:.4} ± {:.4}", s.mean, s.std))
        };
        if report.dev.contains_key(name) || report.test.contains_key(name) {
            table.row([name.to_owned(), cell(&report.dev), cell(&report.test)]);
        }
    }
    session.output.line(format!("mean ± standard deviation over {n} seeds\n\n{table}"))?;
    session.output.note(format!("written to {}", out.join("seeds.json").display()));
    Ok(())
}

/// The seed that the settings name; an unfinished run has its own settings.
fn first_seed(args: &TrainArgs, out: &Path) -> anyhow::Result<u64> {
    let known = out.join("seeds.toml");
    let config = if args.resume && known.exists() {
        Settings::read(&known)?.resolve()?
    } else {
        let config = RunConfig::resolve(args)?;
        std::fs::create_dir_all(out).map_err(cladist_core::Error::io("create", out))?;
        cladist_core::bundle::write_atomically(&known, toml::to_string(&config)?.as_bytes())?;
        config
    };
    Ok(match &config.recipe {
        Recipe::Linear(recipe) => recipe.train.seed,
        Recipe::Neural(recipe) => recipe.train.seed,
    })
}

/// Metrics on the test split, if the corpus has one.
fn on_test(folder: &Path, session: &Session) -> anyhow::Result<BTreeMap<String, f64>> {
    let run = model::open(folder, session)?;
    if run.source.as_ref().is_none_or(|source| source.test.is_empty()) {
        return Ok(BTreeMap::new());
    }
    let (corpus, bad) = (CorpusArgs::default(), BadLineArgs::default());
    let (split, _) = evaluate::load_split(&run, &corpus, &bad, "test", session)?;
    let answers = Answers::new(&run.model, &split, &DecodeArgs::default(), session)?;
    let report = answers.report(&run.model.config.common.metrics, session)?;
    session.bars.clear();
    Ok(report.metrics)
}

/// Values of several runs by metric.
#[derive(Default)]
struct Metrics(BTreeMap<String, Vec<f64>>);

impl Metrics {
    fn add(&mut self, values: &BTreeMap<String, f64>) {
        for (name, value) in values {
            self.0.entry(name.clone()).or_default().push(*value);
        }
    }

    fn spread(self) -> BTreeMap<String, Spread> {
        self.0.into_iter().map(|(name, values)| (name, Spread::of(&values))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(Spread::of(&[2.0]), Spread { mean: 2.0, std: 0.0 });
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0]);
        assert!((spread.mean - 2.5).abs() < 1e-12 && (spread.std - 1.290_994_448_735_805_6).abs() < 1e-12);
    }
}
