//! Ensembles: nothing is trained but the weights of models that are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use cladist_core::bundle::Draft;
use cladist_core::corpus::SplitName;
use cladist_core::mixed::{Fitted, Mixed, MixedConfig, Weights, fit};
use cladist_core::pipeline::Pipeline;
use cladist_core::{Classifier, LabelCounts, Request};
use serde_json::json;

use super::{Loaded, Summary, choose, data_card, finish, load, report_on_dev};
use crate::args::TrainArgs;
use crate::config::RunConfig;
use crate::error::ConfigError;
use crate::figure::{Chart, Lines};
use crate::model::{self, Model, Training};
use crate::session::Session;

/// Fits weights and writes a run folder with the members in it.
pub(super) fn run(
    args: &TrainArgs,
    config: &RunConfig,
    recipe: &MixedConfig,
    out: &Path,
    session: &Session,
) -> anyhow::Result<Summary> {
    if recipe.members.len() < 2 {
        bail!(ConfigError::Missing(
            "an ensemble has at least two members\nhint: pass `--member RUN` for each".to_owned()
        ));
    }
    let start = Instant::now();
    let members = open(recipe, session)?;
    let draft = Draft::create(out)?;
    let loaded = load(args, config, None, &draft.path("rejects.jsonl"), session)?;
    check_held_out(recipe, &members, &loaded)?;
    let (model, mixed, fitted) = weigh(config, recipe, members, &loaded, session)?;
    let seconds = start.elapsed().as_secs_f64();
    tell(recipe, &fitted, session);
    draft.write("config.toml", toml::to_string(config)?.as_bytes())?;
    let card = data_card(&loaded)?;
    draft.write("data.json", &serde_json::to_vec_pretty(&card)?)?;
    model::save(&draft.path("bundle"), &model, |writer| {
        writer.write(
            model::WEIGHTS,
            &serde_json::to_vec(mixed.weights())
                .map_err(std::io::Error::from)
                .map_err(cladist_core::Error::io("write", &writer.path(model::WEIGHTS)))?,
        )?;
        for (n, path) in recipe.members.iter().enumerate() {
            writer.include(&model::member(n), &model::bundle_of(Path::new(path)))?;
        }
        Ok(())
    })?;
    draw(recipe, &fitted, &draft.path(""))?;
    let evaluation = report_on_dev(&model, &loaded, out, &draft.path("reports"), session)?;
    let dev = evaluation.map(|evaluation| evaluation.report.metrics).unwrap_or_default();
    let record = json!({
        "event": "trained", "seconds": seconds, "documents": model.counts.n_documents, "dev": dev,
        "members": recipe.members, "classes": fitted.weights.classes, "weights": fitted.weights.weights,
        "fitted_on_dev": fitted.values, "curves": fitted.curves,
    });
    finish(draft, args.overwrite, &record, Summary::new(out, seconds, &model, &loaded, card, dev), session)
}

/// The members; those that have seen what they are to be weighed on are refused.
fn open(recipe: &MixedConfig, session: &Session) -> anyhow::Result<Vec<Model>> {
    let mut members = Vec::new();
    for path in &recipe.members {
        let model = model::open(&PathBuf::from(path), session)?.model;
        if model.training.splits.contains(&SplitName::Dev) {
            bail!(ConfigError::Missing(format!(
                "`{path}` has learnt from dev, on which members are weighed\nhint: train it with `--set refit=never`"
            )));
        }
        members.push(model);
    }
    Ok(members)
}

/// Refuses members that held out other documents of train for dev: they have learnt from what they are weighed on.
fn check_held_out(recipe: &MixedConfig, members: &[Model], loaded: &Loaded) -> anyhow::Result<()> {
    if loaded.data.split(SplitName::Train).is_none_or(|split| split.held_out == 0) {
        return Ok(());
    }
    let held_out = |model: &Model| (model.config.common.data.dev, model.config.common.data.seed);
    for (path, model) in recipe.members.iter().zip(members) {
        if held_out(model) != held_out(&members[0]) {
            bail!(ConfigError::Missing(format!(
                "`{path}` held out other documents for dev than the first member\nhint: train members with the same `--dev` and `--seed`"
            )));
        }
    }
    Ok(())
}

/// Fits weights, calibration and thresholds on dev.
fn weigh(
    config: &RunConfig,
    recipe: &MixedConfig,
    members: Vec<Model>,
    loaded: &Loaded,
    session: &Session,
) -> anyhow::Result<(Model, Arc<Mixed>, Fitted)> {
    let corpus = &loaded.corpus;
    let train = corpus.train.as_ref().context("the corpus has no train split")?;
    let dev = corpus.dev.as_ref().filter(|dev| !dev.documents.is_empty());
    let Some(dev) = dev else {
        bail!(ConfigError::Missing(
            "there is no dev split to weigh members on\nhint: pass `--dev-file FILE` or `--dev 0.1`"
                .to_owned()
        ));
    };
    let counts = LabelCounts::of(&train.gold, corpus.taxonomy.n_labels());
    let features = members.iter().any(|member| member.training.features);
    let n = members.len();
    let classifiers = members.into_iter().map(|member| Arc::new(member.pipeline) as Arc<dyn Classifier>);
    let mixed = Mixed::new(classifiers.collect(), corpus.taxonomy.clone())?;
    let metrics = &config.common.metrics;
    let even = if recipe.by_frequency {
        Weights::by_frequency(n, &counts, metrics.few_at_most, metrics.medium_at_most)
    } else {
        Weights::even(n, corpus.taxonomy.n_labels())
    };
    session.job().progress.stage("score dev", dev.documents.len() as u64);
    let request = Request { job: session.job(), ..Request::default() };
    let scores = mixed.member_scores(&dev.documents, &request)?;
    let fitted = fit(even, &scores, &dev.gold, recipe);
    let mixed = Arc::new(mixed.with_weights(fitted.weights.clone())?);
    let mut pipeline = Pipeline::new(Arc::clone(&mixed) as _, config.normalise());
    let (thresholds, _) = choose(&mut pipeline, &config.common, Some(dev), session)?;
    session.bars.clear();
    let training = Training { splits: vec![SplitName::Train], features };
    let model = Model { config: config.clone(), pipeline, network: None, thresholds, counts, training };
    Ok((model, mixed, fitted))
}

/// Short names of the members.
fn names(recipe: &MixedConfig) -> Vec<String> {
    crate::commands::analyze::names(&recipe.members.iter().map(PathBuf::from).collect::<Vec<_>>())
}

fn tell(recipe: &MixedConfig, fitted: &Fitted, session: &Session) {
    let names = names(recipe);
    for (class, (weights, value)) in
        fitted.weights.classes.iter().zip(fitted.weights.weights.iter().zip(&fitted.values))
    {
        let parts: Vec<String> =
            names.iter().zip(weights).map(|(name, weight)| format!("{weight:.2} {name}")).collect();
        session
            .output
            .note(format!("weights for {class} labels: {} (F1 on dev {value:.4})", parts.join(", ")));
    }
}

/// The objective over the weight of the second of two members.
fn draw(recipe: &MixedConfig, fitted: &Fitted, folder: &Path) -> anyhow::Result<()> {
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
