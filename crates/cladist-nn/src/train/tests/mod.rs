//! The loop on a small world.

mod devices;
mod exchange;
mod frozen;
mod health;
mod resume;
mod settings;
mod stop;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use cladist_core::decode::Decoded;
use cladist_core::{Cancel, Scores};

use super::progress::{DevReport, StepReport, Watcher};
use super::{Examples, Measure, Outcome, Plan, TrainConfig, train};
use crate::error::Result;
use crate::heads::label_attention::LabelAttentionConfig;
use crate::heads::{AnyHeadConfig, Task};
use crate::model::{Design, NeuralModel};
use crate::toy::{Toy, bytes, design, flat, on_threads};

/// When a run is stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stop {
    Never,
    AfterStep(u64),
    AfterDev(u64),
}

/// Writes down what it is told, and stops the run.
pub(crate) struct Seen {
    stop: Stop,
    cancel: Cancel,
    pub(crate) steps: Mutex<Vec<StepReport>>,
    pub(crate) dev: Mutex<Vec<DevReport>>,
    pub(crate) notes: Mutex<Vec<String>>,
    /// Documents read before the head learns alone, and all of them.
    read: Mutex<Option<(u64, u64)>>,
}

impl Seen {
    fn new(stop: Stop) -> Self {
        let empty = Mutex::default;
        Self {
            stop,
            cancel: Cancel::default(),
            steps: empty(),
            dev: Mutex::default(),
            notes: Mutex::default(),
            read: Mutex::default(),
        }
    }

    pub(crate) fn losses(&self) -> Vec<f64> {
        let loss = |report: &StepReport| report.terms.iter().find(|(name, _)| name == "loss").unwrap().1;
        self.steps.lock().unwrap().iter().map(loss).collect()
    }

    fn has_note(&self, part: &str) -> bool {
        self.notes.lock().unwrap().iter().any(|note| note.contains(part))
    }
}

impl Watcher for Seen {
    fn reading(&self, done: u64, total: u64) {
        *self.read.lock().unwrap() = Some((done, total));
    }
    fn step(&self, report: &StepReport) {
        if self.stop == Stop::AfterStep(report.step) {
            self.cancel.cancel();
        }
        self.steps.lock().unwrap().push(report.clone());
    }
    fn dev(&self, report: &DevReport) {
        if self.stop == Stop::AfterDev(report.step) {
            self.cancel.cancel();
        }
        self.dev.lock().unwrap().push(report.clone());
    }
    fn note(&self, message: &str) {
        self.notes.lock().unwrap().push(message.to_owned());
    }
}

/// `sum`: of all scores. `scripted`: one value after the other.
struct Metrics<'a> {
    script: &'a [f64],
    asked: Cell<usize>,
}

impl Measure for Metrics<'_> {
    fn decode(&self, scores: Scores) -> cladist_core::Result<Decoded> {
        Ok(Decoded { scores, sets: Vec::new() })
    }
    fn measure(&self, decoded: &Decoded) -> cladist_core::Result<BTreeMap<String, f64>> {
        let sum = decoded.scores.rows().flatten().map(|(_, score)| f64::from(*score)).sum();
        let scripted = self.script.get(self.asked.get()).copied().unwrap_or(0.0);
        self.asked.set(self.asked.get() + 1);
        Ok(BTreeMap::from([("sum".to_owned(), sum), ("scripted".to_owned(), scripted)]))
    }
    fn higher_is_better(&self, metric: &str) -> Option<bool> {
        ["sum", "scripted"].contains(&metric).then_some(true)
    }
}

/// What a run is made of.
#[derive(Clone)]
pub(crate) struct Run<'a> {
    pub(crate) toy: &'a Toy,
    pub(crate) design: Design,
    pub(crate) config: TrainConfig,
    pub(crate) folder: Option<&'a Path>,
    pub(crate) resume: bool,
    /// So many of the documents, from the first, are dev as well.
    pub(crate) n_dev: usize,
    pub(crate) script: &'a [f64],
}

impl<'a> Run<'a> {
    pub(crate) fn new(toy: &'a Toy, config: TrainConfig) -> Self {
        Self { toy, design: flat(), config, folder: None, resume: false, n_dev: 0, script: &[] }
    }

    fn model(&self) -> NeuralModel {
        self.toy.model(self.design.clone(), self.config.seed)
    }

    pub(crate) fn go(&self, stop: Stop) -> (Result<(NeuralModel, Outcome)>, Seen) {
        self.go_from(self.model(), stop)
    }

    pub(crate) fn go_from(&self, model: NeuralModel, stop: Stop) -> (Result<(NeuralModel, Outcome)>, Seen) {
        let seen = Seen::new(stop);
        (self.plan_with(&seen, |plan| train(model, plan)), seen)
    }

    /// Does something with the plan.
    fn plan_with<T>(&self, seen: &Seen, work: impl FnOnce(&Plan<'_>) -> T) -> T {
        self.plan_watched(seen, seen.cancel.clone(), work)
    }

    fn plan_watched<T>(&self, watcher: &dyn Watcher, cancel: Cancel, work: impl FnOnce(&Plan<'_>) -> T) -> T {
        let dev =
            Examples { documents: &self.toy.documents[..self.n_dev], gold: &self.toy.gold[..self.n_dev] };
        let plan = Plan {
            config: &self.config,
            train: self.toy.examples(),
            dev: (self.n_dev > 0).then_some(dev),
            measure: &Metrics { script: self.script, asked: Cell::new(0) },
            folder: self.folder,
            lock: None,
            resume: self.resume,
            save_last: false,
            watcher,
            cancel,
        };
        work(&plan)
    }

    /// A run to its end: parameters, outcome, and what was seen.
    pub(crate) fn finish(&self) -> (NeuralModel, Outcome, Seen) {
        let (result, seen) = self.go(Stop::Never);
        let (model, outcome) = result.unwrap();
        (model, outcome, seen)
    }
}

/// Three updates per epoch.
pub(crate) fn quick() -> TrainConfig {
    TrainConfig {
        epochs: 2,
        batch_size: 3,
        learning_rate: 1e-3,
        checkpoint_minutes: 0.0,
        ..TrainConfig::default()
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let toy = Toy::new(Task::MultiLabel);
    let attentive = AnyHeadConfig::LabelAttention(LabelAttentionConfig::default());
    for design in [flat(), design(attentive, Task::MultiLabel)] {
        let made = |seed: u64, threads: usize| {
            let run = Run { design: design.clone(), ..Run::new(&toy, TrainConfig { seed, ..quick() }) };
            on_threads(threads, || {
                let (model, _, seen) = run.finish();
                (bytes(&model), seen.losses())
            })
        };
        let first = made(1, 1);
        assert!(first == made(1, 1), "another run");
        for threads in [2, 3] {
            assert!(first == made(1, threads), "{threads} threads");
        }
        assert!(first.0 != made(2, 1).0, "another seed");
    }
}

#[test]
fn frozen_layers_stay_as_they_are_and_others_learn() {
    let toy = Toy::new(Task::MultiLabel);
    for freeze_layers in [1, 2] {
        let run = Run::new(&toy, TrainConfig { freeze_layers, ..quick() });
        let before = crate::parameters::named(&run.model().network);
        let after = crate::parameters::named(&run.finish().0.network);
        for (name, before) in &before {
            let frozen = name.starts_with("encoder.embeddings.")
                || (0..freeze_layers).any(|n| name.starts_with(&format!("encoder.layers.{n}.")))
                || (freeze_layers == 2 && name.starts_with("encoder.pooler."));
            assert_eq!(*before == after[name], frozen, "{name} with {freeze_layers} frozen");
        }
    }
}

#[test]
fn early_stopping_stops_and_gives_back_the_best_parameters() {
    let toy = Toy::new(Task::MultiLabel);
    let config = TrainConfig { epochs: 6, patience: 2, monitor: "scripted".to_owned(), ..quick() };
    let script = [0.1, 0.5, 0.4, 0.5, 0.9, 0.9];
    let run = Run { n_dev: 4, script: &script, ..Run::new(&toy, config) };
    let (model, outcome, seen) = run.finish();
    assert_eq!((outcome.steps, outcome.stopped_early, outcome.best), (12, true, Some((6, 0.5))));
    let best: Vec<bool> = seen.dev.lock().unwrap().iter().map(|report| report.best).collect();
    assert_eq!(best, [true, true, false, false]);
    let folder = tempfile::tempdir().unwrap();
    let stopped = Run { folder: Some(folder.path()), ..run.clone() };
    stopped.go(Stop::AfterDev(6)).0.unwrap_err();
    let checkpoint =
        super::checkpoint::latest(&folder.path().join("checkpoints")).unwrap().checkpoint.unwrap();
    assert_eq!(checkpoint.step, 6);
    assert!(std::fs::read(checkpoint.path.join("model.safetensors")).unwrap() == bytes(&model));
    let patient = Run { config: TrainConfig { patience: 0, ..run.config.clone() }, ..run };
    let (last, outcome, _) = patient.finish();
    assert_eq!((outcome.steps, outcome.stopped_early, outcome.best), (18, false, Some((15, 0.9))));
    assert!(bytes(&last) != bytes(&model));
}

#[test]
fn with_averaging_the_mean_of_the_models_comes_back() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    // Updates 3, 4, 5 and 6: the average begins with the parameters after the first epoch.
    let averaging = super::averaging::AveragingConfig { start_epoch: 1, every: 1 };
    let config = TrainConfig { averaging: Some(averaging), ..quick() };
    let (model, _, _) = Run::new(&toy, config).finish();
    let mut sums: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for step in 3..=6 {
        let config = TrainConfig { checkpoint_steps: step, ..quick() };
        let run = Run { folder: Some(folder.path()), ..Run::new(&toy, config) };
        run.go(Stop::AfterStep(step)).0.ok();
        let path = folder.path().join(format!("checkpoints/step-{step:08}/model.safetensors"));
        for (name, (_, values)) in crate::parameters::read(&path).unwrap() {
            let sum = sums.entry(name).or_insert_with(|| vec![0.0; values.len()]);
            sum.iter_mut().zip(&values).for_each(|(sum, value)| *sum += f64::from(*value) / 4.0);
        }
    }
    for (name, (_, values)) in crate::parameters::named(&model.network) {
        for (value, mean) in values.iter().zip(&sums[&name]) {
            assert!((f64::from(*value) - mean).abs() < 1e-6, "{name}: {value} instead of {mean}");
        }
    }
}
