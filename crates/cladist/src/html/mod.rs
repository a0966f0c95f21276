//! A report as one self-contained page: tables, and pictures where people would rather look than read.

mod explain;
mod training;

use std::fmt::Write;

use cladist_core::decode::{DecodeConfig, Rule, Thresholds};
use cladist_core::metrics::{LabelRow, ReliabilityBin, Report};

use crate::results::{Evaluation, HEADLINE, HEADS_OF_GROUPS, cells, figure};

pub use explain::explain;
pub use training::training;

/// Colours of things shown together.
pub const COLOURS: [&str; 8] =
    ["#2f6f9f", "#c2571a", "#3c8c4a", "#8a4fa3", "#b08a1e", "#b8385e", "#2b9a95", "#7a6a5c"];

/// The style of all pages.
pub const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c2430; --soft: #667; --line: #d6dae2; --fill: #2f6f9f; --back: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ef; --soft: #9aa4b5; --line: #3a4250; --fill: #6fb1de; --back: #14181f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2.2rem; } .soft { color: var(--soft); }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem .2rem 0; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, td.text, th.text { text-align: left; } th { font-weight: 600; }
.columns { display: flex; flex-wrap: wrap; gap: 3rem; align-items: flex-start; }
svg:not(.figure) text { fill: var(--soft); font-size: 11px; } svg .axis { stroke: var(--line); } svg .mark { fill: var(--fill); fill-opacity: .7; } svg .guide { stroke: var(--soft); stroke-dasharray: 4 4; }
dt { font-weight: 600; } dd { margin: 0 0 .5rem 0; } .scroll { max-height: 32rem; overflow: auto; } section { max-width: 100%; overflow-x: auto; }
";

/// The page of an evaluation.
#[must_use]
pub fn report(evaluation: &Evaluation) -> String {
    let Evaluation { run, head, split, report, intervals, files, seen_in_training, decode } = evaluation;
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1>\
         <p class=soft>{run} · {} documents, {} with gold · {} labels · {}</p>{}<div class=columns><section><h2>Metrics</h2><table>\
         <tr><th>metric<th>value{}",
        report.n_documents,
        report.n_with_gold,
        report.n_labels,
        escape(&files.join(", ")),
        if *seen_in_training {
            "<p><b>The model was trained on these documents: the figures flatter it.</b></p>"
        } else {
            ""
        },
        if intervals.is_empty() { "" } else { "<th>95% interval" },
        title = escape(&format!("{head} on {split}")),
        run = escape(run),
    );
    for &name in HEADLINE {
        let Some(&value) = report.metrics.get(name) else { continue };
        let _ = write!(page, "<tr><td>{name}<td>{}", figure(Some(value)));
        match intervals.iter().find(|interval| interval.metric == name) {
            Some(interval) => {
                let _ = write!(page, "<td>{:.4} – {:.4}", interval.low, interval.high);
            }
            None if !intervals.is_empty() => page.push_str("<td>"),
            None => {}
        }
    }
    page.push_str("</table></section><section>");
    levels(&mut page, report);
    branches(&mut page, report);
    shots(&mut page, report);
    reliability(&mut page, &report.reliability);
    frequency(&mut page, &report.per_label);
    page.push_str("</section></div>");
    labels(&mut page, &report.per_label);
    page.push_str("<h2>All metrics</h2><div class=scroll><table><tr><th>metric<th>value");
    for (name, value) in &report.metrics {
        let _ = write!(page, "<tr><td>{}<td>{value:.6}", escape(name));
    }
    page.push_str("</table></div><h2>Conventions</h2><dl>");
    for (name, words) in &report.conventions {
        let _ = write!(page, "<dt>{}<dd>{}", escape(name), escape(words));
    }
    let _ = write!(page, "<dt>decoding<dd>{}", escape(&decoding(decode)));
    page.push_str("</dl></html>\n");
    page
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

fn levels(page: &mut String, report: &Report) {
    if report.per_level.len() < 2 {
        return;
    }
    let heads = HEADS_OF_GROUPS.join("<th>");
    let _ = write!(page, "<h2>By level</h2><table><tr><th>level<th>{heads}<th>R-Precision");
    for row in &report.per_level {
        let cells = cells(&row.scores).join("<td>");
        let _ = write!(page, "<tr><td>{}<td>{cells}<td>{}", row.level, figure(row.r_precision));
    }
    page.push_str("</table>");
}

fn branches(page: &mut String, report: &Report) {
    if report.per_branch.is_empty() {
        return;
    }
    let heads = HEADS_OF_GROUPS.join("<th>");
    let _ = write!(
        page,
        "<h2>By branch</h2><table><tr><th class=text>branch<th>{heads}<th>hierarchical F1<th>macro"
    );
    for row in &report.per_branch {
        let cells = cells(&row.scores).join("<td>");
        let (micro, of_labels) = (figure(Some(row.hierarchical_f1)), figure(row.hierarchical_macro_f1));
        let _ = write!(page, "<tr><td class=text>{}<td>{cells}<td>{micro}<td>{of_labels}", escape(&row.name));
    }
    page.push_str("</table>");
}

fn shots(page: &mut String, report: &Report) {
    if report.shots.is_empty() {
        return;
    }
    page.push_str(
        "<h2>By number of training documents</h2><table><tr><th>class<th>k<th>labels<th>P@k<th>R@k<th>F@k<th>never in top k",
    );
    let mut rows: Vec<_> = report.shots.iter().filter(|row| row.labels > 0).collect();
    rows.sort_by_key(|row| {
        (["zero", "few", "medium", "many"].iter().position(|class| *class == row.class), row.k)
    });
    for row in rows {
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
            row.class,
            row.k,
            row.labels,
            figure(row.all.map(|m| m.p)),
            figure(row.all.map(|m| m.r)),
            figure(row.all.map(|m| m.f)),
            row.unpredicted
        );
    }
    page.push_str("</table>");
}

/// A square of 260 with axes from 0 to 1.
fn axes(page: &mut String, x: &str, y: &str, ends: [&str; 2]) {
    let _ = write!(
        page,
        "<svg width=330 height=310 role=img><g transform='translate(44,8)'><path class=axis fill=none d='M0 0V260H260'/>\
         <text x=0 y=276>{}</text><text x=260 y=276 text-anchor=end>{}</text><text x=-16 y=262>0</text><text x=-16 y=8>1</text>\
         <text x=130 y=292 text-anchor=middle>{x}</text><text transform='translate(-28,130) rotate(-90)' text-anchor=middle>{y}</text>",
        ends[0], ends[1]
    );
}

fn reliability(page: &mut String, bins: &[ReliabilityBin]) {
    if bins.is_empty() {
        return;
    }
    page.push_str("<h2>Do probabilities mean what they say?</h2>");
    axes(page, "probability", "share that is right", ["0", "1"]);
    page.push_str("<path class=guide d='M0 260L260 0'/>");
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(1) as f64;
    for bin in bins {
        let size = 3.0 + 7.0 * ((bin.count as f64 + 1.0).ln() / (most + 1.0).ln());
        let _ = write!(
            page,
            "<circle class=mark cx={:.1} cy={:.1} r={size:.1}><title>{} pairs: probability {:.3}, right {:.3}</title></circle>",
            260.0 * bin.mean_score,
            260.0 * (1.0 - bin.gold_share),
            bin.count,
            bin.mean_score,
            bin.gold_share
        );
    }
    page.push_str("</g></svg>");
}

fn frequency(page: &mut String, labels: &[LabelRow]) {
    let most = labels.iter().map(|row| row.train).max().unwrap_or(0);
    if most < 2 {
        return;
    }
    page.push_str("<h2>F1 against training documents</h2>");
    axes(page, "training documents (logarithmic)", "F1", ["1", &most.to_string()]);
    // Thousands of points say no more than two thousand of them.
    let step = labels.len().div_ceil(2000);
    for row in labels.iter().filter(|row| row.train > 0 && row.support > 0).step_by(step.max(1)) {
        let x = 260.0 * f64::from(row.train).ln() / f64::from(most).ln();
        let _ = write!(
            page,
            "<circle class=mark cx={x:.1} cy={:.1} r=3><title>{}: {} training documents, F1 {:.3}</title></circle>",
            260.0 * (1.0 - row.f1),
            escape(&row.name),
            row.train,
            row.f1
        );
    }
    page.push_str("</g></svg>");
}

fn labels(page: &mut String, labels: &[LabelRow]) {
    const SHOWN: usize = 1000;
    let mut rows: Vec<&LabelRow> = labels.iter().filter(|row| row.support > 0).collect();
    rows.sort_by(|a, b| b.support.cmp(&a.support).then_with(|| a.id.cmp(&b.id)));
    if rows.is_empty() {
        return;
    }
    let _ = write!(page, "<h2>Labels</h2><p class=soft>{} with gold", rows.len());
    if rows.len() > SHOWN {
        let _ = write!(page, ", the {SHOWN} most frequent shown; the rest is in the table of labels");
    }
    page.push_str("</p><div class=scroll><table><tr><th>label<th class=text>name<th>level<th>train<th>gold<th>predicted<th>precision<th>recall<th>F1");
    for row in rows.into_iter().take(SHOWN) {
        let _ = write!(
            page,
            "<tr><td>{}<td class=text>{}<td>{}<td>{}<td>{}<td>{}<td>{:.3}<td>{:.3}<td>{:.3}",
            escape(&row.id),
            escape(&row.name),
            row.level,
            row.train,
            row.support,
            row.predicted,
            row.precision,
            row.recall,
            row.f1
        );
    }
    page.push_str("</table></div>");
}

/// Text that is safe between tags.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
