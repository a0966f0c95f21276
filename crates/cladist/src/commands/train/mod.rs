//! `cladist train`: from a corpus to a run folder.

mod linear;
mod mixed;
mod neural;
mod seeds;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use cladist_core::bundle::{Draft, MANIFEST, write_atomically};
use cladist_core::calibrate::fit_thresholds;
use cladist_core::corpus::{self, Corpus, CorpusSource, DataReport, Split, SplitName};
use cladist_core::decode::Thresholds;
use cladist_core::pipeline::Pipeline;
use cladist_core::readers::{BadLine, BadLines};
use cladist_core::{Error, Request};
use serde::{Deserialize, Serialize};

pub use crate::results::experiment::Best;

use crate::args::{DecodeArgs, TrainArgs};
use crate::commands::evaluate::{self, Evaluation};
use crate::config::{Common, Recipe, RunConfig, ThresholdSource};
use crate::corpora::{Rejects, source, with_bad_lines};
use crate::decode::settings;
use crate::error::ConfigError;
use crate::judge::Answers;
use crate::memory;
use crate::model::{DataCard, Model};
use crate::output::figure;
use crate::session::Session;
use crate::settings::Settings;

/// What a finished run says of itself: printed by `--json`, kept in `summary.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// The run folder.
    pub run: PathBuf,
    /// Time of training.
    pub seconds: f64,
    /// The most memory that the program needed meanwhile, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mb: Option<u64>,
    /// Training documents.
    pub documents: u64,
    /// Lines that were set aside.
    pub rejected: u64,
    /// What was counted while reading.
    pub data: serde_json::Value,
    /// Metrics on dev, if the model has not seen it.
    pub dev: BTreeMap<String, f64>,
    /// What chose the model among those that training went through, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
}

/// Trains and writes a run folder, or several.
pub fn run(args: &TrainArgs, session: &Session) -> anyhow::Result<()> {
    if args.print_config {
        let config = RunConfig::resolve(args)?;
        return if args.json {
            session.output.json(&config)
        } else {
            session.output.line(toml::to_string(&config)?.trim_end())
        };
    }
    let Some(out) = &args.out else {
        bail!(ConfigError::Missing("no run folder given\nhint: pass `--out RUN`".to_owned()))
    };
    if let Some(n) = args.seeds {
        return seeds::run(args, out, n, session);
    }
    let summary = one(args, out, session)?;
    if args.json {
        session.output.json(&summary)?;
    }
    Ok(())
}

/// One run, new or taken up again.
pub fn one(args: &TrainArgs, out: &Path, session: &Session) -> anyhow::Result<Summary> {
    with_settings(args, || RunConfig::resolve(args), out, session)
}

/// One run, new with these settings or taken up again.
pub fn with_settings(
    args: &TrainArgs,
    settings: impl FnOnce() -> anyhow::Result<RunConfig>,
    out: &Path,
    session: &Session,
) -> anyhow::Result<Summary> {
    memory::forget_peak();
    if args.resume {
        if let Some(summary) = finished(out)? {
            session.output.note(format!("the run in {} is finished", out.display()));
            return Ok(summary);
        }
        if out.join("config.toml").exists() {
            let config: RunConfig = Settings::read(&out.join("config.toml"))?.resolve()?;
            let Recipe::Neural(recipe) = &config.recipe else {
                bail!(ConfigError::Missing(format!("`{}` has no run to resume", out.display())));
            };
            return neural::run(args, &config, recipe, out, session);
        }
        if args.corpus.corpus.is_none() && args.corpus.train.is_none() {
            bail!(ConfigError::NoRun(format!("`{}` has no run to resume", out.display())));
        }
    }
    let config = settings()?;
    check_place(args, out)?;
    match &config.recipe {
        Recipe::Linear(recipe) => linear::run(args, &config, recipe, out, session),
        Recipe::Neural(recipe) => neural::run(args, &config, recipe, out, session),
        Recipe::Mixed(recipe) => mixed::run(args, &config, recipe, out, session),
    }
}

/// Goes through everything that comes before training, so that a corpus, an encoder and a head that do not fit are
/// found out without it. Writes nothing.
pub fn rehearse(args: &TrainArgs, config: &RunConfig, session: &Session) -> anyhow::Result<()> {
    let mut ignore = |_: BadLine| Ok(());
    let mut bad_lines = if args.bad_lines.skip_bad { BadLines::Skip(&mut ignore) } else { BadLines::Stop };
    let source = corpus_of(args, None)?;
    let (corpus, _) = corpus::load(&source, &config.common.data, &mut bad_lines, &session.job())?;
    session.bars.clear();
    match &config.recipe {
        Recipe::Linear(_) | Recipe::Mixed(_) => Ok(()),
        Recipe::Neural(recipe) => neural::rehearse(config, recipe, &corpus, session),
    }
}

/// The summary of a run that was finished before.
pub fn finished(out: &Path) -> anyhow::Result<Option<Summary>> {
    let path = out.join("summary.json");
    if !(out.join("bundle").join(MANIFEST).exists() && path.exists()) {
        return Ok(None);
    }
    let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
    Ok(Some(serde_json::from_slice(&bytes).with_context(|| format!("cannot use `{}`", path.display()))?))
}

/// Refuses a place that is taken, unless it may be replaced.
fn check_place(args: &TrainArgs, out: &Path) -> anyhow::Result<()> {
    let taken = out.exists() && !out.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if taken && out.join("checkpoints").exists() && !args.overwrite {
        bail!(ConfigError::Missing(format!(
            "`{}` has an unfinished run\nhint: go on with `--resume`, or start anew with `--overwrite`",
            out.display()
        )));
    }
    if taken && !args.overwrite {
        bail!(ConfigError::Exists(out.to_owned()));
    }
    if taken
        && !(out.join("config.toml").exists()
            && (out.join("bundle").exists() || out.join("checkpoints").exists()))
    {
        bail!(ConfigError::Missing(format!(
            "`{}` is not a run folder, so it is not replaced",
            out.display()
        )));
    }
    Ok(())
}

/// A corpus with what was learnt about it.
struct Loaded {
    source: CorpusSource,
    corpus: Corpus,
    data: DataReport,
    rejected: u64,
}

/// The corpus that the flags name, or else `known`, with whole paths.
pub fn corpus_of(args: &TrainArgs, known: Option<CorpusSource>) -> anyhow::Result<CorpusSource> {
    let source = absolute(source(&args.corpus, known)?)?;
    if source.train.is_empty() {
        bail!(ConfigError::Missing("the corpus has no train split\nhint: pass `--train FILE`".to_owned()));
    }
    Ok(source)
}

/// Reads that corpus.
fn load(
    args: &TrainArgs,
    config: &RunConfig,
    known: Option<CorpusSource>,
    rejects: &Path,
    session: &Session,
) -> anyhow::Result<Loaded> {
    let source = corpus_of(args, known)?;
    let mut rejects = Rejects::new(args.bad_lines.rejects.as_deref().unwrap_or(rejects));
    let (corpus, data) = with_bad_lines(args.bad_lines.skip_bad, &mut rejects, |bad| {
        corpus::load(&source, &config.common.data, bad, &session.job())
    })?;
    session.bars.clear();
    session.output.note(&data);
    Ok(Loaded { source, corpus, data, rejected: rejects.len() as u64 })
}

/// What a run remembers of its corpus.
fn data_card(loaded: &Loaded) -> anyhow::Result<DataCard> {
    let Loaded { source, data, .. } = loaded;
    Ok(DataCard { source: source.clone(), files: hashes(source)?, report: serde_json::to_value(data)? })
}

/// Calibration, and thresholds with what they reach, chosen on dev.
fn choose(
    pipeline: &mut Pipeline,
    common: &Common,
    dev: Option<&Split>,
    session: &Session,
) -> anyhow::Result<(Thresholds, Option<f64>)> {
    let Some(dev) = dev.filter(|dev| !dev.documents.is_empty()) else {
        return Ok((common.decode.threshold.clone(), None));
    };
    session.job().progress.stage("score dev", dev.documents.len() as u64);
    let request = Request { job: session.job(), ..Request::default() };
    let raw = pipeline.raw_scores(&dev.documents, &request)?;
    let model = std::sync::Arc::clone(&pipeline.model);
    let taxonomy = model.taxonomy();
    pipeline.calibration = common.calibrate.fit(&raw, &dev.gold, taxonomy)?;
    if common.thresholds == ThresholdSource::Fixed {
        return Ok((common.decode.threshold.clone(), None));
    }
    let scores = pipeline.calibration.apply(raw, taxonomy);
    let scores = common.decode.build(taxonomy)?.prepare(scores);
    let fitted = fit_thresholds(&scores, &dev.gold, taxonomy, &common.fit_thresholds)?;
    Ok((fitted.thresholds, Some(fitted.value)))
}

/// Judges a model on dev and writes the report, unless it has seen dev: then the figures would flatter.
fn report_on_dev(
    model: &Model,
    loaded: &Loaded,
    out: &Path,
    reports: &Path,
    session: &Session,
) -> anyhow::Result<Option<Evaluation>> {
    let dev = loaded.corpus.dev.as_ref().filter(|dev| !dev.documents.is_empty());
    let seen = model.training.splits.contains(&SplitName::Dev);
    let Some(dev) = dev.filter(|_| !seen) else { return Ok(None) };
    let answers = Answers::new(model, dev, &DecodeArgs::default(), session)?;
    let report = answers.report(&model.config.common.metrics, session)?;
    session.bars.clear();
    let files = loaded.data.split(SplitName::Dev).map(|split| split.files.clone()).unwrap_or_default();
    let evaluation = Evaluation {
        run: out.display().to_string(),
        head: model.config.head().to_owned(),
        split: SplitName::Dev,
        files,
        seen_in_training: false,
        decode: settings(model, &DecodeArgs::default(), false),
        intervals: Vec::new(),
        report,
    };
    evaluate::save(reports, &evaluation, session)?;
    let value = |name: &str| figure(evaluation.report.metrics.get(name).copied());
    session.output.note(format!(
        "on dev: micro-F1 {}, macro-F1 {}, P@1 {}",
        value("micro-f1"),
        value("macro-f1"),
        value("p@1")
    ));
    Ok(Some(evaluation))
}

impl Summary {
    fn new(
        out: &Path,
        seconds: f64,
        model: &Model,
        loaded: &Loaded,
        card: DataCard,
        dev: BTreeMap<String, f64>,
    ) -> Self {
        let documents = model.counts.n_documents as u64;
        let run = out.to_owned();
        let (peak_mb, rejected) = (memory::peak_mb(), loaded.rejected);
        Self { run, seconds, peak_mb, documents, rejected, data: card.report, dev, best: None }
    }
}

/// Writes what a run came to and moves its folder into place.
fn finish(
    draft: Draft,
    overwrite: bool,
    record: &serde_json::Value,
    summary: Summary,
    session: &Session,
) -> anyhow::Result<Summary> {
    draft.write("metrics.jsonl", format!("{record}\n").as_bytes())?;
    draft.write("summary.json", &serde_json::to_vec_pretty(&summary)?)?;
    if overwrite {
        draft.commit()?;
    } else {
        draft.publish()?;
    }
    farewell(&summary.run, summary.rejected, session);
    Ok(summary)
}

/// Tells about lines set aside and where the run is.
fn farewell(out: &Path, rejected: u64, session: &Session) {
    if rejected > 0 {
        session
            .output
            .warn(format!("{rejected} lines were rejected, see {}", out.join("rejects.jsonl").display()));
    }
    session.output.note(format!("the run is in {}", out.display()));
}

/// A file of a run folder as JSON.
fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    write_atomically(path, &serde_json::to_vec_pretty(value)?)?;
    Ok(())
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
pub fn hashes(source: &CorpusSource) -> anyhow::Result<BTreeMap<String, String>> {
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
