//! Comma- and tab-separated values by column names.
//!
//! Rows are assembled from bounded lines rather than by a general parser, because a bad row must be reported with
//! its line and its own bytes, and because a quote that is never closed would otherwise swallow the rest of the
//! file in silence. Apart from that, fields are split as the `csv` crate does.

use std::path::PathBuf;
use std::sync::Arc;

use super::bad_line::Fault;
use super::header::Header;
use super::lines::{Advance, Lines};
use super::write::{Reason, WriteOptions};
use super::{BadKind, BadLine, Parsed, ReadOptions, Records, Stream};
use crate::document::Document;
use crate::taxonomy::Origin;

pub(super) fn open_csv(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    open(path, stream, options, b',')
}

pub(super) fn open_tsv(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    open(path, stream, options, b'\t')
}

fn open(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions, delimiter: u8) -> Box<dyn Records> {
    let lines = Lines::new(stream, options.max_record);
    Box::new(Columns {
        path,
        lines,
        delimiter,
        options: options.clone(),
        header: None,
        raw: Vec::new(),
        start: 0,
        ended: false,
    })
}

struct Columns {
    path: Arc<PathBuf>,
    lines: Lines,
    delimiter: u8,
    options: ReadOptions,
    header: Option<Header>,
    /// The row being read, as it stands in the file.
    raw: Vec<u8>,
    /// The line where it starts.
    start: usize,
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    FieldStart,
    Unquoted,
    Quoted,
    /// A quote inside a quoted field: its end, or the first half of an escaped quote.
    AfterQuote,
}

/// Splits bytes into fields; may be fed a row in pieces.
struct Splitter {
    state: State,
    delimiter: u8,
    field: Vec<u8>,
    fields: Vec<Vec<u8>>,
}

impl Splitter {
    fn new(delimiter: u8) -> Self {
        Self { state: State::FieldStart, delimiter, field: Vec::new(), fields: Vec::new() }
    }

    fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.state = match (self.state, byte) {
                (State::FieldStart, b'"') => State::Quoted,
                (State::Quoted, b'"') => State::AfterQuote,
                (State::AfterQuote, b'"') => {
                    self.field.push(b'"');
                    State::Quoted
                }
                (State::Quoted, _) => {
                    self.field.push(byte);
                    State::Quoted
                }
                (_, byte) if byte == self.delimiter => {
                    self.fields.push(std::mem::take(&mut self.field));
                    State::FieldStart
                }
                _ => {
                    self.field.push(byte);
                    State::Unquoted
                }
            };
        }
    }

    fn finish(mut self) -> Result<Vec<String>, BadKind> {
        self.fields.push(self.field);
        let strings = self.fields.into_iter().map(String::from_utf8).collect::<Result<_, _>>();
        strings.map_err(|_| BadKind::InvalidUtf8)
    }
}

impl Columns {
    /// The fields of the next row; its bytes are left in `raw`, the line where it starts in `start`.
    fn row(&mut self) -> std::io::Result<Option<Result<Vec<String>, BadKind>>> {
        self.raw.clear();
        self.start = 0;
        let mut splitter = Splitter::new(self.delimiter);
        loop {
            let advance = self.lines.advance()?;
            let too_long = match advance {
                Advance::End if splitter.state == State::Quoted => {
                    return Ok(Some(Err(BadKind::UnclosedQuote)));
                }
                Advance::End => return Ok(None),
                Advance::Line => None,
                Advance::Overlong => Some(BadKind::TooLong { limit: self.options.max_record }),
                Advance::Endless => Some(BadKind::Endless { limit: self.lines.endless() }),
                Advance::CarriageReturns => Some(BadKind::CarriageReturns),
            };
            let line = self.lines.bytes.as_slice();
            if splitter.state == State::Quoted {
                splitter.feed(b"\n");
                self.raw.push(b'\n');
            } else if line.trim_ascii().is_empty() && too_long.is_none() {
                continue;
            } else {
                self.start = self.lines.number;
            }
            self.raw.extend_from_slice(line);
            if let Some(kind) = too_long {
                return Ok(Some(Err(kind)));
            }
            if self.raw.len() > self.options.max_record {
                return Ok(Some(Err(BadKind::TooLong { limit: self.options.max_record })));
            }
            let content = line.strip_suffix(b"\r").unwrap_or(line);
            splitter.feed(content);
            if splitter.state != State::Quoted {
                return Ok(Some(splitter.finish()));
            }
            // The carriage return is inside quotes: it belongs to the field.
            splitter.feed(&line[content.len()..]);
        }
    }

    fn bad(&self, line: usize, fault: Fault) -> BadLine {
        let content = String::from_utf8_lossy(&self.raw).trim_end_matches('\r').to_owned();
        BadLine { path: Arc::clone(&self.path), line, column: fault.column, kind: fault.kind, content }
    }
}

impl Records for Columns {
    fn next_record(&mut self) -> Option<Result<Parsed, BadLine>> {
        if self.ended {
            return None;
        }
        let fields = match self.row() {
            Ok(row) => row?,
            Err(error) => {
                self.ended = true;
                return Some(Err(self.bad(self.lines.number + 1, BadKind::Unreadable(error).into())));
            }
        };
        let line = self.start;
        let parsed = match (&self.header, fields) {
            (Some(header), Ok(fields)) => header.document(fields, line, &self.options),
            (Some(_), Err(kind)) => Err(kind),
            (None, Ok(names)) => Header::new(&names, &self.options).map(|header| {
                self.header = Some(header);
                Parsed::Nothing
            }),
            (None, Err(kind @ (BadKind::CarriageReturns | BadKind::Endless { .. }))) => Err(kind),
            (None, Err(kind)) => Err(BadKind::Header(format!("unreadable header: {kind}"))),
        };
        let parsed = parsed.map_err(|kind| self.bad(line, kind.into()));
        self.ended = parsed.as_ref().is_err_and(BadLine::is_fatal);
        Some(parsed)
    }

    fn origin(&self) -> Origin {
        Origin::new(&self.path, self.start)
    }

    fn text_fields(&self) -> Vec<String> {
        self.header.as_ref().map_or_else(Vec::new, |header| header.text_names.clone())
    }
}

pub(super) fn write_csv(
    document: &Document,
    options: &WriteOptions,
    out: &mut Vec<u8>,
) -> Result<(), Reason> {
    write(document, options, out, b',')
}

pub(super) fn write_tsv(
    document: &Document,
    options: &WriteOptions,
    out: &mut Vec<u8>,
) -> Result<(), Reason> {
    write(document, options, out, b'\t')
}

fn write(
    document: &Document,
    options: &WriteOptions,
    out: &mut Vec<u8>,
    delimiter: u8,
) -> Result<(), Reason> {
    if document.features.is_some() {
        return Err(Reason::Features);
    }
    for label in &document.labels {
        if label.is_empty() || label.trim() != label || label.contains(&options.label_separator) {
            let problem = "the label separator, or white space at an end";
            return Err(Reason::Label { label: label.clone(), problem });
        }
    }
    let labels = document.labels.join(&options.label_separator);
    for (n, field) in [&document.id, &labels, &document.text].into_iter().enumerate() {
        if n > 0 {
            out.push(delimiter);
        }
        // Quoting everything costs little and leaves no special case.
        out.push(b'"');
        out.extend_from_slice(field.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    }
    out.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Splitter;
    use crate::readers::{Format, ReadOptions, Reader};

    fn read(file: &'static str, options: &ReadOptions) -> Vec<Result<(String, String, String), String>> {
        let reader = Reader::stream("f.csv", file.as_bytes(), Some(Format::Csv), options).unwrap();
        reader.map(|d| d.map(|d| (d.id, d.text, d.labels.join("|"))).map_err(|bad| bad.to_string())).collect()
    }

    fn row(id: &str, text: &str, labels: &str) -> Result<(String, String, String), String> {
        Ok((id.to_owned(), text.to_owned(), labels.to_owned()))
    }

    #[test]
    fn columns_are_found_by_name_and_quoted_fields_span_lines() {
        let file = "\u{feff}Labels,extra,text,ID\r\na; b,,\"one,\r\n\"\"two\"\"\",7\r\n\r\n,x,plain \"quote,\r\n1,2\r\n";
        let rows = read(file, &ReadOptions::default());
        assert_eq!(rows[0], row("7", "one,\r\n\"two\"", "a|b"));
        assert_eq!(rows[1], row("line-5", "plain \"quote", ""));
        assert_eq!(rows[2], Err("f.csv:6: expected 4 columns, found 2".to_owned()));
    }

    #[test]
    fn a_quote_that_is_never_closed_is_reported_where_its_row_starts() {
        let rows = read("text\nfine\n\"open\nmore\n", &ReadOptions::default());
        assert_eq!(rows[0], row("line-2", "fine", ""));
        assert_eq!(rows[1], Err("f.csv:3: a quote that opens in this record is never closed".to_owned()));
    }

    #[test]
    fn a_missing_column_ends_the_reading() {
        let options = ReadOptions { labels_field: Some("topics".to_owned()), ..ReadOptions::default() };
        let rows = read("id,text\n1,a\n2,b\n", &options);
        assert_eq!(rows, [Err("f.csv:1: no column `topics`; the header has `id`, `text`".to_owned())]);
    }

    #[test]
    fn drop_field_takes_true_and_false_only() {
        let options = ReadOptions { drop_field: Some("leak".to_owned()), ..ReadOptions::default() };
        let rows = read("text,leak\na,True\nb,0\nc,perhaps\n", &options);
        assert_eq!(rows[0], row("line-3", "b", ""));
        assert_eq!(rows[1], Err("f.csv:4: expected `true` or `false`, found `perhaps`".to_owned()));
        assert_eq!(rows.len(), 2);
    }

    proptest! {
        #[test]
        fn fields_are_split_as_the_csv_crate_does(line in "[ab,\" ]{1,12}") {
            let mut splitter = Splitter::new(b',');
            splitter.feed(line.as_bytes());
            if splitter.state == super::State::Quoted {
                return Ok(());
            }
            let ours = splitter.finish().unwrap();
            let mut oracle =
                csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line.as_bytes());
            let theirs = oracle.records().next().unwrap().unwrap();
            prop_assert_eq!(ours, theirs.iter().map(str::to_owned).collect::<Vec<_>>());
        }
    }
}
