//! What long work tells whoever watches. The library never prints: a front end implements [`Observer`].

use std::fmt;
use std::path::PathBuf;

use cladist_core::corpus::DataReport;
use cladist_core::job::Silent;
use cladist_core::{Cancel, Job, Progress};
use cladist_nn::heads::Pool;
use cladist_nn::train::Outcome;
use cladist_nn::train::progress::Watcher;
pub use cladist_nn::train::progress::{DevReport, StepReport};

use crate::results::{Evaluation, four_decimals};

/// Receives the news of training, evaluation and inference. Every function has an empty default body. Called from
/// working threads, so it must be quick. If it panics, the panic reaches the caller and a run folder stays resumable.
pub trait Observer: Progress {
    /// The frozen encoder has encoded so many of all documents, before linear probing begins.
    fn reading(&self, _done: u64, _total: u64) {}
    /// An update was made.
    fn step(&self, _report: &StepReport) {}
    /// The model was evaluated on dev.
    fn dev(&self, _report: &DevReport) {}
    /// Something happened that a person may want to read; its [`fmt::Display`] is a sentence or a small report.
    fn event(&self, _event: &Event<'_>) {}
}

impl Observer for Silent {}

/// Something that a person may want to read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A corpus was read.
    Corpus(&'a DataReport),
    /// Tensors of a pretrained encoder that start at random, or that are not used.
    Tensors {
        /// What is the matter with them.
        what: &'static str,
        /// Their names.
        names: &'a [String],
    },
    /// Training of a head on an encoder begins.
    Begins {
        /// The head.
        head: &'static str,
        /// The encoder, as the settings name it.
        encoder: &'a str,
        /// The document vector that the head reads, if it reads one.
        pool: Option<Pool>,
        /// Trainable numbers.
        parameters: usize,
        /// Training documents.
        documents: usize,
        /// Labels.
        labels: usize,
        /// Groups of labels of a shortlist.
        groups: Option<usize>,
        /// Epochs, those of linear probing included.
        epochs: usize,
    },
    /// The training loop has ended.
    Ended(&'a Outcome),
    /// A linear model is trained.
    Linear {
        /// The head.
        head: &'static str,
        /// Training documents.
        documents: usize,
        /// Time.
        seconds: f64,
        /// TF-IDF features.
        features: usize,
        /// Weights that are not 0.
        weights: usize,
    },
    /// The weights of an ensemble for a class of labels, with the F1 that they reach on dev.
    Ensemble {
        /// `all`, or labels by frequency.
        class: &'a str,
        /// Each member with its weight.
        weights: &'a [(String, f64)],
        /// F1 on dev.
        value: f64,
    },
    /// A model was evaluated.
    Evaluated(&'a Evaluation),
    /// The same settings were evaluated on held-out documents, before the model was trained once more on all.
    HeldOut(&'a Evaluation),
    /// A report was written.
    Report(PathBuf),
    /// The run is done and in its folder.
    Run(PathBuf),
    /// Anything else.
    Note(String),
    /// Something that should be looked at.
    Warning(String),
}

impl Event<'_> {
    /// Whether it should be shown even to those who want to see results only.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Warning(_))
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corpus(report) => report.fmt(f),
            Self::Tensors { what, names } => {
                let first = names.first().map_or("", String::as_str);
                let rest =
                    if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
                write!(f, "of the encoder's weights, `{first}`{rest} {what}")
            }
            Self::Begins { head, encoder, pool, parameters, documents, labels, groups, epochs: _ } => {
                let groups = groups.map_or_else(String::new, |groups| format!(" in {groups} groups"));
                let pool = pool.map_or_else(String::new, |pool| format!(" (pool {})", pool.name()));
                write!(
                    f,
                    "training {head} on {encoder}{pool}: {parameters} parameters, {documents} documents, {labels} labels{groups}"
                )
            }
            Self::Ended(outcome) => ended(outcome, f),
            Self::Linear { head, documents, seconds, features, weights } => write!(
                f,
                "trained {head} on {documents} documents in {seconds:.1} s: {features} features, {weights} weights"
            ),
            Self::Ensemble { class, weights, value } => {
                let parts: Vec<String> =
                    weights.iter().map(|(name, weight)| format!("{weight:.2} {name}")).collect();
                write!(f, "weights for {class} labels: {} (F1 on dev {value:.4})", parts.join(", "))
            }
            Self::Evaluated(evaluation) => {
                write!(f, "on {}: ", evaluation.split)?;
                headline(evaluation, f)
            }
            Self::HeldOut(evaluation) => {
                write!(
                    f,
                    "on {} held-out documents, before training on all: ",
                    evaluation.report.n_documents
                )?;
                headline(evaluation, f)
            }
            Self::Report(path) => write!(f, "report: {}", path.display()),
            Self::Run(path) => write!(f, "the run is in {}", path.display()),
            Self::Note(text) | Self::Warning(text) => f.write_str(text),
        }
    }
}

fn headline(evaluation: &Evaluation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let value = |name: &str| four_decimals(evaluation.report.metrics.get(name).copied());
    write!(f, "micro-F1 {}, macro-F1 {}, P@1 {}", value("micro-f1"), value("macro-f1"), value("p@1"))
}

fn ended(outcome: &Outcome, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Outcome { steps, seconds, skipped, best, stopped_early } = outcome;
    write!(f, "{steps} updates in {seconds:.0} s")?;
    if let Some((step, value)) = best {
        write!(f, "; the model of step {step} is the best on dev ({value:.4})")?;
    }
    if *stopped_early {
        write!(f, "; stopped early")?;
    }
    if *skipped > 0 {
        write!(f, "; {skipped} batches skipped because their loss was not finite")?;
    }
    Ok(())
}

/// Who watches some work, and when it is to stop.
#[derive(Clone)]
pub struct Work<'a> {
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// When to stop.
    pub cancel: Cancel,
}

impl Default for Work<'_> {
    fn default() -> Self {
        Self { observer: &Silent, cancel: Cancel::default() }
    }
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

impl<'a> Work<'a> {
    /// What functions of the crates below take.
    #[must_use]
    pub fn job(&self) -> Job<'a> {
        Job { progress: self.observer, cancel: self.cancel.clone() }
    }

    /// The same for work that has no progress of its own to show.
    #[must_use]
    pub fn quiet_job(&self) -> Job<'static> {
        Job { cancel: self.cancel.clone(), ..Job::silent() }
    }

    /// Tells the observer.
    pub fn tell(&self, event: &Event<'_>) {
        self.observer.event(event);
    }
}

/// The training loop's news go to the observer.
pub(crate) struct Watch<'a>(pub(crate) &'a dyn Observer);

impl Watcher for Watch<'_> {
    fn reading(&self, done: u64, total: u64) {
        self.0.reading(done, total);
    }

    fn step(&self, report: &StepReport) {
        self.0.step(report);
    }

    fn dev(&self, report: &DevReport) {
        self.0.dev(report);
    }

    fn note(&self, message: &str) {
        self.0.event(&Event::Note(message.to_owned()));
    }
}
