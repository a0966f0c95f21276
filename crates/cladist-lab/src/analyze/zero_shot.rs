//! `cladist analyze zero-shot`: what a model makes of labels that were held out of its training, beside labels by the
//! nearest description and labels at random.

use std::collections::BTreeMap;

use anyhow::bail;
use cladist_core::bundle::write_atomically;
use cladist_core::corpus::{self, SplitName};
use cladist_core::metrics;
use cladist_core::{Classifier, LabelCounts, LabelId, LabelSet, Request, Scores, Taxonomy};
use cladist_nn::analysis::nearest::nearest_descriptions;
use cladist_nn::device;
use cladist_nn::source::EncoderSource;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::place;
use crate::args::AnalyzeZeroShotArgs;
use crate::config::Recipe;
use crate::corpora::{Rejects, source, with_bad_lines};
use crate::error::ConfigError;
use crate::model;
use crate::output::{Table, figure};
use crate::session::Session;

/// What is shown.
const METRICS: [&str; 4] = ["p@1", "r@5", "ndcg@5", "r-precision-micro"];
/// Rankings at random whose figures are averaged.
const DRAWS: u64 = 20;

/// What is written and, with `--json`, printed.
#[derive(Debug, Serialize)]
struct Analysis {
    bundle: String,
    split: SplitName,
    /// Labels of the corpus that the model was not trained with.
    unseen_labels: Vec<String>,
    /// All labels.
    labels: usize,
    /// Documents that have one of them.
    documents: usize,
    rows: Vec<Row>,
}

/// How one way of scoring does.
#[derive(Debug, Serialize)]
struct Row {
    method: &'static str,
    /// With nothing but unseen labels to choose from.
    among_unseen: BTreeMap<String, f64>,
    /// With all labels to choose from; unseen ones are the right ones.
    among_all: BTreeMap<String, f64>,
}

/// Documents with unseen labels.
struct Unseen<'a> {
    taxonomy: &'a Taxonomy,
    labels: LabelSet,
    /// What of each document's labels is unseen.
    gold: Vec<LabelSet>,
}

/// Measures a model on labels that it has not met.
pub(super) fn run(args: &AnalyzeZeroShotArgs, session: &Session) -> anyhow::Result<()> {
    let remembered = model::open(&args.bundle, session)?;
    let source = source(&args.corpus, remembered.source.clone())?;
    let mut config = remembered.model.config.common.data.clone();
    config.hold_out_labels = 0.0;
    let mut rejects = Rejects::new(&args.bad_lines.path());
    let (corpus, _) = with_bad_lines(args.bad_lines.skip_bad, &mut rejects, |bad| {
        corpus::load(&source, &config, bad, &session.job())
    })?;
    rejects.tell(session);
    let taxonomy = &corpus.taxonomy;
    let known = remembered.model.taxonomy();
    let labels: LabelSet =
        taxonomy.labels().filter(|&label| known.get(taxonomy.id(label)).is_none()).collect();
    if labels.is_empty() {
        bail!(ConfigError::Missing(
            "the model was trained with every label of the corpus\n\
             hint: hold some out of training with `--set data.hold_out_labels=0.2`"
                .to_owned()
        ));
    }
    drop(remembered);
    let wider = model::open_extended(&args.bundle, session, |known| Ok(known.extended(taxonomy)?))?;
    let name = if corpus.test.is_some() { SplitName::Test } else { SplitName::Dev };
    let name = args.split.as_deref().map_or(Ok(name), str::parse).map_err(|_| {
        let known = SplitName::ALL.map(|name| name.to_string()).join(", ");
        ConfigError::UnknownChoice { what: "split", name: args.split.clone().unwrap_or_default(), known }
    })?;
    let Some(split) = corpus.split(name) else { bail!(corpus::CorpusError::MissingSplit(name)) };
    let has = |gold: &&LabelSet| gold.iter().any(|&label| labels.contains(label));
    let chosen = split.documents.iter().zip(&split.gold).filter(|(_, gold)| has(gold));
    let (documents, gold): (Vec<_>, Vec<_>) = chosen.map(|(document, gold)| (document.clone(), gold)).unzip();
    if documents.is_empty() {
        bail!(ConfigError::Missing(format!("no document of {name} has a label that was held out")));
    }
    let gold =
        gold.iter().map(|gold| gold.iter().copied().filter(|&l| labels.contains(l)).collect()).collect();
    let unseen = Unseen { taxonomy, labels, gold };

    let job = session.job();
    job.progress.stage("score", documents.len() as u64);
    let request = Request { job: job.clone(), ..Request::default() };
    let scores = wider.model.pipeline.score(&documents, &request)?;
    let scores = renumbered(&scores, wider.model.taxonomy(), taxonomy);
    let mut rows = vec![unseen.row("the model", std::slice::from_ref(&scores))?];
    match &wider.model.config.recipe {
        Recipe::Neural(recipe) if !recipe.encoder.starts_with("scratch:") => {
            job.progress.stage("nearest descriptions", documents.len() as u64);
            let encoder = EncoderSource::parse(&recipe.encoder)?;
            let device = device::parse(&session.device)?;
            match nearest_descriptions(&encoder, &recipe.tokens, &documents, taxonomy, &device, &job) {
                Ok(scores) => rows.push(unseen.row("nearest description", &[scores])?),
                Err(error) => {
                    session.output.warn(format!("no nearest descriptions, as the encoder is gone: {error}"));
                }
            }
        }
        _ => session.output.note("a new encoder knows nothing of descriptions, so none is nearest"),
    }
    let random: Vec<Scores> = (0..DRAWS).map(|draw| at_random(taxonomy, documents.len(), draw)).collect();
    rows.push(unseen.row("at random", &random)?);
    session.bars.clear();

    let analysis = Analysis {
        bundle: args.bundle.display().to_string(),
        split: name,
        unseen_labels: unseen.labels.iter().map(|&label| taxonomy.id(label).to_owned()).collect(),
        labels: taxonomy.n_labels(),
        documents: documents.len(),
        rows,
    };
    if args.json {
        session.output.json(&analysis)?;
    } else {
        print(&analysis, session)?;
    }
    let out = place(args.out.as_deref(), &wider);
    std::fs::create_dir_all(&out).map_err(cladist_core::Error::io("create", &out))?;
    write_atomically(&out.join("zero-shot.json"), &serde_json::to_vec_pretty(&analysis)?)?;
    session.output.note(format!("\nzero-shot.json: {}", out.display()));
    Ok(())
}

impl Unseen<'_> {
    /// The means over one or several scorings.
    fn row(&self, method: &'static str, scorings: &[Scores]) -> anyhow::Result<Row> {
        let mut row = Row { method, among_unseen: BTreeMap::new(), among_all: BTreeMap::new() };
        for scores in scorings {
            let is_unseen = |&&(label, _): &&(LabelId, f32)| self.labels.contains(label);
            let narrowed = scores.rows().map(|row| row.iter().filter(is_unseen).copied().collect());
            for (scores, means) in
                [(&Scores::from_rows(narrowed), &mut row.among_unseen), (scores, &mut row.among_all)]
            {
                let counts = LabelCounts::of(&[], self.taxonomy.n_labels());
                let predicted = vec![LabelSet::default(); self.gold.len()];
                let options = metrics::MetricOptions::default();
                let job = cladist_core::Job::silent();
                let report = metrics::evaluate(
                    scores,
                    &predicted,
                    &self.gold,
                    self.taxonomy,
                    &counts,
                    &options,
                    &job,
                )?;
                for metric in METRICS {
                    let value = report.metrics.get(metric).copied().unwrap_or(f64::NAN);
                    *means.entry(metric.to_owned()).or_default() += value;
                }
            }
        }
        for mean in row.among_unseen.values_mut().chain(row.among_all.values_mut()) {
            *mean /= scorings.len() as f64;
        }
        Ok(row)
    }
}

/// Scores by the labels of another taxonomy.
fn renumbered(scores: &Scores, from: &Taxonomy, to: &Taxonomy) -> Scores {
    let new = |&(label, score): &(LabelId, f32)| to.get(from.id(label)).map(|label| (label, score));
    Scores::from_rows(scores.rows().map(|row| row.iter().filter_map(new).collect()))
}

fn at_random(taxonomy: &Taxonomy, documents: usize, seed: u64) -> Scores {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut row = |_| taxonomy.labels().map(|label| (label, random.random::<f32>())).collect();
    Scores::from_rows((0..documents).map(&mut row))
}

fn print(analysis: &Analysis, session: &Session) -> anyhow::Result<()> {
    let Analysis { split, unseen_labels, labels, documents, rows, .. } = analysis;
    session.output.line(format!(
        "{} of {labels} labels were held out of training; {documents} documents of {split} have one of them\n",
        unseen_labels.len()
    ))?;
    let pick = |row: &Row, all: bool| {
        let values = if all { &row.among_all } else { &row.among_unseen };
        METRICS.map(|metric| figure(values.get(metric).copied()))
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
