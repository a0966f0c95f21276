//! The demo: the whole job without a corpus of one's own.

use crate::support::Place;

#[test]
fn the_demo_trains_evaluates_and_predicts() {
    let place = Place::new();
    let outcome = place.run("demo --out runs/demo").ok();
    for words in
        ["micro-f1", "R-Precision", "New tickets and their four best labels", "cladist predict runs/demo"]
    {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    assert_eq!(place.names("runs"), ["demo", "demo-corpus"].map(str::to_owned).into());
    let answer = place.run_with("predict runs/demo", "the scooter would not unlock").ok().lines().remove(0);
    assert!(!answer["labels"].as_array().unwrap().is_empty(), "{answer}");
    let report = place.run("evaluate runs/demo --json").ok().json();
    assert!(report["metrics"]["micro-f1"].as_f64() > Some(0.6), "{}", report["metrics"]["micro-f1"]);
    place.run("data check --corpus runs/demo-corpus").ok();
    // A second time, over the first.
    let again = place.run("demo --out runs/demo --quiet").ok();
    assert_eq!(again.stdout, outcome.stdout);
}

#[test]
fn the_demo_corpus_is_decided_by_its_seed() {
    let place = Place::new();
    for (folder, seed) in [("a", 1), ("b", 1), ("c", 2)] {
        place.run(&format!("demo --corpus-only {folder} --seed {seed}")).ok();
    }
    assert!(place.files("a") == place.files("b"));
    assert!(place.files("a") != place.files("c"));
    let names = ["dev.jsonl", "hierarchy.tsv", "labels.tsv", "test.jsonl", "train.jsonl"];
    assert_eq!(place.names("a"), names.map(str::to_owned).into());
    let stats = place.run("taxonomy show a --json").ok().json();
    assert!(
        stats["labels"].as_u64() >= Some(60) && stats["multi_parent_labels"].as_u64() > Some(0),
        "{stats}"
    );
    assert_eq!(stats["labels_per_level"].as_array().unwrap().len(), 3);
    assert_eq!(stats["labels"], stats["described"]);
}

#[test]
fn the_demo_takes_every_head_and_refuses_others() {
    let place = Place::new();
    place.run("demo --out run --head bonsai --quiet").ok();
    place.run("demo --out other --head perceptron").fails(78, &["`perceptron`"]);
    assert!(!place.path("other").exists());
}

#[test]
fn the_demo_never_replaces_what_is_not_a_run() {
    let place = Place::new();
    place.write("precious/thesis.txt", "years of work");
    place.run("demo --out precious").fails(78, &["`precious` is not a run folder"]);
    assert_eq!(place.read("precious/thesis.txt"), "years of work");
}
