//! Whoever asks a run to stop waits for one batch at most, and a watcher that panics harms nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use cladist_core::job::Progress;
use cladist_core::{Document, Job};

use super::*;
use crate::error::Error;
use crate::shortlist::ShortlistConfig;
use crate::train::exchange::Alone;
use crate::train::lock::RunLock;
use crate::train::source::{Example, Fingerprint, Resident, Source};
use crate::train::train_from;

fn cancelled<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Core(cladist_core::Error::Cancelled)))
}

/// Asks to stop when so many batches were fetched.
struct Stopping<'a> {
    inner: Resident<'a>,
    cancel: Cancel,
    left: Cell<usize>,
    fetched: Cell<usize>,
}

impl Source for Stopping<'_> {
    fn lengths(&self) -> &[usize] {
        self.inner.lengths()
    }
    fn fetch(&self, numbers: &[usize]) -> Result<Vec<Example<'_>>> {
        self.fetched.set(self.fetched.get() + 1);
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() == 0 {
            self.cancel.cancel();
        }
        self.inner.fetch(numbers)
    }
    fn id(&self, number: usize) -> String {
        self.inner.id(number)
    }
    fn n_documents(&self) -> usize {
        self.inner.n_documents()
    }
    fn fingerprint(&self) -> Fingerprint {
        self.inner.fingerprint()
    }
}

#[test]
fn a_run_stops_between_the_batches_of_an_update_and_goes_on_bit_for_bit() {
    let toy = Toy::new(Task::MultiLabel);
    let config = TrainConfig { batch_size: 2, accumulate: 4, ..quick() };
    let unbroken = bytes(&Run::new(&toy, config.clone()).finish().0);
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: Some(folder.path()), ..Run::new(&toy, config) };
    let model = run.model();
    let seen = Seen::new(Stop::Never);
    // In the second of the four batches of the second update.
    let (result, fetched) = run.plan_with(&seen, |plan| {
        let inner = Resident::new(&model, &plan.train, &plan.cancel).unwrap();
        let cancel = plan.cancel.clone();
        let source = Stopping { inner, cancel, left: Cell::new(6), fetched: Cell::new(0) };
        (train_from(model, plan, &source, &mut Alone).map(|_| ()), source.fetched.get())
    });
    assert!(cancelled(result) && fetched == 6, "{fetched} batches");
    assert!(seen.has_note("stopped and saved after step 1"));
    let resumed = Run { resume: true, ..run }.finish();
    assert!(bytes(&resumed.0) == unbroken);
}

#[test]
fn nothing_begins_once_it_was_asked_to_stop() {
    let toy = Toy::new(Task::MultiLabel);
    let seen = Seen::new(Stop::Never);
    seen.cancel.cancel();
    let run = Run { n_dev: 4, ..Run::new(&toy, TrainConfig { freeze_epochs: 1, ..quick() }) };
    let model = run.model();
    assert!(cancelled(Resident::new(&model, &toy.examples(), &seen.cancel)), "tokenising");
    assert!(cancelled(run.plan_with(&seen, |plan| train(model, plan))));
    assert!(seen.steps.lock().unwrap().is_empty());
}

#[test]
fn reading_documents_for_the_head_to_learn_first_can_be_stopped() {
    let toy = Toy::new(Task::MultiLabel);
    let run = Run::new(&toy, TrainConfig { freeze_epochs: 1, ..quick() });
    let model = run.model();
    let seen = Seen::new(Stop::Never);
    let (result, fetched) = run.plan_with(&seen, |plan| {
        let many = Toy {
            documents: (0..600).map(|n| Document::from_text(n.to_string(), "gold ".repeat(20))).collect(),
            gold: toy.gold.iter().cycle().take(600).cloned().collect(),
            ..Toy::new(Task::MultiLabel)
        };
        let inner = Resident::new(&model, &many.examples(), &plan.cancel).unwrap();
        let cancel = plan.cancel.clone();
        let source = Stopping { inner, cancel, left: Cell::new(2), fetched: Cell::new(0) };
        (train_from(model, plan, &source, &mut Alone).map(|_| ()), source.fetched.get())
    });
    assert!(cancelled(result) && fetched == 2, "{fetched} batches");
}

/// Asks to stop at the first news.
struct AtFirst(Cancel, AtomicU64);

impl Progress for AtFirst {
    fn stage(&self, _name: &str, _total: u64) {}
    fn advance(&self, n: u64) {
        self.1.fetch_add(n, Ordering::Relaxed);
        self.0.cancel();
    }
}

#[test]
fn so_can_what_learns_after_the_network() {
    let toy = Toy::new(Task::MultiLabel);
    let shortlist = ShortlistConfig { group_size: 2, top_groups: 2, random: 1, size: 6, match_only: false };
    let mut design = Design { shortlist, ..flat() };
    design.ranker.on = true;
    let mut model = toy.model(design, 1).ready();
    // More than a batch of documents.
    let documents: Vec<Document> =
        (0..600).map(|n| Document::from_text(n.to_string(), "gold ".repeat(20))).collect();
    let gold: Vec<_> = toy.gold.iter().cycle().take(600).cloned().collect();
    for ranker in [false, true] {
        let progress = AtFirst(Cancel::default(), AtomicU64::new(0));
        let job = Job { progress: &progress, cancel: progress.0.clone() };
        let result = if ranker {
            model.learn_ranker(&documents, &gold, 1, &job)
        } else {
            model.learn_counts(&documents, &gold, 1, &job)
        };
        assert!(cancelled(result));
        let read = progress.1.load(Ordering::Relaxed);
        assert!(read > 0 && read < 600, "{read} documents");
    }
    assert!(model.ranker().is_none() && model.components.counts.0.is_none());
}

/// Panics at a step, at an evaluation, or at a word.
struct Panicking(&'static str);

impl Watcher for Panicking {
    fn step(&self, report: &StepReport) {
        assert!(self.0 != "step" || report.step < 4, "a watcher's own fault");
    }
    fn dev(&self, _report: &DevReport) {
        assert!(self.0 != "dev", "a watcher's own fault");
    }
    fn note(&self, _message: &str) {
        assert!(self.0 != "note", "a watcher's own fault");
    }
}

#[test]
fn a_run_whose_watcher_panicked_goes_on_bit_for_bit() {
    let toy = Toy::new(Task::MultiLabel);
    let config = TrainConfig { checkpoint_steps: 1, log_steps: 1, ..quick() };
    let unbroken = bytes(&Run { n_dev: 4, ..Run::new(&toy, config.clone()) }.finish().0);
    for at in ["step", "dev", "note"] {
        let folder = tempfile::tempdir().unwrap();
        let run = Run { folder: Some(folder.path()), n_dev: 4, ..Run::new(&toy, config.clone()) };
        if at == "note" {
            // There is something to say when a run goes on.
            run.go(Stop::AfterStep(2)).0.unwrap_err();
        }
        let run = Run { resume: at == "note", ..run };
        let model = run.model();
        let caught = catch_unwind(AssertUnwindSafe(|| {
            run.plan_watched(&Panicking(at), Cancel::default(), |plan| train(model, plan).map(|_| ()))
        }));
        assert!(caught.is_err(), "{at}");
        drop(RunLock::take(folder.path()).unwrap());
        let (model, outcome, _) = Run { resume: true, ..run }.finish();
        assert_eq!(outcome.steps, 6, "{at}");
        assert!(bytes(&model) == unbroken, "{at}");
    }
}
