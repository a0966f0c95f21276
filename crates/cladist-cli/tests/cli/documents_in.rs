//! What `predict` reads: standard input, files of every format, compressed or not.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::support::{Place, closed, column};

const TEXTS: [&str; 3] = ["a kitten may purr", "the oak in the forest", "engine and gearbox"];
const BEST: [&str; 3] = ["animals", "plants", "machines"];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn ids(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["id"].as_str().unwrap()).collect()
}

/// Whether each text got the top label that it should.
#[track_caller]
fn assert_answers(lines: &[Value]) {
    assert_eq!(lines.len(), TEXTS.len());
    for (line, best) in lines.iter().zip(BEST) {
        let labels = line["labels"].as_array().unwrap();
        assert!(labels.iter().any(|label| label["id"] == best), "{best}: {line}");
    }
}

fn json_lines() -> String {
    let line = |(n, text): (usize, &&str)| format!("{{\"id\": \"j{n}\", \"text\": \"{text}\"}}\n");
    TEXTS.iter().enumerate().map(line).collect()
}

fn pairs() -> String {
    TEXTS.iter().enumerate().map(|(n, text)| format!("p{n}\t{text}\n")).collect()
}

#[test]
fn text_lines_come_from_standard_input() {
    let place = Place::with_run();
    let input = TEXTS.join("\n");
    let lines = place.run_with("predict run", &input).ok().lines();
    assert_answers(&lines);
    assert_eq!(ids(&lines), ["line-1", "line-2", "line-3"]);
    assert_eq!(place.run_with("predict run -", &input).ok().lines(), lines);
    assert_eq!(place.run_with("predict run -", gzip(input.as_bytes())).ok().lines(), lines);
    assert_eq!(place.run_with("predict run", "").ok().stdout, "");
}

#[test]
fn json_lines_are_told_by_their_first_character() {
    let place = Place::with_run();
    let lines = place.run_with("predict run", json_lines()).ok().lines();
    assert_answers(&lines);
    assert_eq!(ids(&lines), ["j0", "j1", "j2"]);
    let lines = place.run_with("predict run", format!("\u{feff}\n{}", json_lines())).ok().lines();
    assert_eq!(ids(&lines), ["j0", "j1", "j2"]);
}

#[test]
fn pairs_of_id_and_text_are_asked_for_or_told_by_the_ending() {
    let place = Place::with_run();
    let lines = place.run_with("predict run --input-format tsv", pairs()).ok().lines();
    assert_answers(&lines);
    assert_eq!(ids(&lines), ["p0", "p1", "p2"]);
    place.write("in.tsv", pairs());
    assert_eq!(place.run("predict run in.tsv").ok().lines(), lines);
}

#[test]
fn files_of_every_kind_are_answered_in_order() {
    let place = Place::with_run();
    place.write("in.jsonl", json_lines());
    place.write("in.tsv.gz", gzip(pairs().as_bytes()));
    place.write("in.txt", TEXTS.join("\n"));
    let lines = place.run("predict run in.tsv.gz in.jsonl in.txt").ok().lines();
    assert_eq!(ids(&lines), ["p0", "p1", "p2", "j0", "j1", "j2", "line-1", "line-2", "line-3"]);
    for part in lines.chunks(3) {
        assert_answers(part);
    }
    place.run("predict run in.tsv.gz in.jsonl in.txt --output out.jsonl").ok();
    let written: Vec<Value> =
        place.read("out.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written, lines);
}

#[test]
fn a_whole_file_can_be_one_document() {
    let place = Place::with_run();
    place.write("letter.txt", "a kitten\n\nmay purr\n");
    let lines = place.run("predict run letter.txt --input-format document").ok().lines();
    assert_eq!(ids(&lines), ["letter.txt"]);
    let labels: BTreeSet<&str> = column(&lines[0]["labels"], "id").into_iter().collect();
    assert_eq!(labels, closed("cats"));
}

#[test]
fn another_field_can_hold_the_text() {
    let place = Place::with_run();
    let input = json_lines().replace("\"text\"", "\"prose\"");
    assert_answers(&place.run_with("predict run --text-field prose", &input).ok().lines());
    place.run_with("predict run", &input).fails(65, &["standard input:1", "`text`", "`prose`"]);
}

#[test]
fn an_answer_does_not_depend_on_the_documents_around_it() {
    let place = Place::with_run();
    let many: String = (0..700).map(|n| format!("{}\n", TEXTS[n % 3])).collect();
    let lines = place.run_with("predict run -k 9", many).ok().lines();
    assert_eq!(lines.len(), 700);
    for (n, text) in TEXTS.iter().enumerate() {
        let alone = &place.run_with("predict run -k 9", text).ok().lines()[0]["labels"];
        assert!(lines.iter().skip(n).step_by(3).all(|line| line["labels"] == *alone), "{text}");
    }
}

#[test]
fn a_bad_line_stops_after_what_came_before_it() {
    let place = Place::with_run();
    place.write("in.jsonl", format!("{}{{\"text\": {{}}}}\n{}", json_lines(), json_lines()));
    let outcome = place.run("predict run in.jsonl").fails(65, &["in.jsonl:4"]);
    assert_answers(&outcome.lines());
    assert!(!place.path("rejects.jsonl").exists());
}

#[test]
fn a_bad_line_can_be_set_aside() {
    let place = Place::with_run();
    place.write("in.jsonl", format!("{}not json\n{}", json_lines(), json_lines()));
    let outcome = place.run("predict run in.jsonl --skip-bad").ok();
    assert_eq!(ids(&outcome.lines()), ["j0", "j1", "j2", "j0", "j1", "j2"]);
    let reject: Value = serde_json::from_str(&place.read("rejects.jsonl")).unwrap();
    assert_eq!((&reject["line"], &reject["content"]), (&4.into(), &"not json".into()));
    assert!(outcome.stderr.contains("rejects.jsonl"), "{}", outcome.stderr);
}

#[test]
fn an_output_file_is_whole_or_not_there() {
    let place = Place::with_run();
    place.write("in.jsonl", format!("{}oops\n", json_lines()));
    place.write("old.jsonl", "old");
    let before = place.names("");
    place.run("predict run in.jsonl --output out.jsonl").fails(65, &["in.jsonl:4:1"]);
    place.run("predict run in.jsonl --output old.jsonl").fails(65, &["in.jsonl:4:1"]);
    assert_eq!(place.names(""), before);
    assert_eq!(place.read("old.jsonl"), "old");
    place.run("predict run in.jsonl --skip-bad --rejects aside.jsonl --output old.jsonl").ok();
    assert_eq!(place.read("old.jsonl").lines().count(), 3);
    assert!(place.read("aside.jsonl").contains("oops"));
    assert!(!place.path("rejects.jsonl").exists());
}

#[test]
fn tables_with_a_header_are_read() {
    let place = Place::with_run();
    let rows: String = TEXTS.iter().enumerate().map(|(n, text)| format!("c{n},\"{text}\"\n")).collect();
    place.write("in.csv", format!("id,text\n{rows}"));
    let lines = place.run("predict run in.csv").ok().lines();
    assert_answers(&lines);
    assert_eq!(ids(&lines), ["c0", "c1", "c2"]);
}

#[test]
fn a_model_of_features_wants_features() {
    let place = Place::with_run();
    let rows: String = (0..30).map(|n| format!("{} {}:1 {}:0.5\n", n % 3, n % 3, 3 + n % 5)).collect();
    place.write("train.svm", rows);
    place.run("train --train train.svm --corpus-format libsvm --out features --quiet").ok();
    place.write("in.svm", "0 0:1\n2 2:1\n");
    let lines = place.run("predict features in.svm --input-format libsvm -k 1").ok().lines();
    let best: Vec<&str> = lines.iter().map(|line| line["labels"][0]["id"].as_str().unwrap()).collect();
    assert_eq!(best, ["0", "2"]);
    place.run("predict run in.svm --input-format libsvm").fails(78, &["`run` reads text", "features"]);
}

#[test]
fn unreadable_input_is_named() {
    let place = Place::with_run();
    place.run("predict run nowhere.txt").fails(66, &["`nowhere.txt`"]);
    place.write("latin.txt", b"caf\xe9\n");
    place.run("predict run latin.txt").fails(65, &["latin.txt:1", "UTF-8"]);
    place.run("predict run latin.txt --input-format document").fails(65, &["latin.txt", "UTF-8"]);
    let gz = gzip(TEXTS.join("\n").as_bytes());
    place.write("short.txt.gz", &gz[..gz.len() - 9]);
    place.run("predict run short.txt.gz").fails(65, &["short.txt.gz"]);
    place.run_with("predict run --output no/where.jsonl", "x").fails(74, &["no/where.jsonl"]);
}
