//! A model's scores and label sets of documents with gold labels.

use cladist_core::calibrate::{Calibration, EceOver, expected_calibration_error};
use cladist_core::corpus::Split;
use cladist_core::decode::{Decoded, Decoder};
use cladist_core::metrics::{self, Judged, MetricOptions, Report, Violations};
use cladist_core::pipeline::Pipeline;
use cladist_core::{Document, LabelSet, Request, Scores, Taxonomy};

use super::{EvaluateOptions, Model};
use crate::error::Result;
use crate::observe::Work;

/// Documents whose scores of all labels are in memory at once, where metrics look at some of them.
pub(crate) const PART: usize = 1024;

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

/// A model's scores and label sets of a split.
#[derive(Debug)]
pub struct Answers {
    /// Calibrated scores, coherent if decoding is; those of the labels that metrics look at.
    pub scores: Scores,
    /// Decoded label sets, the same with and without a limit on what metrics look at.
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
    /// Scores and decodes a split. Its label sets are those of [`Model::predict`] with the same decoding.
    pub fn answers(&self, split: &Split, options: &EvaluateOptions<'_>) -> Result<Answers> {
        self.check_kind(&split.documents)?;
        let metrics = self.metrics(options);
        metrics.validate()?;
        let decoder = self.decoder(&options.decode)?;
        let job = options.work.job();
        job.progress.stage(&format!("score {}", split.name), split.documents.len() as u64);
        let most = self.most(split, options);
        let top_k = most.filter(|&most| self.is_enough(&decoder, most));
        let request = Request { job, top_k, ..Request::default() };
        self.threads.run(|| match most {
            Some(most) if top_k.is_none() => self.answers_by_part(split, &decoder, metrics, most, &request),
            most => {
                let raw = self.raw_scores(split, &split.documents, &request)?;
                let calibration = &self.pipeline().calibration;
                let scored = Scored::new(raw, calibration, self.taxonomy(), &split.gold, metrics.ece_bins)?;
                Ok(self.decoded(scored, &decoder, most))
            }
        })
    }

    /// How metrics are computed: as the options say, or as the model's settings do.
    pub(super) fn metrics<'o>(&'o self, options: &'o EvaluateOptions<'_>) -> &'o MetricOptions {
        options.metrics.as_ref().unwrap_or(&self.config().common.metrics)
    }

    /// How many of the best labels of a split's documents metrics look at; none for all.
    fn most(&self, split: &Split, options: &EvaluateOptions<'_>) -> Option<usize> {
        self.metrics(options).top_k(split.documents.len(), self.taxonomy().n_labels())
    }

    /// Whether the `most` best labels of a document decide its label set.
    fn is_enough(&self, decoder: &Decoder<'_>, most: usize) -> bool {
        self.pipeline().calibration.keeps_order()
            && decoder.needed_labels().is_some_and(|needed| needed <= most)
    }

    /// Scores before calibration of documents of a split, which may be normalised already.
    fn raw_scores(
        &self,
        split: &Split,
        documents: &[Document],
        request: &Request<'_>,
    ) -> cladist_core::Result<Scores> {
        let Pipeline { normalise, model, .. } = self.pipeline();
        if split.normalised == *normalise {
            model.score(documents, request)
        } else {
            model.score(&normalise.documents(documents), request)
        }
    }

    /// Decodes from all scores, which are in memory for a part of the documents at a time; the `most` best are kept.
    fn answers_by_part(
        &self,
        split: &Split,
        decoder: &Decoder<'_>,
        metrics: &MetricOptions,
        most: usize,
        request: &Request<'_>,
    ) -> Result<Answers> {
        let calibration = &self.pipeline().calibration;
        let (mut raw, mut decoded) = (Scores::new(), Decoded::default());
        let mut incoherent = decoder.makes_coherent().then(Violations::default);
        for documents in split.documents.chunks(PART) {
            let scores = self.raw_scores(split, documents, request)?;
            if !calibration.is_identity() {
                raw.append(scores.clone().keep_best(most));
            }
            let scores = calibration.apply(scores, self.taxonomy());
            if let Some(violations) = &mut incoherent {
                violations.add(Violations::count(&scores, self.taxonomy()));
            }
            decoded.append(decoder.decode_keeping(scores, Some(most)));
        }
        let raw_error = match calibration.is_identity() {
            true => None,
            false => expected_calibration_error(&raw, &split.gold, metrics.ece_bins, EceOver::Pairs)?,
        };
        let Decoded { scores, sets } = decoded;
        Ok(Answers { scores, predicted: sets, raw_error, incoherent })
    }

    /// Answers from scores that are there already, if they are enough to decode from; by scoring once more if not.
    pub(crate) fn answers_from(
        &self,
        scored: Scored,
        split: &Split,
        options: &EvaluateOptions<'_>,
    ) -> Result<Answers> {
        let (decoder, most) = (self.decoder(&options.decode)?, self.most(split, options));
        if most.is_some_and(|most| !self.is_enough(&decoder, most)) {
            drop(scored);
            return self.answers(split, options);
        }
        Ok(self.decoded(scored, &decoder, most))
    }

    fn decoded(&self, scored: Scored, decoder: &Decoder<'_>, most: Option<usize>) -> Answers {
        let Scored { raw_error, scores } = scored;
        let incoherent = decoder.makes_coherent().then(|| Violations::count(&scores, self.taxonomy()));
        let Decoded { scores, sets } = decoder.decode_keeping(scores, most);
        Answers { scores, predicted: sets, raw_error, incoherent }
    }
}
