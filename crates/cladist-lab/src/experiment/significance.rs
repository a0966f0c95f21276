//! Whether variants differ from the baseline by more than chance.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use cladist::results::experiment::{Results, Run, Tests};
use cladist::{EvaluateOptions, Event, Model};
use cladist_core::metrics::bootstrap::ResampleOptions;
use cladist_core::metrics::compare::Contributions;

use super::own_split;
use super::plan::Plan;
use super::runs::VariantRuns;
use crate::error::Result;

/// The models of two variants, seed by seed where both have one.
fn pairs<'r>(baseline: &'r [Run], runs: &'r [Run]) -> Vec<(&'r Run, &'r Run)> {
    let partner = |run: &'r Run| {
        let other = baseline.iter().find(|other| other.seed == run.seed && other.model.is_some())?;
        run.model.is_some().then_some((other, run))
    };
    runs.iter().filter_map(partner).collect()
}

fn models(pairs: &[(&Run, &Run)]) -> Vec<(String, String)> {
    let name = |run: &Run| run.model.clone().unwrap_or_default();
    pairs.iter().map(|(a, b)| (name(a), name(b))).collect()
}

fn baseline<'r>(plan: &Plan<'_>, done: &'r [VariantRuns]) -> Option<&'r [Run]> {
    let place = plan.variants.iter().position(|planned| planned.variant.name == plan.experiment.baseline)?;
    done.get(place).map(|runs| runs.runs.as_slice())
}

/// Tests of an earlier call that are of the same models.
pub(super) fn known(
    plan: &Plan<'_>,
    done: &[VariantRuns],
    earlier: Option<&Results>,
) -> BTreeMap<String, Tests> {
    let Some(baseline) = baseline(plan, done) else { return BTreeMap::new() };
    let mut known = BTreeMap::new();
    for (planned, runs) in plan.variants.iter().zip(done) {
        let name = planned.variant.name;
        let row = earlier.and_then(|earlier| earlier.variants.iter().find(|row| row.name == name));
        let now = models(&pairs(baseline, &runs.runs));
        if let Some(tests) = row.and_then(|row| row.tests.clone()).filter(|tests| tests.models == now) {
            known.insert(name.to_owned(), tests);
        }
    }
    known
}

/// Tests every variant against the baseline by the metrics of the table, unless its tests are known. Scores are
/// computed again, one model after the other; what each document contributes to the metrics is all that is kept.
pub(super) fn test(
    plan: &Plan<'_>,
    done: &[VariantRuns],
    mut known: BTreeMap<String, Tests>,
    metrics: &[String],
    out: &Path,
) -> Result<BTreeMap<String, Tests>> {
    let Some(baseline) = baseline(plan, done) else { return Ok(known) };
    let options = ResampleOptions { metrics: metrics.to_vec(), ..ResampleOptions::default() };
    let mut collected: BTreeMap<&str, Contributions> = BTreeMap::new();
    for (planned, runs) in plan.variants.iter().zip(done) {
        let name = planned.variant.name;
        let pairs = pairs(baseline, &runs.runs);
        if name == plan.experiment.baseline || known.contains_key(name) || pairs.is_empty() {
            continue;
        }
        plan.spec.work.tell(&Event::Note(format!("testing {name} against {}", plan.experiment.baseline)));
        let mut sides: [Option<Contributions>; 2] = [None, None];
        for (a, b) in &pairs {
            let first = match collected.entry(a.folder.as_str()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(contributions(plan, a, &options, out)?),
            };
            let answers = [first.clone(), contributions(plan, b, &options, out)?];
            for (side, answers) in sides.iter_mut().zip(answers) {
                match side {
                    Some(side) => side.join(&answers)?,
                    None => *side = Some(answers),
                }
            }
        }
        let [Some(a), Some(b)] = sides else { continue };
        let metrics = a.compare(&b, &options, &plan.spec.work.job())?;
        let tests = Tests {
            metrics,
            seeds: pairs.iter().map(|(_, run)| run.seed).collect(),
            models: models(&pairs),
            documents: runs.runs.iter().map(|run| run.documents).max().unwrap_or(0),
            resamples: options.resamples,
        };
        known.insert(name.to_owned(), tests);
    }
    Ok(known)
}

fn contributions(plan: &Plan<'_>, run: &Run, options: &ResampleOptions, out: &Path) -> Result<Contributions> {
    let folder = out.join(&run.folder);
    let model = Model::open(&folder, &plan.spec.open())?;
    let split = own_split(&model, plan)?;
    let work = &plan.spec.work;
    let options_of_run = EvaluateOptions { work: work.clone(), ..EvaluateOptions::default() };
    let answers = model.answers(&split, &options_of_run)?;
    let judged = answers.judged(&model, &split.gold);
    let metrics = &model.config().common.metrics;
    Ok(Contributions::collect(&judged, &options.metrics, metrics, &work.job())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::runs::tests::run;

    #[test]
    fn only_seeds_that_both_finished_are_compared() {
        let flat = [run("a1", 1, "loss", Some(0.1)), run("a2", 2, "loss", Some(0.1))];
        let mut failed = run("b1", 1, "loss", None);
        failed.model = None;
        let other = [failed, run("b2", 2, "loss", Some(0.1)), run("b3", 3, "loss", Some(0.1))];
        assert_eq!(models(&pairs(&flat, &other)), [("a2".to_owned(), "b2".to_owned())]);
    }
}
