//! How the learning rate moves during training.

use cladist_core::Error;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// The shapes a learning rate can take over the steps of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Always the full rate.
    Constant,
    /// Up from 0 to the full rate, then down to 0, both in a straight line.
    #[default]
    Linear,
    /// The same, but from and to the full rate divided by `ratio` (Howard & Ruder 2018, ULMFiT).
    SlantedTriangular,
}

/// The learning rate's course: a `schedule` section of a parameter group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleConfig {
    /// The shape.
    pub kind: Schedule,
    /// The share of all steps on which the rate rises, ULMFiT's `cut_frac`; without effect on `constant`.
    pub warmup: f64,
    /// How many times the highest rate exceeds the lowest; for `slanted-triangular` only.
    pub ratio: f64,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { kind: Schedule::Linear, warmup: 0.1, ratio: 32.0 }
    }
}

impl ScheduleConfig {
    /// A rate that never moves.
    #[must_use]
    pub fn constant() -> Self {
        Self { kind: Schedule::Constant, ..Self::default() }
    }

    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        let Self { kind: _, warmup, ratio } = self;
        if !(0.0..=1.0).contains(warmup) {
            return Err(Error::setting("schedule.warmup", "a share from 0 to 1", warmup).into());
        }
        if !(*ratio >= 1.0 && ratio.is_finite()) {
            return Err(Error::setting("schedule.ratio", "a number from 1", ratio).into());
        }
        Ok(())
    }

    /// The number of steps on which the rate rises: W = ⌊warmup · T⌋, as `int(warmup * total)` in Python.
    #[must_use]
    pub fn warmup_steps(&self, total: u64) -> u64 {
        (self.warmup * total as f64) as u64
    }

    /// What the highest rate is multiplied with on a step.
    ///
    /// `step` counts the optimiser's updates from 0: the first update of a `linear` schedule with warm-up has rate 0, and
    /// step T, the first one past the end, would have rate 0 too. With W warm-up steps out of T,
    ///
    /// - `linear`: t/max(1, W) for t < W, else max(0, (T−t)/max(1, T−W)), which is the function that
    ///   `get_linear_schedule_with_warmup` of `transformers` hands to its optimiser;
    /// - `slanted-triangular`: (1 + q·(ratio−1))/ratio, where q is the value of `linear`.
    ///
    /// The paper's fall is 1 − (t−W)/(W·(1/warmup−1)), the same where warmup·T is whole. Where it is not, that form goes
    /// below 0 before the end, so the fall is taken over the T−W steps that there are.
    ///
    /// ```
    /// use cladist_nn::train::schedule::{Schedule, ScheduleConfig};
    /// let linear = ScheduleConfig::default();
    /// assert_eq!(linear.factor(50, 1000), 0.5);
    /// assert_eq!(linear.factor(550, 1000), 0.5);
    /// let slanted = ScheduleConfig { kind: Schedule::SlantedTriangular, ..linear };
    /// assert_eq!(slanted.factor(0, 1000), 1.0 / 32.0);
    /// ```
    #[must_use]
    pub fn factor(&self, step: u64, total: u64) -> f64 {
        let Self { kind, warmup: _, ratio } = self;
        match kind {
            Schedule::Constant => 1.0,
            Schedule::Linear => self.triangle(step, total),
            Schedule::SlantedTriangular => (1.0 + self.triangle(step, total) * (ratio - 1.0)) / ratio,
        }
    }

    fn triangle(&self, step: u64, total: u64) -> f64 {
        let warmup = self.warmup_steps(total);
        if step < warmup {
            step as f64 / warmup as f64
        } else {
            total.saturating_sub(step) as f64 / total.saturating_sub(warmup).max(1) as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config(kind: Schedule) -> ScheduleConfig {
        ScheduleConfig { kind, ..ScheduleConfig::default() }
    }

    #[test]
    fn slanted_triangular_gives_the_rates_of_the_method() {
        let schedule = config(Schedule::SlantedTriangular);
        for (step, rate) in
            [(0, 1.5625e-6), (50, 2.578125e-5), (100, 5e-5), (550, 2.578125e-5), (1000, 1.5625e-6)]
        {
            let got = 5e-5 * schedule.factor(step, 1000);
            assert!((got - rate).abs() < 1e-15, "step {step}: {got}");
        }
    }

    #[test]
    fn linear_rises_and_falls_in_straight_lines() {
        let schedule = config(Schedule::Linear);
        for (step, rate) in [(0, 0.0), (50, 2.5e-5), (100, 5e-5), (550, 2.5e-5), (1000, 0.0), (1001, 0.0)] {
            let got = 5e-5 * schedule.factor(step, 1000);
            assert!((got - rate).abs() < 1e-15, "step {step}: {got}");
        }
    }

    /// `get_linear_schedule_with_warmup(optimizer, 2, 7)` of transformers, one value per update.
    #[test]
    fn linear_is_the_schedule_of_transformers() {
        let schedule = ScheduleConfig { warmup: 0.3, ..config(Schedule::Linear) };
        assert_eq!(schedule.warmup_steps(7), 2);
        let got: Vec<f64> = (0..8).map(|step| schedule.factor(step, 7)).collect();
        assert_eq!(got, [0.0, 0.5, 1.0, 0.8, 0.6, 0.4, 0.2, 0.0]);
    }

    #[test]
    fn constant_never_moves() {
        let schedule = ScheduleConfig::constant();
        assert!((0..=10).all(|step| schedule.factor(step, 10) == 1.0));
    }

    #[test]
    fn without_warmup_the_first_step_has_the_full_rate() {
        for kind in [Schedule::Linear, Schedule::SlantedTriangular] {
            let schedule = ScheduleConfig { warmup: 0.0, ..config(kind) };
            assert_eq!(schedule.factor(0, 9), 1.0);
        }
    }

    #[test]
    fn every_key_has_an_effect_and_defaults_when_left_out() {
        let read = |text: &str| toml::from_str::<ScheduleConfig>(text);
        assert_eq!(read("").unwrap(), ScheduleConfig::default());
        let slanted = read("kind = \"slanted-triangular\"").unwrap();
        assert_ne!(slanted.factor(0, 100), ScheduleConfig::default().factor(0, 100));
        let gentle = read("kind = \"slanted-triangular\"\nratio = 2").unwrap();
        assert_eq!(gentle.factor(0, 100), 0.5);
        let slow = read("warmup = 0.5").unwrap();
        assert_eq!(slow.factor(25, 100), 0.5);
        assert!(read("cut_frac = 0.1").unwrap_err().to_string().contains("cut_frac"));
        assert!(read("kind = \"cosine\"").is_err());
        let text = toml::to_string(&slanted).unwrap();
        assert_eq!(toml::from_str::<ScheduleConfig>(&text).unwrap(), slanted);
    }

    #[test]
    fn values_that_make_no_sense_are_refused_by_name() {
        for warmup in [-0.1, 1.5, f64::NAN] {
            let error = ScheduleConfig { warmup, ..ScheduleConfig::default() }.validate().unwrap_err();
            assert!(error.to_string().contains("`schedule.warmup`"), "{error}");
            assert_eq!(error.kind(), cladist_core::ErrorKind::Setting);
        }
        for ratio in [0.5, f64::INFINITY, f64::NAN] {
            let error = ScheduleConfig { ratio, ..ScheduleConfig::default() }.validate().unwrap_err();
            assert!(error.to_string().contains("`schedule.ratio`"), "{error}");
        }
        ScheduleConfig::default().validate().unwrap();
    }

    proptest! {
        #[test]
        fn a_rate_is_never_negative_nor_above_the_highest(
            step in 0u64..400, total in 0u64..300, warmup in 0.0..=1.0f64, ratio in 1.0..1e6f64, slanted: bool,
        ) {
            let kind = if slanted { Schedule::SlantedTriangular } else { Schedule::Linear };
            let factor = ScheduleConfig { kind, warmup, ratio }.factor(step, total);
            prop_assert!((0.0..=1.0 + 1e-12).contains(&factor), "{}", factor);
        }

        #[test]
        fn slanted_triangular_tends_to_linear_as_the_ratio_grows(
            step in 0u64..400, total in 1u64..300, warmup in 0.0..=1.0f64,
        ) {
            let linear = ScheduleConfig { kind: Schedule::Linear, warmup, ratio: 32.0 };
            let slanted = ScheduleConfig { kind: Schedule::SlantedTriangular, warmup, ratio: 1e12 };
            prop_assert!((linear.factor(step, total) - slanted.factor(step, total)).abs() < 1e-9);
        }
    }
}
