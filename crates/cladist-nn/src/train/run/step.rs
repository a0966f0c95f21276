//! A step in three: gradients of this process's documents, their exchange with other processes, and the update.

use std::time::{Duration, Instant};

use cladist_core::LabelSet;

use super::Trainer;
use crate::encoder::Mode;
use crate::error::{Error, Result};
use crate::heads::{Group, Moment};
use crate::model::components::Lent;
use crate::optim::scale;
use crate::seeds;
use crate::tokens::{Sequence, TokenBatch};
use crate::train::exchange::Update;
use crate::train::frozen;
use crate::train::progress::{Ahead, StepReport};
use crate::train::source::shard;
use crate::train::terms::Terms;

/// Batches in a row without a finite loss after which training gives up.
const GIVE_UP: usize = 3;

impl Trainer<'_> {
    /// One update, from one batch or several; `None` if somebody asks to stop.
    pub(super) fn step(&mut self) -> Result<Option<StepReport>> {
        let start = Instant::now();
        if self.exchange.any(self.plan.cancel.is_cancelled())? {
            return Ok(None);
        }
        let accumulate = self.plan.config.accumulate;
        let first = self.progress.in_epoch as usize * accumulate;
        let batches = self.batches[first..self.batches.len().min(first + accumulate)].to_vec();
        let mut update = match self.accumulate(&batches) {
            Err(Error::Core(cladist_core::Error::Cancelled)) => return Ok(None),
            other => other?,
        };
        update.finite = !self.exchange.any(!update.finite)?;
        if update.finite {
            self.exchange.exchange(&mut update)?;
        }
        let terms = self.apply(update, &batches)?;
        Ok(Some(self.report(start.elapsed(), &batches, terms)))
    }

    /// The summed gradients of the batches, and what the losses come to.
    fn accumulate(&mut self, batches: &[Vec<usize>]) -> Result<Update> {
        let (rank, size) = (self.exchange.rank(), self.exchange.size());
        let mut update = Update::new(&self.network.encoder.device());
        for (n, batch) in batches.iter().enumerate() {
            // Of several processes, all stop between two steps: one that leaves a step would keep the others waiting.
            if size == 1 {
                self.plan.cancel.check()?;
            }
            let part = shard(batch, rank, size);
            if !part.is_empty() {
                let share = part.len() as f64 / batch.len() as f64;
                self.learn_from(&part, share, (n, batches.len()), &mut update)?;
            }
            if !update.finite {
                return Ok(update);
            }
        }
        if size > 1 {
            update.dense.count(batches.len());
        }
        Ok(update)
    }

    /// Adds the gradients of a part of batch `n` of so many, which is this share of its documents.
    fn learn_from(
        &mut self,
        part: &[usize],
        share: f64,
        (n, n_batches): (usize, usize),
        update: &mut Update,
    ) -> Result<()> {
        let (step, epoch) = (self.progress.step, self.progress.epoch);
        let seed = seeds::of_batch(self.plan.config.seed, step + 1, n as u64);
        let seed = seeds::of_rank(seed, self.exchange.rank());
        let learnt = self.epochs.learnt(epoch, self.progress.in_epoch);
        let moment = Moment { epoch: learnt, thawed: self.epochs.thawed(learnt), seed: Some(seed) };
        let examples = self.source.fetch(part)?;
        let sequences: Vec<&Sequence> = examples.iter().map(|example| &*example.sequence).collect();
        let tokens = TokenBatch::new(&sequences);
        let gold: Vec<LabelSet> = examples.into_iter().map(|example| example.gold.into_owned()).collect();
        let encoder = &self.network.encoder;
        let encoded = if self.epochs.is_frozen(epoch) {
            frozen::encode(self.frozen.as_ref(), encoder, &self.model, part, &tokens)
        } else {
            encoder.encode(&tokens, &self.model.layers, Mode::Training { seed })
        };
        let (components, cancel) = (&self.model.components, &self.plan.cancel);
        let after = (n == 0).then_some(step);
        let lent = self.beside.lend(components, &self.network, &gold, &moment, after, cancel)?;
        let objective = self.network.head.objective(&lent.input(&encoded), &gold, &moment);
        drop(encoded);
        // Vectors of labels go before gradients come.
        let Lent { labels, rows } = lent;
        drop(labels);
        let values = objective.values().into_iter().map(|(name, value)| (name, value * share));
        update.terms.add(values.collect(), n_batches);
        let Some(loss) = objective.total() else { return Ok(()) };
        let value = f64::from(loss.clone().inner().into_scalar::<f32>());
        update.terms.add(vec![("loss".to_owned(), value * share)], n_batches);
        if !value.is_finite() {
            update.finite = false;
            return Ok(());
        }
        let loss = if share < 1.0 { loss * share } else { loss };
        let mut gradients = loss.backward();
        update.rows.add(rows.map_or_else(Vec::new, |rows| rows.gradients(&mut gradients)));
        update.dense.add(&self.network, gradients);
        Ok(())
    }

    /// Clips the gradients and moves the parameters, or skips a batch whose loss or gradients are not finite.
    fn apply(&mut self, update: Update, batches: &[Vec<usize>]) -> Result<Terms> {
        let config = self.plan.config;
        let Update { dense, rows, mut terms, finite, .. } = update;
        let norm = rows.norm(dense.norm(), dense.batches());
        if finite && norm.is_finite() {
            self.progress.bad_in_a_row = 0;
            let (groups, step, fell) = (&self.groups, self.progress.step, self.progress.guard.fell_back);
            let group = |name: &str| groups.get(name).copied().unwrap_or(Group::Output);
            let epochs = &self.epochs;
            let rate = |name: &str| epochs.rate(config, group(name), step, fell);
            let clip = (config.clip > 0.0).then_some(config.clip);
            let scale = scale(dense.batches(), norm, clip);
            // Moved out, not cloned: parameters that nobody else holds are changed in place.
            let network = std::mem::replace(&mut self.network, self.model.network.clone());
            self.network = self.optimiser.step(network, dense, norm, clip, &rate);
            let components = &mut self.model.components;
            // What is outside the network is outputs of labels.
            let outside = epochs.rate(config, Group::Output, step, fell);
            self.beside.step(components, rows, &self.optimiser, scale, outside);
            terms.add(vec![("gradient-norm".to_owned(), norm)], 1);
        } else {
            self.skip(&batches.concat())?;
        }
        if let Some((step, total)) = self.epochs.place(self.progress.step)
            && self.progress.guard.observe(config, step, total, terms.get("loss"))
        {
            self.plan.watcher.note("the loss did not fall during warm-up: going on with the fallback rates");
        }
        self.progress.step += 1;
        self.progress.in_epoch += 1;
        let averaging = config.averaging.as_ref();
        if let Some(weight) = averaging.and_then(|averaging| self.progress.averaging.updated(averaging)) {
            self.catch_up();
            self.weights.take_in(&self.network, &self.model.components, weight);
        }
        Ok(terms)
    }

    /// Counts a batch without a finite loss; too many in a row end the run, with the last checkpoint as it is.
    fn skip(&mut self, batch: &[usize]) -> Result<()> {
        self.progress.skipped += 1;
        self.progress.bad_in_a_row += 1;
        let step = self.progress.step + 1;
        if self.progress.bad_in_a_row >= GIVE_UP {
            let ids = batch.iter().map(|&n| self.source.id(n)).collect();
            return Err(Error::Diverged { step, in_a_row: GIVE_UP, ids });
        }
        self.plan.watcher.note(&format!("step {step}: the loss is not finite, so the batch is skipped"));
        Ok(())
    }

    fn report(&mut self, time: Duration, batches: &[Vec<usize>], terms: Terms) -> StepReport {
        let n_documents = batches.iter().map(Vec::len).sum();
        let lengths = self.source.lengths();
        let n_tokens = batches.iter().flatten().map(|&n| lengths[n]).sum();
        self.progress.seconds += time.as_secs_f64();
        self.speed.record(time, n_documents, n_tokens);
        let step = self.progress.step;
        StepReport {
            step,
            total_steps: self.epochs.total(),
            epoch: self.progress.epoch,
            terms: terms.0,
            learning_rates: self.rates(step - 1),
            documents_per_second: self.speed.documents_per_second(),
            tokens_per_second: self.speed.tokens_per_second(),
            seconds_left: self.ahead().and_then(|ahead| self.speed.seconds_left(&ahead)),
        }
    }

    /// What is left to do; `None` while the head learns alone, whose steps say nothing of the others.
    fn ahead(&self) -> Option<Ahead> {
        let (config, lengths) = (self.plan.config, self.source.lengths());
        let epoch = self.progress.epoch;
        if self.epochs.is_frozen(epoch) {
            return None;
        }
        let done = self.progress.in_epoch as usize * config.accumulate;
        let here = self.batches.iter().skip(done).flatten().map(|&n| lengths[n]).sum::<usize>();
        let epochs = self.epochs.len() - 1 - epoch;
        let dev = self.dev.as_ref();
        let evaluations = match config.eval_steps {
            0 => epochs as u64 + 1,
            every => (self.epochs.total() - self.progress.step).div_ceil(every),
        };
        Some(Ahead {
            tokens: (here + epochs * lengths.iter().sum::<usize>()) as u64,
            evaluations: dev.map_or(0, |_| evaluations),
            dev_tokens: dev.map_or(0, |dev| dev.tokens.iter().flatten().map(|s| s.len() as u64).sum()),
        })
    }
}
