//! Training of heads on encoders: hours of work, so the run folder grows as it goes and can be taken up again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use cladist_core::bundle::write_atomically;
use cladist_core::corpus::{Corpus, Split, SplitName};
use cladist_core::decode::Rule;
use cladist_core::metrics;
use cladist_core::pipeline::Pipeline;
use cladist_core::text::normalise::Normalise;
use cladist_core::{Document, Error, Job, LabelCounts, Scores, Taxonomy};
use cladist_nn::device;
use cladist_nn::model::NeuralModel;
use cladist_nn::source::EncoderSource;
use cladist_nn::train::{Examples, Measure, Outcome, Plan, journal, train};

use super::{Best, Loaded, Summary, choose, data_card, farewell, load, report_on_dev, write_json};
use crate::args::TrainArgs;
use crate::commands::evaluate::Evaluation;
use crate::config::{Common, NeuralRecipe, Recipe, Refit, RunConfig};
use crate::error::ConfigError;
use crate::html;
use crate::memory;
use crate::model::{self, DataCard, Model, Training};
use crate::session::Session;
use crate::watch::LiveView;

/// Trains, or goes on training, in a run folder.
pub(super) fn run(
    args: &TrainArgs,
    config: &RunConfig,
    recipe: &NeuralRecipe,
    out: &Path,
    session: &Session,
) -> anyhow::Result<Summary> {
    let source = encoder(config, recipe)?;
    let device = device::parse(&session.device)?;
    let known = args.resume.then(|| known_source(out)).flatten();
    let place = Place::take(out, args.overwrite)?;
    let loaded = load(args, config, known, &out.join("rejects.jsonl"), session)?;
    let Corpus { taxonomy, train: _, dev, test: _ } = &loaded.corpus;
    let examples = examples(config, &loaded.corpus)?;
    let dev = dev.as_ref().filter(|dev| !dev.documents.is_empty());
    let card = data_card(&loaded)?;
    write_atomically(&out.join("config.toml"), toml::to_string(config)?.as_bytes())?;
    write_json(&out.join("data.json"), &card)?;

    let normalise = config.common.data.normalise;
    let train_documents = normalised(examples, normalise);
    let dev_documents = dev.map(|dev| normalised(dev, normalise));
    let counts = LabelCounts::of(&examples.gold, taxonomy.n_labels());
    let (model, report) = NeuralModel::create(
        recipe.design(),
        &source,
        &Examples { documents: &train_documents, gold: &examples.gold },
        taxonomy.clone(),
        &counts,
        recipe.train.seed,
        &device,
    )?;
    for (what, names) in [("starts at random", &report.missing), ("is not used", &report.unused)] {
        if let Some(first) = names.first() {
            let rest = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
            session.output.note(format!("of the encoder's weights, `{first}`{rest} {what}"));
        }
    }
    let groups = model.n_groups().map_or_else(String::new, |groups| format!(" in {groups} groups"));
    session.output.note(format!(
        "training {} on {}: {} parameters, {} documents, {} labels{groups}",
        config.head(),
        recipe.encoder,
        model.n_parameters(),
        examples.documents.len(),
        taxonomy.n_labels()
    ));
    let view = LiveView::new(session, recipe.train.all_epochs());
    let judge = Judge { common: &config.common, dev, taxonomy, counts: &counts };
    let plan = Plan {
        config: &recipe.train,
        train: Examples { documents: &train_documents, gold: &examples.gold },
        dev: dev.zip(dev_documents.as_ref()).map(|(dev, documents)| Examples { documents, gold: &dev.gold }),
        measure: &judge,
        folder: Some(out),
        resume: args.resume,
        watcher: &view,
        cancel: session.cancel.clone(),
    };
    let trained = train(model, &plan);
    view.finish();
    let (classifier, outcome) = match trained {
        Err(error) if matches!(error, cladist_nn::Error::Core(Error::Cancelled)) => {
            return Err(anyhow::Error::from(error).context(format!(
                "stopped\nhint: go on with `cladist train --resume --out {}`",
                out.display()
            )));
        }
        other => other?,
    };
    session.output.note(describe(&outcome));
    let mut classifier = classifier;
    if config.common.decode.rule == Rule::PredictedCount {
        let job = session.job();
        job.progress.stage("learn how many labels documents have", train_documents.len() as u64);
        classifier.learn_counts(&train_documents, &examples.gold, recipe.train.seed, &job)?;
    }
    if recipe.ranker.on {
        classifier.learn_ranker(&train_documents, &examples.gold, recipe.train.seed, &session.job())?;
        let weights = classifier.n_ranker_weights().unwrap_or_default();
        session.output.note(format!("the ranker has {weights} weights"));
    }
    let classifier = Arc::new(classifier);
    let mut pipeline = Pipeline::new(Arc::clone(&classifier) as _, normalise);
    let (thresholds, _) = choose(&mut pipeline, &config.common, dev, session)?;
    let training = Training { splits: vec![SplitName::Train], features: false };
    let network = Some(Arc::clone(&classifier));
    let model = Model { config: config.clone(), pipeline, network, thresholds, counts, training };
    let evaluation = report_on_dev(&model, &loaded, out, &out.join("reports"), session)?;
    let summary = finish(out, &model, &classifier, &outcome, &card, &loaded, evaluation.as_ref())?;
    place.done();
    farewell(out, loaded.rejected, session);
    Ok(summary)
}

/// Makes the network that would be trained.
pub(super) fn rehearse(
    config: &RunConfig,
    recipe: &NeuralRecipe,
    corpus: &Corpus,
    session: &Session,
) -> anyhow::Result<()> {
    let source = encoder(config, recipe)?;
    let device = device::parse(&session.device)?;
    let examples = examples(config, corpus)?;
    let taxonomy = &corpus.taxonomy;
    let counts = LabelCounts::of(&examples.gold, taxonomy.n_labels());
    let documents = normalised(examples, config.common.data.normalise);
    let (design, seed) = (recipe.design(), recipe.train.seed);
    let examples = Examples { documents: &documents, gold: &examples.gold };
    NeuralModel::create(design, &source, &examples, taxonomy.clone(), &counts, seed, &device)?;
    Ok(())
}

/// Where the encoder comes from, if the settings fit a head on one.
fn encoder(config: &RunConfig, recipe: &NeuralRecipe) -> anyhow::Result<EncoderSource> {
    if recipe.encoder.is_empty() {
        bail!(ConfigError::Missing(format!(
            "the head `{}` needs an encoder\nhint: pass `--encoder DIR`, or `--encoder scratch:mini` for a small new one",
            config.head()
        )));
    }
    if config.common.refit != Refit::Never {
        bail!(ConfigError::Missing(
            "heads on encoders are not trained a second time: `refit` must be `never`".to_owned()
        ));
    }
    Ok(EncoderSource::parse(&recipe.encoder)?)
}

/// The training documents, which must have text.
fn examples<'a>(config: &RunConfig, corpus: &'a Corpus) -> anyhow::Result<&'a Split> {
    let examples = corpus.train.as_ref().context("the corpus has no train split")?;
    if examples.documents.iter().any(|document| document.features.is_some()) {
        bail!(ConfigError::Missing(format!(
            "the head `{}` reads text, but the corpus has features only",
            config.head()
        )));
    }
    Ok(examples)
}

fn normalised(split: &Split, normalise: Normalise) -> Vec<Document> {
    let apply = |document: &Document| Document {
        text: normalise.apply(&document.text).into_owned(),
        ..document.clone()
    };
    split.documents.iter().map(apply).collect()
}

/// Writes the bundle, the summary and the page with the curves; then checkpoints are no longer needed.
fn finish(
    out: &Path,
    model: &Model,
    classifier: &NeuralModel,
    outcome: &Outcome,
    card: &DataCard,
    loaded: &Loaded,
    evaluation: Option<&Evaluation>,
) -> anyhow::Result<Summary> {
    let (records, _) = journal::read(&out.join("metrics.jsonl"))?;
    let page = html::training(
        &out.display().to_string(),
        &toml::to_string(&model.config)?,
        outcome,
        &records,
        evaluation,
    )?;
    write_atomically(&out.join("report.html"), page.as_bytes())?;
    let summary = Summary {
        run: out.to_owned(),
        seconds: outcome.seconds,
        peak_mb: memory::peak_mb(),
        documents: model.counts.n_documents as u64,
        rejected: loaded.rejected,
        data: card.report.clone(),
        dev: evaluation.map(|evaluation| evaluation.report.metrics.clone()).unwrap_or_default(),
        best: outcome.best.map(|(step, value)| Best { monitor: monitor(&model.config), step, value }),
    };
    write_json(&out.join("summary.json"), &summary)?;
    model::save(&out.join("bundle"), model, |writer| classifier.save(writer))?;
    let checkpoints = out.join("checkpoints");
    if checkpoints.exists() {
        fs::remove_dir_all(&checkpoints).map_err(Error::io("remove", &checkpoints))?;
    }
    Ok(summary)
}

fn monitor(config: &RunConfig) -> String {
    match &config.recipe {
        Recipe::Neural(recipe) => recipe.train.monitor.clone(),
        Recipe::Linear(_) | Recipe::Mixed(_) => String::new(),
    }
}

fn describe(outcome: &Outcome) -> String {
    let Outcome { steps, seconds, skipped, best, stopped_early } = outcome;
    let mut text = format!("{steps} updates in {seconds:.0} s");
    if let Some((step, value)) = best {
        text += &format!("; the model of step {step} is the best on dev ({value:.4})");
    }
    if *stopped_early {
        text += "; stopped early";
    }
    if *skipped > 0 {
        text += &format!("; {skipped} batches skipped because their loss was not finite");
    }
    text
}

/// The corpus that an unfinished run began with.
fn known_source(out: &Path) -> Option<cladist_core::corpus::CorpusSource> {
    let bytes = fs::read(out.join("data.json")).ok()?;
    serde_json::from_slice::<DataCard>(&bytes).ok().map(|card| card.source)
}

/// The run folder while it is worked in. A run that never began leaves nothing, and puts the one it was to replace back.
struct Place<'a> {
    out: &'a Path,
    /// Whether there was nothing before.
    new: bool,
    /// The run that is replaced, out of the way until the new one is done.
    replaced: Option<PathBuf>,
}

impl<'a> Place<'a> {
    fn take(out: &'a Path, overwrite: bool) -> anyhow::Result<Self> {
        let mut replaced = None;
        if overwrite && out.exists() {
            let name = out.file_name().unwrap_or_default().to_string_lossy();
            let old = out.with_file_name(format!(".{name}.replaced"));
            if old.exists() {
                fs::remove_dir_all(&old).map_err(Error::io("remove", &old))?;
            }
            fs::rename(out, &old).map_err(Error::io("move", out))?;
            replaced = Some(old);
        }
        let new = !out.exists();
        fs::create_dir_all(out).map_err(Error::io("create", out))?;
        Ok(Self { out, new, replaced })
    }

    fn done(mut self) {
        if let Some(old) = self.replaced.take() {
            // Only takes up space if it cannot be removed.
            let _ = fs::remove_dir_all(old);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // Once there are checkpoints, a run has begun and can be resumed.
        if self.new && !self.out.join("checkpoints").exists() && !self.out.join("bundle").exists() {
            for name in ["config.toml", "data.json", ".lock"] {
                let _ = fs::remove_file(self.out.join(name));
            }
            let _ = fs::remove_dir(self.out);
            if let Some(old) = self.replaced.take().filter(|_| !self.out.exists()) {
                let _ = fs::rename(old, self.out);
            }
        }
    }
}

/// Judges dev during training, as `evaluate` would without fitted thresholds.
struct Judge<'a> {
    common: &'a Common,
    dev: Option<&'a Split>,
    taxonomy: &'a Taxonomy,
    counts: &'a LabelCounts,
}

impl Measure for Judge<'_> {
    fn measure(&self, scores: &Scores) -> cladist_core::Result<BTreeMap<String, f64>> {
        let Some(dev) = self.dev else { return Ok(BTreeMap::new()) };
        let decoder = self.common.decode.build(self.taxonomy)?;
        let scores = decoder.prepare(scores.clone());
        let predicted = decoder.decode(&scores);
        let options = &self.common.metrics;
        let job = Job::silent();
        let report =
            metrics::evaluate(&scores, &predicted, &dev.gold, self.taxonomy, self.counts, options, &job)?;
        Ok(report.metrics)
    }

    fn higher_is_better(&self, metric: &str) -> Option<bool> {
        let is_reported = |k: Option<usize>| k.is_none_or(|k| self.common.metrics.k.contains(&k));
        let (info, number) = metrics::find(metric)?;
        (!info.name.contains("<k>") || is_reported(number)).then_some(info.higher_is_better)
    }
}
