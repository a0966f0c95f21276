//! `cladist evaluate`: score a split and report.

use std::collections::BTreeMap;
use std::path::Path;

use cladist_core::bundle::write_atomically;
use cladist_core::corpus::{self, DataReport, Split, SplitName};
use cladist_core::metrics::bootstrap::{ResampleOptions, bootstrap};
use cladist_core::metrics::{BranchRow, MetricOptions, Report};

pub use crate::results::{Evaluation, HEADLINE, HEADS_OF_GROUPS, cells};

use crate::args::{BadLineArgs, CorpusArgs, DecodeArgs, EvaluateArgs};
use crate::config::corpus_settings;
use crate::corpora::{Rejects, source, with_bad_lines};
use crate::decode::settings;
use crate::error::ConfigError;
use crate::html;
use crate::judge::Answers;
use crate::model::{self, Run};
use crate::output::{Table, figure};
use crate::session::Session;
use crate::settings::Settings;

/// Evaluates a run.
pub fn run(args: &EvaluateArgs, session: &Session) -> anyhow::Result<()> {
    let run = model::open_with(&args.run, &args.set, session)?;
    let (split, data) = load_split(&run, &args.corpus, &args.bad_lines, &args.split, session)?;
    if args.bad_lines.skip_bad || data.unknown_labels.labels > 0 {
        session.output.note(&data);
    }
    let options = metric_options(&run, args)?;
    let seen_in_training = run.model.training.splits.contains(&split.name) && !args.corpus.names_documents();
    if seen_in_training {
        session
            .output
            .warn(format!("the model was trained on the {} split: these figures flatter it", split.name));
    }
    let answers = Answers::new(&run.model, &split, &args.decode, session)?;
    let report = answers.report(&options, session)?;
    let intervals = match args.bootstrap {
        Some(resamples) => {
            let resample = ResampleOptions { resamples, ..ResampleOptions::default() };
            bootstrap(&answers.judged(), &options, &resample, &session.job())?
        }
        None => Vec::new(),
    };
    session.bars.clear();
    let evaluation = Evaluation {
        run: args.run.display().to_string(),
        head: run.model.config.head().to_owned(),
        split: split.name,
        files: data.split(split.name).map(|split| split.files.clone()).unwrap_or_default(),
        seen_in_training,
        decode: settings(&run.model, &args.decode, false),
        intervals,
        report,
    };
    if let Some(path) = &args.per_label {
        write_labels(path, &evaluation.report)?;
    }
    // The run's own report is of its own documents, decoded as it was trained to.
    let own = args.decode == DecodeArgs::default()
        && args.set.is_empty()
        && !args.corpus.names_documents()
        && options == run.model.config.common.metrics
        && !seen_in_training;
    match &run.folder {
        Some(folder) if own => save(&folder.join("reports"), &evaluation, session)?,
        Some(_) => {
            session.output.note("other documents or settings than the run's own: its report stays as it is");
        }
        None => {}
    }
    if args.json {
        let brief = Report { per_label: Vec::new(), ..evaluation.report };
        return session.output.json(&Evaluation { report: brief, ..evaluation });
    }
    print(&evaluation, session)
}

/// Judges a run on a split of its own corpus, decoded as it was trained to, and keeps the report in its folder. Bad
/// lines go into the folder too, if they are skipped.
pub fn own(
    run: &Run,
    folder: &Path,
    split: SplitName,
    bad_lines: &BadLineArgs,
    session: &Session,
) -> anyhow::Result<Evaluation> {
    let (split, data) = own_split(run, folder, split, bad_lines, session)?;
    let decode = DecodeArgs::default();
    let answers = Answers::new(&run.model, &split, &decode, session)?;
    let report = answers.report(&run.model.config.common.metrics, session)?;
    session.bars.clear();
    let evaluation = Evaluation {
        run: folder.display().to_string(),
        head: run.model.config.head().to_owned(),
        split: split.name,
        files: data.split(split.name).map(|split| split.files.clone()).unwrap_or_default(),
        seen_in_training: run.model.training.splits.contains(&split.name),
        decode: settings(&run.model, &decode, false),
        intervals: Vec::new(),
        report,
    };
    save(&folder.join("reports"), &evaluation, session)?;
    Ok(evaluation)
}

/// Loads a split of a run's own corpus; bad lines go into its folder, if they are skipped.
pub fn own_split(
    run: &Run,
    folder: &Path,
    split: SplitName,
    bad_lines: &BadLineArgs,
    session: &Session,
) -> anyhow::Result<(Split, DataReport)> {
    let rejects = folder.join(format!("rejects-{split}.jsonl"));
    let bad_lines = BadLineArgs { rejects: bad_lines.rejects.clone().or(Some(rejects)), ..bad_lines.clone() };
    load_split(run, &CorpusArgs::default(), &bad_lines, &split.to_string(), session)
}

/// Loads a split for a model: its policies, unless flags say otherwise.
pub fn load_split(
    run: &Run,
    args: &CorpusArgs,
    bad_lines: &BadLineArgs,
    split: &str,
    session: &Session,
) -> anyhow::Result<(Split, DataReport)> {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Section {
        data: corpus::DataConfig,
    }
    let name: SplitName = split.parse().map_err(|_| {
        let known = SplitName::ALL.map(|name| name.to_string()).join(", ");
        ConfigError::UnknownChoice { what: "split", name: split.to_owned(), known }
    })?;
    let source = source(args, run.source.clone())?;
    let mut layers = Settings::of(&Section { data: run.model.config.common.data.clone() })?;
    corpus_settings(&mut layers, args)?;
    let config = layers.resolve::<Section>()?.data;
    let mut rejects = Rejects::new(&bad_lines.path());
    let loaded = with_bad_lines(bad_lines.skip_bad, &mut rejects, |bad| {
        corpus::load_split(&source, name, run.model.taxonomy(), &config, bad, &session.job())
    })?;
    rejects.tell(session);
    Ok(loaded)
}

fn metric_options(run: &Run, args: &EvaluateArgs) -> anyhow::Result<MetricOptions> {
    let mut settings = Settings::of(&run.model.config.common.metrics)?;
    if let Some(labels) = &args.macro_over {
        settings.set("labels", labels.as_str())?;
    }
    if let Some(propensity) = &args.propensity {
        match propensity.split_once(',') {
            Some((a, b)) => {
                let number =
                    |text: &str| {
                        text.trim().parse::<f64>().map_err(|_| ConfigError::Missing(format!(
                        "`--propensity {propensity}` must be a preset or two numbers such as `0.55,1.5`"
                    )))
                    };
                let numbers: BTreeMap<&str, f64> = [("a", number(a)?), ("b", number(b)?)].into();
                settings.set("propensity", toml::Value::try_from(numbers)?)?;
            }
            None => settings.set("propensity", propensity.as_str())?,
        }
    }
    settings.resolve()
}

fn write_labels(path: &Path, report: &Report) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    report.per_label_tsv(&mut bytes)?;
    write_atomically(path, &bytes)?;
    Ok(())
}

/// Writes `SPLIT.json`, `SPLIT.html` and `SPLIT-labels.tsv`.
pub fn save(folder: &Path, evaluation: &Evaluation, session: &Session) -> anyhow::Result<()> {
    let written = std::fs::create_dir_all(folder)
        .map_err(cladist_core::Error::io("create", folder))
        .map_err(anyhow::Error::from)
        .and_then(|()| {
            let path = |ending: &str| folder.join(format!("{}{ending}", evaluation.split));
            write_atomically(&path(".json"), &serde_json::to_vec_pretty(evaluation)?)?;
            write_atomically(&path(".html"), html::report(evaluation)?.as_bytes())?;
            write_labels(&path("-labels.tsv"), &evaluation.report)
        });
    if written.is_ok() {
        // A run is drafted beside its place; its report will be where the run is said to be.
        let place = Path::new(&evaluation.run).join("reports").join(format!("{}.html", evaluation.split));
        session.output.note(format!("report: {}", place.display()));
    }
    if let Err(error) = written {
        // The figures are not lost: they go to the terminal.
        session.output.warn(format!("the report was not saved: {error}"));
    }
    Ok(())
}

/// Prints the tables.
pub fn print(evaluation: &Evaluation, session: &Session) -> anyhow::Result<()> {
    let Evaluation { report, intervals, split, head, .. } = evaluation;
    session.output.line(format!(
        "{head} on {split}: {} documents ({} with gold), {} labels\n",
        report.n_documents, report.n_with_gold, report.n_labels
    ))?;
    let heads: &[&str] =
        if intervals.is_empty() { &["metric", "value"] } else { &["metric", "value", "95% interval"] };
    let mut table = Table::new(1, heads.iter().copied());
    for &name in HEADLINE {
        let Some(&value) = report.metrics.get(name) else { continue };
        let interval = intervals.iter().find(|interval| interval.metric == name);
        let mut row = vec![name.to_owned(), figure(Some(value))];
        row.extend(interval.map(|i| format!("{:.4} – {:.4}", i.low, i.high)));
        table.row(row);
    }
    session.output.line(&table)?;
    if report.per_level.len() > 1 {
        let heads = ["level"].into_iter().chain(HEADS_OF_GROUPS).chain(["R-Precision"]);
        let mut table = Table::new(1, heads);
        for row in &report.per_level {
            let first = [row.level.to_string()].into_iter();
            table.row(first.chain(cells(&row.scores)).chain([figure(row.r_precision)]));
        }
        session.output.line(format!("\n{table}"))?;
    }
    if !report.per_branch.is_empty() {
        session.output.line(format!("\n{}", by_branch(report)))?;
    }
    let k = report.shots.iter().map(|row| row.k).filter(|&k| k <= 5).max();
    let mut table = Table::new(1, ["training documents", "labels", "P@k", "R@k", "F@k", "never in top k"]);
    for row in report.shots.iter().filter(|row| Some(row.k) == k) {
        let mean = |value: Option<f64>| figure(value);
        table.row([
            row.class.to_string(),
            row.labels.to_string(),
            mean(row.all.map(|m| m.p)),
            mean(row.all.map(|m| m.r)),
            mean(row.all.map(|m| m.f)),
            row.unpredicted.to_string(),
        ]);
    }
    if let (false, Some(k)) = (table.is_empty(), k) {
        session
            .output
            .line(format!("\nlabel-macro averages by number of training documents, k = {k}\n{table}"))?;
    }
    session.output.note("\nConventions:");
    for (name, words) in &report.conventions {
        session.output.note(format!("  {name}: {words}"));
    }
    Ok(())
}

/// The branches with most gold labels.
fn by_branch(report: &Report) -> String {
    const SHOWN: usize = 12;
    let heads = ["branch"].into_iter().chain(HEADS_OF_GROUPS).chain(["F1 with ancestors"]);
    let mut table = Table::new(1, heads);
    let mut rows: Vec<&BranchRow> = report.per_branch.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.scores.gold));
    for row in rows.iter().take(SHOWN) {
        let first = [row.name.clone()].into_iter();
        table.row(first.chain(cells(&row.scores)).chain([figure(Some(row.hierarchical_f1))]));
    }
    match rows.len().saturating_sub(SHOWN) {
        0 => table.to_string(),
        more => format!("{table}\n{more} more branches are on the page and in the JSON"),
    }
}
