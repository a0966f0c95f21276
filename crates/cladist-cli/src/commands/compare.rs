//! `cladist compare`: whether the second of two runs is better, on the same documents.

use cladist::{EvaluateOptions, Model};
use cladist_core::metrics::bootstrap::ResampleOptions;
use cladist_core::metrics::compare::compare;

use crate::args::CompareArgs;
use crate::flags::{read_split, split_name};
use crate::output::Table;
use crate::session::Session;

/// Compares two runs.
pub fn run(args: &CompareArgs, session: &Session) -> anyhow::Result<()> {
    let (a, b) = (Model::open(&args.a, &session.open())?, Model::open(&args.b, &session.open())?);
    let name = split_name(&args.split)?;
    let (split, _) = read_split(&a, &args.corpus, &args.bad_lines, name, session)?;
    let (other, _) = read_split(&b, &args.corpus, &args.bad_lines, name, session)?;
    a.check_comparable(&split, &b, &other)?;
    let metrics = &a.config().common.metrics;
    // By the same metrics, so that the same labels are looked at.
    let evaluate = EvaluateOptions {
        metrics: Some(metrics.clone()),
        work: session.work(),
        ..EvaluateOptions::default()
    };
    let (answers_a, answers_b) = (a.answers(&split, &evaluate)?, b.answers(&other, &evaluate)?);
    let options =
        ResampleOptions { resamples: args.resamples, seed: args.seed, ..ResampleOptions::default() };
    let rows = compare(
        &answers_a.judged(&a, &split.gold),
        &answers_b.judged(&b, &split.gold),
        metrics,
        &options,
        &evaluate.work.job(),
    )?;
    session.view.clear();
    if args.json {
        return session.output.json(&rows);
    }
    session.output.line(format!(
        "A: {}\nB: {}\n{} documents of {}, {} resamples\n",
        args.a.display(),
        args.b.display(),
        split.documents.len(),
        split.name,
        args.resamples
    ))?;
    let mut table = Table::new(1, ["metric", "A", "B", "B − A", "95% interval", "p", ""]);
    for row in &rows {
        table.row([
            row.metric.clone(),
            format!("{:.4}", row.a),
            format!("{:.4}", row.b),
            format!("{:+.4}", row.difference),
            format!("{:+.4} – {:+.4}", row.ci_low, row.ci_high),
            format!("{:.4}", row.p_value),
            if row.p_value < 0.05 { "*".to_owned() } else { String::new() },
        ]);
    }
    session.output.line(table)?;
    session.output.note("\n* p < 0.05, two-sided paired randomisation; interval by paired bootstrap");
    Ok(())
}
