use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use cladist::core::{Cancel, Progress};
use cladist::corpus::SplitName;
use cladist::observe::StepReport;
use cladist::{
    BadLinePolicy, Error, ErrorKind, Event, Observer, OpenOptions, PredictOptions, Summary, Training, Work,
};

use crate::support::{Heard, bytes, corpus, documents, files, labels, network, settings};

#[test]
fn documents_in_memory_train_the_same_model_as_their_files() {
    let place = tempfile::tempdir().unwrap();
    let source = files(place.path());
    let settings = settings("svm", &["refit=never"]);
    let model = |training: Training<'_>, name: &str| {
        training.out(place.path().join(name)).run().unwrap().open(&OpenOptions::default()).unwrap()
    };
    let from_files = model(Training::new(settings.clone()).corpus(source), "files");
    let from_memory = model(Training::new(settings).corpus(corpus()), "memory");
    let documents = documents("x", 5);
    let ask = |model: &cladist::Model| model.predict(&documents, &PredictOptions::default()).unwrap();
    assert_eq!(ask(&from_files), ask(&from_memory));
    let work = Work::default();
    assert!(from_files.evaluate_own(SplitName::Test, &BadLinePolicy::Stop, &work).is_ok());
    let error = from_memory.evaluate_own(SplitName::Test, &BadLinePolicy::Stop, &work).unwrap_err();
    assert!(matches!(error, Error::NoCorpus));
}

#[test]
fn a_model_without_dev_and_test_has_a_figure_of_what_was_held_out() {
    let place = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let only_train = cladist::corpus::Corpus { dev: None, ..corpus() };
    let training =
        Training::new(settings("svm", &["data.dev=0.3"])).corpus(only_train.clone()).observe(&heard);
    let run = training.out(place.path().join("run")).run().unwrap();
    assert!(run.summary.dev.is_empty());
    assert!(run.summary.held_out["micro-f1"] > 0.5, "{:?}", run.summary.held_out);
    assert!(heard.0.lock().unwrap().iter().any(|line| line.contains("held-out documents")));
    let heard = Heard::default();
    let training = Training::new(settings("svm", &["data.dev=0"])).corpus(only_train).observe(&heard);
    training.out(place.path().join("blind")).run().unwrap();
    assert!(heard.0.lock().unwrap().iter().any(|line| line.contains("nothing measures this model")));
}

/// Does something at a step.
struct AtStep<F: Fn() + Sync> {
    step: u64,
    seen: AtomicU64,
    act: F,
}

impl<F: Fn() + Sync> Progress for AtStep<F> {
    fn stage(&self, _name: &str, _total: u64) {}
    fn advance(&self, _n: u64) {}
}

impl<F: Fn() + Sync> Observer for AtStep<F> {
    fn step(&self, report: &StepReport) {
        self.seen.store(report.step, Ordering::SeqCst);
        if report.step == self.step {
            (self.act)();
        }
    }
}

#[test]
fn a_cancelled_training_goes_on_to_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let (whole, stopped) = (place.path().join("whole"), place.path().join("stopped"));
    let source = files(place.path());
    Training::new(network()).corpus(source.clone()).out(&whole).run().unwrap();
    let cancel = Cancel::default();
    let observer = AtStep { step: 4, seen: AtomicU64::new(0), act: || cancel.cancel() };
    let training = Training::new(network()).corpus(source).out(&stopped);
    let error = training.clone().observe(&observer).cancel(cancel.clone()).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(matches!(error, Error::Stopped(_)));
    assert!(observer.seen.load(Ordering::SeqCst) < 6, "it stops soon");
    assert!(Summary::of(&stopped).unwrap().is_none());
    // Whoever begins anew by mistake loses nothing.
    assert!(matches!(training.clone().run(), Err(Error::Unfinished(_))));
    Training::new(network()).out(&stopped).resume(true).run().unwrap();
    assert_eq!(bytes(&whole.join("bundle")), bytes(&stopped.join("bundle")));
}

#[test]
fn a_panicking_observer_ends_the_call_and_harms_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (whole, hurt) = (place.path().join("whole"), place.path().join("hurt"));
    Training::new(network()).corpus(corpus()).out(&whole).run().unwrap();
    let observer = AtStep { step: 4, seen: AtomicU64::new(0), act: || panic!("the observer has a fault") };
    let training = Training::new(network()).corpus(corpus()).out(&hurt);
    let ended = catch_unwind(AssertUnwindSafe(|| training.clone().observe(&observer).run().map(|_| ())));
    assert!(ended.is_err(), "the panic reaches the caller");
    training.resume(true).run().unwrap();
    assert_eq!(bytes(&whole.join("bundle")), bytes(&hurt.join("bundle")));
}

#[test]
fn two_trainings_at_once_do_not_meet() {
    let place = tempfile::tempdir().unwrap();
    let train = |name: &str, threads: Option<usize>| {
        let training =
            Training::new(network()).corpus(corpus()).threads(threads).out(place.path().join(name));
        training.run().unwrap();
        bytes(&place.path().join(name).join("bundle"))
    };
    let (a, b) = std::thread::scope(|scope| {
        let a = scope.spawn(|| train("a", Some(1)));
        let b = scope.spawn(|| train("b", Some(2)));
        (a.join().unwrap(), b.join().unwrap())
    });
    assert_eq!(a, b);
}

#[test]
fn what_is_wrong_with_a_training_is_said_before_it_begins() {
    let place = tempfile::tempdir().unwrap();
    let run = |training: Training<'_>| training.run().unwrap_err();
    let out = place.path().join("run");
    assert!(matches!(run(Training::new(settings("svm", &[]))), Error::NoFolder));
    assert!(matches!(run(Training::new(settings("svm", &[])).out(&out)), Error::NoCorpus));
    let no_encoder = Training::new(settings("flat", &[])).corpus(corpus()).out(&out);
    assert!(matches!(run(no_encoder), Error::NoEncoder { head: "flat" }));
    assert!(!out.exists());
    let resumed = Training::new(settings("svm", &[])).out(&out).resume(true);
    assert_eq!(run(resumed).kind(), ErrorKind::NotFound);
}

#[test]
fn events_are_sentences() {
    let event = Event::Tensors { what: "is not used", names: &["a".to_owned(), "b".to_owned()] };
    assert_eq!(event.to_string(), "of the encoder's weights, `a` and 1 more is not used");
    assert!(Event::Warning(String::new()).is_warning() && !event.is_warning());
}

#[test]
fn a_bundle_keeps_what_followed_from_its_encoder_and_cut_descriptions_are_counted() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("run");
    let mut builder = labels();
    builder.describe(cladist::core::taxonomy::Label {
        id: "cats".to_owned(),
        description: Some("purr whiskers meow kitten ".repeat(5)),
        ..Default::default()
    });
    let corpus = cladist::corpus::Corpus { taxonomy: builder.build().unwrap(), ..corpus() };
    let set = ["encoder=scratch:tiny", "train.epochs=1", "refit=never", "label-attention.max_tokens=16"];
    let heard = Heard::default();
    let training = Training::new(settings("label-attention", &set)).corpus(corpus).observe(&heard);
    training.out(&out).run().unwrap().open(&OpenOptions::default()).unwrap();
    let heads = |path: &str| {
        let text = std::fs::read_to_string(out.join(path)).unwrap();
        text.lines().find(|line| line.starts_with("heads = ")).unwrap().to_owned()
    };
    // What was asked for, and what came of it.
    assert_eq!(
        (heads("config.toml").as_str(), heads("bundle/config.toml").as_str()),
        ("heads = 0", "heads = 2")
    );
    let heard = heard.0.lock().unwrap();
    let said = "1 of 5 label descriptions are longer than the 16 tokens that are read of them";
    assert!(heard.iter().any(|line| line.contains(said)), "{heard:?}");
}
