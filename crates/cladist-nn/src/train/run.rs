//! The loop.

mod course;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use burn::module::Module;
use cladist_core::{Cancel, Document, Job, LabelSet, Request, Scores};

use super::config::TrainConfig;
use super::documents::{check_gold, fingerprint};
use super::epochs::Epochs;
use super::files::RunFiles;
use super::frozen::{self, Frozen};
use super::labels::label_states;
use super::progress::{DevReport, Speed, StepReport, Watcher};
use super::state::{Progress, Weights, everything, put_back};
use super::stopping::{StoppingConfig, Verdict};
use super::terms::Terms;
use crate::encoder::{Encoder, Mode, place};
use crate::error::{Error, Result};
use crate::heads::{Group, HeadInput, Moment};
use crate::model::{Network, NeuralModel};
use crate::optim::{AdamW, GradientSum, scale};
use crate::parameters;
use crate::shortlist::{RowLearner, Rows};
use crate::tokens::{Sequence, TokenBatch};

/// Batches in a row without a finite loss after which training gives up.
const GIVE_UP: usize = 3;

/// Documents with their labels.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// The documents.
    pub documents: &'a [Document],
    /// The labels of each.
    pub gold: &'a [LabelSet],
}

/// How scores of dev are judged.
pub trait Measure {
    /// Metrics by name.
    fn measure(&self, scores: &Scores) -> cladist_core::Result<BTreeMap<String, f64>>;
    /// Whether more of a metric is better; `None` if there is none of that name.
    fn higher_is_better(&self, metric: &str) -> Option<bool>;
}

/// What a run needs beside the model.
pub struct Plan<'a> {
    /// Settings.
    pub config: &'a TrainConfig,
    /// What is learnt from.
    pub train: Examples<'a>,
    /// What decides which model is best.
    pub dev: Option<Examples<'a>>,
    /// How dev is judged.
    pub measure: &'a dyn Measure,
    /// Where checkpoints, the journal and event files go.
    pub folder: Option<&'a Path>,
    /// Whether to go on from the latest checkpoint in the folder.
    pub resume: bool,
    /// Who watches.
    pub watcher: &'a dyn Watcher,
    /// When to stop.
    pub cancel: Cancel,
}

/// How a run went.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Updates made.
    pub steps: u64,
    /// Seconds of training, over all sittings.
    pub seconds: f64,
    /// Batches skipped because their loss was not finite.
    pub skipped: u64,
    /// The step and value of the best evaluation.
    pub best: Option<(u64, f64)>,
    /// Whether patience ran out before the last epoch.
    pub stopped_early: bool,
}

/// Fits a model; the best one on dev comes back, or the last one without dev.
pub fn train(model: NeuralModel, plan: &Plan<'_>) -> Result<(NeuralModel, Outcome)> {
    plan.config.validate()?;
    check_gold(&plan.train, model.design.task)?;
    plan.dev.as_ref().map_or(Ok(()), |dev| check_gold(dev, model.design.task))?;
    let tokens = model.tokenize(plan.train.documents)?;
    let dev_tokens = plan.dev.as_ref().map(|dev| model.tokenize(dev.documents)).transpose()?;
    let mut trainer = Trainer::new(model, plan, &tokens)?;
    loop {
        if trainer.evaluation_is_due()
            && let (Some(dev), Some(tokens)) = (&plan.dev, &dev_tokens)
        {
            match trainer.evaluate(dev, tokens) {
                Err(Error::Core(cladist_core::Error::Cancelled)) => return Err(trainer.interrupted()),
                other => other?,
            }
        }
        if !trainer.has_next()? {
            return trainer.finish();
        }
        if plan.cancel.is_cancelled() {
            return Err(trainer.interrupted());
        }
        let report = trainer.step()?;
        trainer.log(&report)?;
        trainer.save_if_due()?;
    }
}

struct Trainer<'a> {
    plan: &'a Plan<'a>,
    /// What dev is scored with; its network is of the last evaluation.
    model: NeuralModel,
    network: Network,
    groups: BTreeMap<String, Group>,
    optimiser: AdamW,
    /// What learns the model's rows of labels.
    rows: RowLearner,
    progress: Progress,
    weights: Weights,
    higher_is_better: bool,
    /// Windows of all documents, with the number of the document.
    examples: Vec<(usize, &'a Sequence)>,
    lengths: Vec<usize>,
    epochs: Epochs,
    /// The encoder as it learns, while it does not.
    thawed: Option<Encoder>,
    /// What it says of the documents meanwhile, if there is room for it.
    frozen: Option<Frozen>,
    /// The batches of the current epoch.
    batches: Vec<Vec<usize>>,
    files: Option<RunFiles>,
    speed: Speed,
    last_save: Instant,
}

impl<'a> Trainer<'a> {
    fn new(mut model: NeuralModel, plan: &'a Plan<'a>, tokens: &'a [Vec<Sequence>]) -> Result<Self> {
        let config = plan.config;
        let higher_is_better = match config.monitor.as_str() {
            "loss" => false,
            metric => plan.measure.higher_is_better(metric).ok_or_else(|| {
                cladist_core::Error::setting("train.monitor", "`loss` or the name of a metric", metric)
            })?,
        };
        let examples: Vec<(usize, &Sequence)> = (tokens.iter().enumerate())
            .flat_map(|(n, windows)| windows.iter().map(move |window| (n, window)))
            .collect();
        let lengths: Vec<usize> = examples.iter().map(|(_, sequence)| sequence.len()).collect();
        let epochs = Epochs::new(config, &lengths);
        if epochs.total() == 0 {
            return Err(
                cladist_core::Error::NothingToLearn { n_documents: plan.train.documents.len() }.into()
            );
        }
        if let Some(rate) = config.dropout {
            model.network.encoder = model.network.encoder.with_dropout(rate as f32);
        }
        if config.freeze_layers > 0 {
            model.network.encoder = model.network.encoder.freeze(config.freeze_layers);
        }
        let progress = Progress::new(fingerprint(plan, &model, &examples));
        let mut trainer = Self {
            plan,
            network: model.network.clone().train(),
            groups: groups(&model.network),
            rows: RowLearner::new(model.table.as_ref()),
            model,
            optimiser: AdamW::new(config.optimizer),
            progress,
            weights: Weights::default(),
            higher_is_better,
            examples,
            lengths,
            epochs,
            thawed: None,
            frozen: None,
            batches: Vec::new(),
            files: None,
            speed: Speed::default(),
            last_save: Instant::now(),
        };
        if let Some(folder) = plan.folder {
            trainer.open(folder)?;
        }
        trainer.begin_epoch()?;
        Ok(trainer)
    }

    /// Opens the run folder and goes on from its latest checkpoint if that is wanted.
    fn open(&mut self, folder: &Path) -> Result<()> {
        let mut files = RunFiles::open(folder)?;
        if !files.is_exclusive() {
            let folder = folder.display();
            self.plan.watcher.note(&format!(
                "the file system of `{folder}` has no locks: train there only once at a time"
            ));
        }
        if self.plan.resume {
            let found = files.latest()?;
            let lost = found.checkpoint.is_none() && !found.passed_over.is_empty();
            for reason in found.passed_over {
                self.plan.watcher.note(&format!("a checkpoint cannot be used: {reason}"));
            }
            if let Some(checkpoint) = found.checkpoint {
                let restored = self.progress.load(&checkpoint.path, self.plan.config, &mut self.weights)?;
                let device = self.model.network.encoder.device();
                let (network, table) = (self.network.clone(), self.model.table.as_mut());
                (self.network, self.optimiser, self.rows) =
                    restored.apply(network, table, self.plan.config.optimizer, &device)?;
                self.plan.watcher.note(&format!("going on after step {}", self.progress.step));
            } else if lost {
                self.plan.watcher.note("no checkpoint can be used, so training starts from the beginning");
            }
        }
        files.begin(self.progress.step)?;
        self.files = Some(files);
        Ok(())
    }

    /// One update, from one batch or several.
    fn step(&mut self) -> Result<StepReport> {
        let start = Instant::now();
        let config = self.plan.config;
        let epoch = self.progress.epoch;
        let first = self.progress.in_epoch as usize * config.accumulate;
        let group = self.batches[first..self.batches.len().min(first + config.accumulate)].to_vec();
        let mut sum = GradientSum::default();
        let mut terms = Terms::default();
        let mut finite = true;
        for (n, batch) in group.iter().enumerate() {
            let seed = place(config.seed, ((self.progress.step + 1) << 16) + n as u64);
            let moment =
                Moment { epoch: self.epochs.learnt(epoch, self.progress.in_epoch), seed: Some(seed) };
            let sequences: Vec<&Sequence> = batch.iter().map(|&n| self.examples[n].1).collect();
            let gold: Vec<LabelSet> =
                batch.iter().map(|&n| self.plan.train.gold[self.examples[n].0].clone()).collect();
            let tokens = TokenBatch::new(&sequences);
            let encoder = &self.network.encoder;
            let encoded = if self.epochs.is_frozen(epoch) {
                frozen::encode(self.frozen.as_ref(), encoder, &self.model, batch, &tokens)
            } else {
                encoder.encode(&tokens, &self.model.layers, Mode::Training { seed })
            };
            let after = (n == 0).then_some(self.progress.step);
            let (descriptions, kept) = (self.model.descriptions.as_ref(), &mut self.weights.labels);
            let labels = label_states(&self.network, descriptions, &gold, &moment, after, kept);
            let rows = self.model.table.as_ref().map(Rows::learning);
            let input = HeadInput { rows: rows.as_ref(), ..HeadInput::of(&encoded, labels.as_ref()) };
            let objective = self.network.head.objective(&input, &gold, &moment);
            drop((encoded, labels));
            terms.add(objective.values(), group.len());
            let Some(loss) = objective.total() else { continue };
            let value = f64::from(loss.clone().inner().into_scalar::<f32>());
            terms.add(vec![("loss".to_owned(), value)], group.len());
            if !value.is_finite() {
                finite = false;
                break;
            }
            let mut gradients = loss.backward();
            self.rows.add(rows.map_or_else(Vec::new, |rows| rows.gradients(&mut gradients)));
            sum.add(&self.network, gradients);
        }
        let norm = self.rows.norm(sum.norm(), sum.batches());
        let total = self.epochs.total();
        if finite && norm.is_finite() {
            self.progress.bad_in_a_row = 0;
            let (groups, step, fell) = (&self.groups, self.progress.step, self.progress.guard.fell_back);
            let group = |name: &str| groups.get(name).copied().unwrap_or(Group::Output);
            let epochs = &self.epochs;
            let rate = |name: &str| epochs.rate(config, group(name), step, fell);
            let clip = (config.clip > 0.0).then_some(config.clip);
            // Moved out, not cloned: parameters that nobody else holds are changed in place.
            let network = std::mem::replace(&mut self.network, self.model.network.clone());
            let scale = scale(sum.batches(), norm, clip);
            self.network = self.optimiser.step(network, sum, norm, clip, &rate);
            self.rows.step(self.model.table.as_mut(), &self.optimiser, scale, rate("head.rows"));
            terms.add(vec![("gradient-norm".to_owned(), norm)], 1);
        } else {
            self.rows.forget();
            self.skip(&group.concat())?;
        }
        if let Some((step, total)) = self.epochs.place(self.progress.step)
            && self.progress.guard.observe(config, step, total, terms.get("loss"))
        {
            self.plan.watcher.note("the loss did not fall during warm-up: going on with the fallback rates");
        }
        let n_documents = group.iter().map(Vec::len).sum();
        let n_tokens = group.iter().flatten().map(|&n| self.lengths[n]).sum();
        self.progress.step += 1;
        self.progress.in_epoch += 1;
        let averaging = config.averaging.as_ref();
        if let Some(weight) = averaging.and_then(|averaging| self.progress.averaging.updated(averaging)) {
            self.catch_up();
            self.weights.take_in(&self.network, self.model.table.as_ref(), weight);
        }
        self.progress.seconds += start.elapsed().as_secs_f64();
        self.speed.record(start.elapsed(), n_documents, n_tokens);
        let step = self.progress.step;
        Ok(StepReport {
            step,
            total_steps: total,
            epoch,
            terms: terms.0,
            learning_rates: self.rates(step - 1),
            documents_per_second: self.speed.documents_per_second(),
            tokens_per_second: self.speed.tokens_per_second(),
            seconds_left: self.speed.seconds_left(total - step),
        })
    }

    /// Counts a batch without a finite loss; too many in a row end the run, with the last checkpoint as it is.
    fn skip(&mut self, batch: &[usize]) -> Result<()> {
        self.progress.skipped += 1;
        self.progress.bad_in_a_row += 1;
        let step = self.progress.step + 1;
        if self.progress.bad_in_a_row >= GIVE_UP {
            let documents = self.plan.train.documents;
            let ids = batch.iter().map(|&n| documents[self.examples[n].0].id.clone()).collect();
            return Err(Error::Diverged { step, in_a_row: GIVE_UP, ids });
        }
        self.plan.watcher.note(&format!("step {step}: the loss is not finite, so the batch is skipped"));
        Ok(())
    }

    /// The rate of every group that has parameters.
    fn rates(&self, step: u64) -> Vec<(String, f64)> {
        let (config, fell) = (self.plan.config, self.progress.guard.fell_back);
        [(Group::Encoder, "encoder"), (Group::Labels, "labels"), (Group::Output, "output")]
            .into_iter()
            .filter(|(group, _)| self.groups.values().any(|other| other == group))
            .map(|(group, name)| (name.to_owned(), self.epochs.rate(config, group, step, fell)))
            .collect()
    }

    fn log(&mut self, report: &StepReport) -> Result<()> {
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

    fn evaluate(&mut self, dev: &Examples<'_>, tokens: &[Vec<Sequence>]) -> Result<()> {
        let start = Instant::now();
        let config = self.plan.config;
        self.model.network = self.weights.averaged(self.network.valid())?;
        self.catch_up();
        self.weights.exchange_rows(self.model.table.as_mut());
        self.model.prepare();
        let job = Job { cancel: self.plan.cancel.clone(), ..Job::silent() };
        let judged = self.model.run(tokens, Some(dev.gold), &Request { job, ..Request::default() });
        self.weights.exchange_rows(self.model.table.as_mut());
        let judged = judged?;
        let mut values = self.plan.measure.measure(&Scores::from_rows(judged.rows))?;
        values.insert("loss".to_owned(), judged.loss);
        let value = values.get(&config.monitor).copied().unwrap_or(f64::NAN);
        let stopping = StoppingConfig {
            patience: (config.patience > 0).then_some(config.patience),
            ..StoppingConfig::default()
        };
        let (step, epoch) = (self.progress.step, self.progress.epoch);
        let verdict = self.progress.stopping.observe(&stopping, self.higher_is_better, step, value);
        let best = verdict == Verdict::Better;
        if best {
            self.weights.keep(&self.model.network, self.model.table.as_ref());
        }
        self.progress.stopped = verdict == Verdict::Stop;
        self.progress.evaluated = step;
        self.progress.seconds += start.elapsed().as_secs_f64();
        if let Some(files) = &mut self.files {
            files.dev(step, epoch, &values, self.progress.seconds)?;
        }
        self.plan.watcher.dev(&DevReport { epoch, step, values, best });
        Ok(())
    }

    /// Rows of labels as if every step had touched them.
    fn catch_up(&mut self) {
        let (config, fell) = (self.plan.config, self.progress.guard.fell_back);
        let rate = self.epochs.rate(config, Group::Output, self.progress.step.saturating_sub(1), fell);
        self.rows.catch_up(self.model.table.as_mut(), &self.optimiser, rate);
    }

    /// Saves a checkpoint, if there is a place for it and the parameters are worth it.
    fn save(&mut self) -> Result<bool> {
        let Some(files) = &self.files else { return Ok(false) };
        let network = everything(&self.network, self.model.table.as_ref());
        if network.values().flat_map(|(_, values)| values).any(|value| !value.is_finite()) {
            return Ok(false);
        }
        files.save(self.progress.step, |writer| {
            self.progress.save(writer, &network, &self.optimiser, &self.rows, &self.weights)
        })?;
        self.last_save = Instant::now();
        Ok(true)
    }

    fn save_if_due(&mut self) -> Result<()> {
        let config = self.plan.config;
        let minutes = self.last_save.elapsed().as_secs_f64() / 60.0;
        let by_time = config.checkpoint_minutes > 0.0 && minutes >= config.checkpoint_minutes;
        let every = config.checkpoint_steps;
        let due = by_time || (every > 0 && self.progress.step.is_multiple_of(every));
        // If training goes wrong, the checkpoint to go back to is the one before.
        if due && self.progress.bad_in_a_row == 0 { self.save().map(|_| ()) } else { Ok(()) }
    }

    /// Saves what there is; the error that ends the run.
    fn interrupted(&mut self) -> Error {
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

    fn finish(mut self) -> Result<(NeuralModel, Outcome)> {
        let mut network = self.weights.averaged(self.network.valid())?;
        self.catch_up();
        self.weights.exchange_rows(self.model.table.as_mut());
        if let Some(best) = self.weights.best.take() {
            network = put_back(network, best, self.model.table.as_mut())
                .map_err(|problem| Error::Parameters { problem })?;
        }
        self.model.network = network;
        let outcome = Outcome {
            steps: self.progress.step,
            seconds: self.progress.seconds,
            skipped: self.progress.skipped,
            best: self.progress.stopping.best().map(|best| (best.at, best.value)),
            stopped_early: self.progress.stopped && self.progress.step < self.epochs.total(),
        };
        Ok((self.model.ready(), outcome))
    }
}

/// The group of each parameter.
fn groups(network: &Network) -> BTreeMap<String, Group> {
    parameters::names(network)
        .into_iter()
        .map(|name| {
            let group =
                name.strip_prefix("head.").map_or(Group::Encoder, |parameter| network.head.group(parameter));
            (name, group)
        })
        .collect()
}

#[cfg(test)]
mod tests;
