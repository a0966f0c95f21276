//! Labels on a plane as figures and pages.

use std::collections::BTreeSet;

use cladist::figure::{Dot, Figure, Scatter};
use cladist::html;
use cladist::results::{Plane, Projected};
use cladist_core::bundle::write_atomically;

use super::LabelAnalysis;
use crate::error::{LabError, Result};

/// Writes `labels.json`, and a figure and a page for each bundle.
pub(super) fn save(analysis: &LabelAnalysis) -> Result<()> {
    let folder = &analysis.folder;
    std::fs::create_dir_all(folder).map_err(LabError::io("create", folder))?;
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
