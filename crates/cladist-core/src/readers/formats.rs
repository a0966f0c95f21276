//! The table of formats.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Expect, Input, ReadOptions, Records, Stream, annif_fulltext, annif_tsv, columns, eurlex57k, fasttext,
    hiagm, jsonl, libmultilabel, plain, sniff, sparse, write,
};
use crate::error::Result;
use crate::job::Cancel;

/// A corpus format; its row in [`FORMATS`] has names and file endings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JSON lines, or an array of JSON objects.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    TsvColumns,
    /// Short texts of Annif: a text, a tab, and the URIs of its labels.
    AnnifTsv,
    /// Full texts of Annif: a folder with a file of text and a file of labels for each document.
    AnnifFulltext,
    /// LibMultiLabel: an id if there is one, labels, and the text, between tabs.
    Libmultilabel,
    /// fastText: labels with a prefix before the text.
    Fasttext,
    /// JSON lines of HiAGM or NeuralClassifier: tokens and labels.
    Hiagm,
    /// EURLEX57K: a folder with a JSON file for each document.
    Eurlex57k,
    /// Sparse features with a header, as the extreme classification repository has them.
    Xmc,
    /// Sparse features without a header, each document with any number of labels.
    Libsvm,
    /// A document per line, without labels.
    Text,
    /// An id, a tab and a text per line, without labels.
    IdText,
    /// The whole file is one document, without labels.
    Document,
}

/// One row of the table of formats.
pub struct FormatInfo {
    /// The format.
    pub format: Format,
    /// Its name on the command line and in configurations.
    pub name: &'static str,
    /// File endings it comes with, without a dot and without `.gz` or `.zst`. Empty for folders, and for a format that
    /// must be asked for.
    pub endings: &'static [&'static str],
    /// What a record looks like, in one line.
    pub description: &'static str,
    /// Whether a record can have labels; a format without is for documents to be classified.
    pub has_labels: bool,
    pub(super) open: Open,
    pub(super) write: Option<write::Write1>,
}

type OpenStream = fn(Arc<PathBuf>, Stream, &ReadOptions) -> Box<dyn Records>;
type OpenFolder = fn(&Path, &ReadOptions) -> Result<Box<dyn Records>>;

/// What a format asks for of an [`Input`].
pub(super) enum Open {
    /// Decompressed bytes from first to last; a file will do as well as a pipe.
    Stream(OpenStream),
    /// A folder of files.
    Folder(OpenFolder),
}

impl FormatInfo {
    /// Whether the format is a folder of files rather than one file.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        matches!(self.open, Open::Folder(_))
    }

    /// Whether a [`super::Writer`] can write it.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.write.is_some()
    }
}

/// The table of formats.
pub static FORMATS: [FormatInfo; 14] = [
    FormatInfo {
        format: Format::Jsonl,
        name: "jsonl",
        endings: &["jsonl", "ndjson", "json"],
        description: r#"JSON lines, or an array of objects: {"id": "7", "text": "…", "labels": ["a", "b"]}; `title` goes before `text`"#,
        has_labels: true,
        open: Open::Stream(jsonl::open),
        write: Some(jsonl::write),
    },
    FormatInfo {
        format: Format::Csv,
        name: "csv",
        endings: &["csv"],
        description: "comma-separated values with a header: id, text, labels (`a;b`); quoted fields may span lines",
        has_labels: true,
        open: Open::Stream(columns::open_csv),
        write: Some(columns::write_csv),
    },
    FormatInfo {
        format: Format::TsvColumns,
        name: "tsv-columns",
        endings: &["tsv"],
        description: "like csv, with tabs",
        has_labels: true,
        open: Open::Stream(columns::open_tsv),
        write: Some(columns::write_tsv),
    },
    FormatInfo {
        format: Format::AnnifTsv,
        name: "annif-tsv",
        endings: &["tsv", "txt"],
        description: "Annif short text: text TAB <uri> <uri> …",
        has_labels: true,
        open: Open::Stream(annif_tsv::open),
        write: Some(annif_tsv::write),
    },
    FormatInfo {
        format: Format::AnnifFulltext,
        name: "annif-fulltext",
        endings: &[],
        description: "Annif full text: a folder of x.txt with x.tsv (<uri> TAB name) or x.key (a label per line)",
        has_labels: true,
        open: Open::Folder(annif_fulltext::open),
        write: None,
    },
    FormatInfo {
        format: Format::Libmultilabel,
        name: "libmultilabel",
        endings: &["txt", "tsv"],
        description: "LibMultiLabel: id TAB label label … TAB text, or label label … TAB text",
        has_labels: true,
        open: Open::Stream(libmultilabel::open),
        write: Some(libmultilabel::write),
    },
    FormatInfo {
        format: Format::Fasttext,
        name: "fasttext",
        endings: &["txt", "ft"],
        description: "fastText: __label__a __label__b text",
        has_labels: true,
        open: Open::Stream(fasttext::open),
        write: Some(fasttext::write),
    },
    FormatInfo {
        format: Format::Hiagm,
        name: "hiagm",
        endings: &["json", "jsonl"],
        description: r#"HiAGM or NeuralClassifier JSON lines: {"token": […], "label": […]}, or doc_token and doc_label"#,
        has_labels: true,
        open: Open::Stream(hiagm::open),
        write: Some(hiagm::write),
    },
    FormatInfo {
        format: Format::Eurlex57k,
        name: "eurlex57k",
        endings: &[],
        description: "EURLEX57K: a folder of JSON files with header, recitals, main_body, attachments, concepts",
        has_labels: true,
        open: Open::Folder(eurlex57k::open),
        write: None,
    },
    FormatInfo {
        format: Format::Xmc,
        name: "xmc",
        endings: &["txt", "xmc"],
        description: "extreme classification repository: `documents features labels`, then 3,17 12:0.5 40:1",
        has_labels: true,
        open: Open::Stream(sparse::open_xmc),
        write: Some(sparse::write_xmc),
    },
    FormatInfo {
        format: Format::Libsvm,
        name: "libsvm",
        endings: &["svm", "libsvm", "txt"],
        description: "libsvm with several labels: 3,17 12:0.5 40:1; numbers as they are",
        has_labels: true,
        open: Open::Stream(sparse::open_libsvm),
        write: Some(sparse::write_libsvm),
    },
    FormatInfo {
        format: Format::Text,
        name: "text",
        endings: &["txt"],
        description: "plain text: one document per line, without labels",
        has_labels: false,
        open: Open::Stream(plain::open_text),
        write: None,
    },
    FormatInfo {
        format: Format::IdText,
        name: "id-text",
        endings: &["tsv"],
        description: "id TAB text: one document per line, without labels",
        has_labels: false,
        open: Open::Stream(plain::open_id_text),
        write: None,
    },
    FormatInfo {
        format: Format::Document,
        name: "document",
        endings: &[],
        description: "the whole file is one document, without labels; only if asked for",
        has_labels: false,
        open: Open::Stream(plain::open_document),
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
    pub fn sniff(path: &Path, expect: Expect) -> Result<Self> {
        sniff::input(path, &mut Input::of_path(path, &Cancel::default())?, expect)
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
