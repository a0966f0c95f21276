//! Documents to be labelled: files and streams of any format, one after the other, read as they are needed.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cladist_core::files::Waiting;
use cladist_core::readers::{BadLine, BadLines, Expect, Format, ReadOptions, Reader};
use cladist_core::{Cancel, Document};

use crate::corpora::{BadLinePolicy, Rejects};
use crate::error::Result;
use crate::folders;
use crate::model::Model;

/// Where documents come from.
pub enum Input {
    /// A file or a folder.
    Path(PathBuf),
    /// A stream with a name for messages, such as standard input.
    Stream(PathBuf, Box<dyn Read + Send>),
}

impl From<&Path> for Input {
    fn from(path: &Path) -> Self {
        Self::Path(path.to_owned())
    }
}

/// How inputs are read.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// Their format; without one, each is recognised by its ending or its content.
    pub format: Option<Format>,
    /// Which fields make an id and a text.
    pub read: ReadOptions,
    /// What becomes of lines that cannot be read.
    pub bad_lines: BadLinePolicy,
    /// When to stop.
    pub cancel: Cancel,
}

impl Model {
    /// Documents are read as in training: the same fields make the same text.
    #[must_use]
    pub fn input_options(&self) -> InputOptions {
        let expect = if self.trained_on().features { Expect::Features } else { Expect::Text };
        InputOptions {
            format: None,
            read: self.config().common.data.read_options().expecting(expect),
            bad_lines: BadLinePolicy::Stop,
            cancel: Cancel::default(),
        }
    }
}

/// The documents of inputs, in order.
pub struct DocumentStream {
    inputs: VecDeque<Input>,
    reader: Option<Reader>,
    options: InputOptions,
    rejects: Option<Rejects>,
    rejected: Arc<AtomicU64>,
    ended: bool,
}

impl DocumentStream {
    /// Opens inputs one after the other, each when the one before has ended.
    #[must_use]
    pub fn new(inputs: impl IntoIterator<Item = Input>, options: InputOptions) -> Self {
        let rejects = match &options.bad_lines {
            BadLinePolicy::Stop | BadLinePolicy::PassOver => None,
            BadLinePolicy::SetAside(path) => {
                let path = path.clone().unwrap_or_else(|| PathBuf::from(folders::REJECTS));
                Some(Rejects::new(path))
            }
        };
        let inputs = inputs.into_iter().collect();
        let mut options = options;
        options.read.cancel = options.cancel.clone();
        Self { inputs, reader: None, options, rejects, rejected: Arc::default(), ended: false }
    }

    /// The number of lines set aside so far; it goes on counting when the stream is elsewhere.
    #[must_use]
    pub fn rejected(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.rejected)
    }

    fn read(&mut self) -> Result<Option<Document>> {
        loop {
            self.options.cancel.check()?;
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None => {
                    let InputOptions { format, read, .. } = &self.options;
                    let reader = match self.inputs.pop_front() {
                        None => return Ok(None),
                        Some(Input::Path(path)) => Reader::open(&path, *format, read)?,
                        Some(Input::Stream(name, stream)) => {
                            let stream = Waiting::new(stream, &read.cancel)
                                .map_err(cladist_core::Error::io("read", &name))?;
                            Reader::stream(&name, stream, *format, read)?
                        }
                    };
                    self.reader.insert(reader)
                }
            };
            let (rejects, rejected) = (&mut self.rejects, &self.rejected);
            let mut sink = |bad: BadLine| {
                rejected.fetch_add(1, Ordering::Relaxed);
                rejects.as_mut().map_or(Ok(()), |rejects| rejects.take(&bad))
            };
            let mut policy = match self.options.bad_lines {
                BadLinePolicy::Stop => BadLines::Stop,
                BadLinePolicy::SetAside(_) | BadLinePolicy::PassOver => BadLines::Skip(&mut sink),
            };
            if let Some(document) = reader.next_document(&mut policy)? {
                return Ok(Some(document));
            }
            self.reader = None;
        }
    }
}

impl Iterator for DocumentStream {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
