//! `cladist analyze layers`: how encoders use their layers, several bundles side by side.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use cladist_core::Error;
use cladist_core::bundle::write_atomically;
use cladist_core::corpus::{Split, SplitName};
use cladist_nn::analysis::layers::LayerStudy;
use cladist_nn::model::NeuralModel;
use serde::Serialize;

use super::{names, place};
use crate::args::AnalyzeLayersArgs;
use crate::commands::compare::same_documents;
use crate::commands::evaluate::load_split;
use crate::corpora::source;
use crate::error::ConfigError;
use crate::figure::{Chart, Figure, HeatMap, Lines, Panel};
use crate::model::{self, Run};
use crate::output::{Table, figure};
use crate::session::Session;

const CONVENTIONS: &str = "
mean over the tokens of a document, special ones included, then over documents; of a document in windows, the first
distance: arccos(cos)/π between the [CLS] vectors of two layers, 0 to 1
KL and entropy in nats; KL(row ‖ column) and entropy of attention averaged over heads; head KL over ordered pairs of heads";

/// What is written and, with `--json`, printed.
#[derive(Debug, Serialize)]
struct Analysis {
    split: SplitName,
    bundles: Vec<Studied>,
}

/// One bundle.
#[derive(Debug, Serialize)]
struct Studied {
    /// As typed.
    bundle: String,
    /// As figures and tables call it.
    name: String,
    head: String,
    #[serde(flatten)]
    study: LayerStudy,
}

/// A bundle with the documents that go through it.
struct Opened {
    run: Run,
    network: Arc<NeuralModel>,
    split: Split,
}

/// Studies the layers of bundles.
pub(super) fn run(args: &AnalyzeLayersArgs, session: &Session) -> anyhow::Result<()> {
    let opened = open(args, session)?;
    let Some(first) = opened.first() else { bail!(ConfigError::Missing("no bundle given".to_owned())) };
    let (split, out) = (first.split.name, place(args.out.as_deref(), &first.run));
    let mut bundles = Vec::new();
    for ((Opened { run, network, split }, path), name) in
        opened.into_iter().zip(&args.bundles).zip(names(&args.bundles))
    {
        let job = session.job();
        job.progress.stage(&name, split.documents.len() as u64);
        let normalise = run.model.pipeline.normalise;
        let texts = split.documents.iter().map(|document| normalise.apply(&document.text));
        let study = network.study_layers(texts, &job)?;
        let head = run.model.config.head().to_owned();
        bundles.push(Studied { bundle: path.display().to_string(), name, head, study });
    }
    session.bars.clear();
    let analysis = Analysis { split, bundles };
    if args.json {
        session.output.json(&analysis)?;
    } else {
        print(&analysis, session)?;
    }
    save(&out, &analysis)?;
    session.output.note(format!("\nfigures and layers.json: {}", out.display()));
    Ok(())
}

/// Opens everything, so that what cannot be used is refused before the work begins.
fn open(args: &AnalyzeLayersArgs, session: &Session) -> anyhow::Result<Vec<Opened>> {
    let mut opened: Vec<Opened> = Vec::new();
    for path in &args.bundles {
        let run = model::open(path, session)?;
        let Some(network) = run.model.network.clone() else {
            bail!(ConfigError::Missing(format!(
                "`{}` is a linear model (`{}`) and has no layers\nhint: give a run that was trained with `--encoder`",
                path.display(),
                run.model.config.head()
            )));
        };
        let name = match (&args.split, opened.first()) {
            (Some(name), _) => name.clone(),
            (None, Some(first)) => first.split.name.to_string(),
            (None, None) => default_split(&run, args)?.to_string(),
        };
        let (mut split, _) = load_split(&run, &args.corpus, &args.bad_lines, &name, session)?;
        if let Some(limit) = args.limit {
            split.documents.truncate(limit.get());
        }
        if split.documents.iter().any(|document| document.features.is_some()) {
            bail!(ConfigError::Missing(format!(
                "`{}` reads text, but the corpus has features only",
                path.display()
            )));
        }
        if let Some(first) = opened.first() {
            same_documents(&first.split, &split)?;
        }
        opened.push(Opened { run, network, split });
    }
    Ok(opened)
}

/// Dev, unless only test has files.
fn default_split(run: &Run, args: &AnalyzeLayersArgs) -> anyhow::Result<SplitName> {
    let source = source(&args.corpus, run.source.clone())?;
    let has = |split: SplitName| !source.files(split).is_empty();
    Ok(if !has(SplitName::Dev) && has(SplitName::Test) { SplitName::Test } else { SplitName::Dev })
}

/// Prints the tables: layers of all bundles side by side, then the matrices of each.
fn print(analysis: &Analysis, session: &Session) -> anyhow::Result<()> {
    let Analysis { split, bundles } = analysis;
    let n_documents = bundles.first().map_or(0, |bundle| bundle.study.n_documents);
    session.output.line(format!("layers on {split}: {n_documents} documents\n"))?;
    let heads = |measure: &str| -> Vec<String> {
        let head = |bundle: &Studied| match bundles.len() {
            1 => measure.to_owned(),
            _ => format!("{measure}: {}", bundle.name),
        };
        bundles.iter().map(head).collect()
    };
    let columns = [vec!["layer".to_owned()], heads("entropy"), heads("head KL")].concat();
    let mut table = Table::new(1, columns);
    let n_layers = bundles.iter().map(|bundle| bundle.study.n_layers).max().unwrap_or(0);
    for layer in 0..n_layers {
        // A shallower encoder has no such layer.
        let entropy = |bundle: &Studied| figure(bundle.study.entropy.get(layer).copied());
        let head_kl = |bundle: &Studied| {
            figure(bundle.study.head_kl.as_ref().and_then(|values| values.get(layer)).copied())
        };
        let mut row = vec![(layer + 1).to_string()];
        row.extend(bundles.iter().map(entropy));
        row.extend(bundles.iter().map(head_kl));
        table.row(row);
    }
    session.output.line(&table)?;
    for bundle in bundles {
        for (title, values) in [
            ("distance of [CLS] vectors", &bundle.study.distance),
            ("KL(row ‖ column) of attention", &bundle.study.attention_kl),
        ] {
            session.output.line(format!("\n{title}: {}\n{}", bundle.name, matrix(values)))?;
        }
    }
    session.output.note(CONVENTIONS);
    Ok(())
}

fn matrix(values: &[Vec<f64>]) -> Table {
    let numbers = (1..=values.len()).map(|n| n.to_string());
    let mut table = Table::new(1, std::iter::once("layer".to_owned()).chain(numbers));
    for (n, row) in values.iter().enumerate() {
        let cells = row.iter().map(|value| format!("{value:.3}"));
        table.row(std::iter::once((n + 1).to_string()).chain(cells));
    }
    table
}

fn save(folder: &Path, analysis: &Analysis) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
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
