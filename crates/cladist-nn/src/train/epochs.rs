//! Epochs of a run: those in which only the head learns, then those in which all does.

use cladist_core::Cancel;

use super::config::TrainConfig;
use crate::error::Result;
use crate::heads::Group;
use crate::tokens::{batch_rng, by_documents, by_tokens, shuffled};

/// Documents whose lengths are sorted together when batches are made by tokens.
const WINDOW: usize = 1024;

/// Updates of each epoch.
#[derive(Debug)]
pub(super) struct Epochs {
    /// Updates up to the end of each epoch.
    ends: Vec<u64>,
    frozen: usize,
}

impl Epochs {
    /// Batches of as many documents are as many in every epoch. Those of as many tokens depend on the order of documents, so that
    /// all are made once to count them.
    pub(super) fn new(config: &TrainConfig, lengths: &[usize], cancel: &Cancel) -> Result<Self> {
        let mut ends = Vec::with_capacity(config.all_epochs());
        let mut end = 0;
        for epoch in 0..config.all_epochs() {
            cancel.check()?;
            let n = match config.batch_tokens {
                0 => lengths.len().div_ceil(config.batch_size),
                _ => batches(config, lengths, epoch).len(),
            };
            end += n.div_ceil(config.accumulate) as u64;
            ends.push(end);
        }
        Ok(Self { ends, frozen: config.freeze_epochs })
    }

    /// Updates before an epoch.
    fn before(&self, epoch: usize) -> u64 {
        epoch.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    /// Updates of an epoch.
    pub(super) fn updates(&self, epoch: usize) -> u64 {
        self.ends[epoch] - self.before(epoch)
    }

    /// Epochs.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Updates in all.
    pub(super) fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether only the head learns in an epoch.
    pub(super) fn is_frozen(&self, epoch: usize) -> bool {
        epoch < self.frozen
    }

    /// Epochs that the head has learnt for, after so many updates of an epoch.
    pub(super) fn learnt(&self, epoch: usize, updates: u64) -> f64 {
        epoch as f64 + updates as f64 / self.updates(epoch).max(1) as f64
    }

    /// Epochs that all has learnt for, when the head has for so many.
    pub(super) fn thawed(&self, learnt: f64) -> f64 {
        (learnt - self.frozen as f64).max(0.0)
    }

    /// A step and the number of all, counted from when all learns; `None` before.
    pub(super) fn place(&self, step: u64) -> Option<(u64, u64)> {
        let frozen = self.before(self.frozen);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_those_of_the_batches() {
        let lengths: Vec<usize> = (0..37).map(|n| 3 + n * 7 % 11).collect();
        for batch_tokens in [0, 40] {
            let config = TrainConfig {
                epochs: 3,
                freeze_epochs: 2,
                batch_size: 4,
                batch_tokens,
                accumulate: 3,
                ..TrainConfig::default()
            };
            let epochs = Epochs::new(&config, &lengths, &Cancel::default()).unwrap();
            let updates = |epoch| batches(&config, &lengths, epoch).len().div_ceil(3) as u64;
            assert_eq!(epochs.len(), 5);
            assert!((0..5).all(|epoch| epochs.updates(epoch) == updates(epoch)));
            assert_eq!(epochs.total(), (0..5).map(updates).sum::<u64>());
            assert_eq!((epochs.thawed(1.5), epochs.thawed(2.0), epochs.thawed(3.5)), (0.0, 0.0, 1.5));
            let frozen = updates(0) + updates(1);
            assert_eq!(epochs.place(frozen - 1), None);
            assert_eq!(epochs.place(frozen + 1), Some((1, epochs.total() - frozen)));
        }
    }

    #[test]
    fn counting_stops_when_it_is_asked_to() {
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(Epochs::new(&TrainConfig::default(), &[1, 2], &cancel).is_err());
    }
}
