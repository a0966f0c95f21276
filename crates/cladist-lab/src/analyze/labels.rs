//! The vectors of labels in a model's output layer, on a plane.

mod show;

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use cladist::config::Recipe;
use cladist::names::short_names;
use cladist::results::{Placed, Plane, Projected};
use cladist::{Model, OpenOptions, RunConfig, Work};
use cladist_core::project::{Gram, Nearest, Point, TsneConfig, nearest, pca, siblings, tsne};
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{Classifier, LabelId, Taxonomy, bundle};
use serde::Serialize;

use super::place;
use crate::error::{LabError, Result};

/// Labels that are shown at most: what is worked out grows with their square.
const MOST: usize = 5_000;
/// Labels that a plane needs.
const FEWEST: usize = 3;

/// The result, as it is written.
#[derive(Debug, Serialize)]
pub struct LabelAnalysis {
    /// The models.
    pub bundles: Vec<Projected>,
    /// Where figures, pages and `labels.json` are.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// How vectors come to the plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlaneMethod {
    /// Principal components: the plane on which vectors differ most.
    Pca,
    /// t-SNE: neighbours stay neighbours, distances between groups say little.
    Tsne {
        /// About how many neighbours a label attends to; 30 if not given.
        perplexity: Option<f64>,
    },
}

/// Vectors of the labels that are shown.
struct Chosen {
    labels: Vec<LabelId>,
    vectors: Vec<SparseRow>,
    n_untrained: usize,
    n_left_out: usize,
}

/// Brings the labels of models to the plane, and writes figures, pages and `labels.json`: into `out`, or `analysis` in the
/// first run folder, or here.
pub fn run(
    paths: &[PathBuf],
    method: PlaneMethod,
    out: Option<&Path>,
    open: &OpenOptions,
    work: &Work<'_>,
) -> Result<LabelAnalysis> {
    let mut opened: Vec<(Model, Chosen)> = Vec::new();
    for path in paths {
        let model = Model::open(path, open)?;
        let chosen = choose(&model)?;
        opened.push((model, chosen));
    }
    let (first, _) = opened.first().ok_or(LabError::NoBundle)?;
    let folder = place(out, first);
    let mut bundles = Vec::new();
    for ((model, chosen), name) in opened.into_iter().zip(short_names(paths)) {
        bundles.push(project(&model, chosen, name, method, work)?);
    }
    let analysis = LabelAnalysis { bundles, folder };
    show::save(&analysis)?;
    Ok(analysis)
}

/// The trained labels of a model with their vectors, the most frequent first.
fn choose(model: &Model) -> Result<Chosen> {
    let Some(mut vectors) = model.label_vectors() else { return Err(no_vectors(model)?) };
    if vectors.iter().flatten().any(|(_, weight)| !weight.is_finite()) {
        return Err(LabError::NotFinite(model.path().to_owned()));
    }
    let counts = &model.label_counts().counts;
    let is_trained = |label: &LabelId| {
        counts[label.index()] > 0 && vectors[label.index()].iter().any(|(_, weight)| *weight != 0.0)
    };
    let mut labels = model.taxonomy().by_frequency(model.label_counts());
    let n_all = labels.len();
    labels.retain(is_trained);
    let n_trained = labels.len();
    if n_trained < FEWEST {
        let path = model.path().to_owned();
        return Err(LabError::TooFewLabels { path, trained: n_trained, all: n_all, fewest: FEWEST });
    }
    labels.truncate(MOST);
    let vectors = labels.iter().map(|label| std::mem::take(&mut vectors[label.index()])).collect();
    Ok(Chosen { n_untrained: n_all - n_trained, n_left_out: n_trained - labels.len(), labels, vectors })
}

/// Why a model has no vectors of labels, and where there are some.
fn no_vectors(model: &Model) -> Result<LabError> {
    let (head, path) = (model.config().head(), model.path());
    let reason = match &model.config().recipe {
        Recipe::Mixed(mixed) => {
            let home = bundle::find(path)?;
            let members = (0..mixed.members.len()).map(|n| {
                let folder = home.join(format!("member-{}", n + 1));
                Ok(format!("`{}` ({})", folder.display(), RunConfig::of(&folder)?.head()))
            });
            let members: Vec<String> = members.collect::<Result<_>>()?;
            format!("it is an ensemble; give one of its members: {}", members.join(", "))
        }
        Recipe::Linear(_) | Recipe::Neural(_) => {
            "trees of labels decide step by step; give a run of the head `svm`, or one on an encoder"
                .to_owned()
        }
    };
    Ok(LabError::NoVectors { path: path.to_owned(), head, reason })
}

fn project(
    model: &Model,
    chosen: Chosen,
    name: String,
    method: PlaneMethod,
    work: &Work<'_>,
) -> Result<Projected> {
    let Chosen { labels, vectors, n_untrained, n_left_out } = chosen;
    let (job, taxonomy) = (work.job(), model.taxonomy());
    let preset = TsneConfig::default();
    let (perplexity, steps) = match method {
        PlaneMethod::Pca => (None, 0),
        PlaneMethod::Tsne { perplexity } => (perplexity, preset.iterations as u64),
    };
    let config = TsneConfig { perplexity: perplexity.unwrap_or(preset.perplexity), ..preset };
    job.progress.stage(&name, steps);
    let directions = Gram::of_directions(&vectors);
    drop(vectors);
    let siblings = siblings(&directions, &labels, taxonomy);
    let nearest = nearest(&directions);
    let (points, plane) = match method {
        PlaneMethod::Pca => {
            let found = pca(&directions);
            (found.points, Plane::Pca { variance: found.shares })
        }
        PlaneMethod::Tsne { .. } => {
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
            train: model.label_counts().counts[label.index()],
            x,
            y,
            nearest: other.map_or_else(String::new, |other| taxonomy.name(other).to_owned()),
            cosine: nearest.map_or(0.0, |nearest| nearest.cosine),
            relation: other.and_then(|other| relation(taxonomy, label, other)),
        }
    };
    Ok(Projected {
        bundle: model.path().display().to_string(),
        name,
        head: model.config().head().to_owned(),
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
