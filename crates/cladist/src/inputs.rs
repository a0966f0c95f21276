//! Documents to be labelled, from files and streams of any kind.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use cladist_core::readers::{BadKind, BadLine, BadLines, Format, ReadOptions, Reader};
use cladist_core::{Document, Error, files};

use crate::args::{InputArgs, InputFormat};

/// Documents of one file or stream.
pub enum Input {
    /// A document of its own, taken once.
    Whole(Option<Document>),
    /// Records of a corpus format.
    Records(Reader),
    /// Lines of `id TAB text`.
    Pairs(Reader),
}

impl Input {
    /// Opens a file, or standard input for `-`. `features` says that the model reads features, not text.
    pub fn open(path: &Path, args: &InputArgs, features: bool) -> anyhow::Result<Self> {
        let options = ReadOptions { text_field: args.text_field.clone(), ..ReadOptions::default() };
        let mut stream: Box<dyn BufRead + Send> = if path == Path::new("-") {
            files::decompress(io::stdin()).context("cannot read standard input")?
        } else if path.is_dir() {
            return Ok(Self::Records(Reader::open(path, None, &options)?));
        } else {
            files::open(path)?
        };
        if features {
            return Ok(Self::Records(Reader::stream(path, stream, feature_format(args), &options)?));
        }
        let format = match args.input_format {
            Some(format) => format,
            None => sniff(path, stream.fill_buf().map_err(Error::io("read", path))?),
        };
        let kind = match format {
            InputFormat::Document => return whole(path, stream),
            InputFormat::Jsonl => Format::Jsonl,
            InputFormat::Csv => Format::Csv,
            InputFormat::Xmc => Format::Xmc,
            InputFormat::Libsvm => Format::Libsvm,
            InputFormat::Tsv | InputFormat::Text => Format::Text,
        };
        let reader = Reader::stream(path, stream, Some(kind), &options)?;
        Ok(if format == InputFormat::Tsv { Self::Pairs(reader) } else { Self::Records(reader) })
    }

    /// The next document; `None` at the end.
    pub fn next(&mut self, bad_lines: &mut BadLines<'_>) -> cladist_core::Result<Option<Document>> {
        match self {
            Self::Whole(document) => Ok(document.take()),
            Self::Records(reader) => reader.next_document(bad_lines),
            Self::Pairs(reader) => Ok(reader.next_document(bad_lines)?.map(|mut document| {
                if let Some((id, text)) = document.text.split_once('\t') {
                    (document.id, document.text) = (id.to_owned(), text.to_owned());
                }
                document
            })),
        }
    }
}

fn feature_format(args: &InputArgs) -> Option<Format> {
    match args.input_format {
        Some(InputFormat::Xmc) => Some(Format::Xmc),
        Some(InputFormat::Libsvm) => Some(Format::Libsvm),
        _ => None,
    }
}

fn whole(path: &Path, mut stream: Box<dyn BufRead + Send>) -> anyhow::Result<Input> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Error::from(BadLine {
            path: Arc::new(PathBuf::from(path)),
            line: 0,
            column: None,
            kind: BadKind::InvalidUtf8,
            content: String::new(),
        })
    })?;
    Ok(Input::Whole(Some(Document::from_text(path.display().to_string(), text))))
}

/// By the ending, and where that says nothing by the first character.
fn sniff(path: &Path, start: &[u8]) -> InputFormat {
    let name = path.to_string_lossy().to_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    let ending = name.rsplit('.').next().unwrap_or_default();
    match ending {
        "jsonl" | "ndjson" | "json" => return InputFormat::Jsonl,
        "tsv" => return InputFormat::Tsv,
        "csv" => return InputFormat::Csv,
        _ => {}
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') { InputFormat::Jsonl } else { InputFormat::Text }
}
