//! Variants compared as their authors did, from the grid of settings to the table.

mod curves;
mod plan;
mod results;
mod runs;
mod significance;
mod sweep;

use std::path::{Path, PathBuf};

use cladist::results::experiment::Results;
use cladist::{Model, html};
use cladist_core::bundle::write_atomically;
use cladist_core::corpus::Split;
use cladist_core::metrics::can_be_resampled;

use crate::error::{LabError, Result};
use crate::spec::Spec;
use plan::Plan;
use runs::{Runner, VariantRuns};

/// The results as JSON, in the experiment's folder.
pub const RESULTS: &str = "experiment.json";
/// The results as a page.
pub const PAGE: &str = "experiment.html";

/// What an experiment is run with.
#[derive(Debug, Clone)]
pub struct ExperimentOptions<'a> {
    /// Which of [`crate::experiments::ALL`].
    pub name: String,
    /// Folder of all runs and of the results.
    pub out: PathBuf,
    /// What every run shares.
    pub spec: Spec<'a>,
    /// Only these variants; all without any.
    pub variants: Vec<String>,
    /// Values of a setting to choose from on dev (`key=v1,v2`), instead of the experiment's grid.
    pub tries: Vec<String>,
    /// Choose nothing: settings as they are given.
    pub no_grid: bool,
    /// Seeds that the chosen settings of each variant are trained with.
    pub seeds: u32,
    /// Start anew, if the folder holds an experiment.
    pub overwrite: bool,
}

/// Runs what is left to run, and writes what there is after each variant. The same call again goes on where an interrupted
/// one stopped.
pub fn run(options: &ExperimentOptions<'_>) -> Result<Results> {
    let out = &options.out;
    let plan = Plan::new(options)?;
    if options.overwrite {
        Plan::clear(out)?;
    }
    plan.check_place(out)?;
    match all(&plan, out) {
        Err(error) if error.kind() == cladist::ErrorKind::Cancelled => Err(LabError::Stopped),
        other => other,
    }
}

fn all(plan: &Plan<'_>, out: &Path) -> Result<Results> {
    // Tests of models that are still the same need not be made again.
    let earlier: Option<Results> =
        std::fs::read(out.join(RESULTS)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut runner = Runner::new(plan, out);
    runner.prepare()?;
    plan.keep(out)?;
    let mut done: Vec<VariantRuns> = Vec::new();
    for planned in &plan.variants {
        let runs = runner.variant(planned)?;
        done.push(runs);
        let known = significance::known(plan, &done, earlier.as_ref());
        save(&results::collect(plan, &done, &known)?, out)?;
    }
    let known = significance::known(plan, &done, earlier.as_ref());
    let metrics: Vec<String> =
        results::collect(plan, &done, &known)?.columns.into_iter().map(|column| column.metric).collect();
    let metrics: Vec<String> = metrics.into_iter().filter(|name| can_be_resampled(name)).collect();
    let tests = significance::test(plan, &done, known, &metrics, out)?;
    let mut results = results::collect(plan, &done, &tests)?;
    results.sweep = sweep::run(plan, &results, earlier.and_then(|earlier| earlier.sweep), out)?;
    save(&results, out)?;
    Ok(results)
}

fn save(results: &Results, out: &Path) -> Result<()> {
    write_atomically(&out.join(RESULTS), &serde_json::to_vec_pretty(results)?)?;
    let curves = curves::draw(results, out)?;
    write_atomically(&out.join(PAGE), html::experiment(results, curves.as_ref())?.as_bytes())?;
    Ok(())
}

/// The split that results are measured on, as a model of the experiment reads it.
fn own_split(model: &Model, plan: &Plan<'_>) -> Result<Split> {
    let folder = model.folder().unwrap_or_else(|| model.path());
    let bad = plan.spec.bad_lines.or_at(&folder.join(format!("rejects-{}.jsonl", plan.split)));
    Ok(model.read_split(plan.split, None, None, &bad, &plan.spec.work)?.0)
}
