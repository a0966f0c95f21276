//! Whole outputs as people see them, and how they fit the terminal.

use std::collections::BTreeSet;

use crate::support::{Place, column, program};

/// Compares with a snapshot; probabilities differ in their last digits from machine to machine.
macro_rules! assert_printed {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ filters => [
            (r#""score":0\.(\d\d)\d+"#, r#""score":0.$1…"#),
            (r"(-?\d\.\d\d)\d+", "$1…"),
            (r"[+-]\de-\d+", "[tiny]"),
        ] }, { insta::assert_snapshot!($name, $text); });
    };
}

#[test]
fn an_evaluation_is_a_few_tables() {
    let place = Place::with_run();
    assert_printed!("evaluate", place.run("evaluate run").ok().stdout);
}

#[test]
fn predictions_are_lines() {
    let place = Place::with_run();
    place.write("in.txt", "a kitten may purr\nan engine with brakes and fuel\nnothing at all\n");
    assert_printed!("predict", place.run("predict run in.txt").ok().stdout);
    assert_printed!("predict-tsv", place.run("predict run in.txt --format tsv").ok().stdout);
}

#[test]
fn explanations_list_words() {
    let place = Place::with_run();
    assert_printed!("explain", place.run("explain run corpus/test.jsonl --limit 3 -k 1").ok().stdout);
}

#[test]
fn a_check_says_what_there_is_and_what_is_missing() {
    let place = Place::with_corpus();
    insta::assert_snapshot!("check-clean", place.run("data check --corpus corpus").ok().stdout);
    let train = place.read("corpus/train.jsonl").replace("\"animals\",", "");
    place.write("corpus/train.jsonl", train);
    let outcome = place.run("data check --corpus corpus").ok();
    insta::assert_snapshot!("check-remarks", outcome.stdout);
    assert!(outcome.stdout.contains("`data.ancestors = \"add\"` adds them"), "{}", outcome.stdout);
}

#[test]
fn a_model_is_measured_on_held_out_documents() {
    let place = Place::with_corpus();
    for split in ["dev", "test"] {
        std::fs::remove_file(place.path(&format!("corpus/{split}.jsonl"))).unwrap();
    }
    let outcome = place.run("train --corpus corpus --out run --json").ok();
    assert!(
        outcome.stderr.contains("held-out documents, before training on all: micro-F1 "),
        "{}",
        outcome.stderr
    );
    let micro = outcome.json()["held_out"]["micro-f1"].as_f64().unwrap();
    assert!(micro > 0.5 && micro <= 1.0, "{micro}");
    let unmeasured = place.run("train --corpus corpus --dev 0 --out bare").ok().stderr;
    assert!(unmeasured.contains("nothing measures this model"), "{unmeasured}");
}

/// The widest line of what a command prints on a terminal of so many columns.
fn widest(place: &Place, columns: usize, command: &str) -> (usize, String) {
    let output = std::process::Command::new(program())
        .args(command.split_whitespace())
        .current_dir(place.path(""))
        .env("COLUMNS", columns.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    (text.lines().map(|line| line.chars().count()).max().unwrap_or(0), text)
}

#[test]
fn no_table_is_wider_than_the_terminal() {
    let place = Place::with_run();
    for columns in [60, 80, 120] {
        for command in [
            "heads",
            "metrics",
            "data formats",
            "taxonomy formats",
            "evaluate run --quiet",
            "data stats --corpus corpus",
            "compare run run --resamples 20",
        ] {
            let (width, text) = widest(&place, columns, command);
            assert!(width <= columns, "`{command}` has {width} of {columns} columns\n{text}");
        }
    }
}

#[test]
fn lines_of_epochs_are_cut_to_the_terminal() {
    let place = Place::with_corpus();
    let output = std::process::Command::new(program())
        .args(
            "train --corpus corpus --head flat --encoder scratch:tiny --epochs 2 --max-tokens 16 --out run"
                .split(' '),
        )
        .current_dir(place.path(""))
        .env("COLUMNS", "50")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let epochs: Vec<&str> = text.lines().filter(|line| line.starts_with("epoch ")).collect();
    assert!(epochs.len() >= 2 && epochs.iter().all(|line| line.chars().count() <= 50), "{text}");
}

#[test]
fn labels_can_be_left_out_of_answers_and_figures() {
    let place = Place::with_run();
    let answered = |flags: &str| -> BTreeSet<String> {
        let lines = place.run(&format!("predict run corpus/test.jsonl -k 9 --floor 0 {flags}")).ok().lines();
        lines.iter().flat_map(|line| column(&line["labels"], "id")).map(str::to_owned).collect()
    };
    let set = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect::<BTreeSet<_>>();
    let all = answered("");
    assert!(all.len() == 9, "{all:?}");
    assert_eq!(answered("--include plants/**"), set(&["plants", "trees", "flowers"]));
    assert_eq!(answered("--include plants/** --include dogs"), set(&["plants", "trees", "flowers", "dogs"]));
    let rest = &all - &set(&["animals", "cats", "dogs", "robot-dogs"]);
    assert_eq!(answered("--exclude animals/**"), rest);
    assert_eq!(answered("--include animals/** --exclude dogs/**"), set(&["animals", "cats"]));
    place.run("predict run corpus/test.jsonl --exclude unicorns").fails(78, &["`unicorns`"]);
    place.run("evaluate run --include unicorns").fails(78, &["`unicorns`"]);

    let report = |flags: &str| place.run(&format!("evaluate run --json {flags}")).ok().json();
    let (whole, without) = (report(""), report("--exclude animals/**"));
    assert!(
        without["metrics"]["micro-recall"].as_f64() < whole["metrics"]["micro-recall"].as_f64(),
        "{}",
        without["metrics"]
    );
    assert_eq!(without["decode"]["exclude"][0], "animals/**");
    // The run's own report stays as it was.
    assert!(place.run("evaluate run --exclude animals").ok().stderr.contains("its report stays as it is"));
}
