//! Evaluation on dev.

use std::time::Instant;

use burn::module::Module;
use cladist_core::decode::Decoded;
use cladist_core::{Job, Request, Scores};

use super::{Dev, Trainer};
use crate::error::{Error, Result};
use crate::tokens::CHUNK;
use crate::train::progress::DevReport;
use crate::train::state::Progress;
use crate::train::stopping::{StoppingConfig, Verdict};

impl Trainer<'_> {
    pub(super) fn evaluation_is_due(&self) -> bool {
        let Progress { step, in_epoch, epoch, evaluated, .. } = self.progress;
        let due = match self.plan.config.eval_steps {
            // Of the epochs in which only the head learns, the last.
            0 => in_epoch == self.epochs.updates(epoch) && epoch + 1 >= self.plan.config.freeze_epochs,
            every => step.is_multiple_of(every) || step == self.epochs.total(),
        };
        self.dev.is_some() && due && step > 0 && evaluated < step
    }

    /// Scores dev and judges the model by it; false if somebody asks to stop meanwhile.
    pub(super) fn evaluate(&mut self) -> Result<bool> {
        match self.judge() {
            Err(Error::Core(cladist_core::Error::Cancelled)) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Label sets of dev and the mean loss, a part of the documents after the other.
    fn decode(&self, dev: &Dev<'_>) -> Result<(Decoded, f64)> {
        let job = Job { cancel: self.plan.cancel.clone(), ..Job::silent() };
        let request = Request { job, ..Request::default() };
        let (mut decoded, mut loss, mut windows) = (Decoded::default(), 0.0, 0);
        for (tokens, gold) in dev.tokens.chunks(CHUNK).zip(dev.gold.chunks(CHUNK)) {
            let judged = self.model.run(tokens, Some(gold), &request, &mut [])?;
            let n: usize = tokens.iter().map(Vec::len).sum();
            loss += judged.loss * n as f64;
            windows += n;
            decoded.append(self.plan.measure.decode(Scores::from_rows(judged.rows))?);
        }
        Ok((decoded, loss / windows.max(1) as f64))
    }

    fn judge(&mut self) -> Result<()> {
        let start = Instant::now();
        let config = self.plan.config;
        self.model.network = self.weights.averaged(self.network.valid(), &self.model.components)?;
        self.catch_up();
        let Some(dev) = &self.dev else { return Ok(()) };
        self.weights.swap_outside(&mut self.model.components);
        let decoded = self.model.prepare(&self.plan.cancel).and_then(|()| self.decode(dev));
        self.weights.swap_outside(&mut self.model.components);
        let (decoded, loss) = decoded?;
        let mut values = self.plan.measure.measure(&decoded)?;
        values.insert("loss".to_owned(), loss);
        let value = values.get(&config.monitor).copied().unwrap_or(f64::NAN);
        let stopping = StoppingConfig {
            patience: (config.patience > 0).then_some(config.patience),
            ..StoppingConfig::default()
        };
        let (step, epoch) = (self.progress.step, self.progress.epoch);
        let verdict = self.progress.stopping.observe(&stopping, self.higher_is_better, step, value);
        let best = verdict == Verdict::Better;
        if best {
            self.weights.keep(&self.model.network, &self.model.components);
        }
        self.progress.stopped = verdict == Verdict::Stop;
        self.progress.evaluated = step;
        self.progress.seconds += start.elapsed().as_secs_f64();
        self.speed.record_evaluation(start.elapsed());
        if let Some(files) = &mut self.files {
            files.dev(step, epoch, &values, self.progress.seconds)?;
        }
        self.plan.watcher.dev(&DevReport { epoch, step, values, best });
        Ok(())
    }
}
