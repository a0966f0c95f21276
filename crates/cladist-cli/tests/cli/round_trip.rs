//! From a corpus to a run, its report, its predictions and a comparison, with every head.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{LABELS, Place, closed, column};

/// Names that scripts rely on.
const PROMISED: &[&str] = &[
    "micro-f1",
    "macro-f1",
    "sample-f1",
    "hamming-accuracy",
    "set-accuracy",
    "accuracy",
    "p@1",
    "r@5",
    "rp@5",
    "ndcg@5",
    "psp@5",
    "r-precision-micro",
    "r-precision-macro",
    "r-precision-level-1",
    "r-precision-level-2",
    "hierarchical-f1-micro",
    "hierarchical-f1-macro",
    "few-f@5",
    "ece",
];

fn metric(evaluation: &Value, name: &str) -> f64 {
    evaluation["metrics"][name].as_f64().unwrap_or_else(|| panic!("no {name} in {evaluation:#}"))
}

#[test]
fn every_head_trains_evaluates_and_predicts() {
    let place = Place::with_corpus();
    for head in place.run("heads --json").ok().json().as_array().unwrap() {
        let family = head["family"].as_str().unwrap();
        let neural = family == "neural";
        let head = head["name"].as_str().unwrap();
        // A new encoder has more to learn than the weights of a linear model; sizes that fit 72 documents.
        let needs = match (family, head) {
            ("neural", "sgm") => {
                "--encoder words:32 --epochs 40 --set sgm.hidden=32 --set sgm.layers=1 --set train.learning_rate=5e-3 --set train.output.learning_rate=5e-3"
            }
            ("neural", "enc-dec") => {
                "--encoder words:32 --epochs 40 --set enc-dec.hidden=32 --set train.learning_rate=5e-3 --set train.output.learning_rate=5e-3"
            }
            ("neural", "text-cnn") => "--encoder words:32 --epochs 40 --set text-cnn.layout=kim",
            ("neural", "xml-cnn") => {
                "--encoder words:32 --epochs 40 --set xml-cnn.pieces=4 --set xml-cnn.hidden=64"
            }
            ("neural", "attention-xml") => {
                "--encoder words:32 --epochs 40 --set attention-xml.units=32 --set attention-xml.hidden=[32] --set train.learning_rate=5e-3 --set train.labels.learning_rate=5e-3 --set train.output.learning_rate=5e-3"
            }
            ("neural", "experts") => {
                "--encoder scratch:tiny --learning-rate 2e-3 --epochs 40 --set experts.hidden=[32] --set experts.dropout=0.1"
            }
            ("neural", "hierarchy-gcn") => {
                "--encoder scratch:tiny --learning-rate 2e-3 --epochs 40 --set hierarchy-gcn.node_size=16"
            }
            ("neural", "hierarchy-gat") => {
                "--encoder scratch:tiny --learning-rate 2e-3 --epochs 40 --set hierarchy-gat.node_size=16"
            }
            ("neural", "hi-match") => {
                "--encoder scratch:tiny --learning-rate 2e-3 --epochs 40 --set hi-match.node_size=16"
            }
            ("neural", "label-attention") => {
                "--encoder scratch:tiny --learning-rate 2e-3 --epochs 60 --set label-attention.vector=mean --set train.labels.learning_rate=2e-3"
            }
            ("neural", _) => "--encoder scratch:tiny --learning-rate 2e-3 --epochs 40",
            ("ensemble", _) => "--member svm --member bonsai",
            _ => "",
        };
        let trained =
            place.run(&format!("train --corpus corpus --head {head} {needs} --out {head} --json")).ok();
        let summary = trained.json();
        assert_eq!(summary["documents"], 72, "{summary:#}");
        let said = match family {
            "neural" => "72 documents".to_owned(),
            "ensemble" => "weights for all labels".to_owned(),
            _ => format!("trained {head} on 72 documents"),
        };
        assert!(trained.stderr.contains(&said), "{}", trained.stderr);

        let evaluation = place.run(&format!("evaluate {head} --json")).ok().json();
        assert_eq!(evaluation["head"], head);
        assert_eq!(evaluation["split"], "test");
        assert_eq!(evaluation["n_documents"], 18);
        for name in PROMISED {
            assert!((0.0..=1.0).contains(&metric(&evaluation, name)), "{head} {name}");
        }
        // The words of the topics are easy to tell apart: far better than guessing the most frequent labels. A new encoder
        // cannot be sure of them after 72 documents.
        let (least, first) = if neural { (0.5, 0.6) } else { (0.8, 0.9) };
        assert!(metric(&evaluation, "micro-f1") > least, "{head} {}", metric(&evaluation, "micro-f1"));
        assert!(metric(&evaluation, "p@1") > first, "{head} {}", metric(&evaluation, "p@1"));

        let answer = &place.run_with(&format!("predict {head}"), "the kitten has whiskers").ok().lines()[0];
        let labels: BTreeSet<&str> = column(&answer["labels"], "id").into_iter().collect();
        assert!(labels == closed("cats") || (neural && labels.contains("animals")), "{head}: {labels:?}");
    }
}

#[test]
fn all_metrics_are_finite_numbers() {
    let place = Place::with_run();
    let evaluation = place.run("evaluate run --json").ok().json();
    for (name, value) in evaluation["metrics"].as_object().unwrap() {
        assert!(value.as_f64().is_some_and(f64::is_finite), "{name}: {value}");
    }
}

#[test]
fn a_run_folder_has_settings_data_reports_and_a_bundle() {
    let place = Place::with_run();
    let names = ["bundle", "config.toml", "data.json", "metrics.jsonl", "reports", "summary.json"];
    assert_eq!(place.names("run"), names.map(str::to_owned).into());
    let dev = ["dev-labels.tsv", "dev.html", "dev.json"];
    assert_eq!(place.names("run/reports"), dev.map(str::to_owned).into());
    place.run("evaluate run").ok();
    for name in ["test-labels.tsv", "test.html", "test.json"] {
        assert!(!place.read(&format!("run/reports/{name}")).is_empty(), "{name}");
    }
    let data: Value = serde_json::from_str(&place.read("run/data.json")).unwrap();
    assert_eq!(data["report"]["splits"][0]["tally"]["read"], 72);
    assert_eq!(data["files"].as_object().unwrap().len(), 5);
    let journal: Value = serde_json::from_str(place.read("run/metrics.jsonl").trim()).unwrap();
    assert_eq!(journal["event"], "trained");
    // No label is set aside: one row each, below the head.
    assert_eq!(place.read("run/reports/test-labels.tsv").lines().count(), 1 + LABELS.len());
}

#[test]
fn quiet_says_nothing_and_pipes_see_no_progress_bars() {
    let place = Place::with_corpus();
    let quiet = place.run("train --corpus corpus --out run --quiet").ok();
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    let remarks = place.run("train --corpus corpus --out run --overwrite").ok();
    assert_eq!(remarks.stdout, "");
    assert!(remarks.stderr.contains("the run is in run"), "{}", remarks.stderr);
    assert!(!remarks.stderr.contains(['\r', '\u{1b}']), "{:?}", remarks.stderr);
}

#[test]
fn a_report_for_people_has_the_same_numbers() {
    let place = Place::with_run();
    let evaluation = place.run("evaluate run --json").ok().json();
    let text = place.run("evaluate run --bootstrap 50").ok().stdout;
    for name in ["micro-f1", "macro-f1", "p@1", "ndcg@5", "hierarchical-f1-micro", "ece"] {
        let row = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        assert_eq!(
            row.split_whitespace().nth(1).unwrap(),
            format!("{:.4}", metric(&evaluation, name)),
            "{row}"
        );
    }
    assert!(text.contains("95% interval"), "{text}");
}

#[test]
fn aliases_do_the_same() {
    let place = Place::with_run();
    assert_eq!(place.run("eval run --json").ok().stdout, place.run("evaluate run --json").ok().stdout);
    let text = "a rose with a strong scent";
    assert_eq!(
        place.run_with("suggest run", text).ok().stdout,
        place.run_with("predict run", text).ok().stdout
    );
    assert_eq!(
        place.run_with("predict run --limit 2", text).ok().stdout,
        place.run_with("predict run -k 2", text).ok().stdout
    );
}

#[test]
fn other_splits_conventions_and_files_can_be_evaluated() {
    let place = Place::with_run();
    let dev = place.run("evaluate run --split dev --json").ok().json();
    assert_eq!((&dev["split"], &dev["n_documents"]), (&"dev".into(), &24.into()));
    let other = place.run("evaluate run --test corpus/dev.jsonl --json").ok().json();
    assert_eq!(other["metrics"]["micro-f1"], dev["metrics"]["micro-f1"]);
    let skewed = place.run("evaluate run --split dev --propensity 0.4,2.6 --json").ok().json();
    assert_ne!(skewed["metrics"]["psp@5"], dev["metrics"]["psp@5"]);
    place.run("evaluate run --per-label labels.tsv --macro-over gold").ok();
    assert_eq!(place.read("labels.tsv").lines().count(), 1 + LABELS.len());
    place.run("evaluate run --split exam").fails(78, &["`exam`", "train, dev, test"]);
    place.run("evaluate run --propensity 1,x").fails(78, &["`--propensity`", "1,x"]);
    place.run("evaluate run --macro-over some").fails(78, &["some"]);
}

#[test]
fn the_report_of_a_run_is_of_its_own_documents_and_settings() {
    let place = Place::with_run();
    place.run("evaluate run").ok();
    let before = place.files("run");
    for flags in ["--top-k 1", "--test corpus/dev.jsonl", "--macro-over all"] {
        place.run(&format!("evaluate run {flags}")).ok();
        assert!(place.files("run") == before, "{flags}");
    }
    let seen = place.run("evaluate run --split train --json").ok();
    assert_eq!(seen.json()["seen_in_training"], true);
    assert!(seen.stderr.contains("warning: the model was trained on the train split"), "{}", seen.stderr);
    assert!(place.files("run") == before);
}

#[test]
fn two_runs_are_compared_on_the_same_documents() {
    let place = Place::with_run();
    place.run("train --corpus corpus --out weak --quiet --set features.max_features=3").ok();
    let rows = place.run("compare weak run --resamples 200 --json").ok().json();
    let names = column(&rows, "metric");
    assert!(names.contains(&"micro-f1") && names.contains(&"p@1"), "{names:?}");
    for row in rows.as_array().unwrap() {
        let number = |field: &str| row[field].as_f64().unwrap();
        assert!((number("b") - number("a") - number("difference")).abs() < 1e-9, "{row}");
        assert!((0.0..=1.0).contains(&number("p_value")), "{row}");
    }
    let micro = &rows[names.iter().position(|&name| name == "micro-f1").unwrap()];
    assert!(micro["difference"].as_f64() > Some(0.1) && micro["p_value"].as_f64() < Some(0.05), "{micro}");
    let text = place.run("compare weak run --resamples 200").ok().stdout;
    assert!(text.contains("A: weak") && text.contains("18 documents of test, 200 resamples"), "{text}");

    let same = place.run("compare run run --resamples 50 --json").ok().json();
    assert!(same.as_array().unwrap().iter().all(|row| row["difference"] == 0.0 && row["p_value"] == 1.0));
}

#[test]
fn runs_that_cannot_be_compared_say_why() {
    let place = Place::with_run();
    place.copy("corpus", "other");
    let test = place.read("corpus/test.jsonl");
    place.write("other/test.jsonl", test.lines().skip(1).collect::<Vec<_>>().join("\n"));
    place.run("train --corpus other --out other-run --quiet").ok();
    place.run("compare run other-run").fails(78, &["different documents", "--corpus"]);
    place.run("compare run other-run --corpus corpus --resamples 50").ok();
    place.run("compare run nowhere").fails(66, &["`nowhere` does not exist"]);
}
