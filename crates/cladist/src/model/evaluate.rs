//! A model against gold labels: one path from documents to figures for training, evaluation and comparison.

use std::path::Path;

use cladist_core::corpus::{self, CorpusSource, DataConfig, DataReport, Split, SplitName};
use cladist_core::metrics::MetricOptions;
use cladist_core::metrics::bootstrap::{ResampleOptions, bootstrap};

use super::{Answers, DecodeOptions, Model};
use crate::corpora::BadLinePolicy;
use crate::error::{Error, Result};
use crate::folders;
use crate::observe::Work;
use crate::reports;
use crate::results::Evaluation;

/// How a model is evaluated. The default decodes and measures as it was trained to.
#[derive(Debug, Clone, Default)]
pub struct EvaluateOptions<'a> {
    /// How scores become label sets.
    pub decode: DecodeOptions,
    /// How metrics are computed; those of the model's settings without any.
    pub metrics: Option<MetricOptions>,
    /// Bootstrap confidence intervals from this many resamples.
    pub bootstrap: Option<usize>,
    /// Who watches, and when to stop.
    pub work: Work<'a>,
}

impl Model {
    /// Judges the model on documents with gold labels.
    pub fn evaluate(&self, split: &Split, options: &EvaluateOptions<'_>) -> Result<Evaluation> {
        let answers = self.answers(split, options)?;
        self.judge(&answers, split, options)
    }

    /// The same with answers that are there already.
    pub fn judge(
        &self,
        answers: &Answers,
        split: &Split,
        options: &EvaluateOptions<'_>,
    ) -> Result<Evaluation> {
        let metrics = self.metrics(options);
        self.threads.run(|| {
            let report = answers.report(self, &split.gold, metrics, &options.work)?;
            let intervals = match options.bootstrap {
                Some(resamples) => {
                    let resample = ResampleOptions { resamples, ..ResampleOptions::default() };
                    let judged = answers.judged(self, &split.gold);
                    bootstrap(&judged, metrics, &resample, &options.work.job())?
                }
                None => Vec::new(),
            };
            Ok(Evaluation {
                run: self.path().display().to_string(),
                head: self.config().head().to_owned(),
                split: split.name,
                files: Vec::new(),
                seen_in_training: self.trained_on().splits.contains(&split.name),
                decode: self.decode_config(&options.decode),
                intervals,
                report,
            })
        })
    }

    /// Reads a split for the model: the files it remembers or others, by its own settings or others.
    pub fn read_split(
        &self,
        name: SplitName,
        source: Option<&CorpusSource>,
        config: Option<&DataConfig>,
        bad: &BadLinePolicy,
        work: &Work<'_>,
    ) -> Result<(Split, DataReport)> {
        let source = source.or(self.source()).ok_or(Error::NoCorpus)?;
        let config = config.unwrap_or(&self.config().common.data);
        let (read, _) = bad.apply(work, |lines| {
            corpus::load_split(source, name, self.taxonomy(), config, lines, &work.job())
        })?;
        Ok(read)
    }

    /// Judges the model on a split of its own corpus, decoded as it was trained to, and keeps the report in its run folder.
    /// Bad lines go into the folder too, if they are set aside.
    pub fn evaluate_own(&self, name: SplitName, bad: &BadLinePolicy, work: &Work<'_>) -> Result<Evaluation> {
        let folder = self.folder().unwrap_or_else(|| Path::new("."));
        let bad = bad.or_at(&folder.join(format!("rejects-{name}.jsonl")));
        let (split, data) = self.read_split(name, None, None, &bad, work)?;
        let files = data.split(name).map(|split| split.files.clone()).unwrap_or_default();
        self.evaluate_and_keep(&split, files, work)
    }

    /// Judges the model, decoded as it was trained to, and keeps the report in its run folder.
    pub(crate) fn evaluate_and_keep(
        &self,
        split: &Split,
        files: Vec<String>,
        work: &Work<'_>,
    ) -> Result<Evaluation> {
        let options = EvaluateOptions { work: work.clone(), ..EvaluateOptions::default() };
        let evaluation = Evaluation { files, ..self.evaluate(split, &options)? };
        if let Some(folder) = self.folder() {
            reports::save(&folder.join(folders::REPORTS), &evaluation, work);
        }
        Ok(evaluation)
    }

    /// Refuses to compare models that read different documents, labels or gold. Each split is what its model makes of the
    /// same files.
    pub fn check_comparable(&self, split: &Split, other: &Self, others: &Split) -> Result<()> {
        same_documents(split, others)?;
        if self.taxonomy() != other.taxonomy() {
            return Err(Error::NotComparable("have different label sets"));
        }
        if split.gold != others.gold {
            return Err(Error::NotComparable("treat gold labels differently"));
        }
        Ok(())
    }
}

/// Refuses splits of different documents.
pub fn same_documents(a: &Split, b: &Split) -> Result<()> {
    let same = a.documents.len() == b.documents.len()
        && a.documents.iter().zip(&b.documents).all(|(a, b)| a.id == b.id);
    if same { Ok(()) } else { Err(Error::NotComparable("read different documents")) }
}
