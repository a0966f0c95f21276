//! Trainings that are stopped before and after their updates; predictions and evaluations that are stopped half-way.

use std::sync::Mutex;

use cladist::core::{Cancel, Progress};
use cladist::corpus::SplitName;
use cladist::{Error, EvaluateOptions, Event, Observer, PredictOptions, RunConfig, Summary, Training, Work};

use crate::support::{bytes, corpus, files, network, settings, small_network, split, svm};

/// Cancels when it is told of an event, or when a stage begins.
struct At<'a> {
    event: fn(&Event<'_>) -> bool,
    stage: &'a str,
    cancel: Cancel,
}

impl Progress for At<'_> {
    fn stage(&self, name: &str, _total: u64) {
        if name == self.stage {
            self.cancel.cancel();
        }
    }
    fn advance(&self, _n: u64) {}
}

impl Observer for At<'_> {
    fn event(&self, event: &Event<'_>) {
        if (self.event)(event) {
            self.cancel.cancel();
        }
    }
}

fn stopped(training: &Training<'_>, event: fn(&Event<'_>) -> bool, stage: &str) -> Error {
    let at = At { event, stage, cancel: Cancel::default() };
    training.clone().observe(&at).cancel(at.cancel.clone()).run().unwrap_err()
}

#[test]
fn a_training_that_is_stopped_before_its_first_update_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("run");
    let training = Training::new(network()).corpus(corpus()).out(&out);
    let begins = |event: &Event<'_>| matches!(event, Event::Begins { .. });
    let error = stopped(&training, begins, "");
    assert!(error.is_cancelled() && !matches!(error, Error::Stopped(_)), "{error}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    // A run that was to be replaced is back.
    Training::new(settings("svm", &[])).corpus(corpus()).out(&out).run().unwrap();
    let before = bytes(&out.join("bundle"));
    let error = stopped(&training.overwrite(true), begins, "");
    assert!(error.is_cancelled() && !matches!(error, Error::Stopped(_)), "{error}");
    assert_eq!(bytes(&out.join("bundle")), before);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_training_that_is_stopped_after_its_last_update_goes_on_from_there() {
    let place = tempfile::tempdir().unwrap();
    let source = files(place.path());
    let counting = || -> RunConfig {
        let mut config = network();
        config.common.decode.rule = cladist::core::decode::Rule::PredictedCount;
        config
    };
    let whole = place.path().join("whole");
    Training::new(counting()).corpus(source.clone()).out(&whole).run().unwrap();
    let ended = |event: &Event<'_>| matches!(event, Event::Ended(_));
    let never = |_: &Event<'_>| false;
    let stages = [
        ("ended", ended as fn(&Event<'_>) -> bool, ""),
        ("counts", never, "learn how many labels documents have"),
        ("dev", never, "score dev"),
    ];
    for (name, event, stage) in stages {
        let out = place.path().join(name);
        let error = stopped(&Training::new(counting()).corpus(source.clone()).out(&out), event, stage);
        assert!(matches!(error, Error::Stopped(_)), "{name}: {error}");
        assert!(Summary::of(&out).unwrap().is_none());
        // No update is made once more.
        let at = At { event: never, stage: "", cancel: Cancel::default() };
        let steps = Steps(at, std::sync::atomic::AtomicU64::new(0));
        Training::new(counting()).out(&out).resume(true).observe(&steps).run().unwrap();
        assert_eq!(steps.1.into_inner(), 0, "{name}");
        assert_eq!(bytes(&whole.join("bundle")), bytes(&out.join("bundle")), "{name}");
        assert!(!out.join("checkpoints").exists());
    }
}

/// Counts updates.
struct Steps<'a>(At<'a>, std::sync::atomic::AtomicU64);

impl Progress for Steps<'_> {
    fn stage(&self, name: &str, total: u64) {
        self.0.stage(name, total);
    }
    fn advance(&self, _n: u64) {}
}

impl Observer for Steps<'_> {
    fn step(&self, _report: &cladist::observe::StepReport) {
        self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn a_series_of_seeds_has_the_same_settings_throughout() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("seeds");
    let series = |set: &[&str]| Training::new(settings("svm", set)).corpus(corpus()).out(&out);
    series(&[]).run_seeds(1).unwrap();
    let before = std::fs::read(out.join("seeds.toml")).unwrap();
    let other = ["linear.c=0.25"];
    // Even for seeds that are not there yet.
    assert!(matches!(series(&[&other[..], &["train.seed=7"]].concat()).run_seeds(1), Err(Error::Exists(_))));
    std::fs::remove_file(out.join("seeds.json")).unwrap();
    assert!(matches!(series(&other).run_seeds(2), Err(Error::Unfinished(_))));
    assert_eq!(std::fs::read(out.join("seeds.toml")).unwrap(), before);
    // A series that goes on has its own settings.
    let report = series(&other).resume(true).run_seeds(2).unwrap();
    assert_eq!(report.runs.len(), 2);
    assert_eq!(std::fs::read(out.join("seeds.toml")).unwrap(), before);
    // A new one may replace it, but one run of the old is not taken for one of the new.
    series(&other).overwrite(true).run_seeds(1).unwrap();
    let error = series(&other).resume(true).run_seeds(2).unwrap_err();
    assert!(matches!(error, Error::OtherSettings { .. }), "{error}");
    assert!(error.to_string().contains("`linear.c`"), "{error}");
    // Settings without a run are in nobody's way.
    let failed = place.path().join("failed");
    std::fs::create_dir(&failed).unwrap();
    std::fs::write(failed.join("seeds.toml"), before).unwrap();
    series(&other).out(&failed).run_seeds(1).unwrap();
}

/// Cancels with the first steps of a stage, and counts the steps that are done of it.
struct Within<'a> {
    stage: &'a str,
    /// Whether the stage has begun, its steps, and those that are done.
    seen: Mutex<(bool, u64, u64)>,
    cancel: Cancel,
}

impl<'a> Within<'a> {
    fn new(stage: &'a str) -> Self {
        Self { stage, seen: Mutex::default(), cancel: Cancel::default() }
    }

    fn work(&self) -> Work<'_> {
        Work { observer: self, cancel: self.cancel.clone() }
    }

    fn check(&self, error: &Error) {
        assert!(error.is_cancelled(), "{error}");
        let (_, total, done) = *self.seen.lock().unwrap();
        assert!(0 < done && done < total, "{}: {done} of {total}", self.stage);
    }
}

impl Progress for Within<'_> {
    fn stage(&self, name: &str, total: u64) {
        let mut seen = self.seen.lock().unwrap();
        seen.0 = name == self.stage;
        if seen.0 {
            seen.1 = total;
        }
    }
    fn advance(&self, n: u64) {
        let mut seen = self.seen.lock().unwrap();
        if seen.0 {
            seen.2 += n;
            self.cancel.cancel();
        }
    }
}

impl Observer for Within<'_> {}

#[test]
fn a_prediction_that_is_stopped_half_way_says_so_and_the_model_answers_on() {
    let place = tempfile::tempdir().unwrap();
    let documents = split(SplitName::Test, 400).documents;
    for model in [svm(place.path()), small_network(place.path())] {
        let before = model.predict(&documents, &PredictOptions::default()).unwrap();
        let within = Within::new("predict");
        let options = PredictOptions { work: within.work(), ..PredictOptions::default() };
        within.check(&model.predict(&documents, &options).unwrap_err());
        assert_eq!(model.predict(&documents, &PredictOptions::default()).unwrap(), before);
    }
}

#[test]
fn so_does_an_evaluation_in_its_scoring_and_in_its_resampling() {
    let place = tempfile::tempdir().unwrap();
    let split = split(SplitName::Test, 400);
    for model in [svm(place.path()), small_network(place.path())] {
        let metrics = || {
            let evaluation = model.evaluate(&split, &EvaluateOptions::default()).unwrap();
            evaluation.report.metrics
        };
        let before = metrics();
        for stage in ["score test", "bootstrap"] {
            let within = Within::new(stage);
            let options =
                EvaluateOptions { bootstrap: Some(200), work: within.work(), ..EvaluateOptions::default() };
            within.check(&model.evaluate(&split, &options).unwrap_err());
            assert_eq!(metrics(), before);
        }
    }
}
