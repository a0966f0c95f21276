//! From probabilities to label sets: the flags of `predict` and `evaluate`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{LABELS, Outcome, Place, column, parents};

/// Label and score of each answer, in order.
fn answers(outcome: &Outcome) -> Vec<Vec<(String, f64)>> {
    let labels = |line: &Value| -> Vec<(String, f64)> {
        let rows = line["labels"].as_array().unwrap();
        rows.iter()
            .map(|row| (row["id"].as_str().unwrap().to_owned(), row["score"].as_f64().unwrap()))
            .collect()
    };
    outcome.lines().iter().map(labels).collect()
}

#[test]
fn a_prediction_has_id_name_score_and_level_best_first() {
    let place = Place::with_run();
    let outcome = place.run("predict run corpus/test.jsonl --top-k 9").ok();
    let lines = outcome.lines();
    let ids: Vec<String> = place
        .read("corpus/test.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(lines.iter().map(|line| line["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
    for line in &lines {
        assert_eq!(line.as_object().unwrap().keys().collect::<Vec<_>>(), ["id", "labels"]);
        let labels = line["labels"].as_array().unwrap();
        let mut previous = 1.0;
        for label in labels {
            let keys: BTreeSet<&str> = label.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, BTreeSet::from(["id", "name", "score", "level"]));
            let (id, parents, name) =
                LABELS.iter().find(|(id, _, _)| label["id"] == *id).expect("a known label");
            assert_eq!(label["name"], *name);
            assert_eq!(label["level"], if parents.is_empty() { 1 } else { 2 }, "{id}");
            let score = label["score"].as_f64().unwrap();
            assert!((0.0..=previous).contains(&score), "{line}");
            previous = score;
        }
    }
}

#[test]
fn top_k_asks_for_the_best_labels_whatever_their_probability() {
    let place = Place::with_run();
    let all = answers(&place.run("predict run corpus/test.jsonl -k 9").ok());
    let two = answers(&place.run("predict run corpus/test.jsonl --top-k 2").ok());
    for (all, two) in all.iter().zip(&two) {
        assert_eq!(two[..], all[..2]);
    }
    place.run("predict run corpus/test.jsonl -k 0").fails(78, &["decode.top_k", "at least 1"]);
}

#[test]
fn a_threshold_cuts_and_limits_top_k() {
    let place = Place::with_run();
    let all = answers(&place.run("predict run corpus/test.jsonl -k 9").ok());
    let above = |t: f64, k: usize| -> Vec<Vec<(String, f64)>> {
        let cut = |row: &Vec<(String, f64)>| row.iter().filter(|(_, s)| *s > t).take(k).cloned().collect();
        all.iter().map(cut).collect()
    };
    for t in [0.2, 0.75] {
        let cut = answers(&place.run(&format!("predict run corpus/test.jsonl --threshold {t}")).ok());
        assert_eq!(cut, above(t, 9));
        assert_ne!(cut, all);
        let cut = answers(&place.run(&format!("predict run corpus/test.jsonl --threshold {t} -k 2")).ok());
        assert_eq!(cut, above(t, 2));
    }
    place.run("predict run corpus/test.jsonl --threshold 7").fails(78, &["decode.threshold", "7"]);
}

#[test]
fn at_least_some_labels_but_none_at_or_below_the_floor() {
    let place = Place::with_run();
    let all = answers(&place.run("predict run corpus/test.jsonl -k 9").ok());
    let strict = "predict run corpus/test.jsonl --threshold 1";
    assert!(answers(&place.run(strict).ok()).iter().all(Vec::is_empty));
    let two = answers(&place.run(&format!("{strict} --at-least 2")).ok());
    assert!(all.iter().zip(&two).all(|(all, two)| two[..] == all[..2]));
    let floor = answers(&place.run(&format!("{strict} --at-least 9 --floor 0.5")).ok());
    for (all, row) in all.iter().zip(&floor) {
        assert_eq!(row.len(), all.iter().filter(|(_, score)| *score > 0.5).count());
    }
    place.run(&format!("{strict} --floor 2")).fails(78, &["decode.floor", "2"]);
}

#[test]
fn tab_separated_predictions_say_the_same() {
    let place = Place::with_run();
    let lines = place.run("predict run corpus/test.jsonl").ok().lines();
    let mut expected = String::new();
    for line in &lines {
        for label in line["labels"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let cells = [&line["id"], &label["id"], &label["name"], &label["score"], &label["level"]];
            expected += &(cells.map(text).join("\t") + "\n");
        }
    }
    let table = place.run("predict run corpus/test.jsonl --format tsv").ok().stdout;
    let short = |table: &str| -> Vec<String> {
        // Scores are single precision: fewer digits in one format than in the other.
        let row = |line: &str| {
            let cells: Vec<&str> = line.split('\t').collect();
            assert_eq!(cells.len(), 5, "{line}");
            format!(
                "{} {} {} {:.5} {}",
                cells[0],
                cells[1],
                cells[2],
                cells[3].parse::<f64>().unwrap(),
                cells[4]
            )
        };
        table.lines().map(row).collect()
    };
    assert_eq!(short(&table), short(&expected));
    assert!(!table.is_empty());
}

#[test]
fn close_upward_gives_closed_sets() {
    let place = Place::with_run();
    let plain = answers(&place.run("predict run corpus/test.jsonl -k 1").ok());
    let closed = answers(&place.run("predict run corpus/test.jsonl -k 1 --paths close-upward").ok());
    assert_ne!(plain, closed);
    for (row, best) in closed.iter().zip(&plain) {
        let labels: BTreeSet<&str> = row.iter().map(|(id, _)| id.as_str()).collect();
        assert!(labels.contains(best[0].0.as_str()), "{row:?}");
        for label in &labels {
            assert!(parents(label).iter().all(|parent| labels.contains(parent)), "{row:?}");
        }
    }
}

#[test]
fn prune_drops_labels_without_a_path() {
    let place = Place::with_run();
    let outcome = place.run("predict run corpus/test.jsonl --threshold 0.5 --paths prune").ok();
    for row in answers(&outcome) {
        let labels: BTreeSet<&str> = row.iter().map(|(id, _)| id.as_str()).collect();
        for label in &labels {
            let parents = parents(label);
            assert!(parents.is_empty() || parents.iter().any(|parent| labels.contains(parent)), "{row:?}");
        }
    }
}

#[test]
fn coherent_scores_never_fall_towards_the_root() {
    let place = Place::with_run();
    let violations = |flags: &str| -> usize {
        let outcome = place.run(&format!("predict run corpus/test.jsonl -k 9 {flags}")).ok();
        let mut n = 0;
        for row in answers(&outcome) {
            let scores: BTreeMap<&str, f64> = row.iter().map(|(id, score)| (id.as_str(), *score)).collect();
            for (label, score) in &scores {
                n += parents(label)
                    .iter()
                    .filter(|parent| scores.get(*parent).is_none_or(|s| s < score))
                    .count();
            }
        }
        n
    };
    assert!(violations("") > 0, "nothing to repair");
    assert_eq!(violations("--coherent"), 0);
}

#[test]
fn coarser_when_unsure_answers_with_the_deepest_labels_that_pass() {
    let place = Place::with_run();
    let sure = place.run_with("predict run --threshold 0.5 --coarser-when-unsure", "purr kitten meow").ok();
    assert_eq!(column(&sure.lines()[0]["labels"], "id"), ["cats"]);
    // Somewhere between cats and dogs, but surely an animal.
    let text = "kitten leash";
    let scores = answers(&place.run_with("predict run -k 9 --coherent", text).ok()).remove(0);
    let score = |label: &str| scores.iter().find(|(id, _)| id == label).map_or(0.0, |(_, score)| *score);
    let deeper = score("cats").max(score("dogs")).max(score("robot-dogs"));
    assert!(score("animals") > deeper, "{scores:?}");
    let threshold = f64::midpoint(score("animals"), deeper);
    let unsure =
        place.run_with(&format!("predict run --threshold {threshold} --coarser-when-unsure"), text).ok();
    assert_eq!(column(&unsure.lines()[0]["labels"], "id"), ["animals"]);
    for row in answers(&place.run("predict run corpus/test.jsonl --coarser-when-unsure").ok()) {
        let labels: BTreeSet<&str> = row.iter().map(|(id, _)| id.as_str()).collect();
        assert!(labels.iter().all(|label| parents(label).iter().all(|p| !labels.contains(p))), "{row:?}");
    }
}

#[test]
fn evaluation_decodes_as_told() {
    let place = Place::with_run();
    let f1 = |flags: &str, metric: &str| {
        place.run(&format!("evaluate run --json {flags}")).ok().json()["metrics"][metric].as_f64().unwrap()
    };
    assert!(f1("--top-k 1", "micro-recall") < f1("", "micro-recall"));
    assert!(f1("--threshold 0.01", "micro-precision") < f1("", "micro-precision"));
    assert_eq!(f1("--coherent", "coherence-violations"), 0.0);
}
