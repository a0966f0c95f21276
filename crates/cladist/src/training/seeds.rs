//! The same run with several seeds, and how much the seed matters.

use std::collections::BTreeMap;

use cladist_core::bundle::write_atomically;
use cladist_core::corpus::SplitName;
use serde::Serialize;

use super::{Summary, Training};
use crate::config::RunConfig;
use crate::error::{Error, Result};
use crate::model::{Model, OpenOptions};
use crate::observe::Event;
use crate::results::experiment::Spread;
use crate::settings::Settings;

/// The settings that all seeds share.
const SETTINGS: &str = "seeds.toml";

/// What several seeds come to: kept in `seeds.json`.
#[derive(Debug, Serialize)]
pub struct SeedsReport {
    /// The seeds of training.
    pub seeds: Vec<u64>,
    /// One run a seed.
    pub runs: Vec<Summary>,
    /// Metrics on dev.
    pub dev: BTreeMap<String, Spread>,
    /// Metrics on test.
    pub test: BTreeMap<String, Spread>,
    /// Times of training.
    pub seconds: Spread,
}

impl Training<'_> {
    /// Trains with `n` seeds in folders of their own (`seed-N`), judges each on test, and reports. What is held out for dev
    /// stays the same.
    pub fn run_seeds(&self, n: u32) -> Result<SeedsReport> {
        if n == 0 {
            return Err(Error::setting("seeds", "must be at least 1"));
        }
        if self.out.as_os_str().is_empty() {
            return Err(Error::NoFolder);
        }
        let config = self.shared_settings()?;
        let first = config.seed();
        let seeds: Vec<u64> = (0..u64::from(n)).map(|k| first.wrapping_add(k)).collect();
        let (mut runs, mut test) = (Vec::new(), Vec::new());
        for &seed in &seeds {
            self.work.tell(&Event::Note(format!("seed {seed}")));
            let folder = self.out.join(format!("seed-{seed}"));
            let one = Self { config: config.clone().with_seed(seed), ..self.clone() }.out(&folder);
            runs.push(one.run()?.summary);
            let options = OpenOptions {
                device: self.device.clone(),
                threads: self.threads,
                cancel: self.work.cancel.clone(),
                ..OpenOptions::default()
            };
            let model = Model::open(&folder, &options)?;
            if model.source().is_some_and(|source| !source.test.is_empty()) {
                test.push(model.evaluate_own(SplitName::Test, &self.bad_lines, &self.work)?.report.metrics);
            }
        }
        let seconds = Spread::of(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
        let dev = Spread::by_metric(runs.iter().map(|run| &run.dev));
        let report = SeedsReport { seeds, runs, dev, test: Spread::by_metric(&test), seconds };
        write_atomically(&self.out.join("seeds.json"), &serde_json::to_vec_pretty(&report)?)?;
        Ok(report)
    }

    /// An unfinished series has settings of its own.
    fn shared_settings(&self) -> Result<RunConfig> {
        let known = self.out.join(SETTINGS);
        if self.resume && known.exists() {
            return Settings::read(&known)?.resolve();
        }
        std::fs::create_dir_all(&self.out).map_err(Error::io("create", &self.out))?;
        write_atomically(&known, self.config.to_toml()?.as_bytes())?;
        Ok(self.config.clone())
    }
}
