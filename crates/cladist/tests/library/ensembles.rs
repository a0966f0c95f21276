//! Ensembles: what members see, and what they may not have seen.

use std::path::{Path, PathBuf};

use cladist::config::{Layers, Recipe, Refit};
use cladist::core::calibrate::Objective;
use cladist::core::text::normalise::Normalise;
use cladist::core::{Classifier, Request, Scores};
use cladist::corpus::{Corpus, Split};
use cladist::{Error, EvaluateOptions, Model, OpenOptions, RunConfig, Training};

use crate::support::{corpus, settings};

/// Documents whose label is in a number too.
fn numbered() -> Corpus {
    let number = |split: Split| {
        let mut documents = split.documents;
        for document in &mut documents {
            let code = document.labels[0].len() * 1000 + document.labels[0].as_bytes()[1] as usize;
            document.text = format!("{code} {}", document.text);
        }
        Split { documents, ..split }
    };
    let Corpus { taxonomy, train, dev, test } = corpus();
    Corpus { taxonomy, train: train.map(number), dev: dev.map(number), test }
}

fn member(place: &Path, name: &str, corpus: &Corpus, set: &[&str]) -> PathBuf {
    let out = place.join(name);
    let set = [&["refit=never"], set].concat();
    Training::new(settings("svm", &set)).corpus(corpus.clone()).out(&out).run().unwrap();
    out
}

fn mixed(members: &[PathBuf], set: &[&str]) -> cladist::Result<RunConfig> {
    let set = set.iter().map(|&text| text.to_owned()).collect();
    Layers { set, members: members.to_vec(), ..Layers::of_head("mixed") }.resolve()
}

#[test]
fn members_give_raw_probabilities_if_they_are_asked_to() {
    let (place, corpus) = (tempfile::tempdir().unwrap(), numbered());
    let platt = &["calibrate.method=platt"][..];
    let members =
        [member(place.path(), "a", &corpus, platt), member(place.path(), "b", &corpus, &["linear.c=9"])];
    let request = Request::default();
    let documents = &corpus.dev.as_ref().unwrap().documents;
    let raw: Vec<Scores> = members
        .iter()
        .map(|path| {
            let model = Model::open(path, &OpenOptions::default()).unwrap();
            model.pipeline().model.score(documents, &request).unwrap()
        })
        .collect();
    for (scores, same) in [("raw", true), ("calibrated", false)] {
        let set = [&format!("mixed.scores={scores}"), "calibrate.method=none", "thresholds=fixed"];
        let out = place.path().join(scores);
        let config = mixed(&members, &set).unwrap();
        let run = Training::new(config).corpus(corpus.clone()).out(&out).run().unwrap();
        // As it was trained, and as the bundle is read.
        let weights: serde_json::Value =
            serde_json::from_slice(&std::fs::read(out.join("bundle/weights.json")).unwrap()).unwrap();
        let weight = |n: usize| weights["weights"][0][n].as_f64().unwrap();
        let model = run.open(&OpenOptions::default()).unwrap();
        let found = model.score(documents, &request).unwrap();
        let close = (0..documents.len()).all(|n| {
            found.row(n).iter().all(|&(label, score)| {
                let of = |scores: &Scores| {
                    scores.row(n).iter().find(|(other, _)| *other == label).map_or(0.0, |&(_, score)| score)
                };
                let expected = weight(0) * f64::from(of(&raw[0])) + weight(1) * f64::from(of(&raw[1]));
                (f64::from(score) - expected).abs() < 1e-6
            })
        });
        assert_eq!(close, same, "{scores}");
    }
}

#[test]
fn members_see_the_same_texts_when_they_are_weighed_and_when_they_predict() {
    let (place, corpus) = (tempfile::tempdir().unwrap(), numbered());
    let members = [
        member(place.path(), "words", &corpus, &["data.normalise.drop_numbers=true"]),
        member(place.path(), "all", &corpus, &[]),
    ];
    let config = mixed(&members, &["calibrate.method=none"]).unwrap();
    assert!(config.common.data.normalise.is_identity());
    let run = Training::new(config).corpus(corpus.clone()).out(place.path().join("both")).run().unwrap();
    let model = run.open(&OpenOptions::default()).unwrap();
    // The documents as they are, which is what a prediction is given.
    let again = model.evaluate(corpus.dev.as_ref().unwrap(), &EvaluateOptions::default()).unwrap();
    assert_eq!(again.report.metrics, run.summary.dev);
    let error = mixed(&members, &["data.normalise.lowercase=true"]).unwrap_err();
    assert!(error.to_string().contains("`data.normalise`"), "{error}");
    // Where heads share settings, those of texts are the members'.
    let shared = Layers { set: vec!["data.normalise.lowercase=true".to_owned()], ..Layers::default() };
    let config = shared.resolve_one_of(cladist::heads::find("mixed").unwrap()).unwrap();
    assert!(config.common.data.normalise.is_identity());
}

#[test]
fn members_that_held_out_other_documents_than_the_ensemble_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let only_train = Corpus { dev: None, ..corpus() };
    let set = ["data.dev=0.3"];
    let members =
        [member(place.path(), "a", &only_train, &set), member(place.path(), "b", &only_train, &set)];
    let out = place.path().join("both");
    let train = |set: &[&str]| {
        let training = Training::new(mixed(&members, set).unwrap()).corpus(only_train.clone());
        training.out(&out).run().map(|_| ())
    };
    for other in ["data.seed=7", "data.dev=0.4", "data.stratified=false"] {
        let error = train(&[other]).unwrap_err();
        assert!(matches!(&error, Error::MemberHeldOut(path) if *path == members[0]), "{other}: {error}");
        assert!(!out.exists());
    }
    // The corpus has lost documents since.
    let mut fewer = only_train.clone();
    if let Some(train) = &mut fewer.train {
        train.documents.pop();
        train.gold.pop();
    }
    let error = Training::new(mixed(&members, &[]).unwrap()).corpus(fewer).out(&out).run().unwrap_err();
    assert!(matches!(error, Error::MemberHeldOut(_)), "{error}");
    train(&[]).unwrap();
}

#[test]
fn settings_without_effect_on_an_ensemble_are_refused() {
    let (place, corpus) = (tempfile::tempdir().unwrap(), corpus());
    let members = [member(place.path(), "a", &corpus, &[]), member(place.path(), "b", &corpus, &[])];
    for refit in ["refit=always", "refit=held-out"] {
        let error = mixed(&members, &[refit]).unwrap_err();
        assert!(error.to_string().contains("`refit`"), "{error}");
    }
    let out = place.path().join("both");
    let training = Training::new(mixed(&members, &[]).unwrap()).corpus(corpus).out(&out);
    let error = training.run_seeds(3).unwrap_err();
    assert!(error.to_string().contains("`seeds`"), "{error}");
    assert!(!out.exists());
    training.run().unwrap();
    for change in ["mixed.steps=3", "tokens.max_tokens=8"] {
        let options = OpenOptions { set: vec![change.to_owned()], ..OpenOptions::default() };
        let error = Model::open(&out, &options).unwrap_err();
        assert!(matches!(error, Error::FixedEnsemble(_)), "{error}");
        assert!(error.to_string().contains(change), "{error}");
    }
}

#[test]
fn typed_settings_are_checked_like_those_of_files() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("run");
    let svm = || settings("svm", &[]);
    let mut count = svm();
    count.common.decode.rule = cladist::core::decode::Rule::PredictedCount;
    let mut share = svm();
    share.common.data.dev = 2.0;
    let ensemble = || mixed(&[place.path().join("a"), place.path().join("b")], &[]);
    assert!(matches!(ensemble(), Err(Error::NoRun(_))));
    let mut ensemble = settings("mixed", &[]);
    let Recipe::Mixed(recipe) = &mut ensemble.recipe else { panic!("no ensemble") };
    recipe.objective = Objective::SampleF1;
    let mut twice = settings("mixed", &[]);
    twice.common.refit = Refit::Always;
    let mut texts = settings("mixed", &[]);
    texts.common.data.normalise = Normalise { lowercase: true, ..Normalise::default() };
    let mut network = settings("flat", &["encoder=scratch:tiny"]);
    network.common.refit = Refit::HeldOut;
    for (config, key) in [
        (count, "decode.rule"),
        (share, "data.dev"),
        (ensemble, "mixed.objective"),
        (twice, "refit"),
        (texts, "data.normalise"),
        (network, "refit"),
    ] {
        let training = Training::new(config).corpus(corpus()).out(&out);
        for error in [training.run().map(|_| ()).unwrap_err(), training.rehearse().unwrap_err()] {
            assert!(error.to_string().contains(&format!("`{key}`")), "{error}");
        }
    }
    assert!(!out.exists());
    let training = Training::new(svm()).corpus(corpus());
    assert!(matches!(training.clone().threads(Some(0)).rehearse(), Err(Error::Threads { .. })));
    training.threads(Some(1)).rehearse().unwrap();
}
