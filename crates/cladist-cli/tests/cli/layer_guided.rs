//! Levels of the taxonomy at layers of the encoder, from the command line.

use serde_json::Value;

use crate::support::Place;

/// Long enough for the `[CLS]` vectors of a new encoder to mean something.
const TRAIN: &str = "train --corpus corpus --head layer-guided --encoder scratch:tiny --epochs 60 --learning-rate 2e-3 \
                     --max-tokens 24 --threads 1 --quiet";

fn levels(line: &str) -> Vec<u64> {
    let line: Value = serde_json::from_str(line).unwrap();
    line["labels"].as_array().unwrap().iter().map(|label| label["level"].as_u64().unwrap()).collect()
}

#[test]
fn levels_are_learnt_logged_and_asked_for_on_their_own() {
    let place = Place::with_corpus();
    place.run(&format!("{TRAIN} --out run")).ok();
    let report = place.run("evaluate run --json").json();
    let top = report["per_level"][0]["r_precision"].as_f64().unwrap();
    assert!(top > 0.6, "R-Precision {top}");
    let log = place.read("run/metrics.jsonl");
    assert!(log.contains("\"bce-1\"") && log.contains("\"bce-2\""), "{log}");
    assert!(place.read("run/config.toml").contains("ancestors = \"add\""));

    let all = place.run("predict run corpus/test.jsonl --top-k 9").ok().stdout;
    assert!(all.lines().all(|line| levels(line).contains(&1) && levels(line).contains(&2)));
    let first = place.run("predict run corpus/test.jsonl --top-k 9 --levels 1").ok().stdout;
    assert!(first.lines().all(|line| levels(line) == [1, 1, 1]));
    let second = place.run("predict run corpus/test.jsonl --top-k 9 --levels 2..").ok().stdout;
    assert!(second.lines().all(|line| levels(line) == [2; 6]));
    place.run("predict run corpus/test.jsonl --levels 3").fails(78, &["3", "2 levels"]);
    for wrong in ["0", "2..1", "one"] {
        place
            .run(&format!("predict run corpus/test.jsonl --levels {wrong}"))
            .fails(2, &["levels count from 1"]);
    }
}

#[test]
fn a_linear_model_answers_for_some_levels_too() {
    let place = Place::with_run();
    let first = place.run("predict run corpus/test.jsonl --top-k 2 --levels 1..1").ok().stdout;
    assert!(first.lines().all(|line| levels(line) == [1, 1]), "{first}");
}

#[test]
fn ties_that_do_not_fit_are_refused_before_training() {
    let place = Place::with_corpus();
    for (ties, words) in [
        ("[[1]]", &["1 rows", "2 levels"][..]),
        ("[[1],[3]]", &["layer-guided.ties"]),
        ("\"sideways\"", &["one-by-one"]),
    ] {
        place.run(&format!("{TRAIN} --out bad --set layer-guided.ties={ties}")).fails(78, words);
        assert!(!place.path("bad/bundle").exists());
    }
}
