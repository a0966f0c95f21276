//! From flags to a corpus on disk, and what becomes of its bad lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use cladist_core::Error;
use cladist_core::corpus::{CorpusSource, DataConfig};
use cladist_core::readers::{BadLine, BadLines, Reject};

use crate::args::CorpusArgs;
use crate::config::corpus_settings;
use crate::error::ConfigError;
use crate::session::Session;
use crate::settings::Settings;

/// The files that the flags name; flags for single files win over the folder's. `known` is what a run remembers.
pub fn source(args: &CorpusArgs, known: Option<CorpusSource>) -> anyhow::Result<CorpusSource> {
    let mut source = match (&args.corpus, known) {
        (Some(folder), _) => CorpusSource::folder(folder)?,
        (None, Some(known)) => known,
        (None, None) => CorpusSource::default(),
    };
    for (file, place) in
        [(&args.train, &mut source.train), (&args.dev_file, &mut source.dev), (&args.test, &mut source.test)]
    {
        if let Some(file) = file {
            *place = vec![file.clone()];
        }
    }
    if source.train.is_empty() && source.dev.is_empty() && source.test.is_empty() {
        bail!(ConfigError::Missing("no corpus given\nhint: pass `--corpus DIR`, or `--train FILE`, `--test FILE` and `--taxonomy FILE`".to_owned()));
    }
    if let Some(file) = &args.taxonomy {
        source.taxonomy = Some(file.clone());
    }
    if let Some(file) = &args.labels {
        source.names = Some(file.clone());
    }
    if let Some(language) = &args.language {
        source.vocabulary.language.clone_from(language);
    }
    Ok(source)
}

/// How a corpus is read by a command that has no run: the defaults and the flags.
pub fn data_config(args: &CorpusArgs) -> anyhow::Result<DataConfig> {
    #[derive(serde::Deserialize)]
    struct Section {
        data: DataConfig,
    }
    let mut settings = Settings::default();
    settings.set("data.dev", 0.0)?;
    corpus_settings(&mut settings, args)?;
    Ok(settings.resolve::<Section>()?.data)
}

/// Where rejected lines go. The file is made with the first of them.
#[derive(Debug)]
pub struct Rejects {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    n: usize,
}

impl Rejects {
    /// Rejects that will be written to `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, n: 0 }
    }

    /// How many lines were rejected so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether no line was rejected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Tells the user, if there is something to tell.
    pub fn tell(&self, session: &Session) {
        if !self.is_empty() {
            session.output.warn(format!("rejected lines: {}, see {}", self.n, self.path.display()));
        }
    }

    fn take(&mut self, bad: &BadLine) -> cladist_core::Result<()> {
        let fail = |source| Error::Io { action: "write", path: self.path.clone(), source };
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufWriter::new(File::create(&self.path).map_err(fail)?)),
        };
        Reject::from(bad).write(&mut *file).and_then(|()| file.flush()).map_err(fail)?;
        self.n += 1;
        Ok(())
    }
}

/// Runs `read` with bad lines set aside in `rejects` if `skip`, or else with the first one as an error.
pub fn with_bad_lines<T>(
    skip: bool,
    rejects: &mut Rejects,
    read: impl FnOnce(&mut BadLines<'_>) -> cladist_core::Result<T>,
) -> cladist_core::Result<T> {
    if !skip {
        return read(&mut BadLines::Stop);
    }
    let mut sink = |bad: BadLine| rejects.take(&bad);
    read(&mut BadLines::Skip(&mut sink))
}
