//! A guard for learning rates that may be too high: what to fall back on.

use serde::{Deserialize, Serialize};

use super::config::TrainConfig;
use super::state::Mean;

/// Whether the loss fell while rates rose.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Guard {
    /// The loss in the first tenth of the warm-up.
    first: Mean,
    /// The loss in its last tenth.
    last: Mean,
    /// Whether groups have their `fallback` for a rate.
    pub(super) fell_back: bool,
}

impl Guard {
    /// Takes in the loss of an update, counted from 0. True at the end of a warm-up in which the loss did not fall, if
    /// there is a rate to fall back on.
    pub(super) fn observe(&mut self, config: &TrainConfig, step: u64, total: u64, loss: f64) -> bool {
        let groups = [&config.labels, &config.output];
        let warmup = config.schedule.warmup_steps(total);
        if step >= warmup || groups.iter().all(|group| group.fallback.is_none()) {
            return false;
        }
        let tenth = warmup.div_ceil(10);
        if step < tenth {
            self.first.add(loss);
        }
        if step + tenth >= warmup {
            self.last.add(loss);
        }
        // A loss that is not a number has not fallen either.
        let fell = self.last.value() < self.first.value();
        self.fell_back = step + 1 == warmup && !fell;
        self.fell_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::Group;
    use crate::train::config::GroupConfig;

    fn config(fallback: Option<f64>) -> TrainConfig {
        let labels = GroupConfig { learning_rate: Some(4e-2), fallback, ..GroupConfig::default() };
        TrainConfig { labels, ..TrainConfig::default() }
    }

    /// Whether a run of 200 updates falls back, and when it says so.
    fn falls(fallback: Option<f64>, loss: impl Fn(u64) -> f64) -> (bool, Vec<u64>) {
        let config = config(fallback);
        let mut guard = Guard::default();
        let said = (0..200).filter(|&step| guard.observe(&config, step, 200, loss(step))).collect();
        (guard.fell_back, said)
    }

    #[test]
    fn a_loss_that_does_not_fall_in_the_warm_up_is_noticed_at_its_end() {
        // 20 updates of warm-up, the first and last two of which count.
        assert_eq!(falls(Some(1e-3), |step| 1.0 - step as f64 / 100.0), (false, vec![]));
        assert_eq!(falls(Some(1e-3), |_| 1.0), (true, vec![19]));
        assert_eq!(falls(Some(1e-3), |step| if step == 18 { f64::NAN } else { 0.0 }), (true, vec![19]));
        assert_eq!(
            falls(Some(1e-3), |step| if step < 20 { 20.0 - step as f64 } else { 99.0 }),
            (false, vec![])
        );
        assert_eq!(falls(None, |_| 1.0), (false, vec![]));
    }

    #[test]
    fn the_rate_is_then_the_other_one() {
        let config = config(Some(1e-3));
        assert_eq!(config.rate(Group::Labels, 100, 1000, false), 4e-2);
        assert_eq!(config.rate(Group::Labels, 100, 1000, true), 1e-3);
        assert_eq!(config.rate(Group::Output, 100, 1000, true), config.rate(Group::Output, 100, 1000, false));
    }
}
