//! `cladist train`: from a corpus to a run folder.

use std::collections::BTreeMap;

use cladist::results::HEADLINE;
use cladist::results::experiment::Spread;
use cladist::training::SeedsReport;
use cladist::{Error, Training};

use crate::args::TrainArgs;
use crate::error::Usage;
use crate::flags::{layers_of_one, training};
use crate::output::Table;
use crate::session::Session;

/// Trains and writes a run folder, or several.
pub fn run(args: &TrainArgs, session: &Session) -> anyhow::Result<()> {
    if args.print_config {
        let config = layers_of_one(args)?.resolve()?;
        return match args.json {
            true => session.output.json(&config.to_json()?),
            false => session.output.line(config.to_toml()?.trim_end()),
        };
    }
    let out = args.out.as_ref().ok_or(Error::NoFolder)?;
    let config = if args.resume { resumed(args)? } else { None };
    let config = config.map_or_else(|| Ok(layers_of_one(args)?.resolve()?), anyhow::Ok)?;
    let training = training(config, args, out, session)?;
    if let Some(n) = args.seeds {
        let report = training.run_seeds(n)?;
        session.view.clear();
        return if args.json { session.output.json(&report) } else { print(&report, out, session) };
    }
    cladist::memory::forget_peak();
    let trained = training.run()?;
    session.view.clear();
    if args.json {
        session.output.json(&trained.summary)?;
    }
    Ok(())
}

/// The settings of the run that is to go on; flags that say something else are refused rather than ignored.
fn resumed(args: &TrainArgs) -> anyhow::Result<Option<cladist::RunConfig>> {
    let Some(out) = args.out.as_deref() else { return Ok(None) };
    let known = match args.seeds {
        Some(_) => Training::settings_of_seeds(out)?,
        None => Training::unfinished(out)?,
    };
    let Some(known) = known else { return Ok(None) };
    let layers = layers_of_one(&TrainArgs {
        head: args.head.clone().or(Some(known.head().to_owned())),
        ..args.clone()
    })?;
    if let Some(difference) = layers.difference(&known)? {
        return Err(Usage::Resumed(difference).into());
    }
    Ok(Some(known))
}

fn print(report: &SeedsReport, out: &std::path::Path, session: &Session) -> anyhow::Result<()> {
    let mut table = Table::new(1, ["metric", "dev", "test"]);
    for &name in HEADLINE {
        let cell = |values: &BTreeMap<String, Spread>| {
            values.get(name).map_or_else(String::new, |s| format!("{:.4} ± {:.4}", s.mean, s.std))
        };
        if report.dev.contains_key(name) || report.test.contains_key(name) {
            table.row([name.to_owned(), cell(&report.dev), cell(&report.test)]);
        }
    }
    let n = report.seeds.len();
    session.output.line(format!("mean ± standard deviation over {n} seeds\n\n{table}"))?;
    session.output.note(format!("written to {}", out.join("seeds.json").display()));
    Ok(())
}
