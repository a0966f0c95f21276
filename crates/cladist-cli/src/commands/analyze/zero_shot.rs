//! `cladist analyze zero-shot`: what a model makes of labels that were held out of its training.

use cladist::results::four_decimals;
use cladist_lab::analyze::zero_shot::{self, METRICS, Row, ZeroShotAnalysis, ZeroShotOptions};

use crate::args::AnalyzeZeroShotArgs;
use crate::flags::{source, split_name};
use crate::output::Table;
use crate::session::Session;

/// Measures a model on labels that it has not met.
pub(super) fn run(args: &AnalyzeZeroShotArgs, session: &Session) -> anyhow::Result<()> {
    let options = ZeroShotOptions {
        files: &|known| source(&args.corpus, known),
        bad_lines: args.bad_lines.policy(),
        split: args.split.as_deref().map(split_name).transpose()?,
        out: args.out.as_deref(),
        work: session.work(),
    };
    let analysis = zero_shot::run(&args.bundle, &options, &session.open())?;
    session.view.clear();
    if args.json {
        session.output.json(&analysis)?;
    } else {
        print(&analysis, session)?;
    }
    session.output.note(format!("\nzero-shot.json: {}", analysis.folder.display()));
    Ok(())
}

fn print(analysis: &ZeroShotAnalysis, session: &Session) -> anyhow::Result<()> {
    let ZeroShotAnalysis { split, unseen_labels, labels, documents, rows, .. } = analysis;
    session.output.line(format!(
        "{} of {labels} labels were held out of training; {documents} documents of {split} have one of them\n",
        unseen_labels.len()
    ))?;
    let pick = |row: &Row, all: bool| {
        let values = if all { &row.among_all } else { &row.among_unseen };
        METRICS.map(|metric| four_decimals(values.get(metric).copied()))
    };
    for (title, all) in [("among labels held out", false), ("among all labels", true)] {
        let mut table = Table::new(1, std::iter::once(title).chain(METRICS));
        for row in rows {
            table.row(std::iter::once(row.method.to_owned()).chain(pick(row, all)));
        }
        session.output.line(format!("{table}\n"))?;
    }
    Ok(())
}
