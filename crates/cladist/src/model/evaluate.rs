//! A model against gold labels: one path from documents to figures for training, evaluation and comparison.

use std::borrow::Cow;
use std::path::Path;

use cladist_core::calibrate::{Calibration, EceOver, expected_calibration_error};
use cladist_core::corpus::{self, CorpusSource, DataConfig, DataReport, Split, SplitName};
use cladist_core::decode::Decoder;
use cladist_core::metrics::bootstrap::{ResampleOptions, bootstrap};
use cladist_core::metrics::{self, Judged, MetricOptions, Report, Violations};
use cladist_core::{LabelSet, Request, Scores, Taxonomy};

use super::{DecodeOptions, Model};
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

/// Calibrated scores of documents with gold labels.
pub(crate) struct Scored {
    /// Expected calibration error before calibration, if it changes anything.
    pub(crate) raw_error: Option<f64>,
    pub(crate) scores: Scores,
}

impl Scored {
    pub(crate) fn new(
        raw: Scores,
        calibration: &Calibration,
        taxonomy: &Taxonomy,
        gold: &[LabelSet],
        bins: usize,
    ) -> Result<Self> {
        let raw_error = match calibration.is_identity() {
            true => None,
            false => expected_calibration_error(&raw, gold, bins, EceOver::Pairs)?,
        };
        Ok(Self { raw_error, scores: calibration.apply(raw, taxonomy) })
    }
}

/// Scores as decoding sees them, without a copy where they stay as they are.
pub(crate) fn prepared<'s>(decoder: &Decoder<'_>, scores: &'s Scores) -> Cow<'s, Scores> {
    if decoder.makes_coherent() { Cow::Owned(decoder.prepare(scores.clone())) } else { Cow::Borrowed(scores) }
}

/// A model's scores and label sets of a split.
#[derive(Debug)]
pub struct Answers {
    /// Calibrated scores, coherent if decoding is.
    pub scores: Scores,
    /// Decoded label sets.
    pub predicted: Vec<LabelSet>,
    raw_error: Option<f64>,
    /// Children that outrank a parent before scores are made coherent, if they are.
    incoherent: Option<Violations>,
}

impl Answers {
    /// What metrics look at.
    #[must_use]
    pub fn judged<'a>(&'a self, model: &'a Model, gold: &'a [LabelSet]) -> Judged<'a> {
        Judged {
            scores: &self.scores,
            predicted: &self.predicted,
            gold,
            taxonomy: model.taxonomy(),
            counts: model.label_counts(),
        }
    }

    /// Every metric.
    pub fn report(
        &self,
        model: &Model,
        gold: &[LabelSet],
        options: &MetricOptions,
        work: &Work<'_>,
    ) -> Result<Report> {
        let (taxonomy, counts) = (model.taxonomy(), model.label_counts());
        let mut report =
            metrics::evaluate(&self.scores, &self.predicted, gold, taxonomy, counts, options, &work.job())?;
        if let Some(error) = self.raw_error {
            report.metrics.insert("ece-uncalibrated".to_owned(), error);
        }
        if let Some(before) = self.incoherent {
            report.metrics.insert("coherence-violations-before".to_owned(), before.violated as f64);
            let rate = before.rate().map(|rate| ("coherence-violation-rate-before".to_owned(), rate));
            report.metrics.extend(rate);
        }
        Ok(report)
    }
}

impl Model {
    /// Scores and decodes a split.
    pub fn answers(&self, split: &Split, decode: &DecodeOptions, work: &Work<'_>) -> Result<Answers> {
        self.check_kind(&split.documents)?;
        let job = work.job();
        job.progress.stage(&format!("score {}", split.name), split.documents.len() as u64);
        let bins = self.config().common.metrics.ece_bins;
        let request = Request { job, top_k: self.config().common.metrics.top_k(), ..Request::default() };
        self.threads.run(|| {
            let raw = self.pipeline().raw_scores(&split.documents, &request)?;
            let calibration = &self.pipeline().calibration;
            let scored = Scored::new(raw, calibration, self.taxonomy(), &split.gold, bins)?;
            self.decoded(scored, decode)
        })
    }

    /// Label sets of scores that are there already.
    pub(crate) fn decoded(&self, scored: Scored, decode: &DecodeOptions) -> Result<Answers> {
        let decoder = self.decoder(decode, false)?;
        let Scored { raw_error, scores } = scored;
        let incoherent = decoder.makes_coherent().then(|| Violations::count(&scores, self.taxonomy()));
        let scores = decoder.prepare(scores);
        let predicted = decoder.decode(&scores);
        Ok(Answers { scores, predicted, raw_error, incoherent })
    }

    /// Judges the model on documents with gold labels.
    pub fn evaluate(&self, split: &Split, options: &EvaluateOptions<'_>) -> Result<Evaluation> {
        let answers = self.answers(split, &options.decode, &options.work)?;
        self.judge(&answers, split, options)
    }

    /// The same with answers that are there already.
    pub fn judge(
        &self,
        answers: &Answers,
        split: &Split,
        options: &EvaluateOptions<'_>,
    ) -> Result<Evaluation> {
        let metrics = options.metrics.as_ref().unwrap_or(&self.config().common.metrics);
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
                decode: self.decode_config(&options.decode, false),
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
        let options = EvaluateOptions { work: work.clone(), ..EvaluateOptions::default() };
        let mut evaluation = self.evaluate(&split, &options)?;
        evaluation.files = data.split(name).map(|split| split.files.clone()).unwrap_or_default();
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
