//! `cladist experiment`: what is run, what is not run again, and what is refused.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::neural::{start, stderr};
use crate::support::{Place, column};

/// An experiment with tiny new encoders; seconds of work.
fn experiment(words: &str) -> String {
    format!(
        "experiment layer-guided --corpus corpus --encoder scratch:tiny --max-tokens 24 --set train.output.learning_rate=1e-2 \
         --threads 1 {words}"
    )
}

fn mean(runs: &Value, metric: &str) -> f64 {
    let values: Vec<f64> =
        runs.as_array().unwrap().iter().map(|run| run["metrics"][metric].as_f64().unwrap()).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn variants_are_compared_and_nothing_is_trained_twice() {
    let place = Place::with_corpus();
    let command = experiment("--variants flat,hybrid --seeds 2 --epochs 2 --no-grid --out exp");
    let outcome = place.run(&command).ok();
    for word in
        ["R-Precision on test (18 documents)", "over 2 seeds", "level 2", "hybrid", "±", "exchanged together"]
    {
        assert!(outcome.stdout.contains(word), "`{word}` is not in {}", outcome.stdout);
    }
    for word in
        ["run 1 of 4: flat, seed 42", "run 4 of 4: hybrid, seed 43; about ", "testing hybrid against flat"]
    {
        assert!(outcome.stderr.contains(word), "`{word}` is not in {}", outcome.stderr);
    }
    let page = place.read("exp/experiment.html");
    assert!(page.contains("<svg") && page.contains("hybrid/as-given/seed-43/reports/test.html"));

    let before = place.files("exp");
    let again = place.run(&command).ok();
    assert_eq!(again.stdout, outcome.stdout);
    assert!(again.stderr.contains("4 of them done already"), "{}", again.stderr);
    assert!(!again.stderr.contains("run 1 of") && !again.stderr.contains("testing"), "{}", again.stderr);
    let after = place.files("exp");
    let runs = |name: &&String| !name.starts_with("experiment.");
    assert!(before.keys().eq(after.keys()));
    assert!(before.keys().filter(runs).all(|name| before[name] == after[name]));

    let results = place.run(&format!("{command} --json --quiet")).ok().json();
    assert_eq!((&results["experiment"], &results["split"]), (&json!("layer-guided"), &json!("test")));
    assert_eq!((&results["finished"], &results["n_runs"]), (&json!(true), &json!(4)));
    assert_eq!(results["seeds"], json!([42, 43]));
    assert_eq!(column(&results["columns"], "label"), ["level 1", "level 2", "micro", "macro"]);
    assert_eq!(column(&results["variants"], "name"), ["flat", "hybrid"]);
    for row in results["variants"].as_array().unwrap() {
        let value = &row["values"]["r-precision-level-2"];
        assert!((value["mean"].as_f64().unwrap() - mean(&row["runs"], "r-precision-level-2")).abs() < 1e-9);
        assert_eq!(row["runs"].as_array().unwrap().len(), 2);
        // What all variants share, and what makes this one.
        let settings: toml::Table = row["settings"].as_str().unwrap().parse().unwrap();
        assert_eq!(settings["data"]["ancestors"].as_str(), Some("add"));
        assert_eq!(settings["train"]["patience"].as_integer(), Some(3));
        assert_eq!(settings["head"].as_str(), row["definition"]["head"].as_str());
    }
    let tests = &results["variants"][1]["tests"];
    assert_eq!(column(&tests["metrics"], "metric").len(), 4);
    assert!(results["variants"][0]["tests"].is_null());
    let row = &tests["metrics"][2];
    assert!(
        (row["a"].as_f64().unwrap() - mean(&results["variants"][0]["runs"], "r-precision-micro")).abs()
            < 1e-9
    );
    assert!(
        (row["b"].as_f64().unwrap() - mean(&results["variants"][1]["runs"], "r-precision-micro")).abs()
            < 1e-9
    );

    // The folder keeps to its settings.
    place
        .run(&command.replace("--epochs 2", "--epochs 3"))
        .fails(78, &["other settings", "`train.epochs` is 2 there and 3 here", "--overwrite"]);
    place.write("corpus/test.jsonl", crate::support::documents("test", 2));
    place.run(&command).fails(78, &["another corpus"]);
}

#[test]
fn settings_are_chosen_on_dev_and_seeds_added_later() {
    let place = Place::with_corpus();
    let words = "--variants flat --try train.learning_rate=1e-7,2e-3 --epochs 3 --out exp";
    let command = experiment(words).replace("--set train.output.learning_rate=1e-2 ", "");
    let results = place.run(&format!("{command} --seeds 1 --json --quiet")).ok().json();
    let row = &results["variants"][0];
    assert_eq!(row["chosen"], json!({"learning rate": "2e-3"}));
    let losses: Vec<f64> =
        row["grid"].as_array().unwrap().iter().map(|run| run["best"]["value"].as_f64().unwrap()).collect();
    assert!(losses[1] < losses[0], "{losses:?}");
    assert!(place.path("exp/flat/learning-rate-2e-3/seed-42/bundle").exists());

    let more = place.run(&format!("{command} --seeds 2")).ok();
    assert!(more.stderr.contains("run 3 of 3: flat, learning rate 2e-3, seed 43"), "{}", more.stderr);
    assert!(!more.stderr.contains("run 2 of 3"), "{}", more.stderr);
    assert!(!place.path("exp/flat/learning-rate-1e-7/seed-43").exists());
}

#[test]
fn a_run_that_diverges_is_a_result() {
    let place = Place::with_corpus();
    // Without ε, what has no gradient is divided by zero.
    let command =
        experiment("--variants flat --try train.optimizer.epsilon=0,1e-8 --seeds 1 --epochs 3 --out exp");
    let results = place.run(&format!("{command} --json --quiet")).ok().json();
    let row = &results["variants"][0];
    assert!(row["grid"][0]["problem"].as_str().unwrap().contains("not finite"), "{row}");
    assert_eq!(row["chosen"], json!({"epsilon": "1e-8"}));
    assert!(place.path("exp/flat/epsilon-0/seed-42/failed.json").exists());
    let again = place.run(&command).ok();
    assert!(!again.stderr.contains("run 1 of 2"), "{}", again.stderr);
    let alone = command.replace("epsilon=0,1e-8", "epsilon=0").replace("--out exp", "--out alone");
    assert!(place.run(&alone).ok().stdout.contains("failed"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_experiment_goes_on_with_the_same_command() {
    let place = Place::with_corpus();
    let words = "--variants flat --seeds 1 --epochs 80 --set train.patience=0 --no-grid --out exp";
    let command = experiment(words);
    let mut child = start(&place, &command);
    let journal = place.path("exp/flat/as-given/seed-42/metrics.jsonl");
    let begin = Instant::now();
    while std::fs::read_to_string(&journal).unwrap_or_default().lines().count() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no step was ever seen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let text = stderr(&mut child);
    assert_eq!(child.wait().unwrap().code(), Some(75), "{text}");
    assert!(text.contains("the same command again"), "{text}");
    assert!(!place.path("exp/experiment.json").exists());
    let outcome = place.run(&command).ok();
    assert!(outcome.stderr.contains("going on after step"), "{}", outcome.stderr);
    assert!(place.path("exp/experiment.json").exists());
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is() {
    let place = Place::with_corpus();
    place.run("experiment layer-cake --corpus corpus --out exp").fails(78, &["layer-cake", "`layer-guided`"]);
    place.run(&experiment("--variants flat,flatter --out exp")).fails(78, &["`flatter`", "`in-groups`"]);
    place.run(&experiment("--no-grid")).fails(78, &["--out"]);
    place.run(&experiment("--no-grid --seeds 0 --out exp")).fails(78, &["`seeds`"]);
    place.run(&experiment("--head flat --out exp")).fails(78, &["every variant"]);
    place.run(&experiment("--set head=flat --out exp")).fails(78, &["every variant"]);
    place.run(&experiment("--set train.epoch=1 --out exp")).fails(78, &["`epoch`", "variant `flat`"]);
    place.run(&experiment("--variants last --set flat.pool=mean --out exp")).fails(78, &["no effect"]);
    place.run(&experiment("--try train.learning_rate --out exp")).fails(78, &["--try key=v1,v2"]);
    place.run(&experiment("--try head.dropout=0.1,2 --out exp")).fails(78, &["flat.dropout"]);
    place
        .run("experiment layer-guided --corpus corpus --no-grid --out exp")
        .fails(78, &["--encoder", "variant `flat`"]);
    // Three levels and more do not fit two layers; `flat` would not mind.
    let deep = place.read("corpus/hierarchy.tsv") + "cats\tkittens\nkittens\ttoy-kittens\n";
    place.write("corpus/hierarchy.tsv", deep);
    place.run(&experiment("--no-grid --out exp")).fails(78, &["variant `last`", "4 levels", "2 layers"]);
    assert_eq!(place.names(""), ["corpus".to_owned()].into());
    place.write("other/file.txt", "mine");
    place
        .run(&experiment("--no-grid --variants flat --out other"))
        .fails(78, &["no folder of an experiment"]);
    place.run(&experiment("--no-grid --overwrite --variants flat --out other")).fails(78, &["`other`"]);
    assert_eq!(place.names("other"), ["file.txt".to_owned()].into());
}

#[test]
fn experiments_are_listed() {
    let place = Place::new();
    let list = place.run("experiment --list").ok().stdout;
    assert_eq!(place.run("experiment").ok().stdout, list);
    assert!(list.contains("layer-guided") && list.contains("one-by-one"), "{list}");
    let rows = place.run("experiment --json").ok().json();
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "layer-guided").unwrap();
    assert_eq!(row["baseline"], "flat");
    assert_eq!(row["variants"][0], json!({"name": "flat", "settings": {"head": "flat"}}));
    assert_eq!(row["shared"]["train.monitor"], "loss");
}

#[test]
fn an_ensemble_is_made_of_the_runs_of_its_members_seed_by_seed() {
    let place = Place::with_corpus();
    let command = "experiment mixed --corpus corpus --encoder scratch:tiny --max-tokens 24 --threads 1 --seeds 2 --epochs 2 \
                   --variants text-cnn,flat,label-sequence,mixed --set text-cnn:encoder=words:8 \
                   --set text-cnn:text-cnn.maps=8 --set text-cnn:train.epochs=1 --set sgm:sgm.hidden=8 --out exp";
    let outcome = place.run(command).ok();
    for word in
        ["HA", "micro-F1", "ACC", "mixed", "label-sequence.beam", "`label-sequence` with other settings"]
    {
        assert!(outcome.stdout.contains(word), "`{word}` is not in {}", outcome.stdout);
    }
    let config: toml::Table = place.read("exp/mixed/as-given/seed-43/config.toml").parse().unwrap();
    let members: Vec<&str> =
        config["mixed"]["members"].as_array().unwrap().iter().filter_map(|member| member.as_str()).collect();
    assert_eq!(members.len(), 2);
    for (member, variant) in members.iter().zip(["flat", "label-sequence"]) {
        assert!(member.ends_with(&format!("exp/{variant}/as-given/seed-43")), "{member}");
    }
    let words: toml::Table = place.read("exp/text-cnn/as-given/seed-42/config.toml").parse().unwrap();
    assert_eq!(words["encoder"].as_str(), Some("words:8"));
    assert_eq!(words["train"]["epochs"].as_integer(), Some(1));
    assert_eq!(words["train"]["learning_rate"].as_float(), Some(1e-3));
    let flat: toml::Table = place.read("exp/flat/as-given/seed-42/config.toml").parse().unwrap();
    assert_eq!(flat["train"]["epochs"].as_integer(), Some(2));
    let results = place.run(&format!("{command} --json --quiet")).ok().json();
    assert_eq!(column(&results["sweep"]["rows"], "value"), ["1", "2", "3", "5", "7", "9"]);
    let page = place.read("exp/experiment.html");
    assert!(page.contains("On dev while training") && page.contains("label-sequence with other settings"));
    assert!(place.read("exp/curves.svg").contains("text-cnn"));

    place
        .run("experiment mixed --corpus corpus --encoder scratch:tiny --variants flat,mixed --out other")
        .fails(78, &["`mixed` is made of `label-sequence`"]);
    place
        .run(
            "experiment mixed --corpus corpus --encoder scratch:tiny --set nobody:train.epochs=1 --out other",
        )
        .fails(78, &["unknown variant `nobody`"]);
}

#[test]
fn branches_are_compared_and_their_violations_counted() {
    let place = Place::with_corpus();
    let outcome = place
        .run(
            "experiment himtl --corpus corpus --encoder scratch:tiny --max-tokens 24 --threads 1 --seeds 1 --epochs 1 \
             --variants flat,gcn-projection,tree-masking --set hierarchy-gcn.node_size=8 --set coding-tree.width=8 --out exp",
        )
        .ok();
    for word in ["gcn-projection", "tree-masking", "micro-hF1", "violated", "after", "seconds"] {
        assert!(outcome.stdout.contains(word), "`{word}` is not in {}", outcome.stdout);
    }
    let config: toml::Table = place.read("exp/gcn-projection/as-given/seed-42/config.toml").parse().unwrap();
    assert_eq!(config["branches"]["split"].as_str(), Some("projection"));
    let results: Value = serde_json::from_str(&place.read("exp/experiment.json")).unwrap();
    for row in results["variants"].as_array().unwrap() {
        assert_eq!(row["values"]["coherence-violation-rate"]["mean"], 0.0, "{row:#}");
        assert!(row["values"]["coherence-violation-rate-before"]["mean"].is_f64(), "{row:#}");
    }
    // A bundle with branches stands alone.
    place.run("evaluate exp/tree-masking/as-given/seed-42/bundle --corpus corpus").ok();
}

#[test]
fn experts_are_shown_in_three_tables() {
    let place = Place::with_corpus();
    let outcome = place
        .run(
            "experiment experts --corpus corpus --encoder scratch:tiny --max-tokens 24 --threads 1 --seeds 1 --epochs 2 \
             --variants svm,one-expert,two-experts --set experts.hidden=[4] --out exp",
        )
        .ok();
    for word in ["\nmethods", "\nlabels by frequency", "\nwhat experts are made of", "PSP@5", "few F", "KL"] {
        assert!(outcome.stdout.contains(word), "`{word}` is not in {}", outcome.stdout);
    }
    let results: Value = serde_json::from_str(&place.read("exp/experiment.json")).unwrap();
    let kl = |n: usize| results["variants"][n]["values"]["train:expert-kl"]["mean"].as_f64();
    // One expert has nobody to differ from.
    assert_eq!(kl(1), None);
    assert!(kl(2).is_some_and(|kl| kl > 0.0), "{results:#}");
}
