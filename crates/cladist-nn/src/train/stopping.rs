//! Which evaluation was the best so far, and when to give up waiting for a better one.

use cladist_core::Error;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// When training ends before its last epoch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoppingConfig {
    /// Stop when so many evaluations in a row brought nothing better; absent: never.
    pub patience: Option<usize>,
    /// A value is better only if it beats the best one by more than this.
    pub min_delta: f64,
}

impl StoppingConfig {
    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        let Self { patience, min_delta } = self;
        if *patience == Some(0) {
            return Err(Error::setting("stopping.patience", "at least 1", 0).into());
        }
        if !(*min_delta >= 0.0 && min_delta.is_finite()) {
            return Err(Error::setting("stopping.min_delta", "0 or a number above", min_delta).into());
        }
        Ok(())
    }
}

/// The best value seen, and when.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The epoch or step it was seen at, as given to [`Stopping::observe`].
    pub at: u64,
    /// The value.
    #[serde(with = "exact")]
    pub value: f64,
}

/// What an evaluation means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The best so far: keep this model.
    Better,
    /// Not better; go on.
    Same,
    /// Not better, and patience is at an end.
    Stop,
}

/// Follows one quantity over the evaluations of a run. Its serialised form is all that a resumed run needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stopping {
    best: Option<Best>,
    n_since: usize,
}

impl Stopping {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self { best: None, n_since: 0 }
    }

    /// The best evaluation so far.
    #[must_use]
    pub fn best(&self) -> Option<Best> {
        self.best
    }

    /// Evaluations in a row that were not better.
    #[must_use]
    pub fn n_since(&self) -> usize {
        self.n_since
    }

    /// Takes in the value of an evaluation. The first finite value is better than none; a value that is not finite is
    /// never better.
    pub fn observe(
        &mut self,
        config: &StoppingConfig,
        higher_is_better: bool,
        at: u64,
        value: f64,
    ) -> Verdict {
        let StoppingConfig { patience, min_delta } = config;
        let better = value.is_finite()
            && self.best.is_none_or(|best| {
                let gain = if higher_is_better { value - best.value } else { best.value - value };
                gain > *min_delta
            });
        if better {
            self.best = Some(Best { at, value });
            self.n_since = 0;
            return Verdict::Better;
        }
        self.n_since += 1;
        if patience.is_some_and(|patience| self.n_since >= patience) { Verdict::Stop } else { Verdict::Same }
    }
}

impl Default for Stopping {
    fn default() -> Self {
        Self::new()
    }
}

/// A number as text. JSON numbers may come back a last bit off, and a resumed run would then take a draw for a gain.
pub(super) mod exact {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::train) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:?}"))
    }

    pub(in crate::train) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdicts(patience: Option<usize>, min_delta: f64, higher: bool, values: &[f64]) -> Vec<Verdict> {
        let config = StoppingConfig { patience, min_delta };
        let mut stopping = Stopping::new();
        (1..).zip(values).map(|(epoch, value)| stopping.observe(&config, higher, epoch, *value)).collect()
    }

    #[test]
    fn patience_counts_evaluations_in_a_row() {
        use Verdict::{Better, Same, Stop};
        let got = verdicts(Some(2), 0.0, true, &[0.5, 0.4, 0.6, 0.6, 0.5]);
        assert_eq!(got, [Better, Same, Better, Same, Stop]);
        assert_eq!(verdicts(Some(1), 0.0, true, &[0.5, 0.5]), [Better, Stop]);
    }

    #[test]
    fn without_patience_nothing_stops() {
        assert!(!verdicts(None, 0.0, true, &[0.5; 100]).contains(&Verdict::Stop));
    }

    #[test]
    fn lower_is_better_for_a_loss() {
        use Verdict::{Better, Same};
        assert_eq!(verdicts(None, 0.0, false, &[0.5, 0.4, 0.6]), [Better, Better, Same]);
    }

    #[test]
    fn a_gain_within_min_delta_is_none() {
        use Verdict::{Better, Same};
        assert_eq!(verdicts(None, 0.25, true, &[0.5, 0.75, 0.76]), [Better, Same, Better]);
    }

    #[test]
    fn what_is_not_finite_is_never_better() {
        use Verdict::{Better, Same, Stop};
        let inf = f64::INFINITY;
        assert_eq!(verdicts(None, 0.0, true, &[f64::NAN, inf, 0.1, inf]), [Same, Same, Better, Same]);
        assert_eq!(verdicts(None, 0.0, false, &[f64::NAN, -inf, 0.1]), [Same, Same, Better]);
        assert_eq!(verdicts(Some(2), 0.0, false, &[f64::NAN, f64::NAN]), [Same, Stop]);
    }

    #[test]
    fn the_best_is_remembered_with_its_place() {
        let mut stopping = Stopping::new();
        let config = StoppingConfig::default();
        for (step, value) in [(10, 0.3), (20, 0.7), (30, 0.6)] {
            stopping.observe(&config, true, step, value);
        }
        assert_eq!(stopping.best(), Some(Best { at: 20, value: 0.7 }));
        assert_eq!(stopping.n_since(), 1);
    }

    #[test]
    fn values_that_make_no_sense_are_refused_by_name() {
        let error = StoppingConfig { patience: Some(0), min_delta: 0.0 }.validate().unwrap_err();
        assert!(error.to_string().contains("`stopping.patience`"), "{error}");
        for min_delta in [-1.0, f64::NAN] {
            let error = StoppingConfig { patience: None, min_delta }.validate().unwrap_err();
            assert!(error.to_string().contains("`stopping.min_delta`"), "{error}");
        }
        assert!(toml::from_str::<StoppingConfig>("patient = 3").is_err());
        assert_eq!(toml::from_str::<StoppingConfig>("patience = 3").unwrap().patience, Some(3));
    }

    proptest! {
        #[test]
        fn a_resumed_run_gives_the_same_verdicts(values in prop::collection::vec(any::<f64>(), 1..20), cut: usize) {
            let config = StoppingConfig { patience: Some(3), min_delta: 0.0 };
            // Each value twice, so that draws happen.
            let values: Vec<f64> = values.iter().flat_map(|value| [*value, *value]).collect();
            let cut = cut % values.len();
            let (mut whole, mut resumed) = (Stopping::new(), Stopping::new());
            for (at, value) in (0..).zip(&values) {
                if at == cut as u64 {
                    resumed = serde_json::from_str(&serde_json::to_string(&resumed).unwrap()).unwrap();
                }
                prop_assert_eq!(
                    whole.observe(&config, true, at, *value),
                    resumed.observe(&config, true, at, *value)
                );
            }
            prop_assert_eq!(whole, resumed);
        }
    }
}
