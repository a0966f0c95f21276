//! Training: settings and a corpus in, a run folder with a calibrated model out.

mod contents;
mod dev;
mod linear;
mod mixed;
mod neural;
mod place;
mod seeds;
mod summary;

use std::path::{Path, PathBuf};

use cladist_core::Cancel;
use cladist_core::bundle::Draft;
use cladist_core::job::Silent;

pub use seeds::SeedsReport;
pub use summary::{Best, Summary};

use crate::config::{Recipe, RunConfig};
use crate::corpora::{BadLinePolicy, DataCard, Documents, Loaded, Place};
use crate::error::{Error, Result};
use crate::folders;
use crate::model::{Model, OpenOptions};
use crate::observe::{Event, Observer, Work};
use crate::settings::Settings;
use crate::threads::Threads;

/// A training run to be made.
///
/// ```no_run
/// use cladist::{RunConfig, Training, corpus::CorpusSource, heads};
/// # fn main() -> cladist::Result<()> {
/// let settings = RunConfig::new(heads::find("svm")?);
/// let corpus = CorpusSource::folder("corpus".as_ref())?;
/// let run = Training::new(settings).corpus(corpus).out("runs/new").run()?;
/// println!("micro-F1 on dev: {:?}", run.summary.dev.get("micro-f1"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Training<'a> {
    config: RunConfig,
    documents: Option<Documents>,
    out: PathBuf,
    work: Work<'a>,
    bad_lines: BadLinePolicy,
    device: String,
    threads: Option<usize>,
    resume: bool,
    overwrite: bool,
}

/// A run that is done.
#[derive(Debug)]
pub struct Trained {
    /// Its folder.
    pub folder: PathBuf,
    /// What it came to.
    pub summary: Summary,
}

impl Trained {
    /// The model.
    pub fn open(&self, options: &OpenOptions) -> Result<Model> {
        Model::open(&self.folder, options)
    }
}

impl<'a> Training<'a> {
    /// A run with these settings; it needs a corpus and a folder.
    #[must_use]
    pub fn new(config: RunConfig) -> Self {
        Self {
            config,
            documents: None,
            out: PathBuf::new(),
            work: Work { observer: &Silent, cancel: Cancel::default() },
            bad_lines: BadLinePolicy::Stop,
            device: OpenOptions::default().device,
            threads: None,
            resume: false,
            overwrite: false,
        }
    }

    /// What it learns from: files (a `CorpusSource`) or documents in memory (a `Corpus`).
    #[must_use]
    pub fn corpus(mut self, documents: impl Into<Documents>) -> Self {
        self.documents = Some(documents.into());
        self
    }

    /// The run folder to write.
    #[must_use]
    pub fn out(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out = folder.into();
        self
    }

    /// Who watches.
    #[must_use]
    pub fn observe(mut self, observer: &'a dyn Observer) -> Self {
        self.work.observer = observer;
        self
    }

    /// The flag that stops it, from any thread. An interrupted run on an encoder can be resumed once it has made an update:
    /// then the error is [`Error::Stopped`].
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.work.cancel = cancel;
        self
    }

    /// Goes on with an interrupted run in the folder, with its settings and corpus; begins if there is none.
    #[must_use]
    pub fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// Replaces a run in the folder, once the new one is done.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// What becomes of lines that cannot be read.
    #[must_use]
    pub fn bad_lines(mut self, policy: BadLinePolicy) -> Self {
        self.bad_lines = policy;
        self
    }

    /// What tensors are computed on.
    #[must_use]
    pub fn device(mut self, device: impl Into<String>) -> Self {
        self.device = device.into();
        self
    }

    /// Threads of its own; without a number, the threads of the caller's rayon pool.
    #[must_use]
    pub fn threads(mut self, n: Option<usize>) -> Self {
        self.threads = n;
        self
    }

    /// Trains, evaluates on dev and writes the run folder.
    pub fn run(&self) -> Result<Trained> {
        self.config.validate()?;
        if self.out.as_os_str().is_empty() {
            return Err(Error::NoFolder);
        }
        if self.out.to_str().is_none() {
            let key = self.out.display().to_string();
            return Err(Error::setting(&key, "is a path that is not UTF-8, which a run cannot remember"));
        }
        let threads = Threads::new(self.threads)?;
        let summary = threads.run(|| self.start(&threads))?;
        let tested = summary.data["splits"]
            .as_array()
            .is_some_and(|splits| splits.iter().any(|split| split["name"] == "test"));
        if summary.dev.is_empty() && summary.held_out.is_empty() && !tested {
            self.work.tell(&Event::Warning(
                "nothing measures this model: the corpus has no dev and no test split, and none was held out (`data.dev`)"
                    .to_owned(),
            ));
        }
        Ok(Trained { folder: self.out.clone(), summary })
    }

    /// Goes through everything that comes before training, so that a corpus, an encoder and a head that do not fit are
    /// found out without it. Writes nothing.
    pub fn rehearse(&self) -> Result<()> {
        self.config.validate()?;
        Threads::new(self.threads)?.run(|| self.try_out())
    }

    fn try_out(&self) -> Result<()> {
        let documents = self.documents.as_ref().ok_or(Error::NoCorpus)?;
        let ignore = passing_over(&self.bad_lines);
        let loaded = documents.load(&self.config.common.data, &ignore, Place::default(), &self.silent())?;
        let config = self.config.settled()?;
        match &config.recipe {
            Recipe::Linear(_) | Recipe::Mixed(_) => Ok(()),
            Recipe::Neural(recipe) => {
                neural::rehearse(&config, recipe, &loaded.corpus, &self.device, &self.work.cancel)
            }
        }
    }

    /// The settings of an unfinished run in the folder.
    pub fn unfinished(out: &Path) -> Result<Option<RunConfig>> {
        let path = out.join(folders::CONFIG);
        if folders::is_finished(out) || !path.exists() {
            return Ok(None);
        }
        Settings::read(&path)?.resolve().map(Some)
    }

    fn silent(&self) -> Work<'a> {
        Work { observer: &Silent, cancel: self.work.cancel.clone() }
    }

    fn start(&self, threads: &Threads) -> Result<Summary> {
        let out = &self.out;
        if self.resume {
            if let Some(summary) = Summary::of(out)? {
                self.work.tell(&Event::Note(format!("the run in {} is finished", out.display())));
                return Ok(summary);
            }
            if let Some(config) = Self::unfinished(out)? {
                config.validate()?;
                let Recipe::Neural(recipe) = &config.recipe else {
                    return Err(Error::NothingToResume(out.clone()));
                };
                return neural::run(self, &config, recipe, true, threads);
            }
            if self.documents.is_none() {
                return Err(Error::NothingToResume(out.clone()));
            }
        }
        // What a training left that was killed before it began is no run, and in nobody's way.
        let begins =
            self.resume && matches!(self.config.recipe, Recipe::Neural(_)) && place::never_began(out)?;
        if !begins {
            place::check(out, self.overwrite)?;
        }
        let config = self.config.settled()?;
        match &config.recipe {
            Recipe::Linear(recipe) => linear::run(self, recipe, threads),
            Recipe::Neural(recipe) => neural::run(self, &config, recipe, false, threads),
            Recipe::Mixed(recipe) => mixed::run(self, recipe, threads),
        }
    }

    /// The corpus, or else the one that an unfinished run began with.
    fn load(&self, config: &RunConfig, rejects: &Path, known: Option<Documents>) -> Result<Loaded> {
        let documents = self.documents.clone().or(known).ok_or(Error::NoCorpus)?;
        let rejects = Place { now: rejects, finally: &self.out.join(folders::REJECTS) };
        documents.load(&config.common.data, &self.bad_lines, rejects, &self.work)
    }

    /// Writes what a run came to and moves its folder into place.
    fn finish(&self, draft: Draft, record: &serde_json::Value, summary: Summary) -> Result<Summary> {
        draft.write(folders::JOURNAL, format!("{record}\n").as_bytes())?;
        draft.write(folders::SUMMARY, &serde_json::to_vec_pretty(&summary)?)?;
        if self.overwrite {
            place::check(&self.out, true)?;
            let lock = place::lock_replaced(&self.out, true)?;
            draft.commit()?;
            drop(lock);
            place::forget_replaced(&self.out);
        } else {
            draft.publish()?;
        }
        self.work.tell(&Event::Run(summary.run.clone()));
        Ok(summary)
    }
}

/// The same policy without a file: bad lines are passed over.
fn passing_over(policy: &BadLinePolicy) -> BadLinePolicy {
    match policy {
        BadLinePolicy::Stop => BadLinePolicy::Stop,
        BadLinePolicy::SetAside(_) | BadLinePolicy::PassOver => BadLinePolicy::PassOver,
    }
}

/// Writes settings and what is remembered of the corpus: the corpus first, so that a folder with settings has both.
fn write_card(
    config: &RunConfig,
    card: &DataCard,
    mut write: impl FnMut(&str, &[u8]) -> Result<()>,
) -> Result<()> {
    write(folders::DATA, &serde_json::to_vec_pretty(card)?)?;
    write(folders::CONFIG, config.to_toml()?.as_bytes())
}
