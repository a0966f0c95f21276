//! Ensembles: nothing is trained but the weights of models that are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use cladist_core::bundle::{self, Draft};
use cladist_core::corpus::{DataConfig, SplitName};
use cladist_core::mixed::{Fitted, Mixed, MixedConfig, Weights, fit};
use cladist_core::pipeline::Pipeline;
use cladist_core::{Classifier, LabelCounts, Request};
use serde_json::json;

use super::dev::{self, Chosen};
use super::{Summary, Training, write_card};
use crate::config::RunConfig;
use crate::corpora::{DataCard, Loaded};
use crate::error::{Error, Result};
use crate::figure::{Chart, Lines};
use crate::folders;
use crate::model::{self, Model, OpenOptions, Parts, TrainedOn, save};
use crate::names::short_names;
use crate::observe::Event;
use crate::threads::Threads;

/// Fits weights and writes a run folder with the members in it.
pub(super) fn run(training: &Training<'_>, recipe: &MixedConfig, threads: &Threads) -> Result<Summary> {
    let Training { config, out, work, .. } = training;
    if recipe.members.len() < 2 {
        return Err(Error::TooFewMembers);
    }
    let start = Instant::now();
    let members = open(training, recipe)?;
    let draft = Draft::create(out)?;
    let loaded = training.load(config, &draft.path(folders::REJECTS), None)?;
    check_held_out(training, recipe, &members, &loaded)?;
    let (parts, mixed, fitted, chosen) = weigh(training, recipe, &members, &loaded)?;
    let seconds = start.elapsed().as_secs_f64();
    tell(training, recipe, &fitted);
    let card = DataCard::of(&loaded)?;
    write_card(config, &card, |name, bytes| Ok(draft.write(name, bytes)?))?;
    let weights = serde_json::to_vec(mixed.weights())?;
    save(&draft.path(folders::BUNDLE), &parts, |writer| {
        writer.write(model::WEIGHTS, &weights)?;
        for (n, path) in recipe.members.iter().enumerate() {
            writer.include(&model::member(n), &bundle::find(Path::new(path))?)?;
        }
        Ok(())
    })?;
    draw(recipe, &fitted, &draft.path(""))?;
    let documents = parts.counts.n_documents;
    let model = Model::trained(parts, out, loaded.source.clone(), threads.clone());
    let evaluation = dev::report(&model, chosen, &loaded, &draft.path(folders::REPORTS), work)?;
    let dev = evaluation.map(|evaluation| evaluation.report.metrics).unwrap_or_default();
    let record = json!({
        "event": "trained", "seconds": seconds, "documents": documents, "dev": dev,
        "members": recipe.members, "classes": fitted.weights.classes, "weights": fitted.weights.weights,
        "fitted_on_dev": fitted.values, "curves": fitted.curves,
    });
    training.finish(draft, &record, Summary::new(out, seconds, model.parts(), &loaded, card, dev))
}

/// The members; those that have seen what they are to be weighed on are refused.
fn open(training: &Training<'_>, recipe: &MixedConfig) -> Result<Vec<Model>> {
    let options = OpenOptions {
        device: training.device.clone(),
        cancel: training.work.cancel.clone(),
        ..OpenOptions::default()
    };
    let member = |path: &String| {
        let model = Model::open(path, &options)?;
        match model.trained_on().splits.contains(&SplitName::Dev) {
            true => Err(Error::MemberSawDev(PathBuf::from(path))),
            false => Ok(model),
        }
    };
    recipe.members.iter().map(member).collect()
}

/// Refuses members that held out other documents of train for dev than the ensemble does: they have learnt from what
/// they are weighed on.
fn check_held_out(
    training: &Training<'_>,
    recipe: &MixedConfig,
    members: &[Model],
    loaded: &Loaded,
) -> Result<()> {
    if !loaded.held_out {
        return Ok(());
    }
    let choice = |config: &RunConfig| {
        let DataConfig { dev, seed, stratified, .. } = config.common.data;
        (dev, seed, stratified)
    };
    let own = choice(&training.config);
    // The same choice among other documents, as where texts are empty once normalised, is another one.
    let n_documents = loaded.corpus.train.as_ref().map_or(0, |train| train.documents.len());
    let differs =
        |model: &Model| choice(model.config()) != own || model.label_counts().n_documents != n_documents;
    let other = recipe.members.iter().zip(members).find(|(_, model)| differs(model));
    other.map_or(Ok(()), |(path, _)| Err(Error::MemberHeldOut(PathBuf::from(path))))
}

/// Fits weights, calibration and thresholds on dev, which every member scores once.
fn weigh(
    training: &Training<'_>,
    recipe: &MixedConfig,
    members: &[Model],
    loaded: &Loaded,
) -> Result<(Parts, Arc<Mixed>, Fitted, Chosen)> {
    let Training { config, work, .. } = training;
    let corpus = &loaded.corpus;
    let train = corpus.train.as_ref();
    let train = train.ok_or(Error::NoSplit { split: SplitName::Train, purpose: "to count labels in" })?;
    let dev = dev::of(loaded);
    let dev = dev.ok_or(Error::NoSplit { split: SplitName::Dev, purpose: "to fit ensemble weights on" })?;
    let counts = LabelCounts::of(&train.gold, corpus.taxonomy.n_labels());
    let features = members.iter().any(|member| member.trained_on().features);
    let member = |model: &Model| Arc::new(model.pipeline().member(recipe.scores)) as Arc<dyn Classifier>;
    let classifiers = members.iter().map(member);
    let mixed = Mixed::new(classifiers.collect(), corpus.taxonomy.clone())?;
    let metrics = &config.common.metrics;
    let even = if recipe.by_frequency {
        Weights::by_frequency(members.len(), &counts, metrics.few_at_most, metrics.medium_at_most)
    } else {
        Weights::even(members.len(), corpus.taxonomy.n_labels())
    };
    let scores = dev::member_scores(&mixed, &config.common, dev, work)?;
    let fitted = fit(even, &scores, &dev.gold, recipe, &work.cancel)?;
    let mixed = Arc::new(mixed.with_weights(fitted.weights.clone())?);
    let mut pipeline = Pipeline::new(Arc::clone(&mixed) as _, config.common.data.normalise);
    let whole = dev::most(&corpus.taxonomy, &config.common, dev)
        .is_none()
        .then(|| mixed.mean(&scores, &Request::default()));
    drop(scores);
    // The best labels of members are not those of the ensemble.
    let mean = whole.map_or_else(|| dev::score(&pipeline, &config.common, dev, work), Ok)?;
    let chosen = dev::choose(&mut pipeline, &config.common, Some((dev, mean)), &work.cancel)?;
    let parts = Parts {
        config: config.clone(),
        pipeline,
        network: None,
        linear: None,
        thresholds: chosen.thresholds.clone(),
        counts,
        training: TrainedOn { splits: vec![SplitName::Train], features },
    };
    Ok((parts, mixed, fitted, chosen))
}

/// Short names of the members.
fn names(recipe: &MixedConfig) -> Vec<String> {
    short_names(&recipe.members.iter().map(PathBuf::from).collect::<Vec<_>>())
}

fn tell(training: &Training<'_>, recipe: &MixedConfig, fitted: &Fitted) {
    let names = names(recipe);
    let classes = fitted.weights.classes.iter().zip(fitted.weights.weights.iter().zip(&fitted.values));
    for (class, (weights, &value)) in classes {
        let weights: Vec<(String, f64)> = names.iter().cloned().zip(weights.iter().copied()).collect();
        training.work.tell(&Event::Ensemble { class, weights: &weights, value });
    }
}

/// The objective over the weight of the second of two members.
fn draw(recipe: &MixedConfig, fitted: &Fitted, folder: &Path) -> Result<()> {
    if fitted.curves.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let values: Vec<Vec<f64>> =
        fitted.curves.iter().map(|curve| curve.iter().map(|(_, value)| *value).collect()).collect();
    let lowest = values.iter().flatten().copied().fold(1.0, f64::min);
    let every = recipe.steps.div_ceil(5);
    let place = |step: usize| {
        if step.is_multiple_of(every) {
            format!("{:.1}", step as f64 / recipe.steps as f64)
        } else {
            String::new()
        }
    };
    let names = names(recipe);
    let axis = format!("weight of {}", names[1]);
    let chart = Chart {
        at: Vec::new(),
        title: "F1 on dev by weight",
        axis: &axis,
        places: (0..=recipe.steps).map(place).collect(),
        names: fitted.weights.classes.iter().map(String::as_str).collect(),
        panels: vec![Lines {
            name: "F1",
            floor: (lowest * 20.0).floor() / 20.0,
            values: values.iter().map(|values| Some(values.as_slice())).collect(),
        }],
    };
    chart.draw().save(folder, "weights")?;
    Ok(())
}
