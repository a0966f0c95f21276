//! Corpora in the formats people have them in, one file per format.
//!
//! A [`Reader`] is an iterator of documents over a file, a folder or a stream; memory is bounded by the longest
//! record. [`FORMATS`] is the table of formats: names, file endings, help texts and sniffing all come from it.
//!
//! ```
//! use cladist_core::readers::{Format, ReadOptions, Reader};
//! let file = &b"{\"id\": 7, \"text\": \"a late bus\", \"labels\": [\"delay\"]}\n"[..];
//! let mut reader = Reader::stream("-", file, Some(Format::Jsonl), &ReadOptions::default())?;
//! let document = reader.next().ok_or("no document")??;
//! assert_eq!((document.id.as_str(), document.labels), ("7", vec!["delay".to_owned()]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod annif_fulltext;
mod annif_tsv;
mod bad_line;
mod columns;
mod eurlex57k;
mod fasttext;
mod folder;
mod formats;
mod hiagm;
mod jsonl;
mod libmultilabel;
mod lines;
mod options;
mod plain;
mod sniff;
mod sparse;
mod write;

#[cfg(test)]
mod tests;

pub use bad_line::{BadKind, BadLine, BadLines, Reject, Tally};
pub(crate) use folder::{list, uncompressed};
pub use formats::{FORMATS, Format, FormatInfo, UnknownFormat};
pub use options::ReadOptions;
pub use write::{Reason, Shape, Unwritable, WriteOptions, Writer};

use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use crate::document::Document;
use crate::error::{Error, Result};
use crate::files;
use formats::Open;

/// Decompressed bytes.
type Stream = Box<dyn BufRead + Send>;

/// What a format makes of a record.
enum Parsed {
    Document(Document),
    /// A document left out on request.
    Dropped,
    /// A header or a blank line.
    Nothing,
}

/// The records of an open corpus file.
trait Records: Send {
    /// The next record; after `None` or a fatal error there is none.
    fn next_record(&mut self) -> Option<Result<Parsed, BadLine>>;
}

/// An iterator over the documents of one file, folder or stream.
pub struct Reader {
    records: Box<dyn Records>,
    format: Format,
    tally: Tally,
    ended: bool,
}

impl Reader {
    /// Opens a file or folder. Without a format it is sniffed; gzip and Zstandard are recognised.
    pub fn open(path: &Path, format: Option<Format>, options: &ReadOptions) -> Result<Self> {
        if path.is_dir() {
            let format = format.map_or_else(|| sniff::folder(path), Ok)?;
            let Open::Folder(open) = &format.info().open else {
                return Err(folder_mismatch(path, format, "a folder"));
            };
            return Ok(Self::new(open(path, options)?, format));
        }
        if let Some(format) = format.filter(|format| format.info().is_folder()) {
            // Says so when the path does not exist, rather than that it is a file.
            std::fs::metadata(path).map_err(Error::io("read", path))?;
            return Err(folder_mismatch(path, format, "a file"));
        }
        Self::decompressed(path, files::open(path)?, format, options)
    }

    /// Reads a stream such as standard input; `name` stands for it in messages.
    pub fn stream(
        name: impl AsRef<Path>,
        stream: impl Read + Send + 'static,
        format: Option<Format>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let name = name.as_ref();
        let stream = files::decompress(stream).map_err(Error::io("read", name))?;
        Self::decompressed(name, stream, format, options)
    }

    fn decompressed(
        path: &Path,
        mut stream: Stream,
        format: Option<Format>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let format = match format {
            Some(format) => format,
            None => {
                let start = sniff::peek(&mut stream).map_err(Error::io("read", path))?;
                let format = sniff::content(path, &start);
                stream = Box::new(std::io::Cursor::new(start).chain(stream));
                format
            }
        };
        let Open::Stream(open) = &format.info().open else {
            return Err(folder_mismatch(path, format, "a stream"));
        };
        Ok(Self::new(open(Arc::new(path.to_owned()), stream, options), format))
    }

    fn new(records: Box<dyn Records>, format: Format) -> Self {
        Self { records, format, tally: Tally::default(), ended: false }
    }

    /// The format, as given or sniffed.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// What was met so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The next document, with bad lines treated as asked; `None` at the end.
    pub fn next_document(&mut self, bad_lines: &mut BadLines<'_>) -> Result<Option<Document>> {
        loop {
            match self.next() {
                Some(Ok(document)) => return Ok(Some(document)),
                Some(Err(bad)) => bad_lines.take(bad)?,
                None => return Ok(None),
            }
        }
    }
}

fn folder_mismatch(path: &Path, format: Format, found: &'static str) -> Error {
    let wanted = if format.info().is_folder() { "a folder of files" } else { "a file" };
    let bad = BadLine {
        path: Arc::new(path.to_owned()),
        line: 0,
        column: None,
        kind: BadKind::Header(format!("format `{format}` is {wanted}, this is {found}")),
        content: String::new(),
    };
    bad.into()
}

impl Iterator for Reader {
    type Item = Result<Document, BadLine>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.records.next_record() {
                Some(Ok(Parsed::Document(document))) => {
                    self.tally.read += 1;
                    self.tally.kept += 1;
                    return Some(Ok(document));
                }
                Some(Ok(Parsed::Dropped)) => {
                    self.tally.read += 1;
                    self.tally.dropped += 1;
                }
                Some(Ok(Parsed::Nothing)) => {}
                Some(Err(bad)) => {
                    self.tally.read += 1;
                    self.tally.rejected += 1;
                    self.ended = bad.is_fatal();
                    return Some(Err(bad));
                }
                None => self.ended = true,
            }
        }
        None
    }
}
