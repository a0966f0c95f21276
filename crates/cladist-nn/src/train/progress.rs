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

/// What a run still has to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Tokens to learn from, each as often as it is read.
    pub tokens: u64,
    /// Evaluations on dev.
    pub evaluations: u64,
    /// Tokens of dev.
    pub dev_tokens: u64,
}

/// Measures speed over recent steps.
///
/// Time goes by tokens: documents differ in length, and batches of an epoch may be sorted by it. The first steps are not like
/// the others, as memory is new to the process and caches are empty: they are no part of an estimate.
#[derive(Debug, Clone)]
pub struct Speed {
    window: usize,
    /// Steps taken in.
    seen: usize,
    recent: VecDeque<Measured>,
    /// Seconds of all evaluations, and how many they were.
    evaluations: (f64, u64),
}

/// Steps that are passed over.
const COLD: usize = 3;
/// A step does about three times the work of a forward pass.
const STEP_TO_FORWARD: f64 = 3.0;

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
        Self { window: window.max(1), seen: 0, recent: VecDeque::new(), evaluations: (0.0, 0) }
    }

    /// A meter for steps of another kind, which begin now; evaluations are as before.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self { evaluations: self.evaluations, ..Self::new(self.window) }
    }

    /// Takes in a step: the time it took and what it worked on.
    pub fn record(&mut self, time: Duration, n_documents: usize, n_tokens: usize) {
        if self.seen <= COLD {
            // Until there are better ones, the last of them tells the speed.
            self.recent.clear();
        } else if self.recent.len() == self.window {
            self.recent.pop_front();
        }
        self.seen += 1;
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

    /// Takes in an evaluation on dev.
    pub fn record_evaluation(&mut self, time: Duration) {
        self.evaluations.0 += time.as_secs_f64();
        self.evaluations.1 += 1;
    }

    /// The time that the rest of a run will take, if its tokens go as fast as recent ones; `None` while that cannot be told.
    #[must_use]
    pub fn seconds_left(&self, ahead: &Ahead) -> Option<f64> {
        let n_tokens: usize = self.recent.iter().map(|step| step.n_tokens).sum();
        if self.seen <= COLD || n_tokens == 0 {
            return None;
        }
        let of_token = self.seconds() / n_tokens as f64;
        let of_evaluation = match self.evaluations {
            (_, 0) => ahead.dev_tokens as f64 * of_token / STEP_TO_FORWARD,
            (seconds, n) => seconds / n as f64,
        };
        Some(ahead.tokens as f64 * of_token + ahead.evaluations as f64 * of_evaluation)
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

    fn tokens(tokens: u64) -> Ahead {
        Ahead { tokens, ..Ahead::default() }
    }

    /// A meter past the steps that do not count.
    fn warm(window: usize) -> Speed {
        let mut speed = Speed::new(window);
        (0..COLD).for_each(|_| speed.record(Duration::from_secs(60), 1, 1));
        speed
    }

    #[test]
    fn a_meter_without_steps_knows_nothing() {
        let speed = Speed::default();
        assert_eq!(speed.documents_per_second(), 0.0);
        assert_eq!(speed.tokens_per_second(), 0.0);
        assert_eq!(speed.seconds_left(&tokens(10)), None);
    }

    #[test]
    fn speed_is_work_over_time_not_a_mean_of_speeds() {
        let mut speed = warm(50);
        speed.record(Duration::from_secs(1), 16, 1000);
        speed.record(Duration::from_secs(3), 8, 3000);
        assert_eq!(speed.documents_per_second(), 6.0);
        assert_eq!(speed.tokens_per_second(), 1000.0);
        assert_eq!(speed.seconds_left(&tokens(20_000)), Some(20.0));
        assert_eq!(speed.seconds_left(&tokens(0)), Some(0.0));
    }

    #[test]
    fn old_steps_are_forgotten() {
        let mut speed = warm(2);
        speed.record(Duration::from_secs(1000), 1, 1);
        for _ in 0..2 {
            speed.record(Duration::from_millis(500), 8, 80);
        }
        assert_eq!(speed.documents_per_second(), 16.0);
        assert_eq!(speed.tokens_per_second(), 160.0);
        assert_eq!(speed.seconds_left(&tokens(320)), Some(2.0));
    }

    #[test]
    fn steps_that_take_no_time_give_no_infinite_speed() {
        let mut speed = warm(0);
        speed.record(Duration::ZERO, 8, 80);
        assert_eq!(speed.documents_per_second(), 0.0);
        assert_eq!(speed.seconds_left(&tokens(4)), Some(0.0));
    }

    /// A clock that goes by tokens, six times slower over the first steps.
    #[test]
    fn the_first_estimate_is_near_the_truth() {
        let lengths: Vec<usize> = (0..200).map(|n| if n % 2 == 0 { 100 } else { 1900 }).collect();
        let clock = |step: usize| {
            let cold = if step < COLD { 6 } else { 1 };
            Duration::from_micros((lengths[step] * 100 * cold) as u64)
        };
        let evaluation = Duration::from_secs_f64(0.5);
        let mut speed = Speed::default();
        let mut first = None;
        for step in 0..lengths.len() {
            speed.record(clock(step), 8, lengths[step]);
            let rest = &lengths[step + 1..];
            let ahead =
                Ahead { tokens: rest.iter().sum::<usize>() as u64, evaluations: 2, dev_tokens: 15_000 };
            let truth: Duration = (step + 1..lengths.len()).map(clock).sum::<Duration>() + 2 * evaluation;
            if let Some(estimate) = speed.seconds_left(&ahead) {
                first.get_or_insert((step, estimate / truth.as_secs_f64()));
            }
        }
        let (step, ratio) = first.unwrap();
        assert_eq!(step, COLD, "the first step that counts");
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
        // What evaluations take is measured as soon as there is one.
        speed.record_evaluation(Duration::from_secs(4));
        let ahead = Ahead { evaluations: 2, dev_tokens: 15_000, ..Ahead::default() };
        assert_eq!(speed.seconds_left(&ahead), Some(8.0));
        assert_eq!(speed.anew().seconds_left(&ahead), None);
    }

    #[test]
    fn a_silent_watcher_watches() {
        let watcher: &dyn Watcher = &Silent;
        watcher.note("nothing");
        watcher.dev(&DevReport { epoch: 0, step: 1, values: BTreeMap::new(), best: true });
    }
}
