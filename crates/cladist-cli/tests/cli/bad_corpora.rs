//! Corpora that cannot be used as they are, and places that cannot be written to.

use std::fs;

use serde_json::Value;

use crate::support::Place;

const TRAIN: &str = "train --corpus corpus --out run";

/// Nothing but the corpus is there, hidden or not.
#[track_caller]
fn assert_untouched(place: &Place) {
    assert_eq!(place.names(""), ["corpus".to_owned()].into());
}

/// Puts lines after the second of train.jsonl.
fn spoil(place: &Place, lines: &[&str]) {
    let text = place.read("corpus/train.jsonl");
    let mut all: Vec<&str> = text.lines().collect();
    all.splice(2..2, lines.iter().copied());
    place.write("corpus/train.jsonl", all.join("\n"));
}

#[test]
fn a_malformed_line_stops_with_its_place_and_leaves_nothing() {
    for (line, place_and_words) in [
        ("{\"id\": \"x\", \"text\": }", "train.jsonl:3:21: not valid JSON"),
        ("{\"id\": \"x\", \"text\": \"y\"", "train.jsonl:3:23: not valid JSON"),
        ("{\"text\": {}, \"labels\": [\"cats\"]}", "train.jsonl:3"),
        ("[]", "train.jsonl:3"),
        ("{\"id\": \"x\", \"labels\": [\"cats\"]}", "train.jsonl:3: no field `text`"),
    ] {
        let place = Place::with_corpus();
        spoil(&place, &[line]);
        let outcome = place.run(TRAIN).fails(65, &[&format!("corpus/{place_and_words}")]);
        assert_eq!(outcome.stdout, "");
        assert_untouched(&place);
    }
}

#[test]
fn a_bad_line_of_any_split_stops_training() {
    let place = Place::with_corpus();
    let text = place.read("corpus/test.jsonl");
    place.write("corpus/test.jsonl", format!("{text}oops\n"));
    place.run(TRAIN).fails(65, &["corpus/test.jsonl:19:1"]);
    assert_untouched(&place);
}

#[test]
fn an_old_run_survives_a_failed_one() {
    let place = Place::with_run();
    let before = place.files("run");
    spoil(&place, &["oops"]);
    place.run("train --corpus corpus --out run --overwrite").fails(65, &["train.jsonl:3:1"]);
    assert!(place.files("run") == before);
    assert_eq!(place.names(""), ["corpus", "run"].map(str::to_owned).into());
}

#[test]
fn skipped_lines_are_kept_with_their_place_and_counted() {
    let place = Place::with_corpus();
    spoil(&place, &["oops", "{\"id\": \"x\", \"labels\": [\"cats\"]}"]);
    let outcome = place.run(&format!("{TRAIN} --skip-bad --json")).ok();
    let summary = outcome.json();
    assert_eq!(summary["rejected"], 2);
    let tally = &summary["data"]["splits"][0]["tally"];
    let count = |name: &str| tally[name].as_u64().unwrap();
    assert_eq!((count("read"), count("kept"), count("rejected"), count("dropped")), (74, 72, 2, 0));
    let rejects: Vec<Value> =
        place.read("run/rejects.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rejects.len(), 2);
    assert_eq!((&rejects[0]["line"], &rejects[0]["column"]), (&3.into(), &1.into()));
    assert_eq!(rejects[0]["content"], "oops");
    assert_eq!(rejects[1]["content"], "{\"id\": \"x\", \"labels\": [\"cats\"]}");
    assert!(rejects[1]["reason"].as_str().unwrap().contains("`text`"), "{}", rejects[1]);
    assert!(rejects[0]["path"].as_str().unwrap().ends_with("corpus/train.jsonl"));
    assert!(outcome.stderr.contains("rejected lines: 2, see run/rejects.jsonl"), "{}", outcome.stderr);
}

#[test]
fn a_run_without_rejects_has_no_file_for_them() {
    let place = Place::with_corpus();
    place.run(&format!("{TRAIN} --skip-bad --quiet")).ok();
    assert!(!place.path("run/rejects.jsonl").exists());
}

#[test]
fn unknown_labels_are_listed() {
    let place = Place::with_corpus();
    let line = |id: &str, labels: &str| format!(r#"{{"id": "{id}", "text": "a b", "labels": [{labels}]}}"#);
    let (one, two) = (line("x", r#""wolves", "cats""#), line("y", r#""wolves", "bears""#));
    spoil(&place, &[&one, &two]);
    place.run(TRAIN).fails(65, &["2 gold labels in 2 documents", "`wolves` (2)", "`bears` (1)", "hint"]);
    assert_untouched(&place);
    let dropped = place.run(&format!("{TRAIN} --set data.unknown_labels=drop --json")).ok().json();
    assert_eq!(dropped["data"]["unknown_labels"]["occurrences"], 3);
    place.run(&format!("{TRAIN} --set data.unknown_labels=add --overwrite --quiet")).ok();
    let all = place.run_with("predict run -k 99 --format tsv", "a b").ok().stdout;
    assert!(all.contains("\twolves\t"), "{all}");
}

#[test]
fn a_duplicate_id_is_named() {
    let place = Place::with_corpus();
    let first = place.read("corpus/train.jsonl").lines().next().unwrap().to_owned();
    spoil(&place, &[&first]);
    place.run(TRAIN).fails(65, &["`train-cats-0`", "train", "duplicate_ids"]);
    assert_untouched(&place);
    place.run(&format!("{TRAIN} --set data.duplicate_ids=rename --quiet")).ok();
}

#[test]
fn an_empty_corpus_says_so() {
    let place = Place::with_corpus();
    place.write("corpus/train.jsonl", "");
    place.run(TRAIN).fails(65, &["no document in the train split"]);
    place.write("corpus/train.jsonl", "{\"id\": \"x\", \"text\": \"a b\"}\n");
    place.run(TRAIN).fails(65, &["has a label"]);
    place.write("corpus/train.jsonl", "{\"id\": \"x\", \"text\": \"\", \"labels\": [\"cats\"]}\n");
    place.run(TRAIN).fails(65, &["nothing to learn from"]);
    assert_untouched(&place);
    for file in ["train", "dev", "test"] {
        fs::remove_file(place.path(&format!("corpus/{file}.jsonl"))).unwrap();
    }
    place.run(TRAIN).fails(65, &["no train, dev or test file in `corpus`"]);
    assert_untouched(&place);
}

#[test]
fn a_missing_corpus_or_split_says_so() {
    let place = Place::with_corpus();
    place.run("train --corpus nowhere --out run").fails(66, &["`nowhere`"]);
    place.run("train --out run").fails(78, &["no corpus given", "--corpus"]);
    place.run("train --train nowhere.jsonl --out run").fails(66, &["nowhere.jsonl"]);
    place.run("data stats --corpus nowhere").fails(66, &["`nowhere`"]);
    place.run("data check --corpus nowhere").fails(66, &["`nowhere`"]);
    place.run("train --test corpus/test.jsonl --out run").fails(78, &["no train split"]);
    assert_untouched(&place);
}

#[test]
fn a_broken_taxonomy_stops_training_with_its_place() {
    let place = Place::with_corpus();
    let text = place.read("corpus/hierarchy.tsv");
    place.write("corpus/hierarchy.tsv", format!("{text}robot-dogs\tanimals\n"));
    place.run(TRAIN).fails(65, &["corpus/hierarchy.tsv:", "cycle", "animals → dogs → robot-dogs → animals"]);
    assert_untouched(&place);
}

#[test]
fn a_place_that_is_taken_is_left_alone() {
    let place = Place::with_run();
    let (run, corpus) = (place.files("run"), place.files("corpus"));
    place.run(TRAIN).fails(78, &["`run` already exists", "--overwrite"]);
    place.run("train --corpus corpus --out corpus --overwrite").fails(78, &["`corpus` is not a run folder"]);
    place.run("train --corpus corpus --out corpus/test.jsonl").fails(78, &["`corpus/test.jsonl` already"]);
    place
        .run("train --corpus corpus --out corpus/test.jsonl --overwrite")
        .fails(78, &["`corpus/test.jsonl` is not a run folder"]);
    assert!(place.files("run") == run && place.files("corpus") == corpus);
    place.run(&format!("{TRAIN} --overwrite --quiet --seed 9")).ok();
    assert!(place.files("run") != run);
    assert_eq!(place.names(""), ["corpus", "run"].map(str::to_owned).into());
    fs::create_dir(place.path("empty")).unwrap();
    place.run("train --corpus corpus --out empty --quiet").ok();
}

#[test]
fn a_place_that_cannot_be_made_is_named() {
    let place = Place::with_corpus();
    place.run("train --corpus corpus --out corpus/labels.tsv/run").fails(74, &["corpus/labels.tsv"]);
    assert_untouched(&place);
    place.run("demo --corpus-only corpus/labels.tsv/demo").fails(74, &["corpus/labels.tsv"]);
    place.run("train --corpus corpus --out new/deep/run --quiet").ok();
    place.run("predict new/deep/run corpus/test.jsonl").ok();
}
