//! Documents in one format written in another.

use std::io::Write as _;

use serde_json::Value;

use crate::support::{Place, documents};

fn without_ids(text: &str) -> Vec<Value> {
    let line = |line| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        value.as_object_mut().unwrap().remove("id");
        value
    };
    text.lines().map(line).collect()
}

#[test]
fn every_text_format_converts_and_comes_back() {
    let place = Place::with_corpus();
    place.run("data convert corpus/train.jsonl plain.jsonl").ok();
    for (format, file) in [
        ("csv", "t.csv"),
        ("tsv-columns", "t.tsv"),
        ("libmultilabel", "t.txt"),
        ("fasttext", "t.ft"),
        ("hiagm", "t.json"),
        ("annif-tsv", "a.tsv"),
    ] {
        let outcome = place.run(&format!("data convert corpus/train.jsonl {file} --to {format}")).ok();
        assert_eq!(outcome.stdout, "");
        assert!(
            outcome.stderr.contains("72 read = 72 written + 0 rejected + 0 left out"),
            "{}",
            outcome.stderr
        );
        // Sniffed, without being told the format.
        let back = place.run(&format!("data convert {file} - --quiet")).ok();
        assert_eq!(back.stderr, "");
        assert_eq!(without_ids(&back.stdout), without_ids(&place.read("plain.jsonl")), "{format}");
    }
}

#[test]
fn feature_formats_convert_into_each_other() {
    let place = Place::new();
    let body = "0,2 1:0.5 4:1\n1 0:0.25\n2 3:1.5\n";
    place.write("t.svm", body);
    place.run("data convert t.svm t.xmc --to xmc").ok();
    assert_eq!(place.read("t.xmc").lines().next(), Some("3 5 3"));
    let back = place.run("data convert t.xmc - --from xmc --to libsvm").ok();
    assert_eq!(back.stdout, body);
    place.run("data convert t.svm out.csv --to csv").fails(65, &["features"]);
    assert_eq!(place.names(""), ["t.svm", "t.xmc"].map(str::to_owned).into());
}

#[test]
fn what_was_read_is_written_rejected_or_left_out() {
    let place = Place::new();
    let extra =
        "oops\n{\"id\": \"x\", \"text\": \"a\", \"labels\": [\"b\"], \"spam\": true}\n{\"id\": \"y\"}\n";
    place.write("in.jsonl", format!("{}{extra}", documents("in", 2)));
    let convert = "data convert in.jsonl out.csv --to csv --drop-field spam";
    place.run(convert).fails(65, &["in.jsonl:13:1"]);
    assert_eq!(place.names(""), ["in.jsonl".to_owned()].into());
    let outcome = place.run(&format!("{convert} --skip-bad")).ok();
    assert!(outcome.stderr.contains("15 read = 12 written + 2 rejected + 1 left out"), "{}", outcome.stderr);
    assert_eq!(place.read("out.csv").lines().count(), 1 + 12);
    let rejects = place.read("rejects.jsonl");
    assert_eq!(rejects.lines().count(), 2);
    assert!(rejects.contains("\"content\":\"oops\""), "{rejects}");
    assert_eq!(place.names(""), ["in.jsonl", "out.csv", "rejects.jsonl"].map(str::to_owned).into());
}

#[test]
fn a_failed_conversion_leaves_the_old_file() {
    let place = Place::new();
    place.write("in.jsonl", format!("{}oops\n", documents("in", 1)));
    place.write("out.csv", "old");
    place.write("out.draft", "mine");
    place.run("data convert in.jsonl out.csv --to csv --overwrite").fails(65, &["in.jsonl:7:1"]);
    assert_eq!(place.read("out.csv"), "old");
    assert_eq!(place.read("out.draft"), "mine");
    for (arguments, code, words) in [
        ("in.jsonl out.x --to text --skip-bad", 65, "only be read"),
        ("in.jsonl out.x --to papyrus", 78, "`papyrus`"),
        ("in.jsonl out.x --from papyrus", 78, "`papyrus`"),
        ("nowhere.jsonl out.jsonl", 66, "nowhere.jsonl"),
        ("in.jsonl out.x", 78, "--to"),
        ("in.jsonl no/where.csv --to csv", 74, "no/where.csv"),
        ("in.jsonl in.jsonl/x.csv --to csv", 74, "in.jsonl/x.csv"),
    ] {
        place.run(&format!("data convert {arguments}")).fails(code, &[words]);
    }
    let _ = std::fs::remove_file(place.path("rejects.jsonl"));
    assert_eq!(place.names(""), ["in.jsonl", "out.csv", "out.draft"].map(str::to_owned).into());
}

#[test]
fn text_is_normalised_on_request() {
    let place = Place::new();
    place.write("in.jsonl", "{\"id\": \"1\", \"text\": \"The 3 Cats, and 42 dogs!\", \"labels\": [\"a\"]}\n");
    let text = |flags: &str| {
        let outcome = place.run(&format!("data convert in.jsonl - --quiet {flags}")).ok();
        outcome.lines()[0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text(""), "The 3 Cats, and 42 dogs!");
    assert_eq!(text("--lowercase"), "the 3 cats, and 42 dogs!");
    assert_eq!(text("--lowercase --drop-numbers --drop-punctuation --drop-stopwords"), "cats dogs");
}

#[test]
fn labels_with_spaces_are_refused_or_joined() {
    let place = Place::new();
    place.write("in.jsonl", "{\"id\": \"1\", \"text\": \"a\", \"labels\": [\"big cats\"]}\n");
    place.run("data convert in.jsonl - --to fasttext").fails(65, &["document `1`", "`big cats`"]);
    let joined = place.run("data convert in.jsonl - --to fasttext --replace-spaces --quiet").ok();
    assert_eq!(joined.stdout, "__label__big_cats a\n");
}

/// The preparation of benchmarks under licences of their own, on made-up files in their forms.
#[test]
fn benchmarks_come_into_a_layout_that_is_read_as_it_is() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/hiagm_layout.py");
    let python =
        |arguments: &[&str]| std::process::Command::new("python3").arg(script).args(arguments).output();
    let Ok(tested) = python(&["--self-test"]) else {
        // Past the harness, which keeps what a passing test prints.
        let _ = writeln!(std::io::stderr(), "skipped: no python3 here");
        return;
    };
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
    let place = Place::with_corpus();
    place.write("topics", "C11 7 1\nCCAT 7 1\nGCAT 9 1\n");
    place.write("tokens", ".I 7\n.W\nshare rise\nprofit\n\n.I 9\n.W\nrain\n");
    let path = |name: &str| place.path(name).display().to_string();
    let made = python(&["rcv1", &path("topics"), &path("tokens")]).unwrap();
    place.write("rcv1/train.json", String::from_utf8(made.stdout).unwrap());
    place.write("rcv1/rcv1.taxonomy", "Root\tCCAT\tGCAT\nCCAT\tC11\n");
    let stats = place.run("data stats --corpus rcv1 --json").ok().json();
    assert_eq!(stats["splits"]["train"]["documents"], 2);
    assert_eq!(stats["splits"]["train"]["labels_used"], 3);
}
