//! `analyze`: tables, JSON and figures about the inside of models.

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

const FILES: [&str; 7] = [
    "attention-kl.png",
    "attention-kl.svg",
    "distance.png",
    "distance.svg",
    "heads.png",
    "heads.svg",
    "layers.json",
];

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
