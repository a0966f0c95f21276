//! Which fields of a record make a document, and numbers and headers that are not what they seem.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::support::{Place, column};

/// A table whose titles say nothing and whose bodies say everything.
fn table(place: &Place, name: &str) {
    let mut rows = "id,title,body,labels\n".to_owned();
    for n in 0..30 {
        let (word, label) =
            [("kitten purrs", "cats"), ("engine brakes", "cars"), ("oak timber", "trees")][n % 3];
        _ = writeln!(rows, "d{n},report {},{word} again,{label}", n % 2);
    }
    place.write(name, rows);
}

#[test]
fn a_model_reads_the_fields_that_it_was_trained_on() {
    let place = Place::new();
    table(&place, "docs.csv");
    place.run("train --train docs.csv --text-field title,body --out run --quiet").ok();
    let answers = place.run("predict run docs.csv").ok().lines();
    let (mut hits, mut given) = (0, 0);
    for (n, answer) in answers.iter().enumerate() {
        let labels: BTreeSet<&str> = column(&answer["labels"], "id").into_iter().collect();
        hits += usize::from(labels.contains(["cats", "cars", "trees"][n % 3]));
        given += labels.len();
    }
    let f1 = 2.0 * hits as f64 / (given + answers.len()) as f64;
    let report = place.run("evaluate run --test docs.csv --json").ok().json();
    let micro = report["metrics"]["micro-f1"].as_f64().unwrap();
    assert!((micro - f1).abs() < 1e-9 && f1 > 0.9, "predict {f1}, evaluate {micro}");
    // A bundle alone remembers them too.
    assert_eq!(place.run("predict run/bundle docs.csv").ok().lines(), answers);
    let explained = place.run("explain run docs.csv --limit 1 -k 1 --json").ok().json();
    assert!(explained[0]["text"].as_str().unwrap().contains("kitten"), "{explained}");
}

#[test]
fn the_columns_that_are_read_are_named_and_must_be_there() {
    let place = Place::new();
    table(&place, "docs.csv");
    let said = place.run("data check --train docs.csv").ok().stdout;
    assert!(said.contains("text from `title`, `body`"), "{said}");
    let said = place.run("train --train docs.csv --out run").ok().stderr;
    assert!(said.contains("text from `title`, `body`"), "{said}");
    place.run("train --train docs.csv --text-field body,nope --out x").fails(65, &["docs.csv", "`nope`"]);
    place.run("predict run docs.csv --text-field nope").fails(65, &["docs.csv", "`nope`"]);
}

#[test]
fn long_integers_stay_as_they_are_written() {
    let place = Place::new();
    let (one, two) = ("123456789012345678901234567890", "123456789012345678901234567891");
    let line = |id: &str| format!("{{\"id\": {id}, \"text\": \"a b\", \"labels\": [{id}]}}\n");
    place.write("in.jsonl", line(one) + &line(two));
    place.run("data convert in.jsonl out.csv").ok();
    let table = place.read("out.csv");
    for id in [one, two] {
        assert!(table.contains(&format!("\"{id}\",\"{id}\",\"a b\"")), "{table}");
    }
}

#[test]
fn indicators_are_not_taken_for_labels() {
    let place = Place::new();
    let line =
        |n: usize| format!("{{\"text\": \"a b\", \"labels\": [{}.0, {}.0, 0.0]}}\n", n % 2, (n + 1) % 2);
    place.write("in.jsonl", (0..6).map(line).collect::<String>());
    place.run("train --train in.jsonl --out run").fails(65, &["in.jsonl", "hint"]);
    assert!(!place.path("run").exists());
}

#[test]
fn a_header_or_hierarchy_that_cannot_be_meant_is_refused() {
    let place = Place::with_corpus();
    place.write("twice.csv", "id,text,text,labels\n1,a,b,cats\n");
    place.run("train --train twice.csv --out run").fails(65, &["twice.csv", "`text`"]);
    place.write("upside.tsv", "ROOT\tcats\ncats\tROOT\n");
    place.run("taxonomy convert upside.tsv").fails(65, &["upside.tsv:2", "ROOT"]);
    std::fs::remove_file(place.path("corpus/hierarchy.tsv")).unwrap();
    std::fs::create_dir(place.path("corpus/hierarchy.tsv")).unwrap();
    let outcome = place.run("train --corpus corpus --out run");
    assert!(outcome.code == Some(65) || outcome.code == Some(66), "{outcome:?}");
    assert!(outcome.stderr.contains("corpus/hierarchy.tsv"), "{outcome:?}");
    assert!(!place.path("run").exists());
}

#[test]
fn an_encoder_must_be_as_its_configuration_says() {
    let place = Place::with_corpus();
    let train = "train --corpus corpus --head flat --epochs 1 --max-tokens 16 --quiet --encoder";
    place.run(&format!("{train} scratch:tiny --out first")).ok();
    place.copy("first/bundle", "encoder");
    let config = place.read("encoder/config.json");
    assert!(config.contains("\"type_vocab_size\": 2"), "{config}");
    place.write("encoder/config.json", config.replace("\"type_vocab_size\": 2", "\"type_vocab_size\": 0"));
    place.run(&format!("{train} encoder --out second")).fails(65, &["encoder"]);
}
