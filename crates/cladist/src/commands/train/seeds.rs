//! `cladist train --seeds N`: the same run with several seeds, and how much the seed matters.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use cladist_core::corpus::SplitName;
use serde::Serialize;

use super::{Summary, one, write_json};
use crate::args::{BadLineArgs, TrainArgs};
use crate::commands::evaluate::{self, HEADLINE};
use crate::commands::trials::Spread;
use crate::config::RunConfig;
use crate::error::ConfigError;
use crate::model;
use crate::output::Table;
use crate::session::Session;
use crate::settings::Settings;

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
        test.add(&on_test(&folder, &args.bad_lines, session)?);
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
    Ok(config.seed())
}

/// Metrics on the test split, if the corpus has one.
fn on_test(
    folder: &Path,
    bad_lines: &BadLineArgs,
    session: &Session,
) -> anyhow::Result<BTreeMap<String, f64>> {
    let run = model::open(folder, session)?;
    if run.source.as_ref().is_none_or(|source| source.test.is_empty()) {
        return Ok(BTreeMap::new());
    }
    Ok(evaluate::own(&run, folder, SplitName::Test, bad_lines, session)?.report.metrics)
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
