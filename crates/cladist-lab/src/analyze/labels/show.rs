//! Labels on a plane as tables, figures and pages.

use std::collections::BTreeSet;
use std::path::Path;

use cladist_core::Error;
use cladist_core::bundle::write_atomically;

use super::{Analysis, Plane, Projected};
use crate::figure::{Dot, Figure, Scatter};
use crate::html;
use crate::output::{Table, figure};
use crate::session::Session;

const CONVENTIONS: &str = "
vectors are scaled to length 1: only directions are compared
siblings: the share of labels whose nearest label at their level, by cosine in all dimensions, has a parent in common with them;
chance: the same if the nearest was any label of that level; over labels that have siblings and others there";

/// A row for each bundle, then what was left out.
pub(super) fn print(analysis: &Analysis, session: &Session) -> anyhow::Result<()> {
    let quality: &[&str] = match analysis.bundles.first().map(|bundle| &bundle.plane) {
        Some(Plane::Tsne { .. }) => &["KL"],
        _ => &["first axis", "second axis"],
    };
    let heads = [&["bundle", "head", "labels"], quality, &["siblings", "chance", "over"]].concat();
    let mut table = Table::new(2, heads);
    for bundle in &analysis.bundles {
        let mut row = vec![bundle.name.clone(), bundle.head.clone(), bundle.n_labels.to_string()];
        match &bundle.plane {
            Plane::Pca { variance } => row.extend(variance.map(|share| figure(Some(share)))),
            Plane::Tsne { kl, .. } => row.push(figure(Some(*kl))),
        }
        let siblings = bundle.siblings.as_ref();
        row.push(figure(siblings.map(|siblings| siblings.share)));
        row.push(figure(siblings.map(|siblings| siblings.chance)));
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

/// Writes `labels.json`, and a figure and a page for each bundle.
pub(super) fn save(folder: &Path, analysis: &Analysis) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    write_atomically(&folder.join("labels.json"), &serde_json::to_vec_pretty(analysis)?)?;
    for (bundle, name) in analysis.bundles.iter().zip(file_names(&analysis.bundles)) {
        let drawn = draw(bundle);
        drawn.save(folder, &name)?;
        write_atomically(
            &folder.join(format!("{name}.html")),
            html::plane(bundle, &drawn.to_svg())?.as_bytes(),
        )?;
    }
    Ok(())
}

/// Names of files that all differ, without what paths are made of.
fn file_names(bundles: &[Projected]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let file_name = |bundle: &Projected| {
        let name: String = bundle.name.chars().map(plain).collect();
        let name = format!("labels-{}", name.trim_matches(['-', '.']));
        let numbered = (2..).map(|n| format!("{name}-{n}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| taken.insert(name.clone()));
        free.unwrap_or(name)
    };
    bundles.iter().map(file_name).collect()
}

/// The picture of a bundle's labels.
fn draw(projected: &Projected) -> Figure {
    let plane = match &projected.plane {
        Plane::Pca { variance: [across, up] } => format!(
            "principal components: {:.1}% of the variance across, {:.1}% up",
            100.0 * across,
            100.0 * up
        ),
        Plane::Tsne { kl, perplexity } => {
            format!("t-SNE, perplexity {perplexity:.1}, KL {kl:.3}: far distances mean little")
        }
    };
    let most = projected.labels.iter().map(|label| label.train).max().unwrap_or(0);
    let size = |train: u32| f64::from(train).ln_1p() / f64::from(most).ln_1p();
    let points = projected.labels.iter().map(|label| Dot {
        place: [label.x, label.y],
        group: label.branch.unwrap_or(0),
        size: size(label.train),
        name: &label.name,
        title: projected.describe(label),
    });
    Scatter {
        title: &projected.title(),
        note: &format!("{plane}; size: training documents (logarithmic)"),
        kind: "branches",
        groups: projected.branches.iter().map(String::as_str).collect(),
        points: points.collect(),
    }
    .draw()
}
