//! Run folders that are taken, half made, or somebody else's too.

use std::fs;

use crate::neural::{start, stderr, train, wait_for_step};
use crate::support::Place;

const TRAIN: &str =
    "train --corpus corpus --head flat --encoder scratch:tiny --epochs 1 --max-tokens 16 --out run";

#[test]
fn a_run_that_is_being_trained_is_not_replaced() {
    let place = Place::with_corpus();
    let mut child = start(&place, &format!("{} --out run", train(1000)));
    wait_for_step(&place, "run", 1, &mut child);
    let before = place.read("run/config.toml");
    place.run(&format!("{TRAIN} --overwrite")).fails(75, &["`run`", "another training is at work"]);
    place
        .run("train --corpus corpus --out run --overwrite")
        .fails(75, &["`run`", "another training is at work"]);
    assert_eq!(place.read("run/config.toml"), before);
    assert!(child.try_wait().unwrap().is_none(), "{}", stderr(&mut child));
    child.kill().unwrap();
    child.wait().unwrap();
    // A dead trainer keeps nobody out.
    place.run(&format!("{TRAIN} --overwrite --quiet")).ok();
    place.run("predict run corpus/test.jsonl").ok();
}

#[test]
fn files_of_others_in_a_run_folder_are_never_removed() {
    let place = Place::with_run();
    place.write("run/notes.txt", "mine");
    place.write("run/figures/one.svg", "mine too");
    for head in ["--head svm", "--head flat --encoder scratch:tiny"] {
        place
            .run(&format!("train --corpus corpus {head} --out run --overwrite"))
            .fails(78, &["`run`", "`figures`, `notes.txt`", "hint"]);
        assert_eq!(
            (place.read("run/notes.txt"), place.read("run/figures/one.svg")),
            ("mine".into(), "mine too".into())
        );
        place.run("predict run corpus/test.jsonl").ok();
    }
    fs::remove_file(place.path("run/notes.txt")).unwrap();
    fs::remove_dir_all(place.path("run/figures")).unwrap();
    place.run("evaluate run --quiet").ok();
    place.run("train --corpus corpus --out run --overwrite --quiet").ok();
}

#[test]
fn an_unfinished_run_keeps_its_settings() {
    let place = Place::with_corpus();
    let mut child = start(&place, &format!("{} --out run", train(1000)));
    wait_for_step(&place, "run", 1, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = place.read("run/config.toml");
    for (flags, key) in [
        ("--epochs 9", "`train.epochs`"),
        ("--set train.learning_rate=0.5", "`train.learning_rate`"),
        ("--head label-attention", "`head`"),
        ("--seed 99", "seed`"),
        ("--max-tokens 12", "`tokens.max_tokens`"),
    ] {
        place.run(&format!("train --resume --out run {flags}")).fails(78, &[key, "--overwrite"]);
        assert_eq!(place.read("run/config.toml"), before);
    }
    // The same settings once more are no other settings.
    let mut child = start(&place, &format!("{} --out run --resume", train(1000)));
    let lines = place.read("run/metrics.jsonl").lines().count();
    wait_for_step(&place, "run", lines, &mut child);
    assert!(child.try_wait().unwrap().is_none(), "{}", stderr(&mut child));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_series_of_seeds_keeps_its_settings() {
    let place = Place::with_corpus();
    let train = "train --corpus corpus --head svm --seeds 2 --out seeds --quiet";
    place.run(train).ok();
    let before = place.read("seeds/seeds.toml");
    place.run(&format!("{train} --set linear.c=0.25")).fails(78, &["`seeds`", "--overwrite"]);
    place.run(&format!("{train} --set linear.c=0.25 --seed 7 --resume")).fails(78, &["seed`", "--overwrite"]);
    place.run(&format!("{train} --set linear.c=0.25 --resume")).fails(78, &["`linear.c`", "--overwrite"]);
    assert_eq!(place.read("seeds/seeds.toml"), before);
    place.run("train --resume --seeds 2 --out seeds --quiet").ok();
    place.run(&format!("{train} --set linear.c=0.25 --overwrite")).ok();
    assert_ne!(place.read("seeds/seeds.toml"), before);
}

#[test]
fn a_run_that_was_killed_early_leads_nowhere_dead() {
    let whole = Place::with_corpus();
    whole.run(&format!("{TRAIN} --quiet")).ok();
    let files = ["", ".lock", "rejects.jsonl", "data.json", "config.toml"];
    for killed_after in 1..=files.len() {
        let place = Place::with_corpus();
        let half = || {
            let _ = fs::remove_dir_all(place.path("run"));
            fs::create_dir(place.path("run")).unwrap();
            for name in files[..killed_after].iter().filter(|name| !name.is_empty()) {
                let text = if name.ends_with('l') || name.ends_with('n') {
                    fs::read(whole.path("run").join(name))
                } else {
                    Ok(Vec::new())
                };
                place.write(&format!("run/{name}"), text.unwrap_or_default());
            }
            if killed_after >= 4 {
                let card = place.read("run/data.json");
                let (there, here) = (whole.path("corpus"), place.path("corpus"));
                place.write("run/data.json", card.replace(there.to_str().unwrap(), here.to_str().unwrap()));
            }
        };
        let what = format!("after {killed_after}");
        // The same command again either begins or says what to do.
        half();
        let again = place.run(TRAIN);
        assert!(
            again.code == Some(0) || (again.code == Some(78) && again.stderr.contains("--overwrite")),
            "{what}: {again:?}"
        );
        half();
        place.run(&format!("{TRAIN} --resume --quiet")).ok();
        place.run("predict run corpus/test.jsonl").ok();
        half();
        let bare = place.run("train --resume --out run --quiet");
        let known = killed_after == files.len();
        assert_eq!(bare.code, Some(if known { 0 } else { 66 }), "{what}: {bare:?}");
        assert!(known || bare.stderr.contains("no run to resume"), "{what}: {bare:?}");
        half();
        let replaced = place.run(&format!("{TRAIN} --overwrite --quiet"));
        assert_eq!(replaced.code, Some(0), "{what}: {replaced:?}");
        place.run("predict run corpus/test.jsonl").ok();
    }
}
