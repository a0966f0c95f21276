//! The runs of an experiment: made, found again, judged, and the choice among them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cladist::config::Recipe;
use cladist::results::experiment::{Best, IN_TRAINING, Run};
use cladist::{Event, Model, RunConfig, Summary};
use cladist_core::bundle::MANIFEST;
use cladist_core::metrics::{self, Report};
use cladist_nn::train::journal::{self, Kind, Record};

use super::plan::{Plan, PlannedCombination, PlannedVariant};
use crate::error::{LabError, Result};
use crate::trials;

/// The runs of one variant.
#[derive(Debug, Default)]
pub(super) struct VariantRuns {
    /// One of each combination, with the first seed.
    pub(super) grid: Vec<Run>,
    /// The combination that was chosen.
    pub(super) chosen: Option<usize>,
    /// The runs of the chosen combination, one a seed.
    pub(super) runs: Vec<Run>,
}

/// Makes runs, one after the other.
pub(super) struct Runner<'a> {
    plan: &'a Plan<'a>,
    out: &'a Path,
    /// Runs so far, done before ones included.
    n: usize,
    /// Seconds of those that ended with a model.
    seconds: Vec<f64>,
    /// Folders of the chosen runs by variant and seed: what ensembles are made of.
    chosen: BTreeMap<(&'static str, u64), PathBuf>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, out: &'a Path) -> Self {
        Self { plan, out, n: 0, seconds: Vec::new(), chosen: BTreeMap::new() }
    }

    /// Finds out what cannot be trained before the first of many hours, and says what there is to do.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let plan = self.plan;
        let mut rehearsed: Vec<RunConfig> = Vec::new();
        let mut done = 0;
        for planned in &plan.variants {
            for combination in &planned.combinations {
                let folders = plan.seeds.iter().map(|&seed| self.folder(combination, seed));
                let folders: Vec<PathBuf> = folders.filter(|folder| is_done(folder)).collect();
                for folder in &folders {
                    self.seconds.extend(Summary::of(folder)?.map(|summary| summary.seconds));
                }
                done += folders.len();
                if !folders.is_empty() {
                    continue;
                }
                if !planned.variant.members.is_empty() {
                    continue;
                }
                let form = form(&combination.config);
                if !rehearsed.contains(&form) {
                    let training = plan.spec.training(combination.config.clone(), self.out);
                    training
                        .rehearse()
                        .map_err(|error| LabError::of_variant(planned.variant.name)(error.into()))?;
                    rehearsed.push(form);
                }
            }
        }
        let n_runs = plan.n_runs();
        plan.spec.work.tell(&Event::Note(match done {
            0 => format!("{n_runs} runs of `{}`", plan.experiment.name),
            _ => format!(
                "{n_runs} runs of `{}`, {} of them done already",
                plan.experiment.name,
                done.min(n_runs)
            ),
        }));
        Ok(())
    }

    /// All runs of a variant: the grid, the choice, the other seeds.
    pub(super) fn variant(&mut self, planned: &PlannedVariant) -> Result<VariantRuns> {
        let mut runs = VariantRuns::default();
        let Some((&first, others)) = self.plan.seeds.split_first() else { return Ok(runs) };
        for combination in &planned.combinations {
            let run = self.run(planned, combination, first)?;
            runs.grid.push(run);
        }
        runs.chosen = choose(&runs.grid)?;
        let Some(chosen) = runs.chosen else {
            // Nothing to go on with.
            self.n += others.len();
            return Ok(runs);
        };
        runs.runs.push(runs.grid[chosen].clone());
        for &seed in others {
            let run = self.run(planned, &planned.combinations[chosen], seed)?;
            runs.runs.push(run);
        }
        for run in runs.runs.iter().filter(|run| run.problem.is_none()) {
            self.chosen.insert((planned.variant.name, run.seed), self.out.join(&run.folder));
        }
        Ok(runs)
    }

    /// The settings of a run; an ensemble's members are the runs of their variants with the same seed.
    fn settings(
        &self,
        planned: &PlannedVariant,
        combination: &PlannedCombination,
        seed: u64,
    ) -> Result<RunConfig> {
        let mut config = combination.config.clone().with_seed(seed);
        if let Recipe::Mixed(mixed) = &mut config.recipe {
            for name in planned.variant.members {
                let Some(folder) = self.chosen.get(&(*name, seed)) else {
                    return Err(LabError::NoMemberRun { variant: planned.variant.name, member: name, seed });
                };
                let folder = std::path::absolute(folder).map_err(LabError::io("find", folder))?;
                mixed.members.push(folder.display().to_string());
            }
        }
        Ok(config)
    }

    fn folder(&self, combination: &PlannedCombination, seed: u64) -> PathBuf {
        self.out.join(&combination.folder).join(format!("seed-{seed}"))
    }

    /// One run, trained unless it is done, and judged.
    fn run(&mut self, planned: &PlannedVariant, combination: &PlannedCombination, seed: u64) -> Result<Run> {
        self.n += 1;
        let folder = self.folder(combination, seed);
        if !is_done(&folder) {
            let spec = &self.plan.spec;
            spec.work.cancel.check()?;
            self.announce(planned, combination, seed);
            trials::attempt(&folder, true, &spec.work, || {
                let config = self.settings(planned, combination, seed)?;
                // Every run is gone on with if it can be.
                cladist::memory::forget_peak();
                Ok(spec.training(config, &folder).resume(true).run()?.summary)
            })?;
            self.seconds.extend(Summary::of(&folder)?.map(|summary| summary.seconds));
        }
        self.read(&folder, combination, seed)
    }

    fn announce(&self, planned: &PlannedVariant, combination: &PlannedCombination, seed: u64) {
        let n_runs = self.plan.n_runs();
        let values: Vec<String> =
            combination.values.iter().map(|(name, value)| format!("{name} {value}, ")).collect();
        let left = if self.seconds.is_empty() {
            String::new()
        } else {
            let mean = self.seconds.iter().sum::<f64>() / self.seconds.len() as f64;
            let seconds = mean * (n_runs + 1).saturating_sub(self.n) as f64;
            format!("; about {} left", in_words(seconds))
        };
        self.plan.spec.work.tell(&Event::Note(format!(
            "\nrun {} of {n_runs}: {}, {}seed {seed}{left}",
            self.n,
            planned.variant.name,
            values.concat()
        )));
    }

    /// What a run that is done came to. Always read from its files, so that it is the same each time.
    fn read(&self, folder: &Path, combination: &PlannedCombination, seed: u64) -> Result<Run> {
        let mut run = Run {
            folder: format!("{}/seed-{seed}", combination.folder),
            settings: combination.values.iter().cloned().collect(),
            seed,
            best: None,
            seconds: 0.0,
            peak_mb: None,
            metrics: BTreeMap::new(),
            levels: 0,
            documents: 0,
            model: None,
            problem: trials::failure(folder),
        };
        if run.problem.is_some() {
            return Ok(run);
        }
        let summary = Summary::of(folder)?.ok_or_else(|| LabError::Unfinished(folder.to_owned()))?;
        let report = self.report(folder)?;
        let manifest = folder.join("bundle").join(MANIFEST);
        let bytes = std::fs::read(&manifest).map_err(LabError::io("read", &manifest))?;
        run.model = Some(blake3::hash(&bytes).to_hex().to_string());
        // Models that do not watch dev while they are trained are chosen by what they reach there.
        let reached = || {
            let value = *summary.dev.get("micro-f1")?;
            Some(Best { monitor: "micro-f1".to_owned(), step: 0, value })
        };
        run.best = summary.best.clone().or_else(reached);
        run.seconds = summary.seconds;
        run.peak_mb = summary.peak_mb;
        run.levels = report.per_level.len();
        run.documents = report.n_documents;
        run.metrics = report.metrics;
        run.metrics.extend(in_training(folder)?);
        Ok(run)
    }

    /// The report of a run on the split that results are measured on, made if it is not there.
    fn report(&self, folder: &Path) -> Result<Report> {
        let path = folder.join("reports").join(format!("{}.json", self.plan.split));
        let read = || serde_json::from_slice::<Report>(&std::fs::read(&path).ok()?).ok();
        if let Some(report) = read() {
            return Ok(report);
        }
        let spec = &self.plan.spec;
        let model = Model::open(folder, &spec.open())?;
        model.evaluate_own(self.plan.split, &spec.bad_lines, &spec.work)?;
        read().ok_or_else(|| {
            cladist::Error::Damaged { path, reason: "it is no report".to_owned(), source: None }.into()
        })
    }
}

/// Means of the last epoch of training, by the names of the journal; nothing for a run without one.
fn in_training(folder: &Path) -> Result<BTreeMap<String, f64>> {
    let path = folder.join("metrics.jsonl");
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let (records, _) = journal::read(&path)?;
    let records: Vec<&Record> = records.iter().filter(|record| record.kind == Kind::Train).collect();
    let last = records.iter().map(|record| record.epoch).max().unwrap_or(0);
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (name, value) in
        records.iter().filter(|record| record.epoch == last).flat_map(|record| &record.values)
    {
        let (sum, n) = sums.entry(format!("{IN_TRAINING}{name}")).or_default();
        (*sum, *n) = (*sum + value, *n + 1.0);
    }
    Ok(sums.into_iter().map(|(name, (sum, n))| (name, sum / n)).collect())
}

/// A time that nobody needs to the second.
fn in_words(seconds: f64) -> String {
    match seconds.max(0.0) {
        seconds if seconds < 90.0 => format!("{seconds:.0} seconds"),
        seconds if seconds < 5400.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{:.1} hours", seconds / 3600.0),
    }
}

/// Whether nothing is left to train: the run ended with a model, or without one.
fn is_done(folder: &Path) -> bool {
    trials::failure(folder).is_some() || matches!(Summary::of(folder), Ok(Some(_)))
}

/// What decides whether a network can be made: settings of training have no part in it.
fn form(config: &RunConfig) -> RunConfig {
    let mut form = config.clone();
    if let Recipe::Neural(recipe) = &mut form.recipe {
        recipe.train = cladist_nn::train::TrainConfig::default();
    }
    form
}

/// The run that is best on dev, the first of equals. None if all failed.
fn choose(grid: &[Run]) -> Result<Option<usize>> {
    let done = || grid.iter().enumerate().filter(|(_, run)| run.problem.is_none());
    if grid.len() > 1
        && let Some((_, run)) = done().find(|(_, run)| run.best.is_none())
    {
        return Err(LabError::NothingToChooseBy(run.folder.clone()));
    }
    let cost = |run: &Run| {
        run.best.as_ref().map_or(0.0, |best| {
            let higher = metrics::find(&best.monitor).is_some_and(|(info, _)| info.higher_is_better);
            let cost = if higher { -best.value } else { best.value };
            if cost.is_nan() { f64::INFINITY } else { cost }
        })
    };
    Ok(done().min_by(|(_, a), (_, b)| cost(a).total_cmp(&cost(b))).map(|(n, _)| n))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A finished run, or one that failed.
    pub(crate) fn run(folder: &str, seed: u64, monitor: &str, value: Option<f64>) -> Run {
        Run {
            folder: folder.to_owned(),
            settings: BTreeMap::new(),
            seed,
            best: value.map(|value| Best { monitor: monitor.to_owned(), step: 1, value }),
            seconds: 2.0,
            peak_mb: None,
            metrics: BTreeMap::new(),
            levels: 2,
            documents: 9,
            model: Some(folder.to_owned()),
            problem: value.is_none().then(|| "diverged".to_owned()),
        }
    }

    #[test]
    fn values_of_the_journal_are_means_of_the_last_epoch() {
        let folder = tempfile::tempdir().unwrap();
        assert!(in_training(folder.path()).unwrap().is_empty());
        let line = |step: u64, epoch: usize, kind: &str, kl: f64| {
            format!(
                r#"{{"step":{step},"epoch":{epoch},"kind":"{kind}","values":{{"kl":{kl}}},"seconds":1.0}}"#
            )
        };
        let lines = [
            line(1, 0, "train", 9.0),
            line(2, 1, "train", 0.5),
            line(3, 1, "train", 0.25),
            line(3, 1, "dev", 7.0),
        ];
        std::fs::write(folder.path().join("metrics.jsonl"), lines.join("\n") + "\n").unwrap();
        assert_eq!(in_training(folder.path()).unwrap(), BTreeMap::from([("train:kl".to_owned(), 0.375)]));
    }

    #[test]
    fn the_smallest_loss_or_the_largest_metric_is_chosen() {
        let grid = |monitor: &str, values: &[Option<f64>]| -> Vec<Run> {
            values.iter().map(|&value| run("x", 1, monitor, value)).collect()
        };
        let values = [None, Some(0.3), Some(0.2), Some(0.2), Some(0.9)];
        assert_eq!(choose(&grid("loss", &values)).unwrap(), Some(2));
        assert_eq!(choose(&grid("micro-f1", &values)).unwrap(), Some(4));
        assert_eq!(choose(&grid("loss", &[None, None])).unwrap(), None);
        let mut unknown = grid("loss", &[Some(0.1), Some(0.2)]);
        unknown[1].best = None;
        assert!(matches!(choose(&unknown), Err(LabError::NothingToChooseBy(_))));
        // Nothing to choose from needs nothing to choose by.
        assert_eq!(choose(&unknown[1..]).unwrap(), Some(0));
    }
}
