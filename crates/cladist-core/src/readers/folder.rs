//! Corpora that are folders: a document per file, in the order of the names.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{BadKind, BadLine, Parsed, ReadOptions, Records};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::files;

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
        Ok(Box::new(Self { files: files.into_iter(), parse, options: options.clone() }))
    }
}

impl Records for FolderRecords {
    fn next_record(&mut self) -> Option<Result<Parsed, BadLine>> {
        let path = self.files.next()?;
        let stem = stem_and_ending(&path).map_or_else(String::new, |(stem, _)| stem.to_owned());
        Some((self.parse)(&path, &stem, &self.options).map(Parsed::Document))
    }
}

/// The whole text of a file, up to the limit of a record.
pub(super) fn text(path: &Path, options: &ReadOptions) -> Result<String, BadLine> {
    let bad =
        |kind, content| BadLine { path: Arc::new(path.to_owned()), line: 0, column: None, kind, content };
    let mut bytes = Vec::new();
    let read = files::open(path).and_then(|stream| {
        let limit = options.max_record as u64 + 1;
        stream.take(limit).read_to_end(&mut bytes).map_err(Error::io("read", path))
    });
    match read {
        Ok(_) => {}
        Err(Error::Io { source, .. }) => return Err(bad(BadKind::Unreadable(source), String::new())),
        Err(other) => return Err(bad(BadKind::Unreadable(std::io::Error::other(other)), String::new())),
    }
    if bytes.len() > options.max_record {
        return Err(bad(BadKind::TooLong { limit: options.max_record }, String::new()));
    }
    let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    match std::str::from_utf8(&bytes[start..]) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(bad(BadKind::InvalidUtf8, String::from_utf8_lossy(&bytes).into_owned())),
    }
}
