//! The page of an experiment: the table, a picture of it, and everything behind it.

use std::fmt::Write;

use super::{COLOURS, STYLE, escape};
use crate::commands::experiment::{Results, Row, Shown, Swept};

/// The page.
#[must_use]
pub fn experiment(results: &Results, curves: Option<&str>) -> String {
    let mut page = String::new();
    let title = escape(&results.experiment);
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1><p class=soft>{} · {}</p>{}<section><h2>{}</h2>",
        escape(&results.description),
        escape(&results.corpus.join(", ")),
        if results.finished {
            String::new()
        } else {
            format!("<p><b>Not finished: {} of {} runs are done.</b></p>", results.n_done, results.n_runs)
        },
        escape(&results.caption()),
    );
    for (title, rows, columns) in results.parts() {
        if !title.is_empty() {
            let _ = write!(page, "<h3>{}</h3>", escape(title));
        }
        table(&mut page, results, &rows, &columns);
    }
    if let Some(words) = &results.significance {
        let _ = write!(page, "<p class=soft>{}</p>", escape(words));
    }
    page.push_str("</section>");
    picture(&mut page, results);
    if let Some(curves) = curves {
        let _ = write!(page, "<section><h2>Training</h2>{curves}</section>");
    }
    if let Some(swept) = &results.sweep {
        sweep(&mut page, swept, results);
    }
    tests(&mut page, results);
    page.push_str("<h2>Runs</h2>");
    results.variants.iter().for_each(|row| runs(&mut page, row, results));
    page.push_str("<h2>Settings</h2>");
    for row in &results.variants {
        let _ = write!(
            page,
            "<details><summary>{}</summary><pre class=scroll>{}</pre></details>",
            escape(&row.name),
            escape(&row.settings)
        );
    }
    page.push_str("</html>\n");
    page
}

fn table(page: &mut String, results: &Results, rows: &[&Row], columns: &[&Shown]) {
    page.push_str("<table><tr><th>variant");
    if results.has_choice() {
        page.push_str("<th class=text>settings");
    }
    for column in columns {
        let _ = write!(page, "<th>{}", escape(&column.label));
    }
    page.push_str("<th>runs<th>seconds<th>peak MB");
    for row in rows {
        let _ = write!(page, "<tr><td>{}", escape(&row.name));
        if results.has_choice() {
            let _ = write!(page, "<td class=text>{}", escape(&row.choice()));
        }
        for column in columns {
            match row.values.get(&column.metric) {
                Some(value) => {
                    let mark = if row.differs(&column.metric) { "*" } else { "" };
                    let _ = write!(page, "<td>{}{mark}", column.text(*value, row.runs.len()));
                }
                None => page.push_str("<td>–"),
            }
        }
        let seconds = row.seconds.map_or_else(|| "–".to_owned(), |seconds| format!("{:.0}", seconds.mean));
        let _ = write!(page, "<td>{}<td>{seconds}<td>{}", row.finished().count(), row.memory());
    }
    page.push_str("</table>");
}

/// A dot for each variant in each column, with a bar of one standard deviation to both sides, and one for each run.
fn picture(page: &mut String, results: &Results) {
    const HEIGHT: f64 = 220.0;
    let columns: Vec<&Shown> = results.columns.iter().filter(|column| column.is_share()).collect();
    let runs = results.variants.iter().flat_map(Row::finished);
    let values =
        runs.flat_map(|run| columns.iter().filter_map(move |column| run.metrics.get(&column.metric)));
    let ends = results.variants.iter();
    let ends = ends.flat_map(|row| columns.iter().filter_map(move |column| row.values.get(&column.metric)));
    let ends = ends.flat_map(|value| [value.mean - value.std, value.mean + value.std]);
    let all: Vec<f64> = values.copied().chain(ends).filter(|value| value.is_finite()).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if all.is_empty() {
        return;
    }
    let range = if high > low { high - low } else { 0.01 };
    let (low, range) = (low - 0.05 * range, 1.1 * range);
    let place = |value: f64| HEIGHT - HEIGHT * (value - low) / range;
    let group = 14.0 * results.variants.len() as f64 + 26.0;
    let width = group * columns.len() as f64;
    let _ = write!(
        page,
        "<section><h2>The same as a picture</h2><p class=soft>dots: means; bars: one standard deviation; rings: runs</p>\
         <svg width={:.0} height=290 role=img><g transform='translate(52,12)'><path class=axis fill=none d='M0 0V{HEIGHT}H{width:.0}'/>",
        width.max(110.0 * results.variants.len() as f64) + 70.0
    );
    for n in 0..=4 {
        let value = low + range * f64::from(n) / 4.0;
        let y = place(value);
        let _ = write!(
            page,
            "<path class=axis d='M-4 {y:.1}H0'/><text x=-8 y={:.1} text-anchor=end>{:.1}</text>",
            y + 4.0,
            100.0 * value
        );
    }
    for (n, column) in columns.iter().enumerate() {
        let start = group * n as f64;
        let _ = write!(
            page,
            "<text x={:.1} y={:.0} text-anchor=middle>{}</text>",
            start + group / 2.0,
            HEIGHT + 18.0,
            escape(&column.label)
        );
        for (k, row) in results.variants.iter().enumerate() {
            dot(page, row, column, COLOURS[k % COLOURS.len()], start + 20.0 + 14.0 * k as f64, &place);
        }
    }
    for (k, row) in results.variants.iter().enumerate() {
        let colour = COLOURS[k % COLOURS.len()];
        let _ = write!(
            page,
            "<circle cx={} cy={:.0} r=4 fill='{colour}'/><text x={} y={:.0}>{}</text>",
            110 * k + 4,
            HEIGHT + 42.0,
            110 * k + 13,
            HEIGHT + 46.0,
            escape(&row.name)
        );
    }
    page.push_str("</g></svg></section>");
}

fn dot(page: &mut String, row: &Row, column: &Shown, colour: &str, x: f64, place: &impl Fn(f64) -> f64) {
    let Some(value) = row.values.get(&column.metric) else { return };
    let runs: Vec<f64> = row.finished().filter_map(|run| run.metrics.get(&column.metric).copied()).collect();
    if runs.len() > 1 {
        let (top, bottom) = (place(value.mean + value.std), place(value.mean - value.std));
        let _ = write!(
            page,
            "<path stroke='{colour}' fill=none d='M{x:.1} {top:.1}V{bottom:.1}M{:.1} {top:.1}H{:.1}M{:.1} {bottom:.1}H{:.1}'/>",
            x - 3.0,
            x + 3.0,
            x - 3.0,
            x + 3.0
        );
        for run in &runs {
            let _ = write!(
                page,
                "<circle cx={x:.1} cy={:.1} r=2.5 fill=none stroke='{colour}' stroke-opacity=.6 />",
                place(*run)
            );
        }
    }
    let _ = write!(
        page,
        "<circle cx={x:.1} cy={:.1} r=4 fill='{colour}'><title>{}: {}</title></circle>",
        place(value.mean),
        escape(&row.name),
        column.text(*value, runs.len())
    );
}

fn sweep(page: &mut String, swept: &Swept, results: &Results) {
    let _ = write!(
        page,
        "<section><h2>{} with other settings</h2><table><tr><th>{}",
        escape(&swept.variant),
        escape(&swept.key)
    );
    for column in &results.columns {
        let _ = write!(page, "<th>{}", escape(&column.label));
    }
    page.push_str("<th>seconds");
    for row in &swept.rows {
        let _ = write!(page, "<tr><td>{}", escape(&row.value));
        for column in &results.columns {
            match row.metrics.get(&column.metric) {
                Some(value) => {
                    let _ = write!(page, "<td>{:.1}", 100.0 * value);
                }
                None => page.push_str("<td>–"),
            }
        }
        let _ = write!(page, "<td>{:.1}", row.seconds);
    }
    page.push_str("</table></section>");
}

fn tests(page: &mut String, results: &Results) {
    let tested = || results.variants.iter().filter_map(|row| Some((row, row.tests.as_ref()?)));
    if tested().next().is_none() {
        return;
    }
    let _ = write!(
        page,
        "<h2>Differences to {}</h2><table><tr><th>variant<th class=text>metric<th>difference<th>95% interval<th>p",
        escape(&results.baseline)
    );
    for (row, tests) in tested() {
        for test in &tests.metrics {
            let _ = write!(
                page,
                "<tr><td>{}<td class=text>{}<td>{:+.2}<td>{:+.2} – {:+.2}<td>{:.4}{}",
                escape(&row.name),
                escape(&test.metric),
                100.0 * test.difference,
                100.0 * test.ci_low,
                100.0 * test.ci_high,
                test.p_value,
                if row.differs(&test.metric) { "*" } else { "" }
            );
        }
    }
    page.push_str("</table>");
}

/// Every run of a variant, with a link to its report.
fn runs(page: &mut String, row: &Row, results: &Results) {
    let _ = write!(
        page,
        "<details><summary>{}: {} runs</summary><table><tr><th>settings<th>seed<th>best on dev<th>step<th>seconds<th class=text>report",
        escape(&row.name),
        row.grid.len() + row.runs.len().saturating_sub(1)
    );
    for run in row.grid.iter().chain(row.runs.iter().skip(1)) {
        let words: Vec<String> = run.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let (best, step) = run.best.as_ref().map_or_else(
            || ("–".to_owned(), "–".to_owned()),
            |best| (format!("{} {:.5}", best.monitor, best.value), best.step.to_string()),
        );
        let report = match &run.problem {
            Some(problem) => escape(problem.lines().next().unwrap_or_default()),
            None => {
                let path = escape(&run.folder).replace('%', "%25").replace('#', "%23").replace('\'', "%27");
                let split = results.split;
                format!(
                    "<a href='{path}/reports/{split}.html'>{split}</a> <a href='{path}/report.html'>training</a>"
                )
            }
        };
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{step}<td>{:.0}<td class=text>{report}",
            escape(&words.join(", ")),
            run.seed,
            escape(&best),
            run.seconds
        );
    }
    page.push_str("</table></details>");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_shows_means_runs_and_what_differs() {
        let run = |seed: u64, value: f64| {
            json!({"folder": format!("<v>/as-given/seed-{seed}"), "settings": {}, "seed": seed, "seconds": 1.0,
                   "best": {"monitor": "loss", "step": 3, "value": 0.25}, "metrics": {"micro-f1": value},
                   "levels": 1, "documents": 4, "model": "m"})
        };
        let test = json!({"metric": "micro-f1", "a": 0.5, "b": 0.75, "difference": 0.25, "ci_low": 0.1,
                          "ci_high": 0.4, "p_value": 0.01});
        let results: Results = serde_json::from_value(json!({
            "experiment": "x", "description": "a < b", "finished": false, "n_done": 2, "n_runs": 3, "corpus": ["c"],
            "measure": "F1", "split": "test", "documents": 4, "seeds": [1, 2], "baseline": "flat",
            "significance": "* differs", "columns": [{"label": "micro", "metric": "micro-f1"}],
            "variants": [{"name": "<v>", "definition": {}, "chosen": {"rate": "0.1"}, "settings": "head = 1",
                "values": {"micro-f1": {"mean": 0.75, "std": 0.05}}, "seconds": {"mean": 1.0, "std": 0.0},
                "tests": {"metrics": [test], "seeds": [1, 2], "models": [], "documents": 4, "resamples": 10},
                "runs": [run(1, 0.7), run(2, 0.8)], "grid": [run(1, 0.7)]}],
        }))
        .unwrap();
        let page = experiment(&results, None);
        assert!(page.contains("75.0 ± 5.0*") && page.contains("2 of 3 runs") && page.contains("rate 0.1"));
        assert!(page.contains("a &lt; b") && !page.contains("<v>") && !page.contains("NaN"));
        assert_eq!(page.matches("seed-2/reports/test.html").count(), 1);
        assert_eq!(page.matches("<circle").count(), 4, "a mean, two runs and the legend");
        let empty = Results { variants: Vec::new(), ..results };
        assert!(!experiment(&empty, None).contains("<svg"));
    }
}
