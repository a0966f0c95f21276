//! Training of linear heads: seconds of work, so the run folder appears at once when all is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use cladist_core::bundle::Draft;
use cladist_core::corpus::SplitName;
use cladist_core::linear::{LinearModel, LinearRecipe};
use cladist_core::pipeline::Pipeline;
use cladist_core::{Document, LabelCounts, LabelSet};
use serde_json::json;

use super::dev::{self, Chosen};
use super::{Summary, Training, write_card};
use crate::config::Refit;
use crate::corpora::{DataCard, Loaded};
use crate::error::{Error, Result};
use crate::folders;
use crate::model::{Model, Parts, TrainedOn, save};
use crate::observe::{Event, Work};
use crate::threads::Threads;

/// Trains and writes a run folder.
pub(super) fn run(training: &Training<'_>, recipe: &LinearRecipe, threads: &Threads) -> Result<Summary> {
    let Training { config, out, work, .. } = training;
    // Everything is written beside the run folder and moved in at the end.
    let draft = Draft::create(out)?;
    let start = Instant::now();
    let loaded = training.load(config, &draft.path(folders::REJECTS), None)?;
    let Fitted { parts, classifier, chosen, held_out } = train(training, recipe, &loaded, threads)?;
    let seconds = start.elapsed().as_secs_f64();
    let (features, weights) = (classifier.vectorizer().n_features(), classifier.n_weights());
    let documents = parts.counts.n_documents;
    work.tell(&Event::Linear { head: config.head(), documents, seconds, features, weights });
    let card = DataCard::of(&loaded)?;
    write_card(config, &card, |name, bytes| Ok(draft.write(name, bytes)?))?;
    save(&draft.path(folders::BUNDLE), &parts, |writer| classifier.save(writer))?;
    let refitted = parts.training.splits.contains(&SplitName::Dev);
    let dev_value = chosen.value;
    let model = Model::trained(parts, out, loaded.source.clone(), threads.clone());
    let evaluation = dev::report(&model, chosen, &loaded, &draft.path(folders::REPORTS), work)?;
    let dev = evaluation.map(|evaluation| evaluation.report.metrics).unwrap_or_default();
    let record = json!({
        "event": "trained", "seconds": seconds, "documents": documents, "refitted": refitted,
        "features": features, "weights": weights, "fitted_on_dev": dev_value, "dev": dev,
    });
    let summary = Summary { held_out, ..Summary::new(out, seconds, model.parts(), &loaded, card, dev) };
    training.finish(draft, &record, summary)
}

struct Fitted {
    parts: Parts,
    classifier: Arc<LinearModel>,
    chosen: Chosen,
    /// Metrics on dev of the model before it was trained once more with dev.
    held_out: BTreeMap<String, f64>,
}

/// Trains on train, chooses on dev, and perhaps trains once more on both.
fn train(
    training: &Training<'_>,
    recipe: &LinearRecipe,
    loaded: &Loaded,
    threads: &Threads,
) -> Result<Fitted> {
    let Training { config, work, .. } = training;
    let (taxonomy, common) = (&loaded.corpus.taxonomy, &config.common);
    let train = loaded.corpus.train.as_ref();
    let train = train.ok_or(Error::NoSplit { split: SplitName::Train, purpose: "to learn from" })?;
    let fit = |documents: &[Document], gold: &[LabelSet]| {
        LinearModel::train(recipe, documents, gold, taxonomy.clone(), &work.job()).map(Arc::new)
    };
    let classifier = fit(&train.documents, &train.gold)?;
    let mut pipeline = Pipeline::new(Arc::clone(&classifier) as _, common.data.normalise);
    let dev = dev::of(loaded);
    let scores =
        dev.map(|dev| Ok::<_, Error>((dev, dev::score(&pipeline, common, dev, work)?))).transpose()?;
    let chosen = dev::choose(&mut pipeline, common, scores, &work.cancel)?;
    let refit = match common.refit {
        Refit::HeldOut => loaded.held_out,
        Refit::Always => dev.is_some(),
        Refit::Never => false,
    };
    let features = train.documents.iter().any(|document| document.features.is_some());
    let parts =
        |pipeline: Pipeline, classifier: &Arc<LinearModel>, gold: &[LabelSet], splits: &[SplitName]| Parts {
            config: config.clone(),
            pipeline,
            network: None,
            linear: Some(Arc::clone(classifier)),
            thresholds: chosen.thresholds.clone(),
            counts: LabelCounts::of(gold, taxonomy.n_labels()),
            training: TrainedOn { splits: splits.to_vec(), features },
        };
    let first = parts(pipeline, &classifier, &train.gold, &[SplitName::Train]);
    let Some(dev) = dev.filter(|_| refit) else {
        warn_if_empty(&classifier, work);
        return Ok(Fitted { parts: first, classifier, chosen, held_out: BTreeMap::new() });
    };
    let calibration = first.pipeline.calibration.clone();
    let thresholds = chosen.thresholds.clone();
    let second = {
        let documents: Vec<Document> = train.documents.iter().chain(&dev.documents).cloned().collect();
        let gold: Vec<LabelSet> = train.gold.iter().chain(&dev.gold).cloned().collect();
        let classifier = fit(&documents, &gold)?;
        let pipeline =
            Pipeline { calibration, ..Pipeline::new(Arc::clone(&classifier) as _, common.data.normalise) };
        parts(pipeline, &classifier, &gold, &[SplitName::Train, SplitName::Dev])
    };
    let classifier = second.linear.clone().unwrap_or(classifier);
    // What the same settings reach on documents that they have not seen: the last honest figure before dev is learnt.
    let first = Model::trained(first, &training.out, loaded.source.clone(), threads.clone());
    let value = chosen.value;
    let held_out = dev::judge(&first, chosen, loaded, work)?;
    if let Some(evaluation) = &held_out {
        work.tell(&Event::HeldOut(evaluation));
    }
    let held_out = held_out.map(|evaluation| evaluation.report.metrics).unwrap_or_default();
    warn_if_empty(&classifier, work);
    Ok(Fitted { parts: second, classifier, chosen: Chosen::without_scores(thresholds, value), held_out })
}

fn warn_if_empty(classifier: &LinearModel, work: &Work<'_>) {
    if classifier.n_weights() == 0 {
        work.tell(&Event::Warning(
            "no weight is left after pruning, so the model knows nothing: lower `linear.prune`".to_owned(),
        ));
    }
}
