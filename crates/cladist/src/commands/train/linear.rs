//! Training of linear heads: seconds of work, so the run folder appears at once when all is done.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use cladist_core::bundle::Draft;
use cladist_core::corpus::{Corpus, Split, SplitName};
use cladist_core::linear::{LinearModel, LinearRecipe};
use cladist_core::pipeline::Pipeline;
use cladist_core::{Document, LabelCounts, LabelSet};
use serde_json::json;

use super::{Loaded, Summary, choose, data_card, finish, load, report_on_dev};
use crate::args::TrainArgs;
use crate::config::{Refit, RunConfig};
use crate::model::{self, Model, Training};
use crate::session::Session;

/// Trains and writes a run folder.
pub(super) fn run(
    args: &TrainArgs,
    config: &RunConfig,
    recipe: &LinearRecipe,
    out: &Path,
    session: &Session,
) -> anyhow::Result<Summary> {
    // Everything is written beside the run folder and moved in at the end.
    let draft = Draft::create(out)?;
    let start = Instant::now();
    let loaded = load(args, config, None, &draft.path("rejects.jsonl"), session)?;
    let Trained { model, classifier, dev_value } = train(config, recipe, &loaded, session)?;
    let seconds = start.elapsed().as_secs_f64();
    session.bars.clear();
    session.output.note(format!(
        "trained {} on {} documents in {seconds:.1} s: {} features, {} weights",
        config.head(),
        model.counts.n_documents,
        classifier.vectorizer().n_features(),
        classifier.n_weights()
    ));
    draft.write("config.toml", toml::to_string(config)?.as_bytes())?;
    let card = data_card(&loaded)?;
    draft.write("data.json", &serde_json::to_vec_pretty(&card)?)?;
    model::save(&draft.path("bundle"), &model, |writer| classifier.save(writer))?;
    let evaluation = report_on_dev(&model, &loaded, out, &draft.path("reports"), session)?;
    let dev = evaluation.map(|evaluation| evaluation.report.metrics).unwrap_or_default();
    let refitted = model.training.splits.contains(&SplitName::Dev);
    let record = json!({
        "event": "trained", "seconds": seconds, "documents": model.counts.n_documents, "refitted": refitted,
        "features": classifier.vectorizer().n_features(), "weights": classifier.n_weights(),
        "fitted_on_dev": dev_value, "dev": dev,
    });
    finish(draft, args.overwrite, &record, Summary::new(out, seconds, &model, &loaded, card, dev), session)
}

struct Trained {
    model: Model,
    classifier: Arc<LinearModel>,
    /// What the fitted thresholds reach on dev.
    dev_value: Option<f64>,
}

/// Trains on train, chooses on dev, and perhaps trains once more on both.
fn train(
    config: &RunConfig,
    recipe: &LinearRecipe,
    loaded: &Loaded,
    session: &Session,
) -> anyhow::Result<Trained> {
    let Corpus { taxonomy, train, dev, test: _ } = &loaded.corpus;
    let train = train.as_ref().context("the corpus has no train split")?;
    let fit = |documents: &[Document], gold: &[LabelSet]| {
        LinearModel::train(recipe, documents, gold, taxonomy.clone(), &session.job()).map(Arc::new)
    };
    let mut classifier = fit(&train.documents, &train.gold)?;
    let mut pipeline = Pipeline::new(Arc::clone(&classifier) as _, config.common.data.normalise);
    let (thresholds, dev_value) = choose(&mut pipeline, &config.common, dev.as_ref(), session)?;
    let held_out = loaded.data.split(SplitName::Train).is_some_and(|split| split.held_out > 0);
    let refit = match config.common.refit {
        Refit::HeldOut => held_out,
        Refit::Always => dev.is_some(),
        Refit::Never => false,
    };
    let mut counts = LabelCounts::of(&train.gold, taxonomy.n_labels());
    let features = train.documents.iter().any(|document| document.features.is_some());
    let mut training = Training { splits: vec![SplitName::Train], features };
    if let (true, Some(dev)) = (refit, dev) {
        let both = |a: &Split, b: &Split| -> (Vec<Document>, Vec<LabelSet>) {
            (
                a.documents.iter().chain(&b.documents).cloned().collect(),
                a.gold.iter().chain(&b.gold).cloned().collect(),
            )
        };
        let (documents, gold) = both(train, dev);
        classifier = fit(&documents, &gold)?;
        pipeline.model = Arc::clone(&classifier) as _;
        counts = LabelCounts::of(&gold, taxonomy.n_labels());
        training.splits.push(SplitName::Dev);
    }
    if classifier.n_weights() == 0 {
        session
            .output
            .warn("no weight is left after pruning: the model knows nothing\nhint: lower `linear.prune`");
    }
    Ok(Trained {
        model: Model { config: config.clone(), pipeline, network: None, thresholds, counts, training },
        classifier,
        dev_value,
    })
}
