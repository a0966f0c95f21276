//! From epoch to epoch.

use super::Trainer;
use crate::error::Result;
use crate::optim::AdamW;
use crate::train::epochs::batches;
use crate::train::frozen::{Frozen, MEMORY};

impl Trainer<'_> {
    pub(super) fn begin_epoch(&mut self) -> Result<()> {
        let (config, epoch) = (self.plan.config, self.progress.epoch);
        if epoch >= self.epochs.len() {
            return Ok(());
        }
        self.batches = batches(config, self.source.lengths(), epoch);
        if self.epochs.is_frozen(epoch) {
            return self.freeze();
        }
        if config.freeze_epochs == epoch && epoch > 0 && self.progress.in_epoch == 0 {
            self.thaw();
        }
        let averaging = config.averaging.as_ref().filter(|_| self.progress.in_epoch == 0);
        let begun = epoch - config.freeze_epochs;
        if let Some(weight) =
            averaging.and_then(|averaging| self.progress.averaging.epoch_started(averaging, begun))
        {
            self.catch_up();
            self.weights.take_in(&self.network, &self.model.components, weight);
        }
        Ok(())
    }

    /// From here on only the head learns.
    fn freeze(&mut self) -> Result<()> {
        if self.thawed.is_some() {
            return Ok(());
        }
        let encoder = self.network.encoder.clone();
        self.network.encoder = encoder.clone().freeze(usize::MAX);
        self.thawed = Some(encoder);
        self.model.prepare(&self.plan.cancel)?;
        let (n, watcher) = (self.source.n_documents(), self.plan.watcher);
        watcher.note(&format!("the encoder reads {n} documents once, for the head to learn first"));
        self.frozen = Frozen::read(&self.model, self.source, MEMORY, watcher, &self.plan.cancel)?;
        if self.frozen.is_none() {
            let limit = MEMORY >> 30;
            watcher
                .note(&format!("its states take more than {limit} GB, so it reads them anew in each epoch"));
        }
        Ok(())
    }

    /// From here on all learns, with a new optimiser: moments of what did not learn would be those of its first steps.
    fn thaw(&mut self) {
        // What rows still have to move by goes with the moments.
        self.catch_up();
        self.frozen = None;
        if let Some(encoder) = self.thawed.take() {
            self.network.encoder = encoder;
        }
        self.optimiser = AdamW::new(self.plan.config.optimizer);
        self.beside.restart(&self.model.components);
        self.speed = self.speed.anew();
    }

    /// Whether there is another update to make; moves on to the next epoch.
    pub(super) fn has_next(&mut self) -> Result<bool> {
        if self.progress.in_epoch == self.epochs.updates(self.progress.epoch) && !self.progress.stopped {
            self.progress.epoch += 1;
            self.progress.in_epoch = 0;
            if self.progress.epoch == self.epochs.len() {
                // The state of a finished run stays valid.
                self.progress.epoch -= 1;
                self.progress.in_epoch = self.epochs.updates(self.progress.epoch);
                return Ok(false);
            }
            self.begin_epoch()?;
        }
        Ok(!self.progress.stopped)
    }
}
