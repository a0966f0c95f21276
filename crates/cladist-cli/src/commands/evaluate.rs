//! `cladist evaluate`: score a split and report.

use std::collections::BTreeMap;

use cladist::folders::REPORTS;
use cladist::results::{HEADLINE, HEADS_OF_GROUPS, cells, four_decimals};
use cladist::settings::Settings;
use cladist::{DecodeOptions, EvaluateOptions, Evaluation, Model, OpenOptions, reports};
use cladist_core::metrics::{BranchRow, MetricOptions, Report};

use crate::args::EvaluateArgs;
use crate::decode;
use crate::error::Usage;
use crate::flags::{read_split, split_name};
use crate::output::Table;
use crate::session::Session;

/// Evaluates a run.
pub fn run(args: &EvaluateArgs, session: &Session) -> anyhow::Result<()> {
    let model = Model::open(&args.run, &OpenOptions { set: args.set.clone(), ..session.open() })?;
    let name = split_name(&args.split)?;
    let (split, data) = read_split(&model, &args.corpus, &args.bad_lines, name, session)?;
    if args.bad_lines.skip_bad || data.unknown_labels.labels > 0 {
        session.output.note(&data);
    }
    let metrics = metric_options(&model, args)?;
    let seen_in_training = model.trained_on().splits.contains(&name) && !args.corpus.names_documents();
    if seen_in_training {
        session.output.warn(format!("the model was trained on the {name} split: these figures flatter it"));
    }
    let decode = decode::options(&model, &args.decode, session);
    // The run's own report is of its own documents, decoded as it was trained to.
    let own = decode == DecodeOptions::default()
        && args.set.is_empty()
        && !args.corpus.names_documents()
        && metrics == model.config().common.metrics
        && !seen_in_training;
    let options =
        EvaluateOptions { decode, metrics: Some(metrics), bootstrap: args.bootstrap, work: session.work() };
    let mut evaluation = model.evaluate(&split, &options)?;
    session.view.clear();
    evaluation.files = data.split(name).map(|split| split.files.clone()).unwrap_or_default();
    evaluation.seen_in_training = seen_in_training;
    if let Some(path) = &args.per_label {
        reports::write_labels(path, &evaluation.report)?;
    }
    match model.folder() {
        Some(folder) if own => reports::save(&folder.join(REPORTS), &evaluation, &session.work()),
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

fn metric_options(model: &Model, args: &EvaluateArgs) -> anyhow::Result<MetricOptions> {
    let mut settings = Settings::of(&model.config().common.metrics)?;
    if let Some(labels) = &args.macro_over {
        settings.set("labels", labels.as_str())?;
    }
    if let Some(propensity) = &args.propensity {
        match propensity.split_once(',') {
            Some((a, b)) => {
                let number = |text: &str| {
                    text.trim().parse::<f64>().map_err(|_| Usage::Value {
                        flag: "--propensity",
                        expected: "a preset or two numbers such as `0.55,1.5`",
                        value: propensity.clone(),
                    })
                };
                let numbers: BTreeMap<&str, f64> = [("a", number(a)?), ("b", number(b)?)].into();
                settings.set("propensity", toml::Value::try_from(numbers)?)?;
            }
            None => settings.set("propensity", propensity.as_str())?,
        }
    }
    Ok(settings.resolve()?)
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
        let mut row = vec![name.to_owned(), four_decimals(Some(value))];
        row.extend(interval.map(|i| format!("{:.4} – {:.4}", i.low, i.high)));
        table.row(row);
    }
    session.output.line(&table)?;
    if report.per_level.len() > 1 {
        let heads = ["level"].into_iter().chain(HEADS_OF_GROUPS).chain(["R-Precision"]);
        let mut table = Table::new(1, heads);
        for row in &report.per_level {
            let first = [row.level.to_string()].into_iter();
            table.row(first.chain(cells(&row.scores)).chain([four_decimals(row.r_precision)]));
        }
        session.output.line(format!("\n{table}"))?;
    }
    if !report.per_branch.is_empty() {
        session.output.line(format!("\n{}", by_branch(report)))?;
    }
    let k = report.shots.iter().map(|row| row.k).filter(|&k| k <= 5).max();
    let mut table = Table::new(1, ["training documents", "labels", "P@k", "R@k", "F@k", "never in top k"]);
    for row in report.shots.iter().filter(|row| Some(row.k) == k) {
        let mean = |value: Option<f64>| four_decimals(value);
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
        table.row(first.chain(cells(&row.scores)).chain([four_decimals(Some(row.hierarchical_f1))]));
    }
    match rows.len().saturating_sub(SHOWN) {
        0 => table.to_string(),
        more => format!("{table}\n{more} more branches are on the page and in the JSON"),
    }
}
