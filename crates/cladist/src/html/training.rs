//! The page of a training run: curves of what was measured on the way, and what came out.

use std::collections::BTreeMap;
use std::fmt::Write;

use cladist_nn::train::Outcome;
use cladist_nn::train::journal::{Kind, Record};

use super::{COLOURS, STYLE, escape};
use crate::results::{Evaluation, HEADLINE, figure};

/// Pictures: their title, and the values they show of train and of dev.
const PICTURES: &[(&str, &[&str], &[&str])] = &[
    ("Loss", &["loss"], &["loss"]),
    ("F1 on dev", &[], &["micro-f1", "macro-f1", "sample-f1"]),
    ("Ranking on dev", &[], &["p@1", "p@5", "r-precision-micro", "ndcg@5"]),
    ("Learning rate", &["rate-encoder", "rate-labels", "rate-output"], &[]),
    ("Norm of the gradient", &["gradient-norm"], &[]),
    ("Documents per second", &["documents-per-second"], &[]),
];

/// The page.
#[must_use]
pub fn training(
    run: &str,
    config: &str,
    outcome: &Outcome,
    records: &[Record],
    evaluation: Option<&Evaluation>,
) -> String {
    let mut page = String::new();
    let best = outcome
        .best
        .map_or_else(String::new, |(step, value)| format!(" · best on dev at step {step} ({value:.4})"));
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>{run}</title><style>{STYLE}</style><h1>{run}</h1><p class=soft>{} updates in {:.0} s{best}{}{}</p><div class=columns>",
        outcome.steps,
        outcome.seconds,
        if outcome.stopped_early { " · stopped early" } else { "" },
        if outcome.skipped > 0 { format!(" · {} batches skipped", outcome.skipped) } else { String::new() },
        run = escape(run),
    );
    for (title, train, dev) in PICTURES {
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for (kind, word, names) in [(Kind::Train, "train", train), (Kind::Dev, "dev", dev)] {
            for &name in *names {
                let points = points(records, kind, name);
                if !points.is_empty() {
                    lines.push((format!("{word} {name}"), points));
                }
            }
        }
        picture(&mut page, title, &lines);
    }
    page.push_str("</div>");
    terms(&mut page, records);
    dev_table(&mut page, records);
    if let Some(evaluation) = evaluation {
        page.push_str("<h2>The finished model on dev</h2><p class=soft>with calibration and thresholds as they are kept; reports/dev.html has more</p><table><tr><th>metric<th>value");
        for &name in HEADLINE {
            if let Some(&value) = evaluation.report.metrics.get(name) {
                let _ = write!(page, "<tr><td>{name}<td>{}", figure(Some(value)));
            }
        }
        page.push_str("</table>");
    }
    let _ = writeln!(page, "<h2>Settings</h2><pre class=scroll>{}</pre></html>", escape(config));
    page
}

fn points(records: &[Record], kind: Kind, name: &str) -> Vec<(f64, f64)> {
    let of_kind = records.iter().filter(|record| record.kind == kind);
    of_kind
        .filter_map(|record| Some((record.step as f64, *record.values.get(name)?)))
        .filter(|(_, value)| value.is_finite())
        .collect()
}

/// Lines over steps, with the smallest and largest value at the axis.
fn picture(page: &mut String, title: &str, lines: &[(String, Vec<(f64, f64)>)]) {
    let all: Vec<(f64, f64)> = lines.iter().flat_map(|(_, points)| points.iter().copied()).collect();
    let Some(&(first, _)) = all.first() else { return };
    let fold = |start: f64, f: fn(f64, f64) -> f64, pick: fn(&(f64, f64)) -> f64| {
        all.iter().map(pick).fold(start, f)
    };
    let (left, right) = (fold(first, f64::min, |p| p.0), fold(first, f64::max, |p| p.0));
    let (low, high) = (fold(f64::INFINITY, f64::min, |p| p.1), fold(f64::NEG_INFINITY, f64::max, |p| p.1));
    let (width, height) = ((right - left).max(1.0), if high > low { high - low } else { 1.0 });
    let _ = write!(
        page,
        "<section><h2>{title}</h2><svg width=420 height=264 role=img><g transform='translate(64,8)'>\
         <path class=axis fill=none d='M0 0V200H340'/><text x=-6 y=8 text-anchor=end>{}</text>\
         <text x=-6 y=202 text-anchor=end>{}</text><text x=0 y=216>{left}</text><text x=340 y=216 text-anchor=end>{right}</text>\
         <text x=170 y=216 text-anchor=middle>step</text>",
        short(high),
        short(low)
    );
    for (n, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        // More points than pixels say nothing more.
        let step = points.len().div_ceil(680).max(1);
        let place = |&(x, y): &(f64, f64)| {
            format!("{:.1},{:.1}", 340.0 * (x - left) / width, 200.0 - 200.0 * (y - low) / height)
        };
        let path: Vec<String> = points.iter().step_by(step).map(place).collect();
        let _ = write!(
            page,
            "<polyline fill=none stroke='{colour}' stroke-width=1.5 points='{}'/><text x={} y={} style='fill:{colour}'>{}</text>",
            path.join(" "),
            n % 3 * 115,
            234 + n / 3 * 15,
            escape(name)
        );
        for point in points.iter().filter(|_| points.len() <= 40) {
            let (x, y) = (340.0 * (point.0 - left) / width, 200.0 - 200.0 * (point.1 - low) / height);
            let _ = write!(
                page,
                "<circle cx={x:.1} cy={y:.1} r=3 fill='{colour}'><title>step {}: {}</title></circle>",
                point.0,
                short(point.1)
            );
        }
    }
    page.push_str("</g></svg></section>");
}

/// The terms of the loss, if there is more than one.
fn terms(page: &mut String, records: &[Record]) {
    let known = ["loss", "gradient-norm", "documents-per-second", "tokens-per-second"];
    let mut names: BTreeMap<&str, ()> = BTreeMap::new();
    for record in records.iter().filter(|record| record.kind == Kind::Train) {
        let own =
            record.values.keys().filter(|name| !known.contains(&name.as_str()) && !name.starts_with("rate-"));
        names.extend(own.map(|name| (name.as_str(), ())));
    }
    if names.len() > 1 {
        let lines: Vec<_> =
            names.keys().map(|name| ((*name).to_owned(), points(records, Kind::Train, name))).collect();
        picture(page, "Terms of the loss", &lines);
    }
}

/// Every evaluation on dev in a row.
fn dev_table(page: &mut String, records: &[Record]) {
    let dev: Vec<&Record> = records.iter().filter(|record| record.kind == Kind::Dev).collect();
    if dev.is_empty() {
        return;
    }
    let names = ["loss", "micro-f1", "macro-f1", "p@1", "r-precision-micro"];
    page.push_str("<h2>Dev on the way</h2><table><tr><th>step<th>epoch");
    for name in names {
        let _ = write!(page, "<th>{name}");
    }
    page.push_str("<th>seconds");
    for record in dev {
        let _ = write!(page, "<tr><td>{}<td>{}", record.step, record.epoch + 1);
        for name in names {
            let _ = write!(page, "<td>{}", figure(record.values.get(name).copied()));
        }
        let _ = write!(page, "<td>{:.0}", record.seconds);
    }
    page.push_str("</table>");
}

fn short(value: f64) -> String {
    if value != 0.0 && (value.abs() < 1e-3 || value.abs() >= 1e5) {
        format!("{value:.1e}")
    } else {
        format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_show_what_the_journal_holds() {
        let record = |step, kind, loss| Record {
            step,
            epoch: 0,
            kind,
            values: [("loss".to_owned(), loss), ("micro-f1".to_owned(), 0.5)].into(),
            seconds: 1.0,
        };
        let records =
            [record(1, Kind::Train, 0.75), record(2, Kind::Train, f64::NAN), record(2, Kind::Dev, 0.5)];
        let outcome =
            Outcome { steps: 2, seconds: 3.0, skipped: 1, best: Some((2, 0.5)), stopped_early: true };
        let page = training("a<b", "x = \"<y>\"", &outcome, &records, None);
        assert!(page.contains("a&lt;b") && page.contains("&lt;y&gt;") && !page.contains("<y>"));
        assert!(
            page.contains("0.75") && page.contains("stopped early") && page.contains("1 batches skipped")
        );
        assert!(page.contains("train loss") && page.contains("dev micro-f1") && !page.contains("NaN"));
        // Without records there are no pictures, but there is a page.
        assert!(!training("run", "", &outcome, &[], None).contains("<svg"));
    }
}
