//! Everything a run must remember to go on as if it had never stopped.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::Device;
use cladist_core::bundle::Writer;
use serde::{Deserialize, Serialize};

use super::averaging::{Averaging, blend};
use super::beside::Beside;
use super::config::TrainConfig;
use super::guard::Guard;
use super::identity::Identity;
use super::stopping::{Stopping, exact};
use crate::error::{Error, Result};
use crate::model::Network;
use crate::model::components::Components;
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
    /// What must not change.
    identity: Identity,
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
}

/// All parameters, with what components learn outside the network.
pub(super) fn everything(network: &Network, components: &Components) -> Tensors {
    let mut all = named(network);
    for (name, shape, values) in components.outside() {
        all.insert(name.to_owned(), (shape, values.to_vec()));
    }
    all
}

/// The network and its components with these parameters.
pub(super) fn put_back(
    network: Network,
    mut all: Tensors,
    components: &mut Components,
) -> Result<Network, String> {
    components.take(&mut all)?;
    parameters::replace(network, all)
}

impl Weights {
    /// Takes the parameters into the average.
    pub(super) fn take_in(&mut self, network: &Network, components: &Components, weight: f64) {
        let now = everything(network, components);
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
    pub(super) fn averaged(&self, network: Network, components: &Components) -> Result<Network> {
        let Some(average) = &self.average else { return Ok(network) };
        let average = average.iter().filter(|(name, _)| !components.has(name));
        let average = average.map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        parameters::replace(network, average).map_err(|problem| Error::Parameters { problem })
    }

    /// Keeps what was just evaluated as the best: this network, and the average of what is outside it if there is one.
    pub(super) fn keep(&mut self, network: &Network, components: &Components) {
        let mut best = everything(network, components);
        for (name, average) in self.average.iter().flatten().filter(|(name, _)| components.has(name)) {
            best.insert(name.clone(), average.clone());
        }
        self.best = Some(best);
    }

    /// Exchanges what components have outside the network for its average, if there is one.
    pub(super) fn swap_outside(&mut self, components: &mut Components) {
        if let Some(average) = &mut self.average {
            components.swap(average);
        }
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
        components: &mut Components,
        config: AdamWConfig,
        device: &Device,
    ) -> Result<(Network, AdamW, Beside)> {
        let refuse = |reason| unfit(&self.path, reason);
        let network = put_back(network, self.model, components).map_err(refuse)?;
        let optimiser = AdamW::import(config, self.steps, self.optimiser, device).map_err(refuse)?;
        let beside = Beside::load(&self.path, components)?;
        Ok((network, optimiser, beside))
    }
}

const MODEL: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const BEST: &str = "best.safetensors";
const AVERAGE: &str = "average.safetensors";
const STATE: &str = "state.json";

impl Progress {
    pub(super) fn new(identity: Identity) -> Self {
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
            identity,
        }
    }

    /// Writes the files of a checkpoint.
    pub(super) fn save(
        &self,
        writer: &Writer,
        network: &Tensors,
        optimiser: &AdamW,
        beside: &Beside,
        weights: &Weights,
    ) -> Result<()> {
        let state = Self { optimiser_steps: optimiser.number(), ..self.clone() };
        parameters::save(&writer.path(MODEL), network)?;
        parameters::save(&writer.path(OPTIMIZER), &optimiser.export())?;
        beside.save(writer)?;
        for (name, values) in [(BEST, &weights.best), (AVERAGE, &weights.average)] {
            if let Some(values) = values {
                parameters::save(&writer.path(name), values)?;
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
        // Checksums hold, so what does not parse was not damaged but written otherwise.
        let state: Self = serde_json::from_slice(&bytes)
            .map_err(|error| Error::OtherVersion { path: folder.to_owned(), reason: error.to_string() })?;
        let differences = self.identity.differences(&state.identity);
        if !differences.is_empty() {
            return Err(Error::OtherRun { path: folder.to_owned(), differences });
        }
        if state.epoch >= config.all_epochs() {
            return Err(unfit(&path, format!("it is in epoch {} of {}", state.epoch, config.all_epochs())));
        }
        let list = |name: &str| -> Result<Option<Tensors>> {
            let path = folder.join(name);
            path.exists().then(|| parameters::read(&path)).transpose()
        };
        weights.best = list(BEST)?;
        weights.average = list(AVERAGE)?;
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
