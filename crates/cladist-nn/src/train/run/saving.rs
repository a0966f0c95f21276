//! The run folder: checkpoints, and the journal of what is logged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use super::Trainer;
use crate::error::{Error, Result};
use crate::train::checkpoint;
use crate::train::files::RunFiles;
use crate::train::progress::StepReport;
use crate::train::state::everything;

impl Trainer<'_> {
    /// Opens the run folder and goes on from its latest checkpoint if that is wanted. The first rank alone writes there.
    pub(super) fn open(&mut self, folder: &Path) -> Result<()> {
        let open = || RunFiles::open(folder, self.plan.lock);
        let mut files = (self.exchange.rank() == 0).then(open).transpose()?;
        if files.as_ref().is_some_and(|files| !files.is_exclusive()) {
            let folder = folder.display();
            self.plan.watcher.note(&format!(
                "the file system of `{folder}` has no locks: train there only once at a time"
            ));
        }
        if self.plan.resume {
            let found = checkpoint::latest(&folder.join(RunFiles::CHECKPOINTS))?;
            let lost = found.checkpoint.is_none() && !found.passed_over.is_empty();
            for reason in found.passed_over {
                self.plan.watcher.note(&format!("a checkpoint cannot be used: {reason}"));
            }
            if let Some(checkpoint) = found.checkpoint {
                self.restore(&checkpoint.path)?;
                self.plan.watcher.note(&format!("going on after step {}", self.progress.step));
            } else if lost {
                self.plan.watcher.note("no checkpoint can be used, so training starts from the beginning");
            }
        }
        if let Some(files) = &mut files {
            files.begin(self.progress.step)?;
        }
        self.files = files;
        Ok(())
    }

    fn restore(&mut self, checkpoint: &Path) -> Result<()> {
        let config = self.plan.config;
        let restored = self.progress.load(checkpoint, config, &mut self.weights)?;
        let device = self.model.network.encoder.device();
        let (network, components) = (self.network.clone(), &mut self.model.components);
        (self.network, self.optimiser, self.beside) =
            restored.apply(network, components, config.optimizer, &device)?;
        Ok(())
    }

    /// Tells the watcher and, now and then, the journal.
    pub(super) fn log(&mut self, report: &StepReport) -> Result<()> {
        self.plan.watcher.step(report);
        for (name, value) in &report.terms {
            self.progress.since_log.entry(name.clone()).or_default().add(*value);
        }
        let epoch_ends = self.progress.in_epoch == self.epochs.updates(self.progress.epoch);
        if !(report.step.is_multiple_of(self.plan.config.log_steps) || epoch_ends) {
            return Ok(());
        }
        let since = std::mem::take(&mut self.progress.since_log);
        let Some(files) = &mut self.files else { return Ok(()) };
        let mut values: BTreeMap<String, f64> =
            since.into_iter().map(|(name, mean)| (name, mean.value())).collect();
        values.extend(report.learning_rates.iter().map(|(name, rate)| (format!("rate-{name}"), *rate)));
        values.insert("documents-per-second".to_owned(), report.documents_per_second);
        values.insert("tokens-per-second".to_owned(), report.tokens_per_second);
        files.train(report.step, report.epoch, values, self.progress.seconds)
    }

    /// Saves a checkpoint, if there is a place for it and the parameters are worth it.
    fn save(&mut self) -> Result<bool> {
        let Some(files) = &self.files else { return Ok(false) };
        let network = everything(&self.network, &self.model.components);
        if network.values().flat_map(|(_, values)| values).any(|value| !value.is_finite()) {
            return Ok(false);
        }
        files.save(self.progress.step, |writer| {
            self.progress.save(writer, &network, &self.optimiser, &self.beside, &self.weights)
        })?;
        self.last_save = Instant::now();
        Ok(true)
    }

    pub(super) fn save_if_due(&mut self) -> Result<()> {
        let config = self.plan.config;
        let minutes = self.last_save.elapsed().as_secs_f64() / 60.0;
        let by_time = config.checkpoint_minutes > 0.0 && minutes >= config.checkpoint_minutes;
        let every = config.checkpoint_steps;
        let due = by_time || (every > 0 && self.progress.step.is_multiple_of(every));
        // If training goes wrong, the checkpoint to go back to is the one before.
        if due && self.progress.bad_in_a_row == 0 { self.save().map(|_| ()) } else { Ok(()) }
    }

    /// Saves the end of training, if that is wanted.
    pub(super) fn save_last(&mut self) -> Result<()> {
        if self.plan.save_last { self.save().map(|_| ()) } else { Ok(()) }
    }

    /// Saves what there is; the error that ends the run.
    pub(super) fn interrupted(&mut self) -> Error {
        match self.save() {
            Ok(saved) => {
                if saved {
                    self.plan.watcher.note(&format!("stopped and saved after step {}", self.progress.step));
                }
                cladist_core::Error::Cancelled.into()
            }
            Err(error) => error,
        }
    }
}
