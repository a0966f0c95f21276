//! `cladist experiment`: variants compared as their authors did, from the grid of settings to the table.

mod curves;
mod plan;
mod results;
mod runs;
mod significance;
mod sweep;

use std::path::Path;

use anyhow::bail;
use cladist_core::Error;
use cladist_core::bundle::write_atomically;
use cladist_core::metrics::can_be_resampled;

pub use crate::results::experiment::{Results, Row, Run, Shown, Swept, Tests};

use crate::args::ExperimentArgs;
use crate::error::ConfigError;
use crate::experiments;
use crate::html;
use crate::output::Table;
use crate::session::Session;
use plan::Plan;
use runs::{Runner, VariantRuns};

/// The results as JSON.
const RESULTS: &str = "experiment.json";
/// The results as a page.
const PAGE: &str = "experiment.html";

/// Runs an experiment, or lists all.
pub fn run(args: &ExperimentArgs, session: &Session) -> anyhow::Result<()> {
    let Some(name) = args.name.as_deref().filter(|_| !args.list) else { return list(args, session) };
    let plan = Plan::new(name, args)?;
    let Some(out) = &args.train.out else {
        bail!(ConfigError::Missing("no folder given\nhint: pass `--out DIR`".to_owned()))
    };
    if args.train.overwrite {
        Plan::clear(out)?;
    }
    plan.check_place(out)?;
    let results = match all(&plan, out, session) {
        Err(error) if is_cancelled(&error) => {
            return Err(anyhow::Error::from(Error::Cancelled)
                .context("stopped\nhint: the same command again goes on from here"));
        }
        other => other?,
    };
    if args.train.json {
        return session.output.json(&results);
    }
    session.output.line(results.caption())?;
    for (title, rows, columns) in results.parts() {
        let title = if title.is_empty() { String::new() } else { format!("\n{title}\n") };
        session.output.line(format!("{title}\n{}", results::table(&results, &rows, &columns)))?;
    }
    if let Some(words) = &results.significance {
        session.output.line(format!("\n{words}"))?;
    }
    if let Some(swept) = &results.sweep {
        session.output.line(format!(
            "\n`{}` with other settings\n\n{}",
            swept.variant,
            results::sweep_table(swept, &results.columns)
        ))?;
    }
    session.output.note(format!("\nwritten to {} and {PAGE}", out.join(RESULTS).display()));
    Ok(())
}

/// Runs what is left to run, and writes what there is after each variant.
fn all(plan: &Plan, out: &Path, session: &Session) -> anyhow::Result<Results> {
    // Tests of models that are still the same need not be made again.
    let earlier: Option<Results> =
        std::fs::read(out.join(RESULTS)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut runner = Runner::new(plan, out, session);
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
    let tests = significance::test(plan, &done, known, &metrics, out, session)?;
    let mut results = results::collect(plan, &done, &tests)?;
    results.sweep = sweep::run(plan, &results, earlier.and_then(|earlier| earlier.sweep), out, session)?;
    save(&results, out)?;
    Ok(results)
}

fn save(results: &Results, out: &Path) -> anyhow::Result<()> {
    write_atomically(&out.join(RESULTS), &serde_json::to_vec_pretty(results)?)?;
    let curves = curves::draw(results, out)?;
    write_atomically(&out.join(PAGE), html::experiment(results, curves.as_ref())?.as_bytes())?;
    Ok(())
}

fn is_cancelled(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(Error::Cancelled))
            || matches!(cause.downcast_ref(), Some(cladist_nn::Error::Core(Error::Cancelled)))
    })
}

fn list(args: &ExperimentArgs, session: &Session) -> anyhow::Result<()> {
    if args.train.json {
        return session.output.json(&experiments::ALL);
    }
    let mut table = Table::new(3, ["experiment", "variants", "what it is"]);
    for experiment in experiments::ALL {
        let variants: Vec<&str> = experiment.variants.iter().map(|variant| variant.name).collect();
        table.row([experiment.name.to_owned(), variants.join(", "), experiment.description.to_owned()]);
    }
    session.output.line(table)
}
