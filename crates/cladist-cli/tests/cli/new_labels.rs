//! Labels that a model has not met, and how many labels a document has.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::Place;

const TRAIN: &str =
    "train --corpus corpus --head label-attention --encoder scratch:tiny --epochs 1 --max-tokens 24 --quiet";

#[test]
fn labels_held_out_of_training_are_scored_by_their_descriptions() {
    let place = Place::with_corpus();
    place.run(&format!("{TRAIN} --set data.hold_out_labels=0.34 --out run")).ok();
    let data: Value = serde_json::from_str(&place.read("run/data.json")).unwrap();
    assert_eq!(data["report"]["held_out_labels"], 2, "{data}");
    let taxonomy = place.read("run/bundle/taxonomy.json");
    // What is left can be measured as ever.
    place.run("evaluate run --quiet").ok();

    let json = place.run("analyze zero-shot --bundle run --json --quiet").ok().json();
    let unseen: Vec<&str> =
        json["unseen_labels"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(unseen.len() == 2 && unseen.iter().all(|id| !taxonomy.contains(&format!("\"{id}\""))), "{json}");
    assert_eq!((&json["split"], &json["labels"]), (&"test".into(), &9.into()));
    assert!(json["documents"].as_u64().unwrap() >= 3, "{json}");
    let methods: Vec<_> =
        json["rows"].as_array().unwrap().iter().map(|row| row["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["the model", "at random"]);
    for row in json["rows"].as_array().unwrap() {
        for among in ["among_unseen", "among_all"] {
            assert!((0.0..=1.0).contains(&row[among]["ndcg@5"].as_f64().unwrap()), "{row}");
        }
    }
    // Of two labels a document has one or both, so that a guess is right more often than not, and with five to choose
    // nothing is missed.
    assert_eq!(json["rows"][1]["among_unseen"]["r@5"], 1.0);
    assert_eq!(json, serde_json::from_str::<Value>(&place.read("run/analysis/zero-shot.json")).unwrap());
    let table = place.run("analyze zero-shot --bundle run").ok().stdout;
    assert!(table.contains("2 of 9 labels were held out") && table.contains("among all labels"), "{table}");
}

#[test]
fn a_model_with_all_labels_has_nothing_unseen() {
    let place = Place::with_corpus();
    place.run(&format!("{TRAIN} --out run")).ok();
    place.run("analyze zero-shot --bundle run").fails(78, &["data.hold_out_labels"]);
}

#[test]
fn labels_are_added_to_a_trained_model() {
    let place = Place::with_corpus();
    place.run(&format!("{TRAIN} --out run")).ok();
    place.write("new.tsv", "drones\tDrones\tFlying machines with rotors.\ncats\tFelines\tNot heard.\n");
    place.write("edges.tsv", "machines\tdrones\n");
    let before = place.files("run");
    let predict = |model: &str| {
        place.run(&format!("predict {model} corpus/test.jsonl --top-k 20 --threshold 0")).ok().stdout
    };
    let old = predict("run");
    let outcome =
        place.run("taxonomy add-labels --bundle run --labels new.tsv --taxonomy edges.tsv --out wider").ok();
    assert!(outcome.stdout.contains("labels added: 1 (`drones`)"), "{}", outcome.stdout);
    assert!(place.files("run") == before, "the model changed");
    let taxonomy: Value = serde_json::from_str(&place.read("wider/taxonomy.json")).unwrap();
    let text = taxonomy.to_string();
    assert!(text.contains("Flying machines") && !text.contains("Felines"), "{text}");
    let new = predict("wider");
    assert!(new.contains("drones") && !old.contains("drones"), "{new}");
    // Scores of the labels that were there stay as they were.
    let scores = |text: &str| -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            for label in line["labels"].as_array().unwrap().iter().filter(|label| label["id"] != "drones") {
                found.insert(format!("{} {label}", line["id"]));
            }
        }
        found
    };
    assert_eq!(scores(&old), scores(&new));
    // In its place, for use with the run folder.
    place.run("taxonomy add-labels --bundle run --labels new.tsv --quiet").ok();
    assert_eq!(place.run("evaluate run --json --quiet").ok().json()["head"], "label-attention");
    assert!(predict("run").contains("drones"));
    for (command, words) in [
        ("taxonomy add-labels --bundle run --labels new.tsv", "nothing to add"),
        ("taxonomy add-labels --bundle run", "--labels FILE"),
        ("taxonomy add-labels --bundle run --labels new.tsv --out wider", "already exists"),
    ] {
        place.run(command).fails(78, &[words]);
    }
}

#[test]
fn models_with_an_output_for_each_label_take_no_new_ones() {
    let place = Place::with_run();
    place.write("new.tsv", "drones\tDrones\n");
    place.run("taxonomy add-labels --bundle run --labels new.tsv").fails(78, &["`svm`", "label-attention"]);
}

#[test]
fn a_network_says_how_many_labels_documents_have() {
    let place = Place::with_corpus();
    let train = "train --corpus corpus --head flat --encoder scratch:tiny --epochs 1 --max-tokens 24 --quiet";
    place.run(&format!("{train} --set decode.rule=predicted-count --out run")).ok();
    assert!(place.path("run/bundle/counts.safetensors").exists());
    let count = |arguments: &str| -> Vec<usize> {
        let out = place.run(&format!("predict run corpus/test.jsonl {arguments}")).ok().stdout;
        let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["labels"].as_array().unwrap().len()).collect()
    };
    // After one epoch no probability is above one half, but every document of the corpus has two labels or more.
    let counts = count("");
    assert!(counts.iter().all(|&n| n >= 2), "{counts:?}");
    assert!(count("--threshold 0.999999").iter().all(|&n| n == 0));
    assert_eq!(place.run("evaluate run --json --quiet").ok().json()["decode"]["rule"], "predicted-count");
    place
        .run("train --corpus corpus --set decode.rule=predicted-count --out svm")
        .fails(78, &["decode.rule"]);
}
