//! Defaults, files, flags and `--set`, and what is refused.

use crate::support::Place;

/// Nothing but the corpus is there.
#[track_caller]
fn assert_untouched(place: &Place) {
    assert_eq!(place.names(""), ["corpus".to_owned()].into());
}

fn printed(place: &Place, arguments: &str) -> toml::Table {
    let outcome = place.run(&format!("train --corpus corpus --out run --print-config {arguments}")).ok();
    outcome.stdout.parse().unwrap()
}

#[test]
fn later_layers_win() {
    let place = Place::with_corpus();
    place.write("file.toml", "head = \"bonsai\"\n[train]\nseed = 5\nepochs = 3\n[data]\nseed = 6\n");
    let seeds = |arguments: &str| {
        let config = printed(&place, arguments);
        let seed = |section: &str| config[section]["seed"].as_integer().unwrap();
        (config["head"].as_str().unwrap().to_owned(), seed("train"), seed("data"))
    };
    let (_, train, data) = seeds("");
    assert_eq!(seeds(""), ("svm".to_owned(), train, data));
    assert_eq!(seeds("--config file.toml"), ("bonsai".to_owned(), 5, 6));
    assert_eq!(seeds("--config file.toml --seed 7 --head parabel"), ("parabel".to_owned(), 7, 7));
    assert_eq!(seeds("--config file.toml --seed 7 --set train.seed=8"), ("bonsai".to_owned(), 8, 7));
    assert_eq!(seeds("--set train.seed=8 --set train.seed=9").1, 9);
    assert_eq!(printed(&place, "--config file.toml")["train"]["epochs"].as_integer(), Some(3));
    std::fs::remove_file(place.path("file.toml")).unwrap();
    assert_untouched(&place);
}

#[test]
fn flags_are_settings_of_the_same_words() {
    let place = Place::with_corpus();
    let config = printed(&place, "--dev 0.25 --fit-thresholds macro --labels-field topics --language de");
    assert_eq!(config["data"]["dev"].as_float(), Some(0.25));
    assert_eq!(config["data"]["labels_field"].as_str(), Some("topics"));
    assert_eq!(config["data"]["language"].as_str(), Some("de"));
    assert_eq!(config["fit_thresholds"]["objective"].as_str(), Some("macro-f1"));
    assert_eq!(printed(&place, "--fit-thresholds none")["thresholds"].as_str(), Some("fixed"));
    assert_eq!(printed(&place, "--fit-thresholds")["fit_thresholds"]["objective"].as_str(), Some("micro-f1"));
    let typed =
        printed(&place, "--set linear.c=0.5 --set features.word_ngrams=[1,1] --set data.ancestors=add");
    assert_eq!(typed["linear"]["c"].as_float(), Some(0.5));
    assert_eq!(typed["features"]["word_ngrams"].as_array().unwrap().len(), 2);
    assert_eq!(typed["data"]["ancestors"].as_str(), Some("add"));
}

#[test]
fn printed_settings_are_a_settings_file() {
    let place = Place::with_corpus();
    for head in ["svm", "parabel", "bonsai"] {
        let print =
            format!("train --corpus corpus --out run --head {head} --set train.seed=3 --print-config");
        let text = place.run(&print).ok().stdout;
        place.write("printed.toml", &text);
        let again = place.run("train --corpus corpus --out run --config printed.toml --print-config").ok();
        assert_eq!(again.stdout, text);
    }
    place.run("train --corpus corpus --out run --config printed.toml --quiet").ok();
    assert_eq!(place.read("run/config.toml"), place.read("printed.toml"));
    assert_eq!(place.read("run/config.toml"), place.read("run/bundle/config.toml"));
}

#[test]
fn defaults_are_those_of_the_snapshot() {
    let place = Place::with_corpus();
    for head in ["svm", "parabel", "bonsai"] {
        let print = format!("train --corpus corpus --out run --head {head} --print-config");
        insta::assert_snapshot!(format!("settings-{head}"), place.run(&print).ok().stdout);
    }
}

#[test]
fn what_no_setting_is_called_is_refused_by_name() {
    let place = Place::with_corpus();
    let train = "train --corpus corpus --out run";
    for (arguments, words) in [
        ("--set train.epoch=3", &["`train.epoch`", "`epochs`", "--print-config"][..]),
        ("--set banana=3", &["`banana`"]),
        ("--set train.seed=abc", &["train.seed", "abc"]),
        ("--set train.seed=-1", &["train.seed", "-1"]),
        ("--set train=3", &["train", "3"]),
        ("--set data.ancestors=maybe", &["maybe", "`keep`", "`add`"]),
        ("--set linear.c=0", &["`linear.c`", "0"]),
        ("--set decode.threshold=2", &["`decode.threshold`", "2"]),
        ("--set train.seed", &["--set train.seed", "key=value"]),
        ("--set =3", &["not the name of a setting"]),
        ("--set head.x=3", &["`head.x`"]),
        ("--dev 1.5", &["`data.dev`", "1.5"]),
        ("--seed 18446744073709551615", &["`--seed`", "18446744073709551615"]),
        ("--corpus-format papyrus", &["papyrus", "`jsonl`"]),
        ("--head perceptron", &["`perceptron`", "`svm`", "`parabel`", "`bonsai`"]),
    ] {
        place.run(&format!("{train} {arguments}")).fails(78, words);
        assert_untouched(&place);
    }
}

#[test]
fn a_settings_file_is_refused_by_name_too() {
    let place = Place::with_corpus();
    let train = "train --corpus corpus --out run --config file.toml";
    place.run(train).fails(66, &["`file.toml`"]);
    for (text, words) in [
        ("train = [", &["`file.toml`", "line 1"][..]),
        ("[train]\nepoch = 3", &["`epoch`"]),
        ("[trane]\n", &["`trane`"]),
        ("head = \"perceptron\"", &["`perceptron`"]),
    ] {
        place.write("file.toml", text);
        place.run(train).fails(78, words);
        assert!(!place.path("run").exists());
    }
}

#[test]
fn fixed_thresholds_are_those_of_the_settings() {
    let place = Place::with_corpus();
    place
        .run("train --corpus corpus --out run --quiet --fit-thresholds none --set decode.threshold=0.9")
        .ok();
    assert_eq!(place.read("run/bundle/thresholds.json").trim(), "0.9");
    place.run("train --corpus corpus --out fitted --quiet --fit-thresholds").ok();
    assert_ne!(place.read("fitted/bundle/thresholds.json").trim(), "0.9");
}

#[test]
fn settings_are_printed_without_a_run_and_as_json() {
    let place = Place::with_corpus();
    let text = place.run("train --print-config --head bonsai").ok().stdout;
    assert_eq!(text, place.run("train --print-config --head bonsai --corpus corpus --out run").ok().stdout);
    let json = place.run("train --print-config --head bonsai --json").ok().json();
    let table: toml::Table = text.parse().unwrap();
    assert_eq!(json["head"], "bonsai");
    assert_eq!(json["train"]["seed"].as_i64(), table["train"]["seed"].as_integer());
    assert_eq!(place.run("train --corpus corpus").code, Some(2));
    assert_untouched(&place);
}
