//! Documents in the formats people have them in, one file per format.
//!
//! A [`Reader`] is an iterator of documents over a file, a folder or a stream, with labels or without; memory is bounded
//! by the longest record. [`FORMATS`] is the table of formats: names, file endings, help texts and sniffing all come
//! from it. [`ReadOptions::expect`] says whether documents are read to learn from or to be classified.
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
mod header;
mod hiagm;
mod indicator;
mod input;
mod json_array;
mod jsonl;
mod libmultilabel;
mod lines;
mod options;
mod plain;
mod sniff;
mod sparse;
mod value;
mod write;

#[cfg(test)]
mod odd_inputs;
#[cfg(test)]
mod tests;

pub use bad_line::{BadKind, BadLine, BadLines, Reject, Tally};
pub(crate) use folder::{list, uncompressed};
pub use formats::{FORMATS, Format, FormatInfo, UnknownFormat};
pub use options::{Expect, ReadOptions};
pub use write::{Reason, Shape, Unwritable, WriteOptions, Writer};

use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use crate::document::Document;
use crate::error::{Error, Result};
use crate::files;
use crate::taxonomy::Origin;
use formats::Open;
use input::Input;

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

    /// Where the last record starts.
    fn origin(&self) -> Origin;

    /// The fields or columns that made the text of documents so far; none in a format without names for them.
    fn text_fields(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An iterator over the documents of one file, folder or stream.
pub struct Reader {
    records: Box<dyn Records>,
    format: Format,
    reads_labels: bool,
    tally: Tally,
    ended: bool,
}

impl Reader {
    /// Opens a file or folder. Without a format it is sniffed; gzip and Zstandard are recognised.
    pub fn open(path: &Path, format: Option<Format>, options: &ReadOptions) -> Result<Self> {
        Self::new(path, Input::of_path(path, &options.cancel)?, format, options)
    }

    /// Reads a stream such as standard input; `name` stands for it in messages.
    pub fn stream(
        name: impl AsRef<Path>,
        stream: impl Read + Send + 'static,
        format: Option<Format>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let name = name.as_ref();
        let input = Input::of_stream(stream).map_err(Error::io("read", name))?;
        Self::new(name, input, format, options)
    }

    fn new(path: &Path, mut input: Input, format: Option<Format>, options: &ReadOptions) -> Result<Self> {
        let format = match format {
            Some(format) => format,
            None => sniff::input(path, &mut input, options.expect)?,
        };
        let name = || Arc::new(path.to_owned());
        let records = match (&format.info().open, input) {
            (Open::Stream(open), Input::Stream(stream)) => open(name(), stream, options),
            (Open::Stream(open), Input::File(file)) => {
                open(name(), files::decompress(file).map_err(Error::io("read", path))?, options)
            }
            (Open::Folder(open), Input::Folder) => open(path, options)?,
            (Open::Stream(_), input @ Input::Folder) => return Err(mismatch(path, format, "a file", &input)),
            (Open::Folder(_), input) => return Err(mismatch(path, format, "a folder of files", &input)),
        };
        let reads_labels = options.reads_labels();
        Ok(Self { records, format, reads_labels, tally: Tally::default(), ended: false })
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

    /// Where the last document or bad line starts: file and line, or the file if it is one document.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.records.origin()
    }

    /// The fields or columns that made the text of the documents so far, in order; none in formats without names for
    /// them.
    #[must_use]
    pub fn text_fields(&self) -> Vec<String> {
        self.records.text_fields()
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

fn mismatch(path: &Path, format: Format, wanted: &str, input: &Input) -> Error {
    let message = format!("format `{format}` is {wanted}, this is {}", input.kind());
    folder::whole(path, BadKind::Header(message), String::new()).into()
}

impl Iterator for Reader {
    type Item = Result<Document, BadLine>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.records.next_record() {
                Some(Ok(Parsed::Document(mut document))) => {
                    self.tally.read += 1;
                    self.tally.kept += 1;
                    if !self.reads_labels {
                        // Some formats cannot tell text from labels without reading both.
                        document.labels.clear();
                    }
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
