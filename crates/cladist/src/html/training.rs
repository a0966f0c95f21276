//! The page of a training run: curves of what was measured meanwhile, and what came out.

use std::collections::BTreeSet;

use askama::Template;
use cladist_nn::train::Outcome;
use cladist_nn::train::journal::{Kind, Record};

use super::table::{Table, numbers, text};
use super::{PageError, render};
use crate::figure::{Curve, Curves, Svg};
use crate::results::{Evaluation, HEADLINE, four_decimals};

/// Pictures: their title, and the values they show of train and of dev.
const PICTURES: &[(&str, &[&str], &[&str])] = &[
    ("Loss", &["loss"], &["loss"]),
    ("F1 on dev", &[], &["micro-f1", "macro-f1", "sample-f1"]),
    ("Ranking on dev", &[], &["p@1", "p@5", "r-precision-micro", "ndcg@5"]),
    ("Learning rate", &["rate-encoder", "rate-labels", "rate-output"], &[]),
    ("Norm of the gradient", &["gradient-norm"], &[]),
    ("Documents per second", &["documents-per-second"], &[]),
];

/// Values of training that are no terms of the loss.
const NO_TERMS: [&str; 4] = ["loss", "gradient-norm", "documents-per-second", "tokens-per-second"];

/// Columns of evaluations on dev.
const ON_DEV: [&str; 5] = ["loss", "micro-f1", "macro-f1", "p@1", "r-precision-micro"];

#[derive(Template)]
#[template(path = "training.html", whitespace = "minimize")]
struct Page<'a> {
    run: &'a str,
    facts: Vec<String>,
    pictures: Vec<(&'static str, Svg)>,
    dev: Option<Table>,
    finished: Option<Table>,
    settings: &'a str,
}

/// The page of a training run: its folder, its settings as TOML, what came of it, its journal and, if it was judged, how.
pub fn training(
    run: &str,
    settings: &str,
    outcome: &Outcome,
    records: &[Record],
    evaluation: Option<&Evaluation>,
) -> Result<String, PageError> {
    let pictures = (PICTURES.iter())
        .filter_map(|(title, train, dev)| {
            let train = curves(records, Kind::Train, "train ", train.iter().copied());
            let dev = curves(records, Kind::Dev, "dev ", dev.iter().copied());
            picture(title, train.chain(dev).collect())
        })
        .chain(terms(records));
    render(&Page {
        run,
        facts: facts(outcome),
        pictures: pictures.collect(),
        dev: dev_table(records),
        finished: evaluation.map(finished),
        settings,
    })
}

fn facts(outcome: &Outcome) -> Vec<String> {
    let mut facts = vec![format!("{} updates in {:.0} s", outcome.steps, outcome.seconds)];
    facts.extend(outcome.best.map(|(step, value)| format!("best on dev at step {step} ({value:.4})")));
    facts.extend(outcome.stopped_early.then(|| "stopped early".to_owned()));
    facts.extend((outcome.skipped > 0).then(|| format!("{} batches skipped", outcome.skipped)));
    facts
}

/// Lines of those values that the journal has.
fn curves<'a>(
    records: &'a [Record],
    kind: Kind,
    prefix: &'a str,
    names: impl Iterator<Item = &'a str> + 'a,
) -> impl Iterator<Item = Curve> + 'a {
    let points = move |name: &str| -> Vec<(f64, f64)> {
        let of_kind = records.iter().filter(|record| record.kind == kind);
        of_kind
            .filter_map(|record| Some((record.step as f64, *record.values.get(name)?)))
            .filter(|(_, value)| value.is_finite())
            .collect()
    };
    names
        .map(move |name| Curve { name: format!("{prefix}{name}"), points: points(name) })
        .filter(|curve| !curve.points.is_empty())
}

fn picture(title: &'static str, lines: Vec<Curve>) -> Option<(&'static str, Svg)> {
    (!lines.is_empty()).then(|| (title, Curves { title, axis: "step", lines }.draw().to_svg()))
}

/// The terms of the loss, if there is more than one.
fn terms(records: &[Record]) -> Option<(&'static str, Svg)> {
    let values =
        records.iter().filter(|record| record.kind == Kind::Train).flat_map(|record| record.values.keys());
    let names: BTreeSet<&str> = values
        .map(String::as_str)
        .filter(|name| !NO_TERMS.contains(name) && !name.starts_with("rate-"))
        .collect();
    if names.len() < 2 {
        return None;
    }
    picture("Terms of the loss", curves(records, Kind::Train, "", names.into_iter()).collect())
}

/// Every evaluation on dev in a row.
fn dev_table(records: &[Record]) -> Option<Table> {
    let heads = ["step", "epoch"].into_iter().chain(ON_DEV).chain(["seconds"]);
    let mut table = Table::new(heads.map(numbers));
    for record in records.iter().filter(|record| record.kind == Kind::Dev) {
        let first = [record.step.to_string(), (record.epoch + 1).to_string()].into_iter();
        let values = ON_DEV.map(|name| four_decimals(record.values.get(name).copied()));
        table.row(first.chain(values).chain([format!("{:.0}", record.seconds)]));
    }
    (!table.rows.is_empty()).then_some(table)
}

fn finished(evaluation: &Evaluation) -> Table {
    let mut table = Table::new([text("metric"), numbers("value")]);
    for &name in HEADLINE {
        if let Some(&value) = evaluation.report.metrics.get(name) {
            table.row([name.to_owned(), four_decimals(Some(value))]);
        }
    }
    table
}
