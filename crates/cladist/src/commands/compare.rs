//! `cladist compare`: whether the second of two runs is better, on the same documents.

use anyhow::bail;
use cladist_core::LabelSet;
use cladist_core::corpus::Split;
use cladist_core::metrics::bootstrap::ResampleOptions;
use cladist_core::metrics::compare::compare;

use crate::args::{CompareArgs, DecodeArgs};
use crate::commands::evaluate::load_split;
use crate::error::ConfigError;
use crate::judge::Answers;
use crate::model;
use crate::output::Table;
use crate::session::Session;

/// Compares two runs.
pub fn run(args: &CompareArgs, session: &Session) -> anyhow::Result<()> {
    let (a, b) = (model::open(&args.a, session)?, model::open(&args.b, session)?);
    let (split, _) = load_split(&a, &args.corpus, &args.bad_lines, &args.split, session)?;
    let (other, _) = load_split(&b, &args.corpus, &args.bad_lines, &args.split, session)?;
    same_documents(&split, &other)?;
    if a.model.taxonomy() != b.model.taxonomy() {
        bail!(ConfigError::Missing(
            "the runs have different label sets\nhint: train both on the same corpus with the same `[data]` settings"
                .to_owned()
        ));
    }
    let decode = DecodeArgs::default();
    let answers_a = Answers::new(&a.model, &split, &decode, session)?;
    let answers_b =
        Answers { gold: same_gold(&split, &other)?, ..Answers::new(&b.model, &other, &decode, session)? };
    let options =
        ResampleOptions { resamples: args.resamples, seed: args.seed, ..ResampleOptions::default() };
    let rows = compare(
        &answers_a.judged(),
        &answers_b.judged(),
        &a.model.config.common.metrics,
        &options,
        &session.job(),
    )?;
    session.bars.clear();
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

/// Refuses to go on if two splits hold different documents.
pub(super) fn same_documents(a: &Split, b: &Split) -> anyhow::Result<()> {
    let ids = |split: &Split| split.documents.iter().map(|document| document.id.clone()).collect::<Vec<_>>();
    if ids(a) != ids(b) {
        bail!(ConfigError::Missing(
            "the runs read different documents\nhint: name the documents of both with `--corpus DIR`"
                .to_owned()
        ));
    }
    Ok(())
}

fn same_gold<'a>(a: &'a Split, b: &'a Split) -> anyhow::Result<&'a [LabelSet]> {
    if a.gold != b.gold {
        bail!(ConfigError::Missing(
            "the runs treat gold labels differently\nhint: train both with the same `[data]` settings, such as `data.ancestors`"
                .to_owned()
        ));
    }
    Ok(&a.gold)
}
