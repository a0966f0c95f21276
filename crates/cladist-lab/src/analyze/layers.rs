//! How encoders use their layers, several models side by side.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cladist::figure::{Chart, Figure, HeatMap, Lines, Panel};
use cladist::model::same_documents;
use cladist::names::short_names;
use cladist::{Error, Model, OpenOptions, Work};
use cladist_core::bundle::write_atomically;
use cladist_core::corpus::{Split, SplitName};
use cladist_nn::analysis::layers::LayerStudy;
use cladist_nn::model::NeuralModel;
use serde::Serialize;

use super::place;
use crate::error::{LabError, Result};

/// What is written and, as JSON, printed.
#[derive(Debug, Serialize)]
pub struct LayerAnalysis {
    /// The documents.
    pub split: SplitName,
    /// The models.
    pub bundles: Vec<Studied>,
    /// Where figures and `layers.json` are.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// One model.
#[derive(Debug, Serialize)]
pub struct Studied {
    /// As given.
    pub bundle: String,
    /// As figures and tables call it.
    pub name: String,
    /// Its head.
    pub head: String,
    /// Distances, divergence and entropy.
    #[serde(flatten)]
    pub study: LayerStudy,
}

/// A model with the documents that go through it.
struct Opened {
    model: Model,
    network: Arc<NeuralModel>,
    split: Split,
}

/// Which documents a model is studied on.
pub type ReadSplit<'a> = dyn FnMut(&Model, Option<SplitName>) -> cladist::Result<Split> + 'a;

/// Studies the layers of models and writes figures and `layers.json`: into `out`, or `analysis` in the first run folder,
/// or here. `read` gives the documents of a model: of the split named, or of the first that suits.
pub fn run(
    paths: &[PathBuf],
    read: &mut ReadSplit<'_>,
    limit: Option<NonZeroUsize>,
    out: Option<&Path>,
    open: &OpenOptions,
    work: &Work<'_>,
) -> Result<LayerAnalysis> {
    let opened = open_all(paths, read, limit, open)?;
    let first = opened.first().ok_or(LabError::NoBundle)?;
    let (split, folder) = (first.split.name, place(out, &first.model));
    let mut bundles = Vec::new();
    for (Opened { model, network, split }, name) in opened.into_iter().zip(short_names(paths)) {
        let job = work.job();
        job.progress.stage(&name, split.documents.len() as u64);
        let normalise = model.pipeline().normalise;
        let texts = split.documents.iter().map(|document| normalise.apply(&document.text));
        let study = network.study_layers(texts, &job)?;
        let head = model.config().head().to_owned();
        bundles.push(Studied { bundle: model.path().display().to_string(), name, head, study });
    }
    let analysis = LayerAnalysis { split, bundles, folder };
    save(&analysis)?;
    Ok(analysis)
}

/// Opens everything, so that what cannot be used is refused before the work begins.
fn open_all(
    paths: &[PathBuf],
    read: &mut ReadSplit<'_>,
    limit: Option<NonZeroUsize>,
    open: &OpenOptions,
) -> Result<Vec<Opened>> {
    let mut opened: Vec<Opened> = Vec::new();
    for path in paths {
        let model = Model::open(path, open)?;
        let Some(network) = model.network().cloned() else {
            return Err(LabError::NoLayers { path: path.clone(), head: model.config().head() });
        };
        let mut split = read(&model, opened.first().map(|first| first.split.name))?;
        if let Some(limit) = limit {
            split.documents.truncate(limit.get());
            split.gold.truncate(limit.get());
        }
        if split.documents.iter().any(|document| document.features.is_some()) {
            let model = format!("`{}`", path.display());
            return Err(Error::Documents { model, reads: "text", given: "features" }.into());
        }
        if let Some(first) = opened.first() {
            same_documents(&first.split, &split)?;
        }
        opened.push(Opened { model, network, split });
    }
    Ok(opened)
}

fn save(analysis: &LayerAnalysis) -> Result<()> {
    let folder = &analysis.folder;
    std::fs::create_dir_all(folder).map_err(LabError::io("create", folder))?;
    write_atomically(&folder.join("layers.json"), &serde_json::to_vec_pretty(analysis)?)?;
    for (name, figure) in figures(&analysis.bundles) {
        figure.save(folder, name)?;
    }
    Ok(())
}

fn figures(bundles: &[Studied]) -> [(&'static str, Figure); 3] {
    let map = |title: &str, values: fn(&LayerStudy) -> &Vec<Vec<f64>>| {
        let panels = bundles
            .iter()
            .map(|bundle| Panel { name: &bundle.name, values: values(&bundle.study) })
            .collect();
        HeatMap { title, axis: "layer", panels }.draw()
    };
    let entropy = Lines {
        name: "entropy of attention (nats)",
        floor: 0.0,
        values: bundles.iter().map(|bundle| Some(bundle.study.entropy.as_slice())).collect(),
    };
    let head_kl = Lines {
        name: "mean KL between heads (nats)",
        floor: 0.0,
        values: bundles.iter().map(|bundle| bundle.study.head_kl.as_deref()).collect(),
    };
    let chart = Chart {
        at: Vec::new(),
        title: "Attention by layer",
        axis: "layer",
        places: Vec::new(),
        names: bundles.iter().map(|bundle| bundle.name.as_str()).collect(),
        panels: vec![entropy, head_kl],
    };
    [
        ("distance", map("Angular distance of [CLS] vectors", |study| &study.distance)),
        ("attention-kl", map("KL(row || column) of attention (nats)", |study| &study.attention_kl)),
        ("heads", chart.draw()),
    ]
}
