//! Settings of a training run.

use cladist_core::Error;
use serde::{Deserialize, Serialize};

use super::averaging::AveragingConfig;
use super::schedule::ScheduleConfig;
use crate::error::Result;
use crate::heads::Group;
use crate::optim::AdamWConfig;

/// Learning rate and schedule of a group of parameters; what is left out is as for the encoder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupConfig {
    /// Learning rate; ten times the encoder's if not given.
    pub learning_rate: Option<f64>,
    /// Learning rate from the end of the warm-up on, if the loss did not fall during it; the same one if not given.
    pub fallback: Option<f64>,
    /// Schedule; the encoder's if not given.
    pub schedule: Option<ScheduleConfig>,
}

/// The training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Times that every training document is seen.
    pub epochs: usize,
    /// Documents of a batch.
    pub batch_size: usize,
    /// Tokens of a batch; if not 0, batches hold as many documents as fit instead of `batch_size`.
    pub batch_tokens: usize,
    /// Batches whose gradients make one update.
    pub accumulate: usize,
    /// Learning rate of the encoder.
    pub learning_rate: f64,
    /// Largest norm of the gradient; 0 does not limit it.
    pub clip: f64,
    /// Dropout inside the encoder, instead of what its `config.json` says.
    pub dropout: Option<f64>,
    /// The embeddings and so many layers do not learn; 0 lets all learn.
    pub freeze_layers: usize,
    /// Epochs before those, in which only the head learns, on states of the encoder that are computed once.
    pub freeze_epochs: usize,
    /// Whether outputs of labels begin at how often each occurs.
    pub prior_bias: bool,
    /// Share of each target that is spread over all labels.
    pub label_smoothing: f64,
    /// What decides which model is best: `loss`, or the name of a metric, measured on dev.
    pub monitor: String,
    /// Evaluations without a better one after which training stops; 0 never stops early.
    pub patience: usize,
    /// Updates between evaluations on dev; 0 evaluates after each epoch.
    pub eval_steps: u64,
    /// Updates between checkpoints; 0 saves by time alone.
    pub checkpoint_steps: u64,
    /// Minutes between checkpoints; 0 saves by steps alone.
    pub checkpoint_minutes: f64,
    /// Updates between lines of the journal.
    pub log_steps: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Course of the learning rate.
    pub schedule: ScheduleConfig,
    /// Rate and schedule of a head's label or structure module.
    pub labels: GroupConfig,
    /// Rate and schedule of a head's output layers.
    pub output: GroupConfig,
    /// Constants of AdamW.
    pub optimizer: AdamWConfig,
    /// Stochastic weight averaging; off if not given.
    pub averaging: Option<AveragingConfig>,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            epochs: 5,
            batch_size: 16,
            batch_tokens: 0,
            accumulate: 1,
            learning_rate: 5e-5,
            clip: 1.0,
            dropout: None,
            freeze_layers: 0,
            freeze_epochs: 0,
            prior_bias: true,
            label_smoothing: 0.0,
            monitor: "loss".to_owned(),
            patience: 0,
            eval_steps: 0,
            checkpoint_steps: 0,
            checkpoint_minutes: 10.0,
            log_steps: 10,
            seed: 42,
            schedule: ScheduleConfig::default(),
            labels: GroupConfig::default(),
            output: GroupConfig::default(),
            optimizer: AdamWConfig::default(),
            averaging: None,
        }
    }
}

/// How much faster new parameters learn than pretrained ones, if nothing else is said.
const NEW_PARAMETERS: f64 = 10.0;

/// Epochs at most, and as many in which only the head learns.
const MAX_EPOCHS: usize = 1_000_000;

impl TrainConfig {
    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        let Self {
            epochs,
            batch_size,
            batch_tokens: _,
            accumulate,
            learning_rate,
            clip,
            dropout,
            freeze_layers: _,
            freeze_epochs,
            prior_bias: _,
            label_smoothing,
            monitor: _,
            patience: _,
            eval_steps: _,
            checkpoint_steps: _,
            checkpoint_minutes,
            log_steps,
            seed: _,
            schedule,
            labels,
            output,
            optimizer,
            averaging,
        } = self;
        for (key, value) in [
            ("train.batch_size", *batch_size as u64),
            ("train.accumulate", *accumulate as u64),
            ("train.log_steps", *log_steps),
        ] {
            if value == 0 {
                return Err(Error::setting(key, "at least 1", value).into());
            }
        }
        if !(1..=MAX_EPOCHS).contains(epochs) {
            return Err(Error::setting("train.epochs", format!("1 to {MAX_EPOCHS}"), epochs).into());
        }
        if *freeze_epochs > MAX_EPOCHS {
            return Err(
                Error::setting("train.freeze_epochs", format!("0 to {MAX_EPOCHS}"), freeze_epochs).into()
            );
        }
        let rates = [
            ("train.learning_rate", Some(*learning_rate)),
            ("train.labels.learning_rate", labels.learning_rate),
            ("train.output.learning_rate", output.learning_rate),
            ("train.labels.fallback", labels.fallback),
            ("train.output.fallback", output.fallback),
        ];
        for (key, rate) in rates {
            if let Some(rate) = rate.filter(|rate| !(*rate >= 0.0 && *rate < 1e3)) {
                return Err(Error::setting(key, "from 0 to below 1000", rate).into());
            }
        }
        let shares = [
            ("train.dropout", dropout.unwrap_or(0.0)),
            ("train.label_smoothing", *label_smoothing),
            ("train.optimizer.beta1", optimizer.beta1),
            ("train.optimizer.beta2", optimizer.beta2),
        ];
        for (key, share) in shares {
            if !(0.0..1.0).contains(&share) {
                return Err(Error::setting(key, "at least 0 and below 1", share).into());
            }
        }
        let sizes = [
            ("train.clip", *clip),
            ("train.checkpoint_minutes", *checkpoint_minutes),
            ("train.optimizer.epsilon", optimizer.epsilon),
            ("train.optimizer.weight_decay", optimizer.weight_decay),
        ];
        for (key, size) in sizes {
            if !(size >= 0.0 && size.is_finite()) {
                return Err(Error::setting(key, "at least 0", size).into());
            }
        }
        for schedule in [Some(schedule), labels.schedule.as_ref(), output.schedule.as_ref()] {
            schedule.map_or(Ok(()), ScheduleConfig::validate)?;
        }
        averaging.as_ref().map_or(Ok(()), AveragingConfig::validate)
    }

    /// Epochs in all.
    #[must_use]
    pub fn all_epochs(&self) -> usize {
        self.freeze_epochs + self.epochs
    }

    /// The learning rate of a group while only the head learns: the full one.
    #[must_use]
    pub fn frozen_rate(&self, group: Group) -> f64 {
        self.settings(group).map_or(0.0, |settings| self.full_rate(settings, false))
    }

    /// Settings of a group; none for the encoder.
    fn settings(&self, group: Group) -> Option<&GroupConfig> {
        match group {
            Group::Encoder => None,
            Group::Labels => Some(&self.labels),
            Group::Output => Some(&self.output),
        }
    }

    fn full_rate(&self, settings: &GroupConfig, fell_back: bool) -> f64 {
        let rate = settings.fallback.filter(|_| fell_back).or(settings.learning_rate);
        rate.unwrap_or(NEW_PARAMETERS * self.learning_rate)
    }

    /// The learning rate of a group at a step, before or after it fell back.
    #[must_use]
    pub fn rate(&self, group: Group, step: u64, total: u64, fell_back: bool) -> f64 {
        let Some(settings) = self.settings(group) else {
            return self.learning_rate * self.schedule.factor(step, total);
        };
        let schedule = settings.schedule.as_ref().unwrap_or(&self.schedule);
        self.full_rate(settings, fell_back) * schedule.factor(step, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_rates_and_schedules_of_their_own() {
        let mut config = TrainConfig { learning_rate: 1.0, ..TrainConfig::default() };
        assert_eq!(config.rate(Group::Encoder, 5, 100, false), 0.5);
        assert_eq!(config.rate(Group::Output, 5, 100, false), 5.0);
        config.output = GroupConfig {
            learning_rate: Some(3.0),
            schedule: Some(ScheduleConfig::constant()),
            ..GroupConfig::default()
        };
        assert_eq!(config.rate(Group::Output, 5, 100, false), 3.0);
        assert_eq!(config.rate(Group::Labels, 5, 100, false), 5.0);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let refused = |change: fn(&mut TrainConfig), key: &str| {
            let mut config = TrainConfig::default();
            change(&mut config);
            let message = config.validate().unwrap_err().to_string();
            assert!(message.contains(key), "{message}");
        };
        refused(|config| config.epochs = 0, "train.epochs");
        refused(|config| config.epochs = usize::MAX, "train.epochs");
        refused(|config| config.freeze_epochs = 1_000_001, "train.freeze_epochs");
        refused(|config| config.learning_rate = f64::NAN, "train.learning_rate");
        refused(|config| config.output.learning_rate = Some(-1.0), "train.output.learning_rate");
        refused(|config| config.dropout = Some(1.0), "train.dropout");
        refused(|config| config.clip = -1.0, "train.clip");
        refused(|config| config.schedule.warmup = 2.0, "warmup");
        TrainConfig::default().validate().unwrap();
    }
}
