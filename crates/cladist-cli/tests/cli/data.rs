//! Counting, checking and splitting corpora.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{LABELS, Place, column, documents};

#[test]
fn statistics_count_documents_labels_and_pairs() {
    let place = Place::with_corpus();
    let stats = place.run("data stats --corpus corpus --top 3 --json").ok().json();
    let (train, test) = (&stats["splits"]["train"], &stats["splits"]["test"]);
    assert_eq!((&train["documents"], &test["documents"]), (&72.into(), &18.into()));
    assert_eq!(train["labels_used"], LABELS.len());
    assert_eq!(train["top_labels"].as_array().unwrap().len(), 3);
    // Gold is closed upward, so the broadest label is the most frequent one.
    assert_eq!(train["top_labels"][0]["id"], "animals");
    let frequency = |label: &str| {
        let lines = place.read("corpus/train.jsonl");
        lines.lines().filter(|line| line.contains(&format!("\"{label}\""))).count()
    };
    assert_eq!(train["top_labels"][0]["documents"], frequency("animals"));
    assert_eq!(train["levels"][0]["labels"], 3);
    let shots = &train["shots"];
    let sum: u64 = ["few", "medium", "many"].iter().map(|class| shots[class].as_u64().unwrap()).sum();
    assert_eq!(sum, LABELS.len() as u64);
    insta::assert_snapshot!("data-stats", place.run("data stats --corpus corpus --top 3").ok().stdout);
}

#[test]
fn a_clean_corpus_passes_its_check() {
    let place = Place::with_corpus();
    let outcome = place.run("data check --corpus corpus").ok();
    assert_eq!(outcome.stdout.lines().last(), Some("ok"), "{}", outcome.stdout);
    let report = place.run("data check --corpus corpus --json").ok().json();
    assert_eq!(report["data"]["splits"][0]["tally"]["read"], 72);
    assert_eq!(report["bad_lines"], Value::Array(Vec::new()));
}

#[test]
fn a_check_finds_everything_at_once() {
    let place = Place::with_corpus();
    let train = place.read("corpus/train.jsonl");
    let leak = train.lines().next().unwrap().replace("train-cats-0", "leaked");
    place.write(
        "corpus/test.jsonl",
        format!(
            "{}{leak}\noops\n{}\n{}\n",
            documents("test", 1),
            r#"{"id": "x", "text": "a", "labels": ["wolves"]}"#,
            r#"{"id": "x", "text": "", "labels": []}"#
        ),
    );
    let outcome = place.run("data check --corpus corpus");
    assert_eq!(outcome.code, Some(65));
    insta::assert_snapshot!("data-check", outcome.stdout);
    let json = place.run("data check --corpus corpus --json");
    assert_eq!(json.code, Some(65));
    let report = json.json();
    assert_eq!(
        (&report["bad_lines"][0]["line"], &report["bad_lines"][0]["content"]),
        (&8.into(), &"oops".into())
    );
    assert_eq!(report["data"]["leaks"]["train_in_test"], 1);
    assert_eq!(report["data"]["unknown_labels"]["labels"], 1);
    let test = &report["data"]["splits"][2];
    assert_eq!((&test["duplicate_ids"], &test["empty_documents"]), (&1.into(), &1.into()));
    assert_eq!(place.names(""), ["corpus".to_owned()].into());
}

#[test]
fn leaks_alone_are_remarks() {
    let place = Place::with_corpus();
    let train = place.read("corpus/train.jsonl");
    let leak = train.lines().next().unwrap().replace("train-cats-0", "leaked");
    place.write("corpus/test.jsonl", format!("{}{leak}\n", documents("test", 1)));
    let outcome = place.run("data check --corpus corpus").ok();
    assert!(outcome.stdout.contains("leaks: 1 of train in test"), "{}", outcome.stdout);
    assert!(
        outcome.stdout.contains("train `train-cats-0` has the text of test `leaked`"),
        "{}",
        outcome.stdout
    );
    assert_eq!(outcome.stdout.lines().last(), Some("ok, with remarks"));
    let stats = place.run("data stats --corpus corpus").ok().stdout;
    assert!(stats.contains("leaks: 1 texts of train are in test"), "{stats}");
    let train = place.run("train --corpus corpus --out run").ok();
    assert!(train.stderr.contains("leaks: 1 of train in test"), "{}", train.stderr);
}

fn split_ids(place: &Place, folder: &str) -> BTreeMap<String, Vec<String>> {
    let ids = |name: &str| -> Vec<String> {
        let text = place.read(&format!("{folder}/{name}.jsonl"));
        let id = |line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        text.lines().map(id).collect()
    };
    ["train", "dev", "test"].iter().map(|name| ((*name).to_owned(), ids(name))).collect()
}

#[test]
fn a_split_is_decided_by_its_seed() {
    let place = Place::with_corpus();
    let split = "data split corpus/train.jsonl --dev 0.25 --test 0.25";
    let said = place.run(&format!("{split} --out a --seed 1")).ok().stdout;
    assert!(said.contains("train: 36 documents in a/train.jsonl"), "{said}");
    place.run(&format!("{split} --out b --seed 1")).ok();
    place.run(&format!("{split} --out c --seed 2")).ok();
    assert!(place.files("a") == place.files("b"));
    assert!(place.files("a") != place.files("c"));
    let parts = split_ids(&place, "a");
    assert_eq!(parts.values().map(Vec::len).collect::<Vec<_>>(), [18, 18, 36]);
    let all: BTreeSet<&String> = parts.values().flatten().collect();
    assert_eq!(all.len(), 72, "every document is in one part");
    // Parts keep the order of the file, and their lines say what they said.
    let original = place.read("corpus/train.jsonl");
    let values = |text: &str| text.lines().map(|l| serde_json::from_str(l).unwrap()).collect::<Vec<Value>>();
    let original = values(&original);
    for name in ["train", "dev", "test"] {
        let part = values(&place.read(&format!("a/{name}.jsonl")));
        let mut rest = original.iter();
        for document in part {
            assert!(
                rest.any(|other| other["id"] == document["id"]
                    && other["text"] == document["text"]
                    && other["labels"] == document["labels"]),
                "{document}"
            );
        }
    }
}

#[test]
fn a_stratified_split_has_every_label_in_proportion() {
    let place = Place::with_corpus();
    // One label of eight is rare, as labels are.
    let mut text = documents("train", 16);
    for n in 0..4 {
        text += &format!("{{\"id\": \"rare-{n}\", \"text\": \"rare {n}\", \"labels\": [\"rare\"]}}\n");
    }
    place.write("all.jsonl", text);
    for seed in 0..5 {
        place.run(&format!("data split all.jsonl --dev 0.5 --out s --overwrite --seed {seed}")).ok();
        let rare = |name: &str| place.read(&format!("s/{name}.jsonl")).matches("rare-").count();
        assert_eq!((rare("train"), rare("dev")), (2, 2), "seed {seed}");
        let cats = |name: &str| place.read(&format!("s/{name}.jsonl")).matches("\"cats\"").count();
        assert!(cats("train").abs_diff(cats("dev")) <= 2, "seed {seed}");
    }
    let mut uneven = 0;
    for seed in 0..8 {
        place.run(&format!("data split all.jsonl --dev 0.5 --out r --overwrite --random --seed {seed}")).ok();
        uneven += usize::from(place.read("r/dev.jsonl").matches("rare-").count() != 2);
    }
    assert!(uneven > 0, "a random split does not look at labels");
}

#[test]
fn a_split_that_cannot_be_is_refused_and_writes_nothing() {
    let place = Place::with_corpus();
    let split = "data split corpus/train.jsonl --out parts";
    place.run(&format!("{split} --dev 0.6 --test 0.6")).fails(78, &["`--dev`", "0.6 and 0.6"]);
    place.run(&format!("{split} --dev=-0.1")).fails(78, &["`--dev`", "-0.1 and 0"]);
    place.run("data split nowhere.jsonl --out parts").fails(66, &["nowhere.jsonl"]);
    place.run(&format!("{split} --corpus-format papyrus")).fails(78, &["`papyrus`"]);
    place.write("bad.jsonl", format!("{}oops\n", documents("x", 1)));
    place.run("data split bad.jsonl --out parts").fails(65, &["bad.jsonl:7:1"]);
    assert!(!place.path("parts").exists());
    place.run(split).ok();
    let before = place.files("parts");
    place.run(&format!("{split} --seed 5")).fails(78, &["parts/train.jsonl", "--overwrite"]);
    assert!(place.files("parts") == before);
}

#[test]
fn a_split_folder_is_a_corpus() {
    let place = Place::with_corpus();
    place.run("data split corpus/train.jsonl --out parts --dev 0.2 --test 0.2").ok();
    place.run("train --corpus parts --taxonomy corpus/hierarchy.tsv --out run --quiet").ok();
    let report = place.run("evaluate run --json").ok().json();
    assert_eq!(report["n_documents"], 14);
    assert!(
        column(&place.run("compare run run --resamples 9 --json").ok().json(), "metric").contains(&"p@1")
    );
}
