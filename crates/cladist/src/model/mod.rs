//! A trained model: opened from a run folder or bundle, shared between threads, asked for labels, reasons and figures.

mod answers;
mod bundle;
mod decode;
mod evaluate;
mod explain;
mod predict;
mod stream;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cladist_core::classifier::LabelSequence;
use cladist_core::corpus::{CorpusSource, SplitName};
use cladist_core::decode::Thresholds;
use cladist_core::linear::LinearModel;
use cladist_core::pipeline::Pipeline;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{Cancel, Classifier, Document, LabelCounts, Request, Scores, Taxonomy};
use cladist_nn::model::NeuralModel;
use serde::{Deserialize, Serialize};

pub use answers::Answers;
pub(crate) use answers::{PART, Scored};
pub use decode::DecodeOptions;
pub use evaluate::{EvaluateOptions, same_documents};
pub use explain::{ExplainMethod, ExplainOptions};
pub use predict::{PredictOptions, PredictedLabel, PredictedSequence, Prediction};
pub use stream::Batch;

pub(crate) use bundle::{WEIGHTS, member, save};

use crate::config::RunConfig;
use crate::corpora::DataCard;
use crate::error::{Error, Result};
use crate::folders;
use crate::heads;
use crate::threads::Threads;

/// How a model is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// What tensors are computed on: `cpu`, or a device that the crate was built for.
    pub device: String,
    /// Threads of its own; without a number, the threads of the caller's rayon pool.
    pub threads: Option<usize>,
    /// Settings other than it was trained with, each `key=value`: those of its head and of its tokens, as far as its
    /// parameters allow.
    pub set: Vec<String>,
    /// When to stop: a model that reads descriptions of many labels takes its time.
    pub cancel: Cancel,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { device: "cpu".to_owned(), threads: None, set: Vec::new(), cancel: Cancel::default() }
    }
}

/// A trained model. Cheap to clone, `Send` and `Sync`: threads can share one.
///
/// ```no_run
/// use cladist::{Document, Model, OpenOptions, PredictOptions};
/// # fn main() -> cladist::Result<()> {
/// let model = Model::open("runs/flat", &OpenOptions::default())?;
/// let documents = [Document::from_text("1", "the scooter would not unlock")];
/// for prediction in model.predict(&documents, &PredictOptions::top_k(5))? {
///     for label in &prediction.labels {
///         println!("{} {:.2}", label.name, label.score);
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Model {
    parts: Arc<Parts>,
    threads: Threads,
    home: Arc<Home>,
}

/// What a bundle holds.
#[derive(Debug)]
pub(crate) struct Parts {
    /// How it was made.
    pub(crate) config: RunConfig,
    /// Normalisation, classifier and calibration.
    pub(crate) pipeline: Pipeline,
    /// The classifier once more if it is a network, to look inside.
    pub(crate) network: Option<Arc<NeuralModel>>,
    /// The classifier once more if it is linear.
    pub(crate) linear: Option<Arc<LinearModel>>,
    /// The thresholds that were fitted on dev, or those of the settings.
    pub(crate) thresholds: Thresholds,
    /// Label counts of its training documents.
    pub(crate) counts: LabelCounts,
    /// What it was trained on.
    pub(crate) training: TrainedOn,
}

/// Where a model comes from.
#[derive(Debug)]
struct Home {
    path: PathBuf,
    folder: Option<PathBuf>,
    source: Option<CorpusSource>,
}

/// What a model was trained on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedOn {
    /// Splits that it has seen: no measure of it.
    pub splits: Vec<SplitName>,
    /// Whether documents came as features rather than text.
    pub features: bool,
}

impl Model {
    /// Opens a run folder or a bundle, checking every file.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        Self::open_as(path.as_ref(), options, None)
    }

    /// The same with more labels: `extend` makes a taxonomy of the model's own. The head must score labels by their
    /// descriptions.
    pub fn open_extended(
        path: impl AsRef<Path>,
        options: &OpenOptions,
        mut extend: impl FnMut(&Taxonomy) -> Result<Taxonomy> + Send,
    ) -> Result<Self> {
        Self::open_as(path.as_ref(), options, Some(&mut extend))
    }

    fn open_as(path: &Path, options: &OpenOptions, extend: Option<&mut bundle::Extend<'_>>) -> Result<Self> {
        folders::check_exists(path)?;
        options.cancel.check()?;
        if !options.set.is_empty() {
            let head = RunConfig::of(path)?.head();
            options.set.iter().try_for_each(|change| check_change(change, head))?;
        }
        let threads = Threads::new(options.threads)?;
        let bundle = cladist_core::bundle::find(path)?;
        let parts = threads.run(|| bundle::load(&bundle, options, &options.set, extend))?;
        let in_run = bundle != path;
        let card = path.join(folders::DATA);
        let source = if in_run && card.exists() {
            let bytes = std::fs::read(&card).map_err(Error::io("read", &card))?;
            let card: DataCard =
                serde_json::from_slice(&bytes).map_err(|error| Error::damaged(&card, error))?;
            Some(card.source).filter(|source| *source != CorpusSource::default())
        } else {
            None
        };
        let home = Home { path: path.to_owned(), folder: in_run.then(|| path.to_owned()), source };
        Ok(Self { parts: Arc::new(parts), threads, home: Arc::new(home) })
    }

    /// A model that was just trained.
    pub(crate) fn trained(parts: Parts, folder: &Path, source: CorpusSource, threads: Threads) -> Self {
        let home = Home { path: folder.to_owned(), folder: Some(folder.to_owned()), source: Some(source) };
        Self { parts: Arc::new(parts), threads, home: Arc::new(home) }
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Writes it as a bundle of its own; copied elsewhere it predicts the same.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let Parts { network, linear, .. } = self.parts();
        save(folder, &self.parts, |writer| match (network, linear) {
            (Some(network), _) => network.save(writer),
            (None, Some(linear)) => linear.save(writer),
            (None, None) => {
                bundle::copy_members(&cladist_core::bundle::find(&self.home.path)?, &self.parts, writer)
            }
        })
    }

    /// How it was made.
    #[must_use]
    pub fn config(&self) -> &RunConfig {
        &self.parts.config
    }

    /// The labels it knows.
    #[must_use]
    pub fn taxonomy(&self) -> &Taxonomy {
        self.parts.pipeline.taxonomy()
    }

    /// Label counts of its training documents.
    #[must_use]
    pub fn label_counts(&self) -> &LabelCounts {
        &self.parts.counts
    }

    /// What it was trained on.
    #[must_use]
    pub fn trained_on(&self) -> &TrainedOn {
        &self.parts.training
    }

    /// Normalisation, classifier and calibration, for those who want scores of all labels.
    #[must_use]
    pub fn pipeline(&self) -> &Pipeline {
        &self.parts.pipeline
    }

    /// Encoder and head, for those who look inside; none for linear models and ensembles.
    #[must_use]
    pub fn network(&self) -> Option<&Arc<NeuralModel>> {
        self.parts.network.as_ref()
    }

    /// Where it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.home.path
    }

    /// The run folder; none for a bundle on its own.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.home.folder.as_deref()
    }

    /// The files it was trained on, if the run folder remembers them.
    #[must_use]
    pub fn source(&self) -> Option<&CorpusSource> {
        self.home.source.as_ref()
    }
}

/// Refuses changes that parameters depend on.
fn check_change(change: &str, head: &'static str) -> Result<()> {
    if head == heads::MIXED.name {
        return Err(Error::FixedEnsemble(change.to_owned()));
    }
    let key = change.trim_start();
    let fixed = key.starts_with("shortlist.match_only");
    let own = [head, "tokens", "shortlist"].iter().any(|section| key.starts_with(&format!("{section}.")));
    if fixed || !own {
        return Err(Error::Fixed { change: change.to_owned(), head });
    }
    Ok(())
}

/// A model is a classifier: it can be a member of an ensemble.
impl Classifier for Model {
    fn taxonomy(&self) -> &Taxonomy {
        self.pipeline().taxonomy()
    }

    fn score(&self, documents: &[Document], request: &Request) -> cladist_core::Result<Scores> {
        self.threads.run(|| self.pipeline().score(documents, request))
    }

    fn sequences(
        &self,
        documents: &[Document],
        n_best: usize,
        request: &Request,
    ) -> cladist_core::Result<Option<Vec<Vec<LabelSequence>>>> {
        self.threads.run(|| self.pipeline().sequences(documents, n_best, request))
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        self.pipeline().label_vectors()
    }
}
