//! Files that only grow, by whole records.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use cladist_core::Error;

use crate::error::Result;

/// A file at whose end records are written, each at once and without a buffer, so that a killed process leaves at most
/// one torn record behind.
#[derive(Debug)]
pub(crate) struct Appender {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Appender {
    /// Opens a file to write after what it holds, or begins it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::with(path, OpenOptions::new().append(true).create(true)).map_err(refused(path))
    }

    /// Begins a file that must not be there yet. The bare error tells the caller whether it is.
    pub(crate) fn create_new(path: &Path) -> std::io::Result<Self> {
        Self::with(path, OpenOptions::new().append(true).create_new(true))
    }

    fn with(path: &Path, options: &OpenOptions) -> std::io::Result<Self> {
        let file = options.open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, length })
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one record, whole or not at all.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<()> {
        if let Err(source) = self.file.write_all(record) {
            // On a full disk a part of it may have been written; the next record must not follow that.
            let _ = self.file.set_len(self.length);
            return Err(refused(&self.path)(source));
        }
        self.length += record.len() as u64;
        Ok(())
    }
}

fn refused(path: &Path) -> impl FnOnce(std::io::Error) -> crate::Error {
    let wrap = Error::io("write", path);
    move |source| wrap(source).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_follow_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "a\n").unwrap();
        assert_eq!(Appender::create_new(&path).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        let mut log = Appender::open(&path).unwrap();
        log.append(b"b\n").unwrap();
        log.append(b"c\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"a\nb\nc\n");
        assert_eq!(log.length, 6);
    }

    #[test]
    fn a_full_disk_is_an_error_of_the_disk() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            // Past the harness, which keeps what a passing test prints.
            let _ = writeln!(std::io::stderr(), "skipped: /dev/full not found");
            return;
        }
        let error = Appender::open(full).unwrap().append(b"record").unwrap_err();
        assert_eq!(error.kind(), cladist_core::ErrorKind::Io);
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }
}
