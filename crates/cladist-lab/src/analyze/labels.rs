//! `cladist analyze labels`: the vectors of labels in a model's output layer, on a plane.

mod show;

use std::cmp::Reverse;
use std::path::Path;

use anyhow::bail;
use cladist_core::project::{Gram, Nearest, Point, TsneConfig, nearest, pca, siblings, tsne};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{Classifier, LabelId, Taxonomy};
use serde::Serialize;

use super::{names, place};
use crate::args::{AnalyzeLabelsArgs, PlaneMethod};
use crate::config::Recipe;
use crate::error::ConfigError;
use crate::model::{self, Model, Run, bundle_of, member, settings_of};
pub use crate::results::{Placed, Plane, Projected};
use crate::session::Session;

/// Labels that are shown at most: what is worked out grows with their square.
const MOST: usize = 5_000;
/// Labels that a plane needs.
const FEWEST: usize = 3;

/// What is written and, with `--json`, printed.
#[derive(Debug, Serialize)]
struct Analysis {
    bundles: Vec<Projected>,
}

/// Vectors of the labels that are shown.
struct Chosen {
    labels: Vec<LabelId>,
    vectors: Vec<SparseRow>,
    n_untrained: usize,
    n_left_out: usize,
}

/// Brings the labels of bundles to the plane.
pub(super) fn run(args: &AnalyzeLabelsArgs, session: &Session) -> anyhow::Result<()> {
    if args.method == PlaneMethod::Pca && args.perplexity.is_some() {
        bail!(ConfigError::Missing("`--perplexity` is for `--method tsne`".to_owned()));
    }
    let mut opened: Vec<(Run, Chosen)> = Vec::new();
    for path in &args.bundles {
        let run = model::open(path, session)?;
        let chosen = choose(&run.model, path)?;
        opened.push((run, chosen));
    }
    let Some((first, _)) = opened.first() else { bail!(ConfigError::Missing("no bundle given".to_owned())) };
    let out = place(args.out.as_deref(), first);
    let mut bundles = Vec::new();
    for (((run, chosen), path), name) in opened.into_iter().zip(&args.bundles).zip(names(&args.bundles)) {
        bundles.push(project(&run.model, chosen, path, name, args, session)?);
    }
    session.bars.clear();
    let analysis = Analysis { bundles };
    if args.json {
        session.output.json(&analysis)?;
    } else {
        show::print(&analysis, session)?;
    }
    show::save(&out, &analysis)?;
    session.output.note(format!("\nfigures, pages and labels.json: {}", out.display()));
    Ok(())
}

/// The trained labels of a model with their vectors, the most frequent first.
fn choose(model: &Model, path: &Path) -> anyhow::Result<Chosen> {
    let Some(mut vectors) = model.pipeline.label_vectors() else { bail!(no_vectors(model, path)?) };
    if vectors.iter().flatten().any(|(_, weight)| !weight.is_finite()) {
        bail!(ConfigError::Missing(format!(
            "`{}` has weights that are no numbers\nhint: its training diverged; train it again with a lower learning rate",
            path.display()
        )));
    }
    let is_trained = |label: &LabelId| {
        model.counts.counts[label.index()] > 0
            && vectors[label.index()].iter().any(|(_, weight)| *weight != 0.0)
    };
    let mut labels = model.taxonomy().by_frequency(&model.counts);
    let n_all = labels.len();
    labels.retain(is_trained);
    let n_trained = labels.len();
    if n_trained < FEWEST {
        bail!(ConfigError::Missing(format!(
            "`{}` has {n_trained} trained labels of {n_all}, and a plane needs at least {FEWEST}",
            path.display()
        )));
    }
    labels.truncate(MOST);
    let vectors = labels.iter().map(|label| std::mem::take(&mut vectors[label.index()])).collect();
    Ok(Chosen { n_untrained: n_all - n_trained, n_left_out: n_trained - labels.len(), labels, vectors })
}

/// Why a model has no vectors of labels, and what to do.
fn no_vectors(model: &Model, path: &Path) -> anyhow::Result<ConfigError> {
    let (head, place) = (model.config.head(), path.display());
    Ok(ConfigError::Missing(match &model.config.recipe {
        Recipe::Mixed(mixed) => {
            let members = (0..mixed.members.len()).map(|n| {
                let folder = bundle_of(path).join(member(n));
                Ok(format!("`{}` ({})", folder.display(), settings_of(&folder)?.head()))
            });
            let members: Vec<String> = members.collect::<anyhow::Result<_>>()?;
            format!(
                "`{place}` is made of models (`{head}`) and has no vectors of labels\nhint: give one of its members: {}",
                members.join(", ")
            )
        }
        Recipe::Linear(_) | Recipe::Neural(_) => format!(
            "`{place}` (`{head}`) has no vector for each label: trees of labels decide step by step\n\
             hint: give a run of the head `svm`, or one that was trained with `--encoder`"
        ),
    }))
}

fn project(
    model: &Model,
    chosen: Chosen,
    path: &Path,
    name: String,
    args: &AnalyzeLabelsArgs,
    session: &Session,
) -> anyhow::Result<Projected> {
    let Chosen { labels, vectors, n_untrained, n_left_out } = chosen;
    let (job, taxonomy) = (session.job(), model.taxonomy());
    let preset = TsneConfig::default();
    let config = TsneConfig { perplexity: args.perplexity.unwrap_or(preset.perplexity), ..preset };
    let steps = if args.method == PlaneMethod::Tsne { config.iterations as u64 } else { 0 };
    job.progress.stage(&name, steps);
    let directions = Gram::of_directions(&vectors);
    drop(vectors);
    let siblings = siblings(&directions, &labels, taxonomy);
    let nearest = nearest(&directions);
    let (points, plane) = match args.method {
        PlaneMethod::Pca => {
            let found = pca(&directions);
            (found.points, Plane::Pca { variance: found.shares })
        }
        PlaneMethod::Tsne => {
            let found = tsne(directions, &config, &job)?;
            (found.points, Plane::Tsne { kl: found.kl, perplexity: found.perplexity })
        }
    };
    let branches = branches(taxonomy, &labels);
    let placed = |(&label, ([x, y], nearest)): (&LabelId, (Point, Option<Nearest>))| {
        let other = nearest.map(|nearest| labels[nearest.other]);
        Placed {
            id: taxonomy.id(label).to_owned(),
            name: taxonomy.name(label).to_owned(),
            branch: branches.of[label.index()],
            train: model.counts.counts[label.index()],
            x,
            y,
            nearest: other.map_or_else(String::new, |other| taxonomy.name(other).to_owned()),
            cosine: nearest.map_or(0.0, |nearest| nearest.cosine),
            relation: other.and_then(|other| relation(taxonomy, label, other)),
        }
    };
    Ok(Projected {
        bundle: path.display().to_string(),
        name,
        head: model.config.head().to_owned(),
        plane,
        siblings,
        n_labels: labels.len(),
        n_untrained,
        n_left_out,
        branches: branches.tops.iter().map(|&top| taxonomy.name(top).to_owned()).collect(),
        labels: labels.iter().zip(points.into_iter().zip(nearest)).map(placed).collect(),
    })
}

/// Branches of a taxonomy, and which of them each label is in.
struct Branches {
    tops: Vec<LabelId>,
    of: Vec<Option<usize>>,
}

/// The branches that have some of these labels, those with most first; none without a hierarchy.
fn branches(taxonomy: &Taxonomy, labels: &[LabelId]) -> Branches {
    if taxonomy.n_levels() < 2 {
        return Branches { tops: Vec::new(), of: vec![None; taxonomy.n_labels()] };
    }
    let of = taxonomy.tops();
    let mut counts = vec![0usize; taxonomy.n_labels()];
    labels.iter().for_each(|label| counts[of[label.index()].index()] += 1);
    let mut tops: Vec<LabelId> = taxonomy.labels().filter(|top| counts[top.index()] > 0).collect();
    tops.sort_by_key(|top| Reverse(counts[top.index()]));
    let mut numbers = vec![None; taxonomy.n_labels()];
    tops.iter().enumerate().for_each(|(number, top)| numbers[top.index()] = Some(number));
    Branches { of: of.into_iter().map(|top| numbers[top.index()]).collect(), tops }
}

/// What another label is to a label, if they are close in the taxonomy.
fn relation(taxonomy: &Taxonomy, label: LabelId, other: LabelId) -> Option<&'static str> {
    let (above, beside) = (taxonomy.parents(label), taxonomy.parents(other));
    if above.contains(&other) {
        Some("parent")
    } else if beside.contains(&label) {
        Some("child")
    } else {
        above.iter().any(|parent| beside.contains(parent)).then_some("sibling")
    }
}
