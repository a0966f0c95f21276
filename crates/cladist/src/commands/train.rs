//! `cladist train`: from a corpus to a run folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use cladist_core::bundle::Draft;
use cladist_core::calibrate::fit_thresholds;
use cladist_core::corpus::{self, Corpus, CorpusSource, DataReport, Split, SplitName};
use cladist_core::linear::LinearModel;
use cladist_core::pipeline::Pipeline;
use cladist_core::{Document, Error, LabelCounts, LabelSet, Request};
use serde_json::json;

use crate::args::{DecodeArgs, TrainArgs};
use crate::commands::evaluate::{self, Evaluation};
use crate::config::{Refit, RunConfig, ThresholdSource};
use crate::corpora::{Rejects, source, with_bad_lines};
use crate::decode::settings;
use crate::error::ConfigError;
use crate::judge::Answers;
use crate::model::{self, DataCard, Model, Training};
use crate::output::figure;
use crate::session::Session;

/// Trains and writes a run folder.
pub fn run(args: &TrainArgs, session: &Session) -> anyhow::Result<()> {
    let config = RunConfig::resolve(args)?;
    if args.print_config {
        return if args.json {
            session.output.json(&config)
        } else {
            session.output.line(toml::to_string(&config)?.trim_end())
        };
    }
    let Some(out) = &args.out else {
        bail!(ConfigError::Missing("no run folder given\nhint: pass `--out RUN`".to_owned()))
    };
    let taken = out.exists() && !out.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if taken && !args.overwrite {
        bail!(ConfigError::Exists(out.clone()));
    }
    if taken && !(out.join("config.toml").exists() && out.join("bundle").exists()) {
        bail!(ConfigError::Missing(format!(
            "`{}` is not a run folder, so it is not replaced",
            out.display()
        )));
    }
    let source = absolute(source(&args.corpus, None)?)?;
    if source.train.is_empty() {
        bail!(ConfigError::Missing("the corpus has no train split\nhint: pass `--train FILE`".to_owned()));
    }
    // Everything is written beside the run folder and moved in at the end.
    let draft = Draft::create(out)?;
    let rejects_path = args.bad_lines.rejects.clone();
    let mut rejects = Rejects::new(rejects_path.as_deref().unwrap_or(&draft.path("rejects.jsonl")));
    let start = Instant::now();
    let (corpus, data) = with_bad_lines(args.bad_lines.skip_bad, &mut rejects, |bad| {
        corpus::load(&source, &config.data, bad, &session.job())
    })?;
    session.bars.clear();
    session.output.note(&data);

    let trained = train(&config, &corpus, &data, session)?;
    let seconds = start.elapsed().as_secs_f64();
    session.bars.clear();
    let Trained { model, classifier, dev_value } = trained;
    session.output.note(format!(
        "trained {} on {} documents in {seconds:.1} s: {} features, {} weights",
        serde_json::to_value(config.head)?.as_str().unwrap_or_default(),
        model.counts.n_documents,
        classifier.vectorizer().n_features(),
        classifier.n_weights()
    ));

    draft.write("config.toml", toml::to_string(&config)?.as_bytes())?;
    let files = hashes(&source)?;
    let card = DataCard { source, files, report: serde_json::to_value(&data)? };
    draft.write("data.json", &serde_json::to_vec_pretty(&card)?)?;
    model::save(&draft.path("bundle"), &model, |writer| classifier.save(writer))?;
    // A refitted model has seen dev: a report on it would flatter.
    let refitted = model.training.splits.contains(&SplitName::Dev);
    let mut dev_metrics = BTreeMap::new();
    let dev = corpus.dev.as_ref().filter(|dev| !dev.documents.is_empty());
    if let (Some(dev), false) = (dev, refitted) {
        let answers = Answers::new(&model, dev, &DecodeArgs::default(), session)?;
        let report = answers.report(&config.metrics, session)?;
        session.bars.clear();
        dev_metrics = report.metrics.clone();
        let head = serde_json::to_value(config.head)?.as_str().unwrap_or_default().to_owned();
        let evaluation = Evaluation {
            run: out.display().to_string(),
            head,
            split: SplitName::Dev,
            files: data.split(SplitName::Dev).map(|split| split.files.clone()).unwrap_or_default(),
            seen_in_training: false,
            decode: settings(&model, &DecodeArgs::default(), false),
            intervals: Vec::new(),
            report,
        };
        evaluate::save(&draft.path("reports"), &evaluation, session)?;
        let value = |name: &str| figure(dev_metrics.get(name).copied());
        session.output.note(format!(
            "on dev: micro-F1 {}, macro-F1 {}, P@1 {}",
            value("micro-f1"),
            value("macro-f1"),
            value("p@1")
        ));
    }
    let record = json!({
        "event": "trained", "seconds": seconds, "documents": model.counts.n_documents, "refitted": refitted,
        "features": classifier.vectorizer().n_features(), "weights": classifier.n_weights(),
        "fitted_on_dev": dev_value, "dev": dev_metrics,
    });
    draft.write("metrics.jsonl", format!("{record}\n").as_bytes())?;
    if args.overwrite {
        draft.commit()?;
    } else {
        draft.publish()?;
    }
    if !rejects.is_empty() {
        session.output.warn(format!(
            "{} lines were rejected, see {}",
            rejects.len(),
            out.join("rejects.jsonl").display()
        ));
    }
    session.output.note(format!("the run is in {}", out.display()));
    if args.json {
        session.output.json(&json!({"run": out, "seconds": seconds, "documents": model.counts.n_documents, "rejected": rejects.len(), "data": card.report, "dev": record["dev"]}))?;
    }
    Ok(())
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
    corpus: &Corpus,
    data: &DataReport,
    session: &Session,
) -> anyhow::Result<Trained> {
    let Corpus { taxonomy, train, dev, test: _ } = corpus;
    let train = train.as_ref().context("the corpus has no train split")?;
    let fit = |documents: &[Document], gold: &[LabelSet]| {
        LinearModel::train(&config.recipe(), documents, gold, taxonomy.clone(), &session.job()).map(Arc::new)
    };
    let mut classifier = fit(&train.documents, &train.gold)?;
    let mut thresholds = config.decode.threshold.clone();
    let mut pipeline = Pipeline::new(Arc::clone(&classifier) as _, config.data.normalise);
    let mut dev_value = None;
    if let Some(dev) = dev.as_ref().filter(|dev| !dev.documents.is_empty()) {
        session.job().progress.stage("score dev", dev.documents.len() as u64);
        let request = Request { job: session.job(), ..Request::default() };
        let raw = pipeline.raw_scores(&dev.documents, &request)?;
        pipeline.calibration = config.calibrate.fit(&raw, &dev.gold, taxonomy)?;
        if config.thresholds == ThresholdSource::Fitted {
            let scores = pipeline.calibration.apply(raw, taxonomy);
            let scores = config.decode.build(taxonomy)?.prepare(scores);
            let fitted = fit_thresholds(&scores, &dev.gold, taxonomy, &config.fit_thresholds)?;
            thresholds = fitted.thresholds;
            dev_value = Some(fitted.value);
        }
    }
    let held_out = data.split(SplitName::Train).is_some_and(|split| split.held_out > 0);
    let refit = match config.refit {
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
        model: Model { config: config.clone(), pipeline, thresholds, counts, training },
        classifier,
        dev_value,
    })
}

/// The source with whole paths, so that the run finds its corpus from anywhere.
fn absolute(mut source: CorpusSource) -> anyhow::Result<CorpusSource> {
    let files = source.train.iter_mut().chain(&mut source.dev).chain(&mut source.test);
    for path in files.chain(&mut source.taxonomy).chain(&mut source.names) {
        *path = std::path::absolute(&*path)?;
    }
    Ok(source)
}

/// BLAKE3 of every file; folders are left out.
fn hashes(source: &CorpusSource) -> anyhow::Result<BTreeMap<String, String>> {
    let mut hashes = BTreeMap::new();
    let files = source.train.iter().chain(&source.dev).chain(&source.test);
    for path in files.chain(&source.taxonomy).chain(&source.names).filter(|path| path.is_file()) {
        let mut hasher = blake3::Hasher::new();
        let mut file = File::open(path).map_err(Error::io("read", path))?;
        io::copy(&mut file, &mut hasher).map_err(Error::io("read", path))?;
        hashes.insert(path.display().to_string(), hasher.finalize().to_hex().to_string());
    }
    Ok(hashes)
}
