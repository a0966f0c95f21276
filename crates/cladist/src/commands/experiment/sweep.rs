//! A trained variant that answers with other settings: what a table of beam widths is made of.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use super::plan::Plan;
use crate::args::DecodeArgs;
use crate::commands::evaluate;
use crate::judge::Answers;
use crate::model;
use crate::results::experiment::{Results, Swept, SweptRow};
use crate::session::Session;

/// Judges the run with the first seed with each value of the setting, unless that was done before with the same model.
pub(super) fn run(
    plan: &Plan,
    results: &Results,
    earlier: Option<Swept>,
    out: &Path,
    session: &Session,
) -> anyhow::Result<Option<Swept>> {
    let Some(sweep) = &plan.experiment.sweep else { return Ok(None) };
    let row = results.variants.iter().find(|row| row.name == sweep.variant);
    let Some(run) = row.and_then(|row| row.finished().next()) else { return Ok(None) };
    if let Some(earlier) = earlier.filter(|earlier| earlier.model == run.model && earlier.key == sweep.key) {
        return Ok(Some(earlier));
    }
    let folder = out.join(&run.folder);
    let mut rows = Vec::new();
    for value in sweep.values {
        session.cancel.check()?;
        session.output.note(format!("{} with {} {value}", sweep.variant, sweep.key));
        let changes = sweep.settings.iter().copied().chain([(sweep.key, *value)]);
        let changes: Vec<String> = changes.map(|(key, value)| format!("{key}={value}")).collect();
        let opened = model::open_with(&folder, &changes, session)?;
        let bad_lines = &plan.args.bad_lines;
        let (split, _) = evaluate::own_split(&opened, &folder, plan.split, bad_lines, session)?;
        let start = Instant::now();
        // The sets are what the search found: thresholds were fitted on scores of another kind.
        let decode = DecodeArgs { threshold: Some(0.5), ..DecodeArgs::default() };
        let answers = Answers::new(&opened.model, &split, &decode, session)?;
        let seconds = start.elapsed().as_secs_f64();
        let report = answers.report(&opened.model.config.common.metrics, session)?;
        session.bars.clear();
        let metrics: BTreeMap<String, f64> = (results.columns.iter())
            .filter_map(|column| Some((column.metric.clone(), *report.metrics.get(&column.metric)?)))
            .collect();
        rows.push(SweptRow { value: (*value).to_owned(), metrics, seconds });
    }
    let (variant, key) = (sweep.variant.to_owned(), sweep.key.to_owned());
    Ok(Some(Swept { variant, key, model: run.model.clone(), rows }))
}
