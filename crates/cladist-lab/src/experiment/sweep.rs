//! A trained variant that answers with other settings: what a table of beam widths is made of.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use cladist::results::experiment::{Results, Swept, SweptRow};
use cladist::{DecodeOptions, EvaluateOptions, Event, Model, OpenOptions};

use super::own_split;
use super::plan::Plan;
use crate::error::Result;

/// Judges the run with the first seed with each value of the setting, unless that was done before with the same model.
pub(super) fn run(
    plan: &Plan<'_>,
    results: &Results,
    earlier: Option<Swept>,
    out: &Path,
) -> Result<Option<Swept>> {
    let Some(sweep) = &plan.experiment.sweep else { return Ok(None) };
    let row = results.variants.iter().find(|row| row.name == sweep.variant);
    let Some(run) = row.and_then(|row| row.finished().next()) else { return Ok(None) };
    if let Some(earlier) = earlier.filter(|earlier| earlier.model == run.model && earlier.key == sweep.key) {
        return Ok(Some(earlier));
    }
    let folder = out.join(&run.folder);
    let mut rows = Vec::new();
    for value in sweep.values {
        let work = &plan.spec.work;
        work.cancel.check()?;
        work.tell(&Event::Note(format!("{} with {} {value}", sweep.variant, sweep.key)));
        let changes = sweep.settings.iter().copied().chain([(sweep.key, *value)]);
        let set = changes.map(|(key, value)| format!("{key}={value}")).collect();
        let model = Model::open(&folder, &OpenOptions { set, ..plan.spec.open() })?;
        let split = own_split(&model, plan)?;
        let start = Instant::now();
        // The sets are what the search found: thresholds were fitted on scores of another kind.
        let decode = DecodeOptions { threshold: Some(0.5), ..DecodeOptions::default() };
        let options = EvaluateOptions { decode, work: work.clone(), ..EvaluateOptions::default() };
        let answers = model.answers(&split, &options)?;
        let seconds = start.elapsed().as_secs_f64();
        let report = answers.report(&model, &split.gold, &model.config().common.metrics, work)?;
        let metrics: BTreeMap<String, f64> = (results.columns.iter())
            .filter_map(|column| Some((column.metric.clone(), *report.metrics.get(&column.metric)?)))
            .collect();
        rows.push(SweptRow { value: (*value).to_owned(), metrics, seconds });
    }
    let (variant, key) = (sweep.variant.to_owned(), sweep.key.to_owned());
    Ok(Some(Swept { variant, key, model: run.model.clone(), rows }))
}
