//! `cladist analyze labels`: the vectors of labels in a model's output layer, on a plane.

use cladist::results::{Plane, four_decimals};
use cladist_lab::analyze::labels::{self, LabelAnalysis, PlaneMethod};

use crate::args::{AnalyzeLabelsArgs, PlaneMethod as MethodArg};
use crate::error::Usage;
use crate::output::Table;
use crate::session::Session;

/// Brings the labels of bundles to the plane.
pub(super) fn run(args: &AnalyzeLabelsArgs, session: &Session) -> anyhow::Result<()> {
    let method = match args.method {
        MethodArg::Pca if args.perplexity.is_some() => {
            return Err(Usage::Needs { flag: "--perplexity", needs: "--method tsne" }.into());
        }
        MethodArg::Pca => PlaneMethod::Pca,
        MethodArg::Tsne => PlaneMethod::Tsne { perplexity: args.perplexity },
    };
    let analysis = labels::run(&args.bundles, method, args.out.as_deref(), &session.open(), &session.work())?;
    session.view.clear();
    if args.json {
        session.output.json(&analysis)?;
    } else {
        print(&analysis, session)?;
    }
    session.output.note(format!("\nfigures, pages and labels.json: {}", analysis.folder.display()));
    Ok(())
}

const CONVENTIONS: &str = "
vectors are scaled to length 1: only directions are compared
siblings: the share of labels whose nearest label at their level, by cosine in all dimensions, has a parent in common with them;
chance: the same if the nearest was any label of that level; over labels that have siblings and others there";

/// A row for each bundle, then what was left out.
fn print(analysis: &LabelAnalysis, session: &Session) -> anyhow::Result<()> {
    let quality: &[&str] = match analysis.bundles.first().map(|bundle| &bundle.plane) {
        Some(Plane::Tsne { .. }) => &["KL"],
        _ => &["first axis", "second axis"],
    };
    let heads = [&["bundle", "head", "labels"], quality, &["siblings", "chance", "over"]].concat();
    let mut table = Table::new(2, heads);
    for bundle in &analysis.bundles {
        let mut row = vec![bundle.name.clone(), bundle.head.clone(), bundle.n_labels.to_string()];
        match &bundle.plane {
            Plane::Pca { variance } => row.extend(variance.map(|share| four_decimals(Some(share)))),
            Plane::Tsne { kl, .. } => row.push(four_decimals(Some(*kl))),
        }
        let siblings = bundle.siblings.as_ref();
        row.push(four_decimals(siblings.map(|siblings| siblings.share)));
        row.push(four_decimals(siblings.map(|siblings| siblings.chance)));
        row.push(siblings.map_or(0, |siblings| siblings.n_labels).to_string());
        table.row(row);
    }
    session.output.line(&table)?;
    session.output.note(CONVENTIONS);
    for bundle in &analysis.bundles {
        for line in bundle.left_out() {
            session.output.note(format!("{}: {line}", bundle.name));
        }
    }
    Ok(())
}
