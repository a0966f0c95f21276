//! The same run with several seeds, and how much the seed matters.

use std::collections::BTreeMap;
use std::path::Path;

use cladist_core::bundle::write_atomically;
use cladist_core::corpus::{Split, SplitName};
use serde::Serialize;

use super::{Summary, Training, contents, place};
use crate::config::{Recipe, RunConfig, difference};
use crate::corpora::{Documents, Place};
use crate::error::{Error, Result};
use crate::folders;
use crate::model::{Model, OpenOptions};
use crate::observe::Event;
use crate::results::experiment::Spread;
use crate::settings::Settings;

/// The settings that all seeds share.
const SETTINGS: &str = "seeds.toml";
/// What they came to.
const REPORT: &str = "seeds.json";

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
        self.config.validate()?;
        let known = if self.resume { Self::settings_of_seeds(&self.out)? } else { None };
        let config = known.clone().unwrap_or_else(|| self.config.clone());
        if matches!(config.recipe, Recipe::Mixed(_)) {
            return Err(Error::setting(
                "seeds",
                "has no effect on the head `mixed`: nothing in it is random",
            ));
        }
        let first = config.seed();
        let seeds: Vec<u64> = (0..u64::from(n)).map(|k| first.wrapping_add(k)).collect();
        let series: Vec<Self> = seeds.iter().map(|&seed| self.of_seed(&config, seed)).collect();
        self.check_series(&series)?;
        if known.is_none() {
            std::fs::create_dir_all(&self.out).map_err(Error::io("create", &self.out))?;
            write_atomically(&self.out.join(SETTINGS), config.to_toml()?.as_bytes())?;
            // The report of the series that this one replaces.
            let _ = std::fs::remove_file(self.out.join(REPORT));
        }
        let in_memory = self.test_in_memory(&config)?;
        let (mut runs, mut test) = (Vec::new(), Vec::new());
        for one in &series {
            self.work.tell(&Event::Note(format!("seed {}", one.config.seed())));
            runs.push(one.run()?.summary);
            let options = OpenOptions {
                device: self.device.clone(),
                threads: self.threads,
                cancel: self.work.cancel.clone(),
                ..OpenOptions::default()
            };
            let model = Model::open(&one.out, &options)?;
            let evaluation = match &in_memory {
                Some(split) => Some(model.evaluate_and_keep(split, Vec::new(), &self.work)?),
                None if model.source().is_some_and(|source| !source.test.is_empty()) => {
                    Some(model.evaluate_own(SplitName::Test, &self.bad_lines, &self.work)?)
                }
                None => None,
            };
            test.extend(evaluation.map(|evaluation| evaluation.report.metrics));
        }
        let seconds = Spread::of(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
        let dev = Spread::by_metric(runs.iter().map(|run| &run.dev));
        let report = SeedsReport { seeds, runs, dev, test: Spread::by_metric(&test), seconds };
        write_atomically(&self.out.join(REPORT), &serde_json::to_vec_pretty(&report)?)?;
        Ok(report)
    }

    /// The settings that the seeds in a folder share, but for the seed.
    pub fn settings_of_seeds(out: &Path) -> Result<Option<RunConfig>> {
        let path = out.join(SETTINGS);
        if !path.exists() {
            return Ok(None);
        }
        Settings::read(&path)?.resolve().map(Some)
    }

    fn of_seed(&self, config: &RunConfig, seed: u64) -> Self {
        let out = self.out.join(format!("seed-{seed}"));
        Self { config: config.clone().with_seed(seed), out, ..self.clone() }
    }

    /// Refuses what would mix runs of different settings, before anything is written.
    fn check_series(&self, series: &[Self]) -> Result<()> {
        if self.resume {
            return series.iter().try_for_each(Self::check_settings);
        }
        if self.documents.is_none() {
            return Err(Error::NoCorpus);
        }
        // Settings without a run are left by a series that failed at once.
        if !self.overwrite && self.out.join(SETTINGS).exists() && has_runs(&self.out)? {
            let whole = self.out.join(REPORT).exists();
            let out = self.out.clone();
            return Err(if whole { Error::Exists(out) } else { Error::Unfinished(out) });
        }
        series.iter().try_for_each(|one| place::check(&one.out, self.overwrite))
    }

    /// A run that is there already must have the settings of its series.
    fn check_settings(&self) -> Result<()> {
        let path = self.out.join(folders::CONFIG);
        if !path.exists() {
            return Ok(());
        }
        let found: RunConfig = Settings::read(&path)?.resolve()?;
        match difference(&found, &self.config.settled()?)? {
            Some(difference) => Err(Error::OtherSettings { path: self.out.clone(), difference }),
            None => Ok(()),
        }
    }

    /// The test split of documents in memory, as the settings leave it.
    fn test_in_memory(&self, config: &RunConfig) -> Result<Option<Split>> {
        let Some(documents @ Documents::Memory(corpus)) = &self.documents else { return Ok(None) };
        if corpus.test.is_none() {
            return Ok(None);
        }
        let place = Place::default();
        Ok(documents.load(&config.common.data, &self.bad_lines, place, &self.silent())?.corpus.test)
    }
}

/// Whether a folder has runs of seeds.
fn has_runs(out: &Path) -> Result<bool> {
    Ok(contents::names(out)?.iter().any(|name| name.starts_with("seed-")))
}
