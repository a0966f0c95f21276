//! What is chosen and reported on dev, from scores that are computed once wherever they are enough.

use std::path::Path;

use cladist_core::calibrate::fit_thresholds;
use cladist_core::corpus::{Split, SplitName};
use cladist_core::decode::Thresholds;
use cladist_core::mixed::Mixed;
use cladist_core::pipeline::Pipeline;
use cladist_core::{Cancel, Classifier, Document, Request, Scores, Taxonomy};

use crate::config::{Common, ThresholdSource};
use crate::corpora::Loaded;
use crate::error::Result;
use crate::model::{EvaluateOptions, Model, PART, Scored};
use crate::observe::{Event, Work};
use crate::reports;
use crate::results::Evaluation;

/// What dev decided, and its calibrated scores.
pub(super) struct Chosen {
    pub(super) thresholds: Thresholds,
    /// What fitted thresholds reach.
    pub(super) value: Option<f64>,
    /// Of dev; none without one.
    scored: Option<Scored>,
}

/// Scores dev, the labels that metrics look at. Its texts are normalised already.
pub(super) fn score(pipeline: &Pipeline, common: &Common, dev: &Split, work: &Work<'_>) -> Result<Scores> {
    work.job().progress.stage("score dev", dev.documents.len() as u64);
    let request = Request {
        job: work.job(),
        top_k: most(pipeline.model.taxonomy(), common, dev),
        ..Request::default()
    };
    let mut scores = Scores::new();
    for documents in parts(request.top_k, dev) {
        scores.append(pipeline.model.score(documents, &request)?);
    }
    Ok(scores)
}

/// The same of each member of an ensemble.
pub(super) fn member_scores(
    mixed: &Mixed,
    common: &Common,
    dev: &Split,
    work: &Work<'_>,
) -> Result<Vec<Scores>> {
    work.job().progress.stage("score dev", dev.documents.len() as u64);
    let request = Request { job: work.job(), ..Request::default() };
    let most = most(mixed.taxonomy(), common, dev);
    let mut all: Vec<Scores> = Vec::new();
    for documents in parts(most, dev) {
        for (n, mut scores) in mixed.member_scores(documents, &request)?.into_iter().enumerate() {
            if let Some(most) = most {
                scores = scores.keep_best(most);
            }
            match all.get_mut(n) {
                Some(member) => member.append(scores),
                None => all.push(scores),
            }
        }
    }
    Ok(all)
}

/// Documents that are scored at a time: all, or few enough for the scores of all labels if fewer are kept.
fn parts(most: Option<usize>, dev: &Split) -> impl Iterator<Item = &[Document]> {
    dev.documents.chunks(most.map_or(usize::MAX, |_| PART))
}

/// How many of the best labels of dev's documents metrics look at; none for all.
pub(super) fn most(taxonomy: &Taxonomy, common: &Common, dev: &Split) -> Option<usize> {
    common.metrics.top_k(dev.documents.len(), taxonomy.n_labels())
}

/// Calibration, and thresholds with what they reach, chosen on the raw scores of dev.
pub(super) fn choose(
    pipeline: &mut Pipeline,
    common: &Common,
    dev: Option<(&Split, Scores)>,
    cancel: &Cancel,
) -> Result<Chosen> {
    let fixed = || common.decode.threshold.clone();
    let Some((dev, raw)) = dev else {
        return Ok(Chosen { thresholds: fixed(), value: None, scored: None });
    };
    let model = std::sync::Arc::clone(&pipeline.model);
    let taxonomy = model.taxonomy();
    pipeline.calibration = common.calibrate.fit(&raw, &dev.gold, taxonomy, cancel)?;
    let scored = Scored::new(raw, &pipeline.calibration, taxonomy, &dev.gold, common.metrics.ece_bins)?;
    if common.thresholds == ThresholdSource::Fixed {
        return Ok(Chosen { thresholds: fixed(), value: None, scored: Some(scored) });
    }
    let decoder = common.decode.build(taxonomy)?;
    let coherent = decoder.makes_coherent().then(|| decoder.prepare(scored.scores.clone()));
    let scores = coherent.as_ref().unwrap_or(&scored.scores);
    let fitted = fit_thresholds(scores, &dev.gold, taxonomy, &common.fit_thresholds, cancel)?;
    drop(coherent);
    Ok(Chosen { thresholds: fitted.thresholds, value: Some(fitted.value), scored: Some(scored) })
}

impl Chosen {
    /// The same once the scores were judged.
    pub(super) fn without_scores(thresholds: Thresholds, value: Option<f64>) -> Self {
        Self { thresholds, value, scored: None }
    }
}

/// Judges a model by the scores of dev; nothing without dev.
pub(super) fn judge(
    model: &Model,
    chosen: Chosen,
    loaded: &Loaded,
    work: &Work<'_>,
) -> Result<Option<Evaluation>> {
    let (Some(dev), Some(scored)) = (loaded.corpus.dev.as_ref(), chosen.scored) else { return Ok(None) };
    let options = EvaluateOptions { work: work.clone(), ..EvaluateOptions::default() };
    let answers = model.answers_from(scored, dev, &options)?;
    let mut evaluation = model.judge(&answers, dev, &options)?;
    evaluation.files = loaded.data.split(SplitName::Dev).map(|split| split.files.clone()).unwrap_or_default();
    Ok(Some(evaluation))
}

/// The same with a report on disk, unless the model has seen dev: then the figures would flatter.
pub(super) fn report(
    model: &Model,
    chosen: Chosen,
    loaded: &Loaded,
    reports: &Path,
    work: &Work<'_>,
) -> Result<Option<Evaluation>> {
    if model.trained_on().splits.contains(&SplitName::Dev) {
        return Ok(None);
    }
    let evaluation = judge(model, chosen, loaded, work)?;
    if let Some(evaluation) = &evaluation {
        reports::save(reports, evaluation, work);
        work.tell(&Event::Evaluated(evaluation));
    }
    Ok(evaluation)
}

/// Documents to choose on, if there are any.
pub(super) fn of(loaded: &Loaded) -> Option<&Split> {
    loaded.corpus.dev.as_ref().filter(|dev| !dev.documents.is_empty())
}
