//! Everything a run must remember to go on as if it had never stopped.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::Device;
use cladist_core::bundle::Writer;
use serde::{Deserialize, Serialize};

use super::averaging::{Averaging, blend};
use super::config::TrainConfig;
use super::guard::Guard;
use super::stopping::{Stopping, exact};
use crate::error::{Error, Result};
use crate::model::Network;
use crate::optim::{AdamW, AdamWConfig};
use crate::parameters::{self, Tensors, named, unfit};

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    /// Updates made.
    pub(super) step: u64,
    /// The epoch, from 0.
    pub(super) epoch: usize,
    /// Updates made in it.
    pub(super) in_epoch: u64,
    /// The step of the last evaluation.
    pub(super) evaluated: u64,
    /// Whether patience has run out.
    pub(super) stopped: bool,
    pub(super) stopping: Stopping,
    pub(super) averaging: Averaging,
    /// Batches without a finite loss.
    pub(super) skipped: u64,
    pub(super) bad_in_a_row: usize,
    pub(super) guard: Guard,
    pub(super) seconds: f64,
    /// Means since the last line of the journal.
    pub(super) since_log: BTreeMap<String, Mean>,
    /// Steps that the optimiser took: skipped batches are none.
    optimiser_steps: u64,
    /// Hash of what must not change.
    fingerprint: String,
}

/// A mean that is not complete yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mean {
    #[serde(with = "exact")]
    sum: f64,
    n: u64,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.sum += value;
        self.n += 1;
    }

    pub(super) fn value(&self) -> f64 {
        self.sum / self.n as f64
    }
}

/// Copies of the parameters along the way.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// At the best evaluation.
    pub(super) best: Option<Tensors>,
    /// Their running average.
    average: Option<Tensors>,
    /// Vectors of labels that stay for several updates.
    pub(super) labels: Option<Tensors>,
}

impl Weights {
    /// Takes the parameters into the average.
    pub(super) fn take_in(&mut self, network: &Network, weight: f64) {
        let now = named(network);
        match &mut self.average {
            Some(average) => {
                for ((_, average), (_, now)) in average.values_mut().zip(now.values()) {
                    blend(average, now, weight);
                }
            }
            None => self.average = Some(now),
        }
    }

    /// The network with the average in place of its parameters, if there is one.
    pub(super) fn averaged(&self, network: Network) -> Result<Network> {
        let Some(average) = &self.average else { return Ok(network) };
        parameters::replace(network, average.clone())
            .map_err(|reason| cladist_core::Error::Model { reason }.into())
    }
}

/// What a checkpoint held, before it is put into place.
pub(super) struct Restored {
    path: std::path::PathBuf,
    model: Tensors,
    optimiser: Tensors,
    steps: u64,
}

impl Restored {
    pub(super) fn apply(
        self,
        network: Network,
        config: AdamWConfig,
        device: &Device,
    ) -> Result<(Network, AdamW)> {
        let refuse = |reason| unfit(&self.path, reason);
        let network = parameters::replace(network, self.model).map_err(refuse)?;
        let optimiser = AdamW::import(config, self.steps, self.optimiser, device).map_err(refuse)?;
        Ok((network, optimiser))
    }
}

const MODEL: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const BEST: &str = "best.safetensors";
const AVERAGE: &str = "average.safetensors";
const LABELS: &str = "labels.safetensors";
const STATE: &str = "state.json";

impl Progress {
    pub(super) fn new(fingerprint: String) -> Self {
        Self {
            step: 0,
            epoch: 0,
            in_epoch: 0,
            evaluated: 0,
            stopped: false,
            stopping: Stopping::default(),
            averaging: Averaging::default(),
            skipped: 0,
            bad_in_a_row: 0,
            guard: Guard::default(),
            seconds: 0.0,
            since_log: BTreeMap::new(),
            optimiser_steps: 0,
            fingerprint,
        }
    }

    /// Writes the files of a checkpoint.
    pub(super) fn save(
        &self,
        writer: &Writer,
        network: &Tensors,
        optimiser: &AdamW,
        weights: &Weights,
    ) -> Result<()> {
        let state = Self { optimiser_steps: optimiser.number(), ..self.clone() };
        writer.write(MODEL, &parameters::write(network)?)?;
        writer.write(OPTIMIZER, &parameters::write(&optimiser.export())?)?;
        for (name, values) in [(BEST, &weights.best), (AVERAGE, &weights.average), (LABELS, &weights.labels)]
        {
            if let Some(values) = values {
                writer.write(name, &parameters::write(values)?)?;
            }
        }
        let json = serde_json::to_vec_pretty(&state)
            .map_err(|error| cladist_core::Error::io("write", Path::new(STATE))(error.into()))?;
        writer.write(STATE, &json)?;
        Ok(())
    }

    /// Reads a checkpoint, whose checksums were verified, into this state.
    pub(super) fn load(
        &mut self,
        folder: &Path,
        config: &TrainConfig,
        weights: &mut Weights,
    ) -> Result<Restored> {
        let path = folder.join(STATE);
        let bytes = std::fs::read(&path).map_err(cladist_core::Error::io("read", &path))?;
        let state: Self = serde_json::from_slice(&bytes).map_err(|error| unfit(&path, error.to_string()))?;
        if state.fingerprint != self.fingerprint || state.epoch >= config.epochs {
            return Err(Error::OtherRun { path: folder.to_owned() });
        }
        let list = |name: &str| -> Result<Option<Tensors>> {
            let path = folder.join(name);
            path.exists().then(|| parameters::read(&path)).transpose()
        };
        weights.best = list(BEST)?;
        weights.average = list(AVERAGE)?;
        weights.labels = list(LABELS)?;
        let restored = Restored {
            path: folder.to_owned(),
            model: parameters::read(&folder.join(MODEL))?,
            optimiser: parameters::read(&folder.join(OPTIMIZER))?,
            steps: state.optimiser_steps,
        };
        *self = state;
        Ok(restored)
    }
}
