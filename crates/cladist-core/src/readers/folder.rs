//! Corpora that are folders: a document per file, in the order of the names.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{BadKind, BadLine, Parsed, ReadOptions, Records};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::files;
use crate::taxonomy::Origin;

/// A name without `.gz` or `.zst`.
pub(crate) fn uncompressed(name: &str) -> &str {
    name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name)
}

/// Splits a name into what comes before the last dot and the ending, compression aside.
pub(crate) fn stem_and_ending(path: &Path) -> Option<(&str, &str)> {
    uncompressed(path.file_name()?.to_str()?).rsplit_once('.')
}

/// The files of a folder, sorted.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(Error::io("read", folder))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(Error::io("read", folder))?;
    paths.sort();
    Ok(paths)
}

/// Reads one file as a document.
pub(super) type ParseFile = fn(&Path, &str, &ReadOptions) -> Result<Document, BadLine>;

pub(super) struct FolderRecords {
    files: std::vec::IntoIter<PathBuf>,
    /// The file last read.
    path: Arc<PathBuf>,
    parse: ParseFile,
    options: ReadOptions,
}

impl FolderRecords {
    pub(super) fn open(
        folder: &Path,
        ending: &str,
        options: &ReadOptions,
        parse: ParseFile,
    ) -> Result<Box<dyn Records>> {
        let mut files = list(folder)?;
        files.retain(|path| stem_and_ending(path).is_some_and(|(_, found)| found == ending));
        let path = Arc::new(folder.to_owned());
        Ok(Box::new(Self { files: files.into_iter(), path, parse, options: options.clone() }))
    }
}

impl Records for FolderRecords {
    fn next_record(&mut self) -> Option<Result<Parsed, BadLine>> {
        self.path = Arc::new(self.files.next()?);
        let stem = stem_and_ending(&self.path).map_or_else(String::new, |(stem, _)| stem.to_owned());
        Some((self.parse)(&self.path, &stem, &self.options).map(Parsed::Document))
    }

    fn origin(&self) -> Origin {
        Origin::new(&self.path, 0)
    }
}

/// The whole text of a file, up to the limit of a record.
pub(super) fn file_text(path: &Path, options: &ReadOptions) -> Result<String, BadLine> {
    match files::open(path, &options.cancel) {
        Ok(mut stream) => text(path, &mut stream, options.max_record),
        Err(Error::Io { source, .. }) => Err(whole(path, BadKind::Unreadable(source), String::new())),
        Err(other) => Err(whole(path, BadKind::Unreadable(std::io::Error::other(other)), String::new())),
    }
}

/// The whole text of a stream, up to the limit of a record.
pub(super) fn text(path: &Path, stream: &mut dyn Read, max_record: usize) -> Result<String, BadLine> {
    let mut bytes = Vec::new();
    if let Err(error) = stream.take(max_record as u64 + 1).read_to_end(&mut bytes) {
        return Err(whole(path, BadKind::Unreadable(error), String::new()));
    }
    if bytes.len() > max_record {
        return Err(whole(path, BadKind::TooLong { limit: max_record }, String::new()));
    }
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(.."\u{feff}".len());
    }
    String::from_utf8(bytes).map_err(|error| {
        let content = String::from_utf8_lossy(error.as_bytes()).into_owned();
        whole(path, BadKind::InvalidUtf8, content)
    })
}

/// A fault of a file as a whole.
pub(super) fn whole(path: &Path, kind: BadKind, content: String) -> BadLine {
    BadLine { path: Arc::new(path.to_owned()), line: 0, column: None, kind, content }
}
