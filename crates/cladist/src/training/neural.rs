//! Training of heads on encoders: hours of work, so the run folder grows as it goes and can be taken up again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use cladist_core::bundle::write_atomically;
use cladist_core::corpus::{Corpus, Split, SplitName};
use cladist_core::decode::{Decoded, Rule};
use cladist_core::metrics;
use cladist_core::pipeline::Pipeline;
use cladist_core::{Cancel, Job, LabelCounts, Scores, Taxonomy};
use cladist_nn::descriptions::Cut;
use cladist_nn::device;
use cladist_nn::model::{NeuralModel, Start};
use cladist_nn::source::EncoderSource;
use cladist_nn::train::{Examples, Measure, Outcome, Plan, journal, train};

use super::dev;
use super::place::{Place, Taking};
use super::{Best, Summary, Training, write_card};
use crate::config::{Common, NeuralRecipe, Recipe, RunConfig};
use crate::corpora::{DataCard, Documents, Loaded};
use crate::error::{Error, Result};
use crate::folders;
use crate::html;
use crate::model::{Model, Parts, TrainedOn, save};
use crate::observe::{Event, Watch};
use crate::results::Evaluation;
use crate::threads::Threads;

/// Trains, or goes on training, in a run folder.
pub(super) fn run(
    training: &Training<'_>,
    config: &RunConfig,
    recipe: &NeuralRecipe,
    resume: bool,
    threads: &Threads,
) -> Result<Summary> {
    let source = encoder(config, recipe)?;
    let taking = match training {
        _ if resume => Taking::Resume,
        Training { overwrite: true, .. } => Taking::Overwrite,
        // What was killed before it began begins now.
        Training { resume: true, .. } => Taking::Resume,
        _ => Taking::New,
    };
    let place = Place::take(&training.out, taking)?;
    match work_in(training, config, recipe, &source, &place, resume, threads) {
        Ok(summary) => {
            place.done();
            training.work.tell(&Event::Run(training.out.clone()));
            Ok(summary)
        }
        Err(error) if error.is_cancelled() && place.can_be_resumed() => {
            Err(Error::Stopped(training.out.clone()))
        }
        Err(error) => Err(error),
    }
}

/// The same in a folder that is nobody else's.
fn work_in(
    training: &Training<'_>,
    config: &RunConfig,
    recipe: &NeuralRecipe,
    source: &EncoderSource,
    place: &Place<'_>,
    resume: bool,
    threads: &Threads,
) -> Result<Summary> {
    let Training { out, work, .. } = training;
    let device = device::parse(&training.device)?;
    let known = resume.then(|| known_documents(out)).flatten();
    let loaded = training.load(config, &out.join(folders::REJECTS), known)?;
    check_texts(config, &loaded.corpus)?;
    let card = DataCard::of(&loaded)?;
    write_card(config, &card, |name, bytes| Ok(write_atomically(&out.join(name), bytes)?))?;
    let examples = train_split(&loaded.corpus)?;
    let taxonomy = &loaded.corpus.taxonomy;
    let dev = dev::of(&loaded);
    let counts = LabelCounts::of(&examples.gold, taxonomy.n_labels());
    let learnt_from = Examples { documents: &examples.documents, gold: &examples.gold };
    let (design, seed) = (recipe.design(), recipe.train.seed);
    let start = Start { seed, device: &device, cancel: work.cancel.clone() };
    let (model, report) =
        NeuralModel::create(design, source, &learnt_from, taxonomy.clone(), &counts, &start)?;
    for (what, names) in [("starts at random", &report.missing), ("is not used", &report.unused)] {
        if !names.is_empty() {
            work.tell(&Event::Tensors { what, names });
        }
    }
    if let Some(Cut { n_labels, max_tokens }) = model.cut_descriptions() {
        let (head, all) = (config.head(), taxonomy.n_labels());
        work.tell(&Event::Warning(format!(
            "{n_labels} of {all} label descriptions are longer than the {max_tokens} tokens that are read of them \
             (`{head}.max_tokens`)"
        )));
    }
    // Settings that followed from the encoder belong to the model.
    let mut kept = config.clone();
    if let Recipe::Neural(recipe) = &mut kept.recipe {
        recipe.head = model.head_config().clone();
    }
    work.tell(&Event::Begins {
        head: config.head(),
        encoder: &recipe.encoder,
        pool: recipe.head.pool(),
        parameters: model.n_parameters(),
        documents: examples.documents.len(),
        labels: taxonomy.n_labels(),
        groups: model.n_groups(),
        epochs: recipe.train.all_epochs(),
    });
    let judge = Judge { common: &config.common, dev, taxonomy, counts: &counts };
    let plan = Plan {
        config: &recipe.train,
        train: learnt_from,
        dev: dev.map(|dev| Examples { documents: &dev.documents, gold: &dev.gold }),
        measure: &judge,
        folder: Some(out),
        lock: Some(place.lock()),
        resume,
        save_last: true,
        watcher: &Watch(work.observer),
        cancel: work.cancel.clone(),
    };
    let (mut classifier, outcome) = train(model, &plan)?;
    work.tell(&Event::Ended(&outcome));
    let job = work.job();
    if config.common.decode.rule == Rule::PredictedCount {
        job.progress.stage("learn how many labels documents have", examples.documents.len() as u64);
        classifier.learn_counts(&examples.documents, &examples.gold, seed, &job)?;
    }
    if recipe.ranker.on {
        classifier.learn_ranker(&examples.documents, &examples.gold, seed, &job)?;
        let weights = classifier.n_ranker_weights().unwrap_or_default();
        work.tell(&Event::Note(format!("the ranker has {weights} weights")));
    }
    let classifier = Arc::new(classifier);
    let mut pipeline = Pipeline::new(Arc::clone(&classifier) as _, config.common.data.normalise);
    let scores = dev.map(|dev| Ok::<_, Error>((dev, dev::score(&pipeline, &config.common, dev, work)?)));
    let chosen = dev::choose(&mut pipeline, &config.common, scores.transpose()?, &work.cancel)?;
    let parts = Parts {
        config: kept,
        pipeline,
        network: Some(Arc::clone(&classifier)),
        linear: None,
        thresholds: chosen.thresholds.clone(),
        counts,
        training: TrainedOn { splits: vec![SplitName::Train], features: false },
    };
    let model = Model::trained(parts, out, loaded.source.clone(), threads.clone());
    let evaluation = dev::report(&model, chosen, &loaded, &out.join(folders::REPORTS), work)?;
    finish(out, &model, &outcome, recipe, card, &loaded, evaluation.as_ref())
}

/// Makes the network that would be trained.
pub(super) fn rehearse(
    config: &RunConfig,
    recipe: &NeuralRecipe,
    corpus: &Corpus,
    device: &str,
    cancel: &Cancel,
) -> Result<()> {
    let source = encoder(config, recipe)?;
    let device = device::parse(device)?;
    check_texts(config, corpus)?;
    let examples = train_split(corpus)?;
    let counts = LabelCounts::of(&examples.gold, corpus.taxonomy.n_labels());
    let learnt_from = Examples { documents: &examples.documents, gold: &examples.gold };
    let start = Start { seed: recipe.train.seed, device: &device, cancel: cancel.clone() };
    let design = recipe.design();
    NeuralModel::create(design, &source, &learnt_from, corpus.taxonomy.clone(), &counts, &start)?;
    Ok(())
}

/// Where the encoder comes from, if the settings fit a head on one.
fn encoder(config: &RunConfig, recipe: &NeuralRecipe) -> Result<EncoderSource> {
    if recipe.encoder.is_empty() {
        return Err(Error::NoEncoder { head: config.head() });
    }
    Ok(EncoderSource::parse(&recipe.encoder)?)
}

fn train_split(corpus: &Corpus) -> Result<&Split> {
    corpus.train.as_ref().ok_or(Error::NoSplit { split: SplitName::Train, purpose: "to learn from" })
}

/// Refuses documents without text.
fn check_texts(config: &RunConfig, corpus: &Corpus) -> Result<()> {
    if train_split(corpus)?.documents.iter().any(|document| document.features.is_some()) {
        let model = format!("the head `{}`", config.head());
        return Err(Error::Documents { model, reads: "text", given: "features" });
    }
    Ok(())
}

/// Writes the bundle, the summary and the page with the curves; then checkpoints are no longer needed.
fn finish(
    out: &Path,
    model: &Model,
    outcome: &Outcome,
    recipe: &NeuralRecipe,
    card: DataCard,
    loaded: &Loaded,
    evaluation: Option<&Evaluation>,
) -> Result<Summary> {
    let (records, _) = journal::read(&out.join(folders::JOURNAL))?;
    let settings = model.config().to_toml()?;
    let page = html::training(&out.display().to_string(), &settings, outcome, &records, evaluation)?;
    write_atomically(&out.join("report.html"), page.as_bytes())?;
    let dev = evaluation.map(|evaluation| evaluation.report.metrics.clone()).unwrap_or_default();
    let mut summary = Summary::new(out, outcome.seconds, model.parts(), loaded, card, dev);
    let monitor = &recipe.train.monitor;
    summary.pool = recipe.head.pool();
    summary.best = outcome.best.map(|(step, value)| Best { monitor: monitor.clone(), step, value });
    write_atomically(&out.join(folders::SUMMARY), &serde_json::to_vec_pretty(&summary)?)?;
    if let Some(network) = model.network() {
        save(&out.join(folders::BUNDLE), model.parts(), |writer| network.save(writer))?;
    }
    let checkpoints = out.join(folders::CHECKPOINTS);
    if checkpoints.exists() {
        fs::remove_dir_all(&checkpoints).map_err(Error::io("remove", &checkpoints))?;
    }
    Ok(summary)
}

/// The corpus that an unfinished run began with, if it was in files.
fn known_documents(out: &Path) -> Option<Documents> {
    let bytes = fs::read(out.join(folders::DATA)).ok()?;
    let source = serde_json::from_slice::<DataCard>(&bytes).ok()?.source;
    (!source.train.is_empty()).then_some(Documents::Files(source))
}

/// Judges dev during training, as an evaluation would without fitted thresholds.
struct Judge<'a> {
    common: &'a Common,
    dev: Option<&'a Split>,
    taxonomy: &'a Taxonomy,
    counts: &'a LabelCounts,
}

impl Measure for Judge<'_> {
    fn decode(&self, scores: Scores) -> cladist_core::Result<Decoded> {
        let decoder = self.common.decode.build(self.taxonomy)?;
        let most = self.dev.and_then(|dev| dev::most(self.taxonomy, self.common, dev));
        Ok(decoder.decode_keeping(scores, most))
    }

    fn measure(&self, decoded: &Decoded) -> cladist_core::Result<BTreeMap<String, f64>> {
        let Some(dev) = self.dev else { return Ok(BTreeMap::new()) };
        let (Decoded { scores, sets }, options) = (decoded, &self.common.metrics);
        let job = Job::silent();
        let report = metrics::evaluate(scores, sets, &dev.gold, self.taxonomy, self.counts, options, &job)?;
        Ok(report.metrics)
    }

    fn higher_is_better(&self, metric: &str) -> Option<bool> {
        let is_reported = |k: Option<usize>| k.is_none_or(|k| self.common.metrics.k.contains(&k));
        let (info, number) = metrics::find(metric)?;
        (!info.name.contains("<k>") || is_reported(number)).then_some(info.higher_is_better)
    }
}
