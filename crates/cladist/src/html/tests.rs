//! Every page from small fixed data: as a whole, and with names that would rather be markup.

use cladist_core::corpus::SplitName;
use cladist_core::decode::DecodeConfig;
use cladist_core::metrics::bootstrap::Interval;
use cladist_core::project::Siblings;
use cladist_nn::train::Outcome;
use cladist_nn::train::journal::{Kind, Record};
use serde_json::json;

use super::*;
use crate::figure::{Chart, Dot, Lines, Scatter, Svg};
use crate::results::experiment::Results;
use crate::results::{ByLabel, ByModel, Evaluation, Explained, Measure, Placed, Plane, Projected, Word};

/// Pages with this name wherever a user's name, text or setting is shown.
fn pages(name: &str) -> [(&'static str, String); 5] {
    [
        ("report", report(&evaluation(name)).unwrap()),
        ("training", a_training(name)),
        ("experiment", experiment(&results(name), Some(&curves(name))).unwrap()),
        ("explain", explain(&explained(name), Measure::Probability).unwrap()),
        ("plane", a_plane(name)),
    ]
}

fn evaluation(name: &str) -> Evaluation {
    let scores = json!({"labels": 3, "gold": 5, "predicted": 4, "precision": 0.75, "recall": 0.6, "f1": 0.6667, "macro_f1": 0.5});
    let group = |own: serde_json::Value| {
        let mut row = scores.clone();
        row.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        row
    };
    let label = |n: u32, support: u32| {
        json!({"id": format!("{name}-{n}"), "name": name, "level": 1, "train": 10 * n, "support": support, "predicted": 2,
               "tp": 1, "precision": 0.5, "recall": 0.25, "f1": 0.3333})
    };
    let means = json!({"p": 0.1, "r": 0.2, "f": 0.15});
    let shot = |class: &str| json!({"class": class, "k": 5, "labels": 2, "present": 1, "unpredicted": 1, "all": means, "only_present": null});
    let bin = |mean: f64, count: u64| json!({"from": 0.0, "count": count, "mean_score": mean, "gold_share": mean / 2.0});
    let report = json!({
        "n_documents": 6, "n_with_gold": 5, "n_labels": 3, "metrics": {"micro-f1": 0.6667, "p@1": 0.5, "other": 0.125},
        "conventions": {"macro": name},
        "per_level": [group(json!({"level": 1, "r_precision": 0.5})), group(json!({"level": 2, "r_precision": null}))],
        "per_branch": [group(json!({"id": "b", "name": name, "hierarchical_f1": 0.5, "hierarchical_macro_f1": null}))],
        "shots": [shot("many"), shot("few")], "reliability": [bin(0.1, 50), bin(0.9, 4)],
        "per_label": [label(1, 2), label(2, 3), label(3, 0)],
    });
    Evaluation {
        run: name.to_owned(),
        head: name.to_owned(),
        split: SplitName::Test,
        files: vec![name.to_owned(), "b.jsonl".to_owned()],
        seen_in_training: true,
        decode: DecodeConfig::default(),
        intervals: vec![Interval { metric: "micro-f1".to_owned(), value: 0.6667, low: 0.6, high: 0.7 }],
        report: serde_json::from_value(report).unwrap(),
    }
}

fn a_training(name: &str) -> String {
    let record = |step, kind, loss: f64| Record {
        step,
        epoch: 0,
        kind,
        values: [("loss", loss), ("micro-f1", 0.5), ("rate-encoder", 2e-5), (name, loss / 2.0), ("kl", 0.01)]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        seconds: 1.0,
    };
    let records = [record(1, Kind::Train, 0.75), record(2, Kind::Train, f64::NAN), record(2, Kind::Dev, 0.5)];
    let outcome = Outcome { steps: 2, seconds: 3.0, skipped: 1, best: Some((2, 0.5)), stopped_early: true };
    training(name, &format!("x = \"{name}\""), &outcome, &records, Some(&evaluation(name))).unwrap()
}

fn results(name: &str) -> Results {
    let run = |seed: u64, value: f64| {
        json!({"folder": format!("{name}/as-given/seed-{seed}"), "settings": {"rate": name}, "seed": seed, "seconds": 1.0,
               "best": {"monitor": "loss", "step": 3, "value": 0.25}, "metrics": {"micro-f1": value},
               "levels": 1, "documents": 4, "model": "m"})
    };
    let mut failed = run(1, 0.0);
    failed.as_object_mut().unwrap().insert("problem".to_owned(), json!(format!("{name}\nmore")));
    let test = json!({"metric": "micro-f1", "a": 0.5, "b": 0.75, "difference": 0.25, "ci_low": 0.1, "ci_high": 0.4,
                      "p_value": 0.01});
    let results = json!({
        "experiment": name, "description": name, "finished": false, "n_done": 2, "n_runs": 3, "corpus": [name],
        "measure": name, "split": "test", "documents": 4, "seeds": [1, 2], "baseline": name, "significance": name,
        "columns": [{"label": name, "metric": "micro-f1"}, {"label": "KL", "metric": "train:kl"}],
        "variants": [{"name": name, "definition": {}, "chosen": {"rate": "0.1"}, "settings": format!("head = {name}"),
            "values": {"micro-f1": {"mean": 0.75, "std": 0.05}}, "seconds": {"mean": 1.0, "std": 0.0},
            "tests": {"metrics": [test], "seeds": [1, 2], "models": [], "documents": 4, "resamples": 10},
            "runs": [run(1, 0.7), run(2, 0.8)], "grid": [run(1, 0.7), failed]}],
        "views": [{"title": name, "variants": [], "metrics": ["micro-f1"]}],
        "sweep": {"variant": name, "key": name, "model": null,
                  "rows": [{"value": name, "metrics": {"micro-f1": 0.5}, "seconds": 1.0}]},
    });
    serde_json::from_value(results).unwrap()
}

fn curves(name: &str) -> Svg {
    let values = [0.5, 0.75];
    let panels = vec![Lines { name, floor: 0.0, values: vec![Some(&values)] }];
    let chart =
        Chart { title: name, axis: name, places: Vec::new(), at: Vec::new(), names: vec![name], panels };
    chart.draw().to_svg()
}

fn explained(name: &str) -> Vec<Explained> {
    let text = format!("gold {name} 金!");
    let (start, end) = (5, 5 + name.chars().count());
    let word = |text: &str, start, end, importance| Word { text: text.to_owned(), start, end, importance };
    let words =
        vec![word("gold", 0, 4, 0.004), word(name, start, end, 0.3), word("金", end + 1, end + 2, -0.06)];
    let label = ByLabel { id: name.to_owned(), name: name.to_owned(), score: 0.9, words };
    let silent = ByLabel { id: "b".to_owned(), name: "B".to_owned(), score: 0.1, words: Vec::new() };
    let model = ByModel { run: name.to_owned(), labels: vec![label, silent] };
    vec![Explained { id: name.to_owned(), text, models: vec![model] }]
}

fn a_plane(name: &str) -> String {
    let label = |n: u32| Placed {
        id: format!("{name}{n}"),
        name: name.to_owned(),
        branch: Some(0),
        train: 10 * n,
        x: f64::from(n),
        y: f64::from(n * n),
        nearest: name.to_owned(),
        cosine: 0.5,
        relation: Some("sibling"),
    };
    let projected = Projected {
        bundle: name.to_owned(),
        name: name.to_owned(),
        head: name.to_owned(),
        plane: Plane::Pca { variance: [0.5, 0.25] },
        siblings: Some(Siblings { n_labels: 3, share: 0.5, chance: 0.2 }),
        n_labels: 3,
        n_untrained: 2,
        n_left_out: 0,
        branches: vec![name.to_owned(), "other".to_owned()],
        labels: (1..4).map(label).collect(),
    };
    let points = projected.labels.iter().map(|label| Dot {
        place: [label.x, label.y],
        group: 0,
        size: 0.5,
        name: &label.name,
        title: projected.describe(label),
    });
    let points = points.collect();
    let scatter = Scatter { title: name, note: name, kind: "branches", groups: vec![name, "other"], points };
    plane(&projected, &scatter.draw().to_svg()).unwrap()
}

#[test]
fn pages_are_as_they_were() {
    // The style is not part of what a page says.
    insta::with_settings!({filters => vec![(r"(?s)<style>.*?</style>", "<style>…</style>")]}, {
        for (kind, page) in pages("Motor cars & <toys>") {
            insta::assert_snapshot!(kind, page);
        }
    });
}

#[test]
fn no_name_becomes_markup() {
    let name = "<script>alert(1)</script>\"'&";
    for (kind, page) in pages(name) {
        assert!(!page.contains("<script") && !page.contains("</script"), "{kind}: {page}");
        assert!(
            page.contains("script&#62;alert(1)") || page.contains("script&gt;alert(1)"),
            "{kind}: {page}"
        );
        // Nor do quotes end an attribute.
        assert!(!page.contains("&#62;\"") && !page.contains("&#62;'"), "{kind}: {page}");
        assert!(!page.contains("NaN"), "{kind}: {page}");
    }
}

#[test]
fn templates_take_nothing_as_it_is() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let template = std::fs::read_to_string(&path).unwrap();
        for way_out in ["|safe", "| safe", "escape(\"none\")", "<svg", "<path"] {
            assert!(!template.contains(way_out), "`{way_out}` is in {}", path.display());
        }
    }
}

#[test]
fn pages_need_nothing_else_and_have_a_language() {
    for (kind, page) in pages("a") {
        assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">"), "{kind}: {page}");
        assert!(
            !page.contains("src=") && !page.replace("xmlns=\"http", "").contains("http"),
            "{kind}: {page}"
        );
        assert!(
            page.contains("prefers-color-scheme: dark") && page.contains("@media print"),
            "{kind}: {page}"
        );
        assert!(page.trim_end().ends_with("</html>"), "{kind}: {page}");
    }
}

#[test]
fn what_is_missing_is_left_out() {
    let outcome = Outcome { steps: 0, seconds: 0.0, skipped: 0, best: None, stopped_early: false };
    assert!(!training("run", "", &outcome, &[], None).unwrap().contains("<svg"));
    let empty = Results { variants: Vec::new(), ..results("a") };
    assert!(!experiment(&empty, None).unwrap().contains("<svg"));
}

#[test]
fn an_experiment_shows_means_runs_and_what_differs() {
    let page = experiment(&results("<v>"), None).unwrap();
    for text in ["75.0 ± 5.0*", "2 of 3 runs", "rate 0.1", "%3Cv%3E/as-given/seed-2/reports/test.html"] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert_eq!(page.matches("<circle").count(), 3, "a mean and two runs");
}

#[test]
fn a_small_importance_has_no_colour() {
    let page = explain(&explained("name"), Measure::Probability).unwrap();
    for text in [
        "<span title=\"+0.004\">gold</span> <span class=\"for-3\" title=\"+0.300\">name</span>",
        "<span class=\"against-2\" title=\"-0.060\">金</span>!</p>",
        "name +0.300, 金 -0.060, gold +0.004",
        "no word matters alone",
        "<span class=\"for-1\">0.01 to 0.05</span>",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
}
