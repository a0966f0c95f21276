//! The page of an evaluation: tables, and pictures where people would rather look than read.

use askama::Template;
use cladist_core::decode::{DecodeConfig, Rule, Thresholds};
use cladist_core::metrics::{LabelRow, ReliabilityBin, Report};

use super::table::{Table, numbers, text};
use super::{PageError, render};
use crate::figure::{Plot, Spot, Svg};
use crate::results::{Evaluation, HEADLINE, HEADS_OF_GROUPS, cells, four_decimals};

/// Labels in the table.
const SHOWN: usize = 1000;
/// Thousands of points say no more than two thousand of them.
const POINTS: usize = 2000;

#[derive(Template)]
#[template(path = "report.html", whitespace = "minimize")]
struct Page<'a> {
    title: String,
    evaluation: &'a Evaluation,
    headline: Table,
    groups: Vec<(&'static str, Table)>,
    pictures: Vec<(&'static str, Svg)>,
    labels: Option<(String, Table)>,
    metrics: Table,
    decoding: String,
}

/// The page of an evaluation.
pub fn report(evaluation: &Evaluation) -> Result<String, PageError> {
    let report = &evaluation.report;
    let mut metrics = Table::new([text("metric"), numbers("value")]);
    for (name, value) in &report.metrics {
        metrics.row([name.clone(), format!("{value:.6}")]);
    }
    render(&Page {
        title: format!("{} on {}", evaluation.head, evaluation.split),
        evaluation,
        headline: headline(evaluation),
        groups: [levels(report), branches(report), shots(report)].into_iter().flatten().collect(),
        pictures: [reliability(&report.reliability), frequency(&report.per_label)]
            .into_iter()
            .flatten()
            .collect(),
        labels: labels(&report.per_label),
        metrics,
        decoding: decoding(&evaluation.decode),
    })
}

fn headline(evaluation: &Evaluation) -> Table {
    let intervals = &evaluation.intervals;
    let mut table = Table::new([text("metric"), numbers("value")]);
    if !intervals.is_empty() {
        table.columns.push(numbers("95% interval"));
    }
    for &name in HEADLINE {
        let Some(&value) = evaluation.report.metrics.get(name) else { continue };
        let mut row = vec![name.to_owned(), four_decimals(Some(value))];
        if !intervals.is_empty() {
            let interval = intervals.iter().find(|interval| interval.metric == name);
            row.push(interval.map_or_else(String::new, |i| format!("{:.4} – {:.4}", i.low, i.high)));
        }
        table.row(row);
    }
    table
}

fn levels(report: &Report) -> Option<(&'static str, Table)> {
    let heads = ["level"].into_iter().chain(HEADS_OF_GROUPS).chain(["R-Precision"]);
    let mut table = Table::new(heads.map(numbers));
    for row in &report.per_level {
        let first = [row.level.to_string()].into_iter();
        table.row(first.chain(cells(&row.scores)).chain([four_decimals(row.r_precision)]));
    }
    (report.per_level.len() > 1).then_some(("By level", table))
}

fn branches(report: &Report) -> Option<(&'static str, Table)> {
    let heads = HEADS_OF_GROUPS.into_iter().chain(["hierarchical F1", "macro"]);
    let mut table = Table::new([text("branch")].into_iter().chain(heads.map(numbers)));
    for row in &report.per_branch {
        let first = [row.name.clone()].into_iter();
        let last = [Some(row.hierarchical_f1), row.hierarchical_macro_f1].map(four_decimals);
        table.row(first.chain(cells(&row.scores)).chain(last));
    }
    (!report.per_branch.is_empty()).then_some(("By branch", table))
}

fn shots(report: &Report) -> Option<(&'static str, Table)> {
    let heads = ["k", "labels", "P@k", "R@k", "F@k", "never in top k"];
    let mut table = Table::new([text("class")].into_iter().chain(heads.map(numbers)));
    let mut rows: Vec<_> = report.shots.iter().filter(|row| row.labels > 0).collect();
    rows.sort_by_key(|row| {
        (["zero", "few", "medium", "many"].iter().position(|class| *class == row.class), row.k)
    });
    for row in rows {
        let [p, r, f] = [row.all.map(|m| m.p), row.all.map(|m| m.r), row.all.map(|m| m.f)].map(four_decimals);
        let counts = [row.k, row.labels].map(|count| count.to_string());
        let first = [row.class.clone()].into_iter().chain(counts);
        table.row(first.chain([p, r, f, row.unpredicted.to_string()]));
    }
    (!report.shots.is_empty()).then_some(("By number of training documents", table))
}

fn reliability(bins: &[ReliabilityBin]) -> Option<(&'static str, Svg)> {
    let title = "Do probabilities mean what they say?";
    let most = bins.iter().map(|bin| bin.count).max()?.max(1) as f64;
    let points = bins.iter().map(|bin| Spot {
        place: [bin.mean_score, bin.gold_share],
        radius: 3.0 + 7.0 * ((bin.count as f64 + 1.0).ln() / (most + 1.0).ln()),
        title: format!("{} pairs: probability {:.3}, right {:.3}", bin.count, bin.mean_score, bin.gold_share),
    });
    let plot = Plot {
        title,
        across: "probability",
        up: "share that is right",
        ticks: Plot::shares(),
        diagonal: true,
        points: points.collect(),
    };
    Some((title, plot.draw().to_svg()))
}

fn frequency(labels: &[LabelRow]) -> Option<(&'static str, Svg)> {
    let title = "F1 against training documents";
    let most = labels.iter().map(|row| row.train).max().filter(|&most| most > 1)?;
    let place = |count: u32| f64::from(count).ln() / f64::from(most).ln();
    let powers = (0..9).map(|power| 10u32.pow(power)).take_while(|&power| power <= most);
    // The largest count stands at the end, where no power of ten is in its way.
    let powers = powers.filter(|&power| place(power) < 0.85).chain([most]);
    let shown = labels.iter().filter(|row| row.train > 0 && row.support > 0);
    let points = shown.step_by(labels.len().div_ceil(POINTS).max(1)).map(|row| Spot {
        place: [place(row.train), row.f1],
        radius: 3.0,
        title: format!("{}: {} training documents, F1 {:.3}", row.name, row.train, row.f1),
    });
    let plot = Plot {
        title,
        across: "training documents (logarithmic)",
        up: "F1",
        ticks: powers.map(|count| (place(count), count.to_string())).collect(),
        diagonal: false,
        points: points.collect(),
    };
    Some((title, plot.draw().to_svg()))
}

fn labels(labels: &[LabelRow]) -> Option<(String, Table)> {
    let mut rows: Vec<&LabelRow> = labels.iter().filter(|row| row.support > 0).collect();
    rows.sort_by(|a, b| b.support.cmp(&a.support).then_with(|| a.id.cmp(&b.id)));
    let mut note = format!("{} with gold", rows.len());
    if rows.len() > SHOWN {
        note += &format!(", the {SHOWN} most frequent shown; the rest is in the table of labels");
    }
    let heads = ["level", "train", "gold", "predicted", "precision", "recall", "F1"].map(numbers);
    let mut table = Table::new([text("label"), text("name")].into_iter().chain(heads));
    for row in rows.iter().take(SHOWN) {
        let counts = [row.level as u64, row.train.into(), row.support.into(), row.predicted.into()];
        let shares = [row.precision, row.recall, row.f1].map(|value| format!("{value:.3}"));
        let first = [row.id.clone(), row.name.clone()].into_iter();
        table.row(first.chain(counts.map(|count| count.to_string())).chain(shares));
    }
    (!rows.is_empty()).then_some((note, table))
}

/// How label sets were chosen, in words.
fn decoding(decode: &DecodeConfig) -> String {
    let threshold = match &decode.threshold {
        _ if decode.rule == Rule::PredictedCount => "as many labels as predicted".to_owned(),
        Thresholds::One(value) => format!("threshold {value:.3}"),
        Thresholds::PerLevel(values) => format!("thresholds by level {values:.3?}"),
        Thresholds::PerLabel(own) => {
            format!("thresholds of {} labels, {:.3} for others", own.labels.len(), own.default)
        }
    };
    let DecodeConfig {
        rule: _,
        threshold: _,
        top_k,
        at_least,
        floor,
        closure,
        coherence,
        coarser_when_unsure,
        include,
        exclude,
    } = decode;
    let named = |what: &str, ids: &[String]| match ids {
        [] => String::new(),
        ids => format!("; {what} {}", ids.join(", ")),
    };
    let filter = named("only", include) + &named("without", exclude);
    let top_k = top_k.map_or_else(|| "any number".to_owned(), |k| format!("at most {k}"));
    format!(
        "{threshold}; {top_k} of labels, at least {at_least}, none at {floor} or below; closure {closure:?}, \
         coherence {coherence}, coarser when unsure {coarser_when_unsure}{filter}"
    )
}
