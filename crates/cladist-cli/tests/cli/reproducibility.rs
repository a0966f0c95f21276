//! The same corpus and seed give the same bytes, anywhere and on any number of threads.

use std::fs;

use crate::support::Place;

#[test]
fn the_same_seed_gives_the_same_bundle() {
    let place = Place::with_corpus();
    for head in ["svm", "parabel", "bonsai"] {
        // A share of train is held out, so that the seed decides something.
        fs::remove_file(place.path("corpus/dev.jsonl")).ok();
        let train = format!("train --corpus corpus --head {head} --dev 0.2 --quiet");
        for (out, seed) in [("a", 1), ("b", 1), ("c", 2)] {
            place.run(&format!("{train} --seed {seed} --out {out} --overwrite")).ok();
        }
        let (a, b, c) = (place.files("a/bundle"), place.files("b/bundle"), place.files("c/bundle"));
        assert!(a.contains_key("MANIFEST.json") && a.contains_key("model.safetensors"), "{:?}", a.keys());
        assert!(a == b, "{head}: two bundles of one seed differ");
        assert!(a != c, "{head}: the seed changes nothing");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let place = Place::with_corpus();
    for head in ["svm", "parabel", "bonsai"] {
        for threads in [1, 2, 5] {
            let train = format!("train --corpus corpus --head {head} --quiet --overwrite");
            place.run(&format!("{train} --out run-{threads} --threads {threads}")).ok();
            place.run(&format!("evaluate run-{threads} --quiet --threads {threads}")).ok();
        }
        let bundle = place.files("run-1/bundle");
        let report = |n: usize| place.read(&format!("run-{n}/reports/test-labels.tsv"));
        for n in [2, 5] {
            assert!(bundle == place.files(&format!("run-{n}/bundle")), "{head} with {n} threads");
            assert_eq!(report(1), report(n), "{head} with {n} threads");
        }
    }
}

#[test]
fn a_moved_run_answers_the_same() {
    let place = Place::with_run();
    let before = place.run("predict run corpus/test.jsonl -k 5").ok().stdout;
    let report = place.run("evaluate run --json").ok().json();
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::rename(place.path("run"), place.path("elsewhere/moved")).unwrap();
    assert_eq!(place.run("predict elsewhere/moved corpus/test.jsonl -k 5").ok().stdout, before);
    let moved = place.run("evaluate elsewhere/moved --json").ok().json();
    assert_eq!(moved["metrics"], report["metrics"]);
}

#[test]
fn a_bundle_works_on_its_own() {
    let place = Place::with_run();
    let before = place.run("predict run corpus/test.jsonl").ok().stdout;
    let report = place.run("evaluate run --json").ok().json();
    fs::rename(place.path("run/bundle"), place.path("model")).unwrap();
    fs::remove_dir_all(place.path("run")).unwrap();
    assert_eq!(place.run("predict model corpus/test.jsonl").ok().stdout, before);
    place.run("evaluate model").fails(78, &["no corpus given", "--corpus"]);
    let files = place.names("model");
    let alone = place.run("evaluate model --corpus corpus --json").ok().json();
    assert_eq!(alone["metrics"], report["metrics"]);
    // A bundle is sealed: reports do not go into it.
    assert_eq!(place.names("model"), files);
}

#[test]
fn a_corpus_may_move_if_the_run_is_told() {
    let place = Place::with_run();
    let report = place.run("evaluate run --json").ok().json();
    fs::rename(place.path("corpus"), place.path("archive")).unwrap();
    place.run("evaluate run").fails(66, &["corpus/test.jsonl"]);
    let moved = place.run("evaluate run --corpus archive --json").ok().json();
    assert_eq!(moved["metrics"], report["metrics"]);
}

#[test]
fn a_run_knows_its_corpus_from_any_folder() {
    let place = Place::with_run();
    let report = place.run("evaluate run --json").ok().json();
    let output = assert_cmd::Command::new(crate::support::program())
        .args(["evaluate", "../run", "--json"])
        .current_dir(place.path("corpus"))
        .output()
        .unwrap();
    let elsewhere: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(elsewhere["metrics"], report["metrics"]);
}

#[test]
fn one_explicit_dev_file_replaces_the_held_out_share() {
    let place = Place::with_corpus();
    fs::rename(place.path("corpus/dev.jsonl"), place.path("chosen.jsonl")).unwrap();
    let with = place.run("train --corpus corpus --dev-file chosen.jsonl --out with --json").ok().json();
    assert_eq!(with["documents"], 72);
    assert_eq!(with["data"]["splits"][0]["held_out"], 0);
    let without = place.run("train --corpus corpus --dev 0.25 --out without --json").ok().json();
    // Held out to choose, then trained on once more.
    assert_eq!(without["data"]["splits"][0]["held_out"], 18);
    assert_eq!(without["documents"], 72);
    let never =
        place.run("train --corpus corpus --dev 0.25 --set refit=never --out never --json").ok().json();
    assert_eq!(never["documents"], 54);
}
