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
    for figure in ["weights.svg", "bundle/member-1/MANIFEST.json", "bundle/member-2/MANIFEST.json"] {
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
    mixed("--member one --member one --seed 7").fails(78, &["one", "than the ensemble", "--seed"]);
    mixed("--member one --member one --set refit=always").fails(78, &["`refit`"]);
    mixed("--member one --member one --seeds 3").fails(78, &["`seeds`", "`mixed`"]);
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

#[test]
fn heads_on_word_vectors_are_trained_bundled_and_read_again() {
    let place = Place::with_corpus();
    place
        .write("glove.txt", "kitten 1 0 0.5\nwhiskers 0 1 -0.5\npurr 0.2 0.3 0.4\nthe 0 0 0.1\nto 0.1 0 0\n");
    for (head, encoder, set) in [
        ("text-cnn", "words:12", "text-cnn.maps=16"),
        ("text-cnn", "words:glove.txt", "text-cnn.layout=kim"),
        ("sgm", "words:12", "sgm.hidden=16"),
        ("enc-dec", "words:12", "enc-dec.hidden=16"),
        ("xml-cnn", "words:12", "xml-cnn.pieces=3"),
        ("attention-xml", "words:12", "attention-xml.units=8"),
        ("flat", "words:12", "flat.pool=mean"),
    ] {
        let train = format!(
            "train --corpus corpus --head {head} --encoder {encoder} --set {set} --epochs 2 --threads 1"
        );
        place.run(&format!("{train} --out run --quiet")).ok();
        let config: toml::Table = place.read("run/config.toml").parse().unwrap();
        assert_eq!(config["train"]["learning_rate"].as_float(), Some(1e-3), "{head}");
        let metrics = place.run("evaluate run --json").ok().json();
        assert!(metrics["metrics"]["micro-f1"].as_f64().is_some_and(f64::is_finite), "{head}");
        // The vectors are in the bundle: the file they came from is not needed.
        let before = place.run("predict run/bundle corpus/test.jsonl").ok().stdout;
        std::fs::rename(place.path("run/bundle"), place.path("moved")).unwrap();
        assert_eq!(place.run("predict moved corpus/test.jsonl").ok().stdout, before, "{head}");
        for folder in ["moved", "run"] {
            std::fs::remove_dir_all(place.path(folder)).unwrap();
        }
    }
}

#[test]
fn what_word_vectors_cannot_do_is_said() {
    let place = Place::with_corpus();
    let train = |words: &str| place.run(&format!("train --corpus corpus --out run {words}"));
    train("--head flat --encoder words:12 --set flat.pool=cls").fails(78, &["`pool = \"mean\"`"]);
    train("--head label-sequence --encoder words:12").fails(78, &["`sgm`"]);
    train("--head text-cnn --encoder words:no-such-file").fails(65, &["no such file", "words:300"]);
    train("--head text-cnn --encoder words:12 --set text-cnn.kernels=[2,2]").fails(78, &["two odd widths"]);
    place.write("bad.txt", "password 1 0\nprinter 1\n");
    train("--head text-cnn --encoder words:bad.txt").fails(65, &["bad.txt", "line 2"]);
    assert!(!place.path("run").exists());
}

#[test]
fn a_search_can_be_widened_after_training() {
    let place = Place::with_corpus();
    place
        .run(
            "train --corpus corpus --head label-sequence --encoder scratch:tiny --max-tokens 24 --epochs 3 --threads 1 --out run --quiet",
        )
        .ok();
    place.run("evaluate run").ok();
    let before = place.read("run/reports/test.json");
    let wide =
        "evaluate run --set label-sequence.scores=beam --set label-sequence.beam=4 --threshold 0.5 --json";
    let outcome = place.run(wide).ok();
    assert!(outcome.json()["metrics"]["micro-f1"].is_number());
    assert_eq!(place.read("run/reports/test.json"), before, "the run's own report stays");
    place.run("evaluate run --set label-sequence.beam=0").fails(78, &["label-sequence.beam", "1 to 100"]);
    place.run("evaluate run --set train.epochs=9").fails(78, &["cannot be changed after training"]);
}
