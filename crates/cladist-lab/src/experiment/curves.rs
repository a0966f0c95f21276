//! What variants reach on dev while they are trained.

use std::path::Path;

use cladist::config::Recipe;
use cladist::figure::{Chart, Lines, Svg};
use cladist::results::experiment::Results;
use cladist::settings::Settings;
use cladist::{RunConfig, Summary};
use cladist_nn::train::journal::{self, Kind};

use crate::error::Result;

/// What is drawn.
const METRIC: &str = "micro-f1";

/// Draws the curves of the first run of each variant as `curves.svg`; nothing if no variant has a curve.
pub(super) fn draw(results: &Results, out: &Path) -> Result<Option<Svg>> {
    let mut curves: Vec<(&str, Vec<f64>, Vec<f64>)> = Vec::new();
    for row in &results.variants {
        let Some(run) = row.finished().next() else { continue };
        if let Some((epochs, values)) = curve(&out.join(&run.folder)) {
            curves.push((&row.name, epochs, values));
        }
    }
    if curves.is_empty() {
        return Ok(None);
    }
    let chart = Chart {
        title: "On dev while training",
        axis: "epochs",
        places: Vec::new(),
        at: curves.iter().map(|(_, epochs, _)| epochs.as_slice()).collect(),
        names: curves.iter().map(|(name, ..)| *name).collect(),
        panels: vec![Lines {
            name: "micro-F1",
            floor: 0.0,
            values: curves.iter().map(|(.., values)| Some(values.as_slice())).collect(),
        }],
    };
    let figure = chart.draw();
    figure.save(out, "curves")?;
    Ok(Some(figure.to_svg()))
}

/// Epochs and values; none for what is not trained step by step. A journal that cannot be read is no reason to lose the
/// table.
fn curve(folder: &Path) -> Option<(Vec<f64>, Vec<f64>)> {
    let config: RunConfig = Settings::read(&folder.join("config.toml")).ok()?.resolve().ok()?;
    let Recipe::Neural(recipe) = &config.recipe else { return None };
    let (records, _) = journal::read(&folder.join("metrics.jsonl")).ok()?;
    let steps = records.iter().map(|record| record.step).max()?;
    let documents = Summary::of(folder).ok()??.documents as f64;
    // Batches of so many tokens hold any number of documents: the last step ends the last epoch.
    let step = match recipe.train.batch_tokens {
        0 => (recipe.train.batch_size * recipe.train.accumulate) as f64 / documents,
        _ => recipe.train.all_epochs() as f64 / steps.max(1) as f64,
    };
    let dev = records.iter().filter(|record| record.kind == Kind::Dev);
    let points = dev.filter_map(|record| Some((record.step as f64 * step, *record.values.get(METRIC)?)));
    let (epochs, values): (Vec<f64>, Vec<f64>) = points.unzip();
    (!epochs.is_empty()).then_some((epochs, values))
}
