//! Stochastic weight averaging: the model that is kept is the mean of models along the way (Izmailov et al. 2018).

use cladist_core::Error;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// From when and how often the average takes in the parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AveragingConfig {
    /// The average begins as the parameters at the start of this epoch, counted from 0.
    pub start_epoch: usize,
    /// Afterwards it takes in the parameters whenever so many updates were made.
    pub every: usize,
}

impl Default for AveragingConfig {
    fn default() -> Self {
        Self { start_epoch: 1, every: 10 }
    }
}

impl AveragingConfig {
    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        let Self { start_epoch: _, every } = self;
        if *every == 0 {
            return Err(Error::setting("averaging.every", "at least 1", every).into());
        }
        Ok(())
    }
}

/// How far the averaging is; the average itself is kept by the caller, one slice per parameter. Its serialised form,
/// together with the average, is all that a resumed run needs.
///
/// ```
/// use cladist_nn::train::averaging::{Averaging, AveragingConfig, blend};
/// let config = AveragingConfig { start_epoch: 0, every: 1 };
/// let mut averaging = Averaging::default();
/// let mut average = [0.0];
/// blend(&mut average, &[1.0], averaging.epoch_started(&config, 0).unwrap());
/// blend(&mut average, &[2.0], averaging.updated(&config).unwrap());
/// blend(&mut average, &[4.0], averaging.updated(&config).unwrap());
/// assert!((average[0] - 2.3333333).abs() < 1e-6);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Averaging {
    /// Models in the average; 0 before it begins.
    n_models: u64,
    /// Updates since the last of them.
    n_updates: usize,
}

impl Averaging {
    /// How many models are in the average: 0 means that there is none yet.
    #[must_use]
    pub fn n_models(&self) -> u64 {
        self.n_models
    }

    /// To be called before the updates of each epoch (from 0), also of an epoch that is resumed in the middle. Gives the
    /// weight for [`blend`], which is 1, if the average begins here.
    pub fn epoch_started(&mut self, config: &AveragingConfig, epoch: usize) -> Option<f64> {
        (self.n_models == 0 && epoch >= config.start_epoch).then(|| self.take())
    }

    /// To be called after each update. Gives the weight 1/k for [`blend`] if the average is to take in the parameters
    /// as its k-th model.
    pub fn updated(&mut self, config: &AveragingConfig) -> Option<f64> {
        if self.n_models == 0 {
            return None;
        }
        self.n_updates += 1;
        (self.n_updates >= config.every).then(|| self.take())
    }

    fn take(&mut self) -> f64 {
        self.n_updates = 0;
        self.n_models += 1;
        1.0 / self.n_models as f64
    }
}

/// average ← (1 − weight) · average + weight · parameters, each sum in f64. With weight 1 the average's old values do
/// not matter.
///
/// The slices must be equally long: of a longer one, the rest is left alone.
pub fn blend(average: &mut [f32], parameters: &[f32], weight: f64) {
    debug_assert_eq!(average.len(), parameters.len());
    if weight >= 1.0 {
        for (average, parameter) in average.iter_mut().zip(parameters) {
            *average = *parameter;
        }
        return;
    }
    for (average, parameter) in average.iter_mut().zip(parameters) {
        *average = ((1.0 - weight) * f64::from(*average) + weight * f64::from(*parameter)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_two_four_average_to_two_and_a_third() {
        let config = AveragingConfig { start_epoch: 0, every: 1 };
        let mut averaging = Averaging::default();
        let mut average = [f32::NAN];
        blend(&mut average, &[1.0], averaging.epoch_started(&config, 0).unwrap());
        assert_eq!(average, [1.0]);
        blend(&mut average, &[2.0], averaging.updated(&config).unwrap());
        assert_eq!(average, [1.5]);
        blend(&mut average, &[4.0], averaging.updated(&config).unwrap());
        assert!((average[0] - 2.333_333_3).abs() < 1e-6, "{average:?}");
        assert_eq!(averaging.n_models(), 3);
    }

    #[test]
    fn the_average_waits_for_its_epoch_and_then_takes_every_nth_update() {
        let config = AveragingConfig { start_epoch: 1, every: 3 };
        let mut averaging = Averaging::default();
        assert_eq!(averaging.epoch_started(&config, 0), None);
        assert!((0..10).all(|_| averaging.updated(&config).is_none()));
        assert_eq!(averaging.epoch_started(&config, 1), Some(1.0));
        let weights: Vec<_> = (0..6).map(|_| averaging.updated(&config)).collect();
        assert_eq!(weights, [None, None, Some(1.0 / 2.0), None, None, Some(1.0 / 3.0)]);
        assert_eq!(averaging.epoch_started(&config, 2), None, "it begins once");
    }

    #[test]
    fn a_resumed_average_goes_on_where_it_was() {
        let config = AveragingConfig { start_epoch: 0, every: 2 };
        let mut averaging = Averaging::default();
        averaging.epoch_started(&config, 0);
        averaging.updated(&config);
        let text = serde_json::to_string(&averaging).unwrap();
        let mut resumed: Averaging = serde_json::from_str(&text).unwrap();
        assert_eq!(resumed.epoch_started(&config, 0), None);
        assert_eq!(resumed.updated(&config), Some(0.5));
    }

    #[test]
    fn values_that_make_no_sense_are_refused_by_name() {
        let error = AveragingConfig { every: 0, ..AveragingConfig::default() }.validate().unwrap_err();
        assert!(error.to_string().contains("`averaging.every`"), "{error}");
        AveragingConfig::default().validate().unwrap();
        assert!(toml::from_str::<AveragingConfig>("evry = 1").is_err());
    }

    proptest! {
        #[test]
        fn the_average_is_the_mean(values in prop::collection::vec(-1e3f32..1e3, 1..30)) {
            let config = AveragingConfig { start_epoch: 0, every: 1 };
            let mut averaging = Averaging::default();
            let mut average = [0.0f32; 2];
            for (i, value) in values.iter().enumerate() {
                let weight = if i == 0 { averaging.epoch_started(&config, 0) } else { averaging.updated(&config) };
                blend(&mut average, &[*value, -value], weight.unwrap());
            }
            let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len() as f64;
            prop_assert!((f64::from(average[0]) - mean).abs() < 1e-2);
            prop_assert_eq!(average[0], -average[1]);
        }
    }
}
