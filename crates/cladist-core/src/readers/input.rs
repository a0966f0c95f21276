//! Where documents come from: a stream, a file that can be sought in, or a folder.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::Stream;
use crate::error::{Error, Result};
use crate::files::{self, Waiting};
use crate::job::Cancel;

/// An open input, before its format is known.
pub(super) enum Input {
    /// Decompressed bytes that come once, as from a pipe.
    Stream(Stream),
    /// A regular file at its start, as it is on the disk.
    File(File),
    /// A folder; its format lists it.
    Folder,
}

impl Input {
    /// Opens what is at a path.
    pub(super) fn of_path(path: &Path, cancel: &Cancel) -> Result<Self> {
        let fail = |error| Error::io("read", path)(error);
        let metadata = std::fs::metadata(path).map_err(fail)?;
        if metadata.is_dir() {
            return Ok(Self::Folder);
        }
        if metadata.is_file() {
            return Ok(Self::File(File::open(path).map_err(fail)?));
        }
        // Pipes and devices have paths too.
        Waiting::open(path, cancel).and_then(Self::of_stream).map_err(fail)
    }

    /// Takes a stream that may be compressed.
    pub(super) fn of_stream(stream: impl Read + Send + 'static) -> io::Result<Self> {
        files::decompress(stream).map(Self::Stream)
    }

    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Stream(_) => "a stream",
            Self::File(_) => "a file",
            Self::Folder => "a folder",
        }
    }
}
