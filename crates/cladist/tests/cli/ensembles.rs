//! Labels in sequence and models together, from the command line.

use crate::support::Place;

#[test]
fn models_together_stand_alone_and_are_no_worse_on_dev() {
    let place = Place::with_corpus();
    for head in ["svm", "bonsai"] {
        place
            .run(&format!("train --corpus corpus --head {head} --set refit=never --out {head} --quiet"))
            .ok();
    }
    place.run("train --corpus corpus --head mixed --member svm --member bonsai/bundle --out both").ok();
    let record = place.run("evaluate both --split dev --json").json();
    let together = record["metrics"]["micro-f1"].as_f64().unwrap();
    assert!(together > 0.5, "{together}");
    for figure in
        ["weights.svg", "weights.png", "bundle/member-1/MANIFEST.json", "bundle/member-2/MANIFEST.json"]
    {
        assert!(place.path("both").join(figure).exists(), "{figure}");
    }
    let before = place.run("predict both/bundle corpus/test.jsonl").ok().stdout;
    for name in ["svm", "bonsai", "corpus"] {
        std::fs::rename(place.path(name), place.path(&format!("{name}-gone"))).unwrap();
    }
    std::fs::rename(place.path("both/bundle"), place.path("elsewhere")).unwrap();
    let after = place.run("predict elsewhere corpus-gone/test.jsonl").ok().stdout;
    assert_eq!(before, after);
    // A change inside a member is found.
    place.write("elsewhere/member-1/thresholds.json", "{}");
    place.run("predict elsewhere corpus-gone/test.jsonl").fails(65, &["thresholds.json", "damaged"]);
}

#[test]
fn what_cannot_be_an_ensemble_is_refused() {
    let place = Place::with_corpus();
    // Dev is held out of train, and linear models learn from it in the end.
    std::fs::remove_file(place.path("corpus/dev.jsonl")).unwrap();
    place.run("train --corpus corpus --head svm --out seen --quiet").ok();
    place.run("train --corpus corpus --head svm --set refit=never --out one --quiet").ok();
    place.run("train --corpus corpus --head svm --set refit=never --seed 9 --out other --quiet").ok();
    let mixed =
        |members: &str| place.run(&format!("train --corpus corpus --head mixed {members} --out both"));
    mixed("").fails(78, &["at least two members", "--member"]);
    mixed("--member one").fails(78, &["at least two members"]);
    mixed("--member one --member nowhere").fails(66, &["nowhere", "does not exist"]);
    mixed("--member one --member seen").fails(78, &["seen", "refit=never"]);
    mixed("--member one --member other").fails(78, &["other", "--seed"]);
    place.run("train --corpus corpus --head svm --member one --out both").fails(78, &["--member", "mixed"]);
    assert!(!place.path("both").exists());
}

#[test]
fn sequences_come_with_their_probability() {
    let place = Place::with_corpus();
    let train = "train --corpus corpus --head label-sequence --encoder scratch:tiny --epochs 25 --learning-rate 2e-3 \
                 --max-tokens 24 --quiet";
    place.run(&format!("{train} --out run")).ok();
    let report = place.run("evaluate run --json").json();
    assert!(report["metrics"]["micro-f1"].as_f64().unwrap() > 0.6, "{}", report["metrics"]["micro-f1"]);
    let lines = place.run("predict run corpus/test.jsonl --sequences 3").ok().lines();
    for line in &lines {
        let logs: Vec<f64> = line["sequences"]
            .as_array()
            .unwrap()
            .iter()
            .map(|sequence| sequence["log_probability"].as_f64().unwrap())
            .collect();
        assert!(!logs.is_empty() && logs.len() <= 3 && logs.is_sorted_by(|a, b| a >= b), "{line}");
        assert!(logs.iter().map(|log| log.exp()).sum::<f64>() <= 1.0 + 1e-6, "{line}");
    }
    assert!(place.run("predict run corpus/test.jsonl").ok().lines()[0]["sequences"].is_null());
    place.run("predict run corpus/test.jsonl --sequences --format tsv").fails(78, &["jsonl"]);
    place.run("train --corpus corpus --head svm --out svm --quiet").ok();
    place.run("predict svm corpus/test.jsonl --sequences").fails(78, &["label-sequence"]);
}
