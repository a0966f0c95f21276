//! `analyze`: tables, JSON and figures about the inside of models.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Outcome, Place, column};

/// A place with a corpus and two runs of tiny encoders on it.
fn with_runs() -> Place {
    let place = Place::with_corpus();
    for (name, seed) in [("one", 1), ("two", 2)] {
        place
            .run(&format!(
                "train --corpus corpus --head flat --encoder scratch:tiny --epochs 1 --max-tokens 24 \
                 --seed {seed} --out {name} --quiet"
            ))
            .ok();
    }
    place
}

fn numbers(values: &Value) -> Vec<f64> {
    match values {
        Value::Array(inner) => inner.iter().flat_map(numbers).collect(),
        value => vec![value.as_f64().unwrap()],
    }
}

const FILES: [&str; 4] = ["attention-kl.svg", "distance.svg", "heads.svg", "layers.json"];

#[test]
fn bundles_are_studied_side_by_side() {
    let place = with_runs();
    let outcome = place.run("analyze layers --bundle one --bundle two").ok();
    for words in ["layers on dev: 24 documents", "entropy: one", "head KL: two", "KL(row ‖ column)"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    assert!(outcome.stderr.contains("one/analysis") && outcome.stderr.contains("nats"), "{}", outcome.stderr);
    assert_eq!(place.names("one/analysis"), FILES.map(str::to_owned).into());
    assert!(!place.path("two/analysis").exists());
    for name in ["distance", "attention-kl", "heads"] {
        let svg = place.read(&format!("one/analysis/{name}.svg"));
        assert!(svg.contains(">one<") && svg.contains(">two<") && svg.contains(">layer<"), "{svg}");
    }

    let json = place.run("analyze layers --bundle one --bundle two --json --quiet").ok().json();
    assert_eq!(json, serde_json::from_str::<Value>(&place.read("one/analysis/layers.json")).unwrap());
    assert_eq!(json["split"], "dev");
    assert_eq!(column(&json["bundles"], "name"), ["one", "two"]);
    for bundle in json["bundles"].as_array().unwrap() {
        assert_eq!(
            (&bundle["n_layers"], &bundle["n_heads"], &bundle["head"]),
            (&2.into(), &2.into(), &"flat".into())
        );
        assert!(bundle["n_documents"] == 24 && bundle["n_tokens"].as_u64().unwrap() > 100, "{bundle}");
        let distance = numbers(&bundle["distance"]);
        assert!(distance[0] == 0.0 && distance[3] == 0.0 && distance[1] == distance[2], "{bundle}");
        assert!(distance[1] > 0.0 && distance[1] < 1.0, "{bundle}");
        let kl = numbers(&bundle["attention_kl"]);
        assert!(kl[0] == 0.0 && kl[1] > 0.0 && kl[2] > 0.0, "{bundle}");
        assert!(
            numbers(&bundle["entropy"]).iter().all(|value| (0.1..24f64.ln()).contains(value)),
            "{bundle}"
        );
        assert!(numbers(&bundle["head_kl"]).iter().all(|value| *value > 0.0), "{bundle}");
    }
    assert_ne!(json["bundles"][0]["distance"], json["bundles"][1]["distance"]);
}

#[test]
fn the_same_documents_give_the_same_files_on_any_number_of_threads() {
    let place = with_runs();
    place.run("analyze layers --bundle one --out a --threads 1").ok();
    place.run("analyze layers --bundle one --out b --threads 3").ok();
    assert!(place.files("a") == place.files("b"));
}

#[test]
fn splits_limits_and_places_can_be_chosen() {
    let place = with_runs();
    let documents = |outcome: Outcome| outcome.ok().json()["bundles"][0]["n_documents"].as_u64().unwrap();
    let study = "analyze layers --bundle one --out x --json --quiet";
    assert_eq!(documents(place.run(&format!("{study} --split test"))), 18);
    assert_eq!(documents(place.run(&format!("{study} --limit 5"))), 5);
    assert_eq!(place.run(&format!("{study} --limit 0")).code, Some(2));
    place.run(&format!("{study} --split beauty")).fails(78, &["beauty"]);
    // A bundle alone knows no corpus, and has no folder of its own to write to.
    place.run("analyze layers --bundle one/bundle").fails(78, &["--corpus"]);
    let before = place.files("one/bundle");
    std::fs::remove_file(place.path("corpus/dev.jsonl")).unwrap();
    let json = place.run("analyze layers --bundle one/bundle --corpus corpus --json --quiet").ok().json();
    assert_eq!((&json["split"], &json["bundles"][0]["name"]), (&"test".into(), &"one".into()));
    assert!(FILES.iter().all(|name| place.path(name).exists()));
    assert!(place.files("one/bundle") == before);
}

#[test]
fn what_has_no_layers_or_other_documents_is_refused() {
    let place = with_runs();
    place.run("train --corpus corpus --out linear --quiet").ok();
    place
        .run("analyze layers --bundle one --bundle linear --corpus corpus")
        .fails(78, &["`linear`", "has no layers", "--encoder"]);
    place.run("analyze layers --bundle nowhere").fails(66, &["`nowhere` does not exist"]);
    assert_eq!(place.run("analyze layers").code, Some(2));
    let dev = place.read("corpus/dev.jsonl");
    place.write("other/dev.jsonl", dev.lines().next().unwrap());
    place.copy("two", "three");
    let card = place.read("three/data.json");
    place.write("three/data.json", card.replace("corpus/dev.jsonl", "other/dev.jsonl"));
    place.run("analyze layers --bundle one --bundle three").fails(78, &["different documents"]);
    assert!(!place.path("one/analysis").exists());
}

#[test]
fn labels_of_bundles_come_to_a_plane() {
    let place = with_runs();
    let outcome = place.run("analyze labels --bundle one --bundle two").ok();
    for words in ["first axis", "siblings", "chance", "one", "two", "flat"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    assert!(
        outcome.stderr.contains("one/analysis") && outcome.stderr.contains("length 1"),
        "{}",
        outcome.stderr
    );
    let files =
        ["html", "svg"].map(|ending| [format!("labels-one.{ending}"), format!("labels-two.{ending}")]);
    let files: BTreeSet<String> = files.into_iter().flatten().chain(["labels.json".to_owned()]).collect();
    assert_eq!(place.names("one/analysis"), files);
    let svg = place.read("one/analysis/labels-one.svg");
    for text in [">Motor cars<", ">Animals<", ">Labels of one (flat)<", "of the variance across"] {
        assert!(svg.contains(text), "{text} is not in {svg}");
    }
    let page = place.read("one/analysis/labels-one.html");
    assert!(page.contains("<title>Robot dogs (robot-dogs) · Machines · "), "{page}");
    assert!(page.contains("Of 6 labels with siblings") && page.contains("(by chance 20.0%)"), "{page}");

    let json = place.run("analyze labels --bundle one --bundle two --json --quiet").ok().json();
    assert_eq!(json, serde_json::from_str::<Value>(&place.read("one/analysis/labels.json")).unwrap());
    assert_eq!(column(&json["bundles"], "name"), ["one", "two"]);
    for bundle in json["bundles"].as_array().unwrap() {
        assert_eq!((&bundle["method"], &bundle["n_labels"]), (&"pca".into(), &9.into()));
        assert_eq!(bundle["branches"], serde_json::json!(["Animals", "Machines", "Plants"]));
        let variance = numbers(&bundle["variance"]);
        assert!(
            variance[0] >= variance[1] && variance[1] > 0.0 && variance[0] + variance[1] <= 1.0,
            "{bundle}"
        );
        let siblings = &bundle["siblings"];
        assert!((0.0..=1.0).contains(&siblings["share"].as_f64().unwrap()), "{siblings}");
        assert_eq!((&siblings["n_labels"], siblings["chance"].as_f64()), (&6.into(), Some(0.2)));
        let trains: Value =
            bundle["labels"].as_array().unwrap().iter().map(|label| label["train"].clone()).collect();
        let trains = numbers(&trains);
        assert!(trains.is_sorted_by(|a, b| a >= b), "{trains:?}");
    }
    assert_ne!(json["bundles"][0]["labels"], json["bundles"][1]["labels"]);
}

#[test]
fn neighbours_stay_neighbours_with_tsne_on_any_number_of_threads() {
    let place = with_runs();
    let json = place
        .run("analyze labels --bundle one --method tsne --perplexity 2 --out a --threads 1 --json --quiet")
        .ok()
        .json();
    let bundle = &json["bundles"][0];
    assert_eq!((&bundle["method"], &bundle["perplexity"]), (&"tsne".into(), &2.0.into()));
    assert!(bundle["kl"].as_f64().unwrap() > 0.0, "{bundle}");
    place.run("analyze labels --bundle one --method tsne --perplexity 2 --out b --threads 3").ok();
    assert!(place.files("a") == place.files("b"));
    place.run("analyze labels --bundle one --out c --threads 1").ok();
    place.run("analyze labels --bundle one --out d --threads 3").ok();
    assert!(place.files("c") == place.files("d"));
}

#[test]
fn bundles_of_one_name_have_files_of_their_own() {
    let place = with_runs();
    place.copy("one", "other/one");
    place.run("analyze labels --bundle one --bundle other/one --bundle other/one --out x").ok();
    let pages: Vec<String> = place.names("x").into_iter().filter(|name| name.ends_with(".html")).collect();
    assert_eq!(pages, ["labels-one.html", "labels-other-one-2.html", "labels-other-one.html"]);
}

#[test]
fn linear_models_have_vectors_if_every_label_has_its_own() {
    let place = Place::with_corpus();
    for head in ["svm", "bonsai"] {
        place.run(&format!("train --corpus corpus --head {head} --out {head} --quiet")).ok();
    }
    let json = place.run("analyze labels --bundle svm --json --quiet").ok().json();
    assert_eq!(json["bundles"][0]["head"], "svm");
    let siblings = &json["bundles"][0]["siblings"];
    assert!(siblings["n_labels"].as_u64().unwrap() > 3, "{siblings}");
    place.run("analyze labels --bundle bonsai").fails(78, &["`bonsai`", "no vectors of labels", "`svm`"]);
    assert!(!place.path("bonsai/analysis").exists());
}

#[test]
fn labels_that_cannot_be_shown_are_refused() {
    let place = Place::with_corpus();
    assert_eq!(place.run("analyze labels").code, Some(2));
    let outcome = place.run("analyze labels --bundle one --method umap");
    assert!(outcome.code == Some(2) && outcome.stderr.contains("pca, tsne"), "{outcome:?}");
    place.run("analyze labels --bundle nowhere").fails(66, &["`nowhere` does not exist"]);
    place.run("analyze labels --bundle one --perplexity 5").fails(78, &["--perplexity", "tsne"]);
    for name in ["svm1", "svm2"] {
        place.run(&format!("train --corpus corpus --set refit=never --out {name} --quiet")).ok();
    }
    place
        .run("analyze labels --bundle svm1 --method tsne --perplexity 0")
        .fails(78, &["perplexity", "at least 1"]);
    place.run("train --corpus corpus --head mixed --member svm1 --member svm2 --out both --quiet").ok();
    place
        .run("analyze labels --bundle both")
        .fails(78, &["`both`", "`mixed`", "member-1` (svm)", "member-2` (svm)"]);
    place.run("analyze labels --bundle both/bundle/member-2 --out x").ok();
    // One label is no plane.
    let one =
        (0..12).map(|n| format!("{{\"id\":\"{n}\",\"text\":\"purr meow {n}\",\"labels\":[\"cats\"]}}\n"));
    let one: String = one.collect();
    place.write("small/train.jsonl", &one);
    place.write("small/dev.jsonl", &one);
    place.write("small/labels.tsv", "cats\tCats\n");
    place.run("train --corpus small --out small-run --quiet").ok();
    place.run("analyze labels --bundle small-run").fails(78, &["1 trained labels", "at least 3"]);
}
