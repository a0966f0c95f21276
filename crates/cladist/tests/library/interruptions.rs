//! Trainings that are stopped before and after their updates.

use cladist::core::{Cancel, Progress};
use cladist::{Error, Event, Observer, RunConfig, Summary, Training};

use crate::support::{bytes, corpus, files, network, settings};

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
