//! Epochs of a run: those in which only the head learns, then those in which all does.

use super::config::TrainConfig;
use crate::heads::Group;
use crate::tokens::{batch_rng, by_documents, by_tokens, shuffled};

/// Documents whose lengths are sorted together when batches are made by tokens.
const WINDOW: usize = 1024;

/// Updates of each epoch.
#[derive(Debug)]
pub(super) struct Epochs {
    updates: Vec<u64>,
    frozen: usize,
}

impl Epochs {
    pub(super) fn new(config: &TrainConfig, lengths: &[usize]) -> Self {
        let updates = |epoch| batches(config, lengths, epoch).len().div_ceil(config.accumulate) as u64;
        Self { updates: (0..config.all_epochs()).map(updates).collect(), frozen: config.freeze_epochs }
    }

    /// Updates of an epoch.
    pub(super) fn updates(&self, epoch: usize) -> u64 {
        self.updates[epoch]
    }

    /// Epochs.
    pub(super) fn len(&self) -> usize {
        self.updates.len()
    }

    /// Updates in all.
    pub(super) fn total(&self) -> u64 {
        self.updates.iter().sum()
    }

    /// Whether only the head learns in an epoch.
    pub(super) fn is_frozen(&self, epoch: usize) -> bool {
        epoch < self.frozen
    }

    /// Epochs that the head has learnt for, after so many updates of an epoch.
    pub(super) fn learnt(&self, epoch: usize, updates: u64) -> f64 {
        epoch as f64 + updates as f64 / self.updates[epoch].max(1) as f64
    }

    /// A step and the number of all, counted from when all learns; `None` before.
    pub(super) fn place(&self, step: u64) -> Option<(u64, u64)> {
        let frozen: u64 = self.updates[..self.frozen].iter().sum();
        step.checked_sub(frozen).map(|step| (step, self.total() - frozen))
    }

    /// The learning rate of a group at a step.
    pub(super) fn rate(&self, config: &TrainConfig, group: Group, step: u64, fell_back: bool) -> f64 {
        match self.place(step) {
            Some((step, total)) => config.rate(group, step, total, fell_back),
            None => config.frozen_rate(group),
        }
    }
}

/// The batches of an epoch: a function of seed and epoch alone.
pub(super) fn batches(config: &TrainConfig, lengths: &[usize], epoch: usize) -> Vec<Vec<usize>> {
    let order = shuffled(lengths.len(), config.seed, epoch as u64);
    if config.batch_tokens == 0 {
        return by_documents(&order, config.batch_size);
    }
    let mut random = batch_rng(config.seed, epoch as u64);
    by_tokens(lengths, &order, config.batch_tokens, WINDOW, &mut random)
}
