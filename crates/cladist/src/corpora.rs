//! Corpora for training and evaluation: files with what becomes of their bad lines, or documents in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cladist_core::corpus::{self, Corpus, CorpusSource, DataConfig, DataReport, SplitName};
use cladist_core::readers::{BadLine, BadLines, Reject};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::observe::{Event, Work};

/// What becomes of lines that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BadLinePolicy {
    /// The first one is an error.
    #[default]
    Stop,
    /// They are set aside in this file, or in the default place of the work: `rejects.jsonl` in a run folder.
    SetAside(Option<PathBuf>),
    /// They are left out without a trace: for a rehearsal.
    PassOver,
}

impl BadLinePolicy {
    /// The same with a place for those who name none.
    #[must_use]
    pub fn or_at(&self, place: &Path) -> Self {
        match self {
            Self::SetAside(None) => Self::SetAside(Some(place.to_owned())),
            other => other.clone(),
        }
    }

    /// Runs `read` by this policy; tells of lines that were set aside, and returns how many.
    pub fn apply<T>(
        &self,
        work: &Work<'_>,
        read: impl FnOnce(&mut BadLines<'_>) -> cladist_core::Result<T>,
    ) -> Result<(T, u64)> {
        self.apply_at(Place::default(), work, read)
    }

    /// The same with a place, for those who name none, that will be called otherwise.
    pub(crate) fn apply_at<T>(
        &self,
        place: Place<'_>,
        work: &Work<'_>,
        read: impl FnOnce(&mut BadLines<'_>) -> cladist_core::Result<T>,
    ) -> Result<(T, u64)> {
        let (path, finally) = match self {
            Self::Stop => return Ok((read(&mut BadLines::Stop)?, 0)),
            Self::PassOver => {
                let mut ignore = |_: BadLine| Ok(());
                return Ok((read(&mut BadLines::Skip(&mut ignore))?, 0));
            }
            Self::SetAside(Some(path)) => (path.as_path(), path.as_path()),
            Self::SetAside(None) => (place.now, place.finally),
        };
        let mut rejects = Rejects::new(path.to_owned());
        let mut sink = |bad: BadLine| rejects.take(&bad);
        let value = read(&mut BadLines::Skip(&mut sink))?;
        if rejects.n > 0 {
            let text = format!("rejected lines: {}, see {}", rejects.n, finally.display());
            work.tell(&Event::Warning(text));
        }
        Ok((value, rejects.n))
    }
}

/// Where rejected lines go if nobody names a place: a run folder may be drafted elsewhere than it will be.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) now: &'a Path,
    pub(crate) finally: &'a Path,
}

impl Default for Place<'_> {
    fn default() -> Self {
        let here = Path::new(crate::folders::REJECTS);
        Self { now: here, finally: here }
    }
}

/// Where rejected lines go. The file is made with the first of them.
pub(crate) struct Rejects {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    n: u64,
}

impl Rejects {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, n: 0 }
    }

    pub(crate) fn take(&mut self, bad: &BadLine) -> cladist_core::Result<()> {
        let fail = |source| cladist_core::Error::Io { action: "write", path: self.path.clone(), source };
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufWriter::new(File::create(&self.path).map_err(fail)?)),
        };
        Reject::from(bad).write(&mut *file).and_then(|()| file.flush()).map_err(fail)?;
        self.n += 1;
        Ok(())
    }
}

/// What a run learns from.
#[derive(Debug, Clone)]
pub enum Documents {
    /// Files, read by the settings of the run; the run folder remembers them.
    Files(CorpusSource),
    /// Documents with their gold sets, in memory: policies of the settings hold as for files. Shared, so that trainings
    /// are cheap to clone; each run works on a copy of its own, which the policies change.
    Memory(Arc<Corpus>),
}

impl From<CorpusSource> for Documents {
    fn from(source: CorpusSource) -> Self {
        Self::Files(source)
    }
}

impl From<Corpus> for Documents {
    fn from(corpus: Corpus) -> Self {
        Self::Memory(Arc::new(corpus))
    }
}

/// A corpus with what was learnt about it.
pub(crate) struct Loaded {
    pub(crate) source: CorpusSource,
    pub(crate) corpus: Corpus,
    pub(crate) data: DataReport,
    pub(crate) rejected: u64,
    /// Whether dev was held out of train.
    pub(crate) held_out: bool,
}

impl Documents {
    /// Reads files, or copies what is in memory, by the policies of the settings.
    pub(crate) fn load(
        &self,
        config: &DataConfig,
        bad: &BadLinePolicy,
        rejects: Place<'_>,
        work: &Work<'_>,
    ) -> Result<Loaded> {
        let (source, (corpus, data), rejected) = match self {
            Self::Files(source) => {
                let source = whole_paths(source.clone())?;
                if source.train.is_empty() {
                    return Err(Error::NoSplit { split: SplitName::Train, purpose: "to learn from" });
                }
                let (read, rejected) =
                    bad.apply_at(rejects, work, |lines| corpus::load(&source, config, lines, &work.job()))?;
                (source, read, rejected)
            }
            Self::Memory(corpus) => {
                let corpus = Corpus::clone(corpus);
                (CorpusSource::default(), corpus::adopt(corpus, config, &work.job())?, 0)
            }
        };
        let held_out = data.split(SplitName::Train).is_some_and(|split| split.held_out > 0);
        if !data.splits.is_empty() {
            work.tell(&Event::Corpus(&data));
        }
        Ok(Loaded { source, corpus, data, rejected, held_out })
    }
}

/// What a run folder remembers of its corpus.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DataCard {
    /// The files, with whole paths; none for documents in memory.
    pub source: CorpusSource,
    /// BLAKE3 of each file, as it was in training.
    pub files: BTreeMap<String, String>,
    /// What was counted while reading.
    pub report: serde_json::Value,
}

impl DataCard {
    pub(crate) fn of(loaded: &Loaded) -> Result<Self> {
        let Loaded { source, data, .. } = loaded;
        Ok(Self { source: source.clone(), files: hashes(source)?, report: serde_json::to_value(data)? })
    }
}

/// The source with whole paths, so that the run finds its corpus from anywhere.
pub fn whole_paths(mut source: CorpusSource) -> Result<CorpusSource> {
    let files = source.train.iter_mut().chain(&mut source.dev).chain(&mut source.test);
    for path in files.chain(&mut source.taxonomy).chain(&mut source.names) {
        *path = std::path::absolute(&*path).map_err(Error::io("find", path))?;
    }
    Ok(source)
}

/// BLAKE3 of every file; folders are left out.
pub fn hashes(source: &CorpusSource) -> Result<BTreeMap<String, String>> {
    let mut hashes = BTreeMap::new();
    let files = source.train.iter().chain(&source.dev).chain(&source.test);
    for path in files.chain(&source.taxonomy).chain(&source.names).filter(|path| path.is_file()) {
        let mut hasher = blake3::Hasher::new();
        let mut file = File::open(path).map_err(Error::io("read", path))?;
        io::copy(&mut file, &mut hasher).map_err(Error::io("read", path))?;
        hashes.insert(path.display().to_string(), hasher.finalize().to_hex().to_string());
    }
    Ok(hashes)
}
