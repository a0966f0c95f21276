//! Scoring and judging a split: what `train`, `evaluate` and `compare` have in common.

use cladist_core::calibrate::{EceOver, expected_calibration_error};
use cladist_core::corpus::Split;
use cladist_core::metrics::{self, Judged, MetricOptions, Report, Violations};
use cladist_core::{LabelSet, Request, Scores};

use crate::args::DecodeArgs;
use crate::decode::decoder;
use crate::model::Model;
use crate::session::Session;

/// A split with a model's scores and label sets.
#[derive(Debug)]
pub struct Answers<'a> {
    /// The model.
    pub model: &'a Model,
    /// Calibrated scores, coherent if decoding is.
    pub scores: Scores,
    /// Decoded label sets.
    pub predicted: Vec<LabelSet>,
    /// The truth.
    pub gold: &'a [LabelSet],
    /// Expected calibration error before calibration, if it changes anything.
    pub raw_error: Option<f64>,
    /// Children that outrank a parent before scores are made coherent, if they are.
    pub incoherent: Option<Violations>,
}

impl<'a> Answers<'a> {
    /// Scores and decodes a split.
    pub fn new(
        model: &'a Model,
        split: &'a Split,
        args: &DecodeArgs,
        session: &Session,
    ) -> anyhow::Result<Self> {
        let job = session.job();
        job.progress.stage(&format!("score {}", split.name), split.documents.len() as u64);
        let request = Request { job: job.clone(), ..Request::default() };
        let raw = model.pipeline.raw_scores(&split.documents, &request)?;
        let calibration = &model.pipeline.calibration;
        let raw_error = if calibration.is_identity() {
            None
        } else {
            expected_calibration_error(
                &raw,
                &split.gold,
                model.config.common.metrics.ece_bins,
                EceOver::Pairs,
            )?
        };
        let decoder = decoder(model, args, false, session)?;
        let calibrated = calibration.apply(raw, model.taxonomy());
        let incoherent = decoder.makes_coherent().then(|| Violations::count(&calibrated, model.taxonomy()));
        let scores = decoder.prepare(calibrated);
        let predicted = decoder.decode(&scores);
        Ok(Self { model, scores, predicted, gold: &split.gold, raw_error, incoherent })
    }

    /// What metrics look at.
    #[must_use]
    pub fn judged(&self) -> Judged<'_> {
        Judged {
            scores: &self.scores,
            predicted: &self.predicted,
            gold: self.gold,
            taxonomy: self.model.taxonomy(),
            counts: &self.model.counts,
        }
    }

    /// Every metric.
    pub fn report(&self, options: &MetricOptions, session: &Session) -> anyhow::Result<Report> {
        let Judged { scores, predicted, gold, taxonomy, counts } = self.judged();
        let mut report =
            metrics::evaluate(scores, predicted, gold, taxonomy, counts, options, &session.job())?;
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
