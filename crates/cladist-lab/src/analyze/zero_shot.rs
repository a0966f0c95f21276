//! What a model makes of labels that were held out of its training, beside labels by the
//! nearest description and labels at random.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cladist::config::Recipe;
use cladist::corpus::CorpusSource;
use cladist::{BadLinePolicy, ErrorKind, Event, Model, OpenOptions, Work};
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
use crate::error::{LabError, Result};

/// What is shown.
pub const METRICS: [&str; 4] = ["p@1", "r@5", "ndcg@5", "r-precision-micro"];
/// Rankings at random whose figures are averaged.
const DRAWS: u64 = 20;

/// The result, as it is written.
#[derive(Debug, Serialize)]
pub struct ZeroShotAnalysis {
    /// The model.
    pub bundle: String,
    /// The documents.
    pub split: SplitName,
    /// Labels of the corpus that the model was not trained with.
    pub unseen_labels: Vec<String>,
    /// All labels.
    pub labels: usize,
    /// Documents that have one of them.
    pub documents: usize,
    /// Ways of scoring.
    pub rows: Vec<Row>,
    /// Where `zero-shot.json` is.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// How one way of scoring does.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub method: &'static str,
    /// With nothing but unseen labels to choose from.
    pub among_unseen: BTreeMap<String, f64>,
    /// With all labels to choose from; unseen ones are the right ones.
    pub among_all: BTreeMap<String, f64>,
}

/// Documents with unseen labels.
struct Unseen<'a> {
    taxonomy: &'a Taxonomy,
    labels: LabelSet,
    /// What of each document's labels is unseen.
    gold: Vec<LabelSet>,
}

/// What is studied, and on which documents.
pub struct ZeroShotOptions<'a> {
    /// From the corpus that the run folder remembers to the one that is read.
    pub files: &'a dyn Fn(Option<&CorpusSource>) -> cladist::Result<CorpusSource>,
    /// What becomes of lines that cannot be read.
    pub bad_lines: BadLinePolicy,
    /// Which split; test, or dev if the corpus has no test.
    pub split: Option<SplitName>,
    /// Folder for `zero-shot.json`; `analysis` in the run folder, or here.
    pub out: Option<&'a Path>,
    /// Who watches, and when to stop.
    pub work: Work<'a>,
}

/// Measures a model on labels that it has not met, and writes `zero-shot.json`.
pub fn run(path: &Path, options: &ZeroShotOptions<'_>, open: &OpenOptions) -> Result<ZeroShotAnalysis> {
    let work = &options.work;
    let job = work.job();
    let remembered = Model::open(path, open)?;
    let source = (options.files)(remembered.source())?;
    let mut config = remembered.config().common.data.clone();
    config.hold_out_labels = 0.0;
    let ((corpus, _), _) = options.bad_lines.apply(work, |bad| corpus::load(&source, &config, bad, &job))?;
    let taxonomy = &corpus.taxonomy;
    let known = remembered.taxonomy();
    let labels: LabelSet =
        taxonomy.labels().filter(|&label| known.get(taxonomy.id(label)).is_none()).collect();
    if labels.is_empty() {
        return Err(LabError::NothingHeldOut);
    }
    drop(remembered);
    let wider = Model::open_extended(path, open, |known| Ok(known.extended(taxonomy)?))?;
    let name = if corpus.test.is_some() { SplitName::Test } else { SplitName::Dev };
    let name = options.split.unwrap_or(name);
    let split = corpus.split(name).ok_or(corpus::CorpusError::MissingSplit(name))?;
    let has = |gold: &&LabelSet| gold.iter().any(|&label| labels.contains(label));
    let chosen = split.documents.iter().zip(&split.gold).filter(|(_, gold)| has(gold));
    let (documents, gold): (Vec<_>, Vec<_>) = chosen.map(|(document, gold)| (document.clone(), gold)).unzip();
    if documents.is_empty() {
        return Err(LabError::NoUnseenDocument(name));
    }
    let gold =
        gold.iter().map(|gold| gold.iter().copied().filter(|&l| labels.contains(l)).collect()).collect();
    let unseen = Unseen { taxonomy, labels, gold };

    job.progress.stage("score", documents.len() as u64);
    let request = Request { job: job.clone(), ..Request::default() };
    let scores = wider.score(&documents, &request)?;
    let scores = renumbered(&scores, wider.taxonomy(), taxonomy);
    let mut rows = vec![unseen.row("the model", std::slice::from_ref(&scores))?];
    match &wider.config().recipe {
        Recipe::Neural(recipe) if !recipe.encoder.starts_with("scratch:") => {
            job.progress.stage("nearest descriptions", documents.len() as u64);
            let encoder = EncoderSource::parse(&recipe.encoder)?;
            let device = device::parse(&open.device)?;
            let nearest = nearest_descriptions(&encoder, &recipe.tokens, &documents, taxonomy, &device, &job);
            if let Some(scores) = found(nearest, work)? {
                rows.push(unseen.row("nearest description", &[scores])?);
            }
        }
        _ => work
            .tell(&Event::Note("a new encoder knows nothing of descriptions, so none is nearest".to_owned())),
    }
    let random: Vec<Scores> = (0..DRAWS).map(|draw| at_random(taxonomy, documents.len(), draw)).collect();
    rows.push(unseen.row("at random", &random)?);

    let folder = place(options.out, &wider);
    let analysis = ZeroShotAnalysis {
        bundle: path.display().to_string(),
        split: name,
        unseen_labels: unseen.labels.iter().map(|&label| taxonomy.id(label).to_owned()).collect(),
        labels: taxonomy.n_labels(),
        documents: documents.len(),
        rows,
        folder,
    };
    let folder = &analysis.folder;
    std::fs::create_dir_all(folder).map_err(LabError::io("create", folder))?;
    write_atomically(&folder.join("zero-shot.json"), &serde_json::to_vec_pretty(&analysis)?)?;
    Ok(analysis)
}

/// Scores by an encoder that may be gone since; then there is a warning in their place.
fn found(scores: cladist_nn::Result<Scores>, work: &Work<'_>) -> Result<Option<Scores>> {
    match scores {
        Ok(scores) => Ok(Some(scores)),
        Err(error) if error.kind() == ErrorKind::Cancelled => Err(error.into()),
        Err(error) => {
            let text = format!("no nearest descriptions, as the encoder is gone: {error}");
            work.tell(&Event::Warning(text));
            Ok(None)
        }
    }
}

impl Unseen<'_> {
    /// The means over one or several scorings.
    fn row(&self, method: &'static str, scorings: &[Scores]) -> Result<Row> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_encoder_is_a_warning_and_a_stop_is_none() {
        let work = Work::default();
        assert!(found(Ok(Scores::new()), &work).unwrap().is_some());
        let gone = EncoderSource::parse("/no/such/folder").map(|_| Scores::new());
        assert!(found(gone, &work).unwrap().is_none());
        let stopped = found(Err(cladist_core::Error::Cancelled.into()), &work).unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Cancelled);
    }
}
