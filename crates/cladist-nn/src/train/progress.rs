//! What a training run tells whoever watches, and how fast it goes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use cladist_core::job::Silent;

/// Where a run is after an update.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// Updates made so far.
    pub step: u64,
    /// Updates the whole run will make.
    pub total_steps: u64,
    /// The epoch, from 0.
    pub epoch: usize,
    /// The loss and the terms it is the sum of, by name, in the order to show them.
    pub terms: Vec<(String, f64)>,
    /// The learning rate of each parameter group.
    pub learning_rates: Vec<(String, f64)>,
    /// Over recent steps.
    pub documents_per_second: f64,
    /// Over recent steps, padding not counted.
    pub tokens_per_second: f64,
    /// The time that the remaining steps will take, if that can be told yet.
    pub seconds_left: Option<f64>,
}

/// What an evaluation on development documents came to.
#[derive(Debug, Clone, PartialEq)]
pub struct DevReport {
    /// The epoch, from 0.
    pub epoch: usize,
    /// Updates made so far.
    pub step: u64,
    /// Loss and metrics by name.
    pub values: BTreeMap<String, f64>,
    /// Whether the model is the best so far.
    pub best: bool,
}

/// Receives the news of a run. Called from the training loop, so it must be quick.
pub trait Watcher: Sync {
    /// The encoder has read so many of all documents, before the head learns alone.
    fn reading(&self, _done: u64, _total: u64) {}
    /// An update was made.
    fn step(&self, report: &StepReport);
    /// The model was evaluated.
    fn dev(&self, report: &DevReport);
    /// Something that a person should know: a skipped batch, a checkpoint passed over.
    fn note(&self, message: &str);
}

impl Watcher for Silent {
    fn step(&self, _report: &StepReport) {}
    fn dev(&self, _report: &DevReport) {}
    fn note(&self, _message: &str) {}
}

/// Measures speed over recent steps.
#[derive(Debug, Clone)]
pub struct Speed {
    window: usize,
    recent: VecDeque<Measured>,
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    seconds: f64,
    n_documents: usize,
    n_tokens: usize,
}

impl Speed {
    /// A meter over the last `window` steps, of which there is at least one.
    #[must_use]
    pub fn new(window: usize) -> Self {
        Self { window: window.max(1), recent: VecDeque::new() }
    }

    /// Takes in a step: the time it took and what it worked on.
    pub fn record(&mut self, time: Duration, n_documents: usize, n_tokens: usize) {
        if self.recent.len() == self.window {
            self.recent.pop_front();
        }
        self.recent.push_back(Measured { seconds: time.as_secs_f64(), n_documents, n_tokens });
    }

    /// Documents per second; 0 while nothing is measured.
    #[must_use]
    pub fn documents_per_second(&self) -> f64 {
        self.per_second(|step| step.n_documents)
    }

    /// Tokens per second; 0 while nothing is measured.
    #[must_use]
    pub fn tokens_per_second(&self) -> f64 {
        self.per_second(|step| step.n_tokens)
    }

    /// The time that so many more steps will take, if they are like the recent ones.
    #[must_use]
    pub fn seconds_left(&self, n_steps: u64) -> Option<f64> {
        (!self.recent.is_empty()).then(|| n_steps as f64 * self.seconds() / self.recent.len() as f64)
    }

    fn per_second(&self, count: impl Fn(&Measured) -> usize) -> f64 {
        let seconds = self.seconds();
        let n: usize = self.recent.iter().map(count).sum();
        if seconds > 0.0 { n as f64 / seconds } else { 0.0 }
    }

    // Summed anew each time: a running sum would collect rounding errors over a long run.
    fn seconds(&self) -> f64 {
        self.recent.iter().map(|step| step.seconds).sum()
    }
}

impl Default for Speed {
    /// Over 50 steps: steady, yet soon in step with a change of document length.
    fn default() -> Self {
        Self::new(50)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_without_steps_knows_nothing() {
        let speed = Speed::default();
        assert_eq!(speed.documents_per_second(), 0.0);
        assert_eq!(speed.tokens_per_second(), 0.0);
        assert_eq!(speed.seconds_left(10), None);
    }

    #[test]
    fn speed_is_work_over_time_not_a_mean_of_speeds() {
        let mut speed = Speed::default();
        speed.record(Duration::from_secs(1), 16, 1000);
        speed.record(Duration::from_secs(3), 8, 3000);
        assert_eq!(speed.documents_per_second(), 6.0);
        assert_eq!(speed.tokens_per_second(), 1000.0);
        assert_eq!(speed.seconds_left(10), Some(20.0));
        assert_eq!(speed.seconds_left(0), Some(0.0));
    }

    #[test]
    fn old_steps_are_forgotten() {
        let mut speed = Speed::new(2);
        speed.record(Duration::from_secs(1000), 1, 1);
        for _ in 0..2 {
            speed.record(Duration::from_millis(500), 8, 80);
        }
        assert_eq!(speed.documents_per_second(), 16.0);
        assert_eq!(speed.tokens_per_second(), 160.0);
        assert_eq!(speed.seconds_left(4), Some(2.0));
    }

    #[test]
    fn steps_that_take_no_time_give_no_infinite_speed() {
        let mut speed = Speed::new(0);
        speed.record(Duration::ZERO, 8, 80);
        assert_eq!(speed.documents_per_second(), 0.0);
        assert_eq!(speed.seconds_left(4), Some(0.0));
    }

    #[test]
    fn a_silent_watcher_watches() {
        let watcher: &dyn Watcher = &Silent;
        watcher.note("nothing");
        watcher.dev(&DevReport { epoch: 0, step: 1, values: BTreeMap::new(), best: true });
    }
}
