//! How long training steps take, for examples that measure.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;
use std::time::Instant;

use cladist_core::decode::Decoded;
use cladist_core::{Cancel, Scores};
use cladist_nn::model::NeuralModel;
use cladist_nn::train::progress::{DevReport, StepReport, Watcher};
use cladist_nn::train::{Examples, Measure, Plan, TrainConfig, train};

/// Writes down when updates are done.
struct Clock(Mutex<Vec<Instant>>);

impl Watcher for Clock {
    fn step(&self, _: &StepReport) {
        if let Ok(mut times) = self.0.lock() {
            times.push(Instant::now());
        }
    }
    fn dev(&self, _: &DevReport) {}
    fn note(&self, _: &str) {}
}

struct Nothing;

impl Measure for Nothing {
    fn decode(&self, scores: Scores) -> cladist_core::Result<Decoded> {
        Ok(Decoded { scores, sets: Vec::new() })
    }
    fn measure(&self, _: &Decoded) -> cladist_core::Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }
    fn higher_is_better(&self, _: &str) -> Option<bool> {
        None
    }
}

/// Trains for an epoch; the seconds of each step but the first `warm`, ascending.
pub(crate) fn timed(
    model: NeuralModel,
    train_on: Examples<'_>,
    batch_size: usize,
    warm: usize,
) -> Result<(NeuralModel, Vec<f64>), Box<dyn Error>> {
    let clock = Clock(Mutex::default());
    let plan = Plan {
        config: &TrainConfig { epochs: 1, batch_size, checkpoint_minutes: 0.0, ..TrainConfig::default() },
        train: train_on,
        dev: None,
        measure: &Nothing,
        folder: None,
        lock: None,
        resume: false,
        save_last: false,
        watcher: &clock,
        cancel: Cancel::default(),
    };
    let (model, _) = train(model, &plan)?;
    let times = clock.0.into_inner().map_err(|_| "a watcher panicked")?;
    let mut steps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    steps.drain(..warm.min(steps.len()));
    steps.sort_by(f64::total_cmp);
    Ok((model, steps))
}
