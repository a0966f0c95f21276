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
pub use options::ReadOptions;
pub use write::{Reason, Shape, Unwritable, WriteOptions, Writer};

use std::fmt;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::error::{Error, Result};
use crate::files;

/// Decompressed bytes.
type Stream = Box<dyn BufRead + Send>;

/// A corpus format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "described in the table of formats")]
pub enum Format {
    Jsonl,
    Csv,
    TsvColumns,
    AnnifTsv,
    AnnifFulltext,
    Libmultilabel,
    Fasttext,
    Hiagm,
    Eurlex57k,
    Xmc,
    Libsvm,
    Text,
}

/// One row of the table of formats.
pub struct FormatInfo {
    /// The format.
    pub format: Format,
    /// Its name on the command line and in configurations.
    pub name: &'static str,
    /// File endings it comes with, without a dot and without `.gz` or `.zst`. Empty for folders.
    pub endings: &'static [&'static str],
    /// What a record looks like, in one line.
    pub description: &'static str,
    open: Open,
    write: Option<write::Write1>,
}

type OpenStream = fn(Arc<PathBuf>, Stream, &ReadOptions) -> Box<dyn Records>;
type OpenFolder = fn(&Path, &ReadOptions) -> Result<Box<dyn Records>>;

enum Open {
    Stream(OpenStream),
    Folder(OpenFolder),
}

impl FormatInfo {
    /// Whether the format is a folder of files rather than one file.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        matches!(self.open, Open::Folder(_))
    }

    /// Whether a [`Writer`] can write it.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.write.is_some()
    }
}

/// The table of formats.
pub static FORMATS: [FormatInfo; 12] = [
    FormatInfo {
        format: Format::Jsonl,
        name: "jsonl",
        endings: &["jsonl", "ndjson", "json"],
        description: r#"JSON lines: {"id": "7", "text": "…", "labels": ["a", "b"]}; `title` goes before `text`"#,
        open: Open::Stream(jsonl::open),
        write: Some(jsonl::write),
    },
    FormatInfo {
        format: Format::Csv,
        name: "csv",
        endings: &["csv"],
        description: "comma-separated values with a header: id, text, labels (`a;b`); quoted fields may span lines",
        open: Open::Stream(columns::open_csv),
        write: Some(columns::write_csv),
    },
    FormatInfo {
        format: Format::TsvColumns,
        name: "tsv-columns",
        endings: &["tsv"],
        description: "like csv, with tabs",
        open: Open::Stream(columns::open_tsv),
        write: Some(columns::write_tsv),
    },
    FormatInfo {
        format: Format::AnnifTsv,
        name: "annif-tsv",
        endings: &["tsv", "txt"],
        description: "Annif short text: text TAB <uri> <uri> …",
        open: Open::Stream(annif_tsv::open),
        write: Some(annif_tsv::write),
    },
    FormatInfo {
        format: Format::AnnifFulltext,
        name: "annif-fulltext",
        endings: &[],
        description: "Annif full text: a folder of x.txt with x.tsv (<uri> TAB name) or x.key (a label per line)",
        open: Open::Folder(annif_fulltext::open),
        write: None,
    },
    FormatInfo {
        format: Format::Libmultilabel,
        name: "libmultilabel",
        endings: &["txt", "tsv"],
        description: "LibMultiLabel: id TAB label label … TAB text, or label label … TAB text",
        open: Open::Stream(libmultilabel::open),
        write: Some(libmultilabel::write),
    },
    FormatInfo {
        format: Format::Fasttext,
        name: "fasttext",
        endings: &["txt", "ft"],
        description: "fastText: __label__a __label__b text",
        open: Open::Stream(fasttext::open),
        write: Some(fasttext::write),
    },
    FormatInfo {
        format: Format::Hiagm,
        name: "hiagm",
        endings: &["json", "jsonl"],
        description: r#"HiAGM or NeuralClassifier JSON lines: {"token": […], "label": […]}, or doc_token and doc_label"#,
        open: Open::Stream(hiagm::open),
        write: Some(hiagm::write),
    },
    FormatInfo {
        format: Format::Eurlex57k,
        name: "eurlex57k",
        endings: &[],
        description: "EURLEX57K: a folder of JSON files with header, recitals, main_body, attachments, concepts",
        open: Open::Folder(eurlex57k::open),
        write: None,
    },
    FormatInfo {
        format: Format::Xmc,
        name: "xmc",
        endings: &["txt", "xmc"],
        description: "extreme classification repository: `documents features labels`, then 3,17 12:0.5 40:1",
        open: Open::Stream(sparse::open_xmc),
        write: Some(sparse::write_xmc),
    },
    FormatInfo {
        format: Format::Libsvm,
        name: "libsvm",
        endings: &["svm", "libsvm", "txt"],
        description: "libsvm with several labels: 3,17 12:0.5 40:1; numbers as they are",
        open: Open::Stream(sparse::open_libsvm),
        write: Some(sparse::write_libsvm),
    },
    FormatInfo {
        format: Format::Text,
        name: "text",
        endings: &["txt"],
        description: "plain text: one document per line, without labels",
        open: Open::Stream(plain::open),
        write: None,
    },
];

impl Format {
    /// The format's row in [`FORMATS`].
    #[must_use]
    pub fn info(self) -> &'static FormatInfo {
        &FORMATS[self as usize]
    }

    /// The format of a file or folder, by its ending and then by its first line.
    pub fn sniff(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return sniff::folder(path);
        }
        let mut stream = files::open(path)?;
        let start = sniff::peek(&mut stream).map_err(Error::io("read", path))?;
        Ok(sniff::content(path, &start))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

/// A name that is in no row of [`FORMATS`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{0}`; the formats are {names}", names = names())]
pub struct UnknownFormat(String);

fn names() -> String {
    FORMATS.iter().map(|info| info.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = FORMATS.iter().find(|info| info.name == name);
        found.map(|info| info.format).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

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
