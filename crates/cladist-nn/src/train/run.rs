//! The loop.

mod course;
mod dev;
mod saving;
mod step;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use burn::module::Module;
use cladist_core::decode::Decoded;
use cladist_core::{Cancel, LabelSet, Scores};

use super::beside::Beside;
use super::config::TrainConfig;
use super::epochs::Epochs;
use super::exchange::{Alone, Exchange};
use super::files::RunFiles;
use super::frozen::Frozen;
use super::identity::{Identity, check_gold};
use super::lock::RunLock;
use super::progress::{Speed, Watcher};
use super::source::{Resident, Source};
use super::state::{Progress, Weights, put_back};
use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::examples::Examples;
use crate::heads::Group;
use crate::model::{Network, NeuralModel};
use crate::optim::AdamW;
use crate::parameters;
use crate::tokens::Sequence;

/// How scores of dev are judged.
pub trait Measure {
    /// Label sets of some documents of dev, and what is kept of their scores: those of all labels are in memory for so
    /// many documents alone.
    fn decode(&self, scores: Scores) -> cladist_core::Result<Decoded>;
    /// Metrics of all documents by name.
    fn measure(&self, decoded: &Decoded) -> cladist_core::Result<BTreeMap<String, f64>>;
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
    /// The right to train in the folder, if the caller has it already; it is taken otherwise.
    pub lock: Option<&'a RunLock>,
    /// Whether to go on from the latest checkpoint in the folder.
    pub resume: bool,
    /// Whether to save a checkpoint when all is learnt, for work that comes after and may be stopped too.
    pub save_last: bool,
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
    /// Seconds of training, those before an interruption included.
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
    let source = Resident::new(&model, &plan.train, &plan.cancel)?;
    train_from(model, plan, &source, &mut Alone)
}

/// The same with examples that come from anywhere, in place of those of the plan, and with other processes.
pub fn train_from(
    model: NeuralModel,
    plan: &Plan<'_>,
    source: &dyn Source,
    exchange: &mut dyn Exchange,
) -> Result<(NeuralModel, Outcome)> {
    plan.config.validate()?;
    plan.dev.as_ref().map_or(Ok(()), |dev| check_gold(dev, model.design.task))?;
    let dev = plan.dev.map(|dev| -> Result<Dev<'_>> {
        Ok(Dev { gold: dev.gold, tokens: model.tokenize_unless(dev.documents, &plan.cancel)? })
    });
    let mut trainer = Trainer::new(model, plan, dev.transpose()?, source, exchange)?;
    loop {
        if trainer.evaluation_is_due() && !trainer.evaluate()? {
            return Err(trainer.interrupted());
        }
        if !trainer.has_next()? {
            trainer.save_last()?;
            return trainer.finish();
        }
        match trainer.step()? {
            Some(report) => trainer.log(&report)?,
            None => return Err(trainer.interrupted()),
        }
        trainer.save_if_due()?;
    }
}

/// Development documents as tokens.
struct Dev<'a> {
    gold: &'a [LabelSet],
    tokens: Vec<Vec<Sequence>>,
}

struct Trainer<'a> {
    plan: &'a Plan<'a>,
    dev: Option<Dev<'a>>,
    source: &'a dyn Source,
    exchange: &'a mut dyn Exchange,
    /// What dev is scored with; its network is of the last evaluation, its components are those that learn.
    model: NeuralModel,
    network: Network,
    groups: BTreeMap<String, Group>,
    optimiser: AdamW,
    /// What components learn by.
    beside: Beside,
    progress: Progress,
    weights: Weights,
    higher_is_better: bool,
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
    fn new(
        mut model: NeuralModel,
        plan: &'a Plan<'a>,
        dev: Option<Dev<'a>>,
        source: &'a dyn Source,
        exchange: &'a mut dyn Exchange,
    ) -> Result<Self> {
        let config = plan.config;
        let higher_is_better = match config.monitor.as_str() {
            "loss" => false,
            metric => plan.measure.higher_is_better(metric).ok_or_else(|| {
                cladist_core::Error::setting("train.monitor", "`loss` or the name of a metric", metric)
            })?,
        };
        let epochs = Epochs::new(config, source.lengths(), &plan.cancel)?;
        if epochs.total() == 0 {
            return Err(cladist_core::Error::NothingToLearn { n_documents: source.n_documents() }.into());
        }
        if let Some(rate) = config.dropout {
            model.network.encoder = model.network.encoder.with_dropout(rate as f32);
        }
        if config.freeze_layers > 0 {
            model.network.encoder = model.network.encoder.freeze(config.freeze_layers);
        }
        let mut trainer = Self {
            plan,
            dev,
            source,
            exchange,
            network: model.network.clone().train(),
            groups: groups(&model.network),
            beside: Beside::new(&model.components),
            progress: Progress::new(Identity::new(config, &model, source, plan.dev.as_ref())),
            model,
            optimiser: AdamW::new(config.optimizer),
            weights: Weights::default(),
            higher_is_better,
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

    /// The rate of every group that has parameters.
    fn rates(&self, step: u64) -> Vec<(String, f64)> {
        let (config, fell) = (self.plan.config, self.progress.guard.fell_back);
        [(Group::Encoder, "encoder"), (Group::Labels, "labels"), (Group::Output, "output")]
            .into_iter()
            .filter(|(group, _)| self.groups.values().any(|other| other == group))
            .map(|(group, name)| (name.to_owned(), self.epochs.rate(config, group, step, fell)))
            .collect()
    }

    /// What components have outside the network, as if every step had touched all of it.
    fn catch_up(&mut self) {
        let (config, fell) = (self.plan.config, self.progress.guard.fell_back);
        let rate = self.epochs.rate(config, Group::Output, self.progress.step.saturating_sub(1), fell);
        self.beside.catch_up(&mut self.model.components, &self.optimiser, rate);
    }

    fn finish(mut self) -> Result<(NeuralModel, Outcome)> {
        let mut network = self.weights.averaged(self.network.valid(), &self.model.components)?;
        self.catch_up();
        self.weights.swap_outside(&mut self.model.components);
        if let Some(best) = self.weights.best.take() {
            network = put_back(network, best, &mut self.model.components)
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
        // All is learnt: who stops now gets what there is.
        self.model.prepare(&Cancel::default())?;
        Ok((self.model, outcome))
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
