//! Lines of bounded length, and the formats in which a line is a document.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::bad_line::Fault;
use super::{BadKind, BadLine, Parsed, Records, Stream};
use crate::taxonomy::Origin;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// How much of an overlong line is shown in a report.
const SHOWN: usize = 1 << 12;

/// How many times the limit a line may be long before it is taken for data without lines.
const ENDLESS: usize = 16;

/// Reads `\n`-ended lines, never more than `limit` bytes of one into memory.
pub(super) struct Lines {
    stream: Stream,
    limit: usize,
    /// The line last read, from 1.
    pub(super) number: usize,
    /// Its bytes without the line end; a carriage return is still there.
    pub(super) bytes: Vec<u8>,
}

/// What [`Lines::advance`] found.
pub(super) enum Advance {
    End,
    Line,
    /// The line is over the limit: its start is in `bytes`, the rest was skipped.
    Overlong,
    /// The line is so far over the limit that its end was not waited for.
    Endless,
    /// The file is one line with carriage returns in it.
    CarriageReturns,
}

impl Lines {
    pub(super) fn new(stream: Stream, limit: usize) -> Self {
        Self { stream, limit, number: 0, bytes: Vec::new() }
    }

    /// Moves to the next line.
    pub(super) fn advance(&mut self) -> io::Result<Advance> {
        self.bytes.clear();
        let allowed = self.limit as u64 + 1;
        if (&mut self.stream).take(allowed).read_until(b'\n', &mut self.bytes)? == 0 {
            return Ok(Advance::End);
        }
        self.number += 1;
        let ended = self.bytes.last() == Some(&b'\n');
        if ended {
            self.bytes.pop();
        }
        if self.number == 1 && self.bytes.starts_with(BOM) {
            self.bytes.drain(..BOM.len());
        }
        if ended || self.bytes.len() <= self.limit {
            let is_whole_file = self.number == 1 && !ended;
            let returns = is_whole_file && self.bytes.trim_ascii_end().contains(&b'\r');
            return Ok(if returns { Advance::CarriageReturns } else { Advance::Line });
        }
        self.bytes.truncate(SHOWN);
        self.bytes.shrink_to_fit();
        let (mut skipped, mut n_skipped) = (Vec::new(), 0);
        while n_skipped < self.endless() {
            skipped.clear();
            let n = (&mut self.stream).take(1 << 16).read_until(b'\n', &mut skipped)?;
            if n == 0 || skipped.last() == Some(&b'\n') {
                return Ok(Advance::Overlong);
            }
            n_skipped += n;
        }
        Ok(Advance::Endless)
    }

    /// The length of a line that is no line.
    pub(super) fn endless(&self) -> usize {
        self.limit.saturating_mul(ENDLESS).max(1 << 20)
    }
}

/// A format in which each line is a document.
pub(super) trait LineFormat: Send {
    /// Parses a line that is not blank, without its line end.
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault>;

    /// What a line of white space means: nothing, in most formats.
    fn blank(&mut self, _number: usize) -> Parsed {
        Parsed::Nothing
    }

    /// Called once after the last line; `Err` is reported at the line it names.
    fn end(&mut self) -> Result<(), (usize, BadKind)> {
        Ok(())
    }

    /// The fields that made the text of documents so far, in order; none in a format without named fields.
    fn text_fields(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The records of a [`LineFormat`].
pub(super) struct LineRecords<F> {
    path: Arc<PathBuf>,
    lines: Lines,
    format: F,
    ended: bool,
}

impl<F: LineFormat + 'static> LineRecords<F> {
    pub(super) fn boxed(path: Arc<PathBuf>, stream: Stream, limit: usize, format: F) -> Box<dyn Records> {
        Box::new(Self { path, lines: Lines::new(stream, limit), format, ended: false })
    }
}

impl<F: LineFormat> Records for LineRecords<F> {
    fn next_record(&mut self) -> Option<Result<Parsed, BadLine>> {
        if self.ended {
            return None;
        }
        let advance = match self.lines.advance() {
            Ok(advance) => advance,
            Err(error) => {
                self.ended = true;
                return Some(Err(BadLine {
                    path: Arc::clone(&self.path),
                    line: self.lines.number + 1,
                    column: None,
                    kind: BadKind::Unreadable(error),
                    content: String::new(),
                }));
            }
        };
        let line = self.lines.number;
        let parsed = match advance {
            Advance::End => {
                self.ended = true;
                let (line, kind) = self.format.end().err()?;
                let path = Arc::clone(&self.path);
                return Some(Err(BadLine { path, line, column: None, kind, content: String::new() }));
            }
            Advance::Overlong => Err(BadKind::TooLong { limit: self.lines.limit }.into()),
            Advance::Endless => Err(BadKind::Endless { limit: self.lines.endless() }.into()),
            Advance::CarriageReturns => Err(BadKind::CarriageReturns.into()),
            Advance::Line => match std::str::from_utf8(&self.lines.bytes) {
                Ok(text) => {
                    let text = text.strip_suffix('\r').unwrap_or(text);
                    if text.trim().is_empty() {
                        Ok(self.format.blank(line))
                    } else if text.chars().all(|c| c == '\0' || c.is_whitespace()) {
                        Err(BadKind::Nul.into())
                    } else {
                        self.format.parse(text, line)
                    }
                }
                Err(error) => {
                    let valid = String::from_utf8_lossy(&self.lines.bytes[..error.valid_up_to()]);
                    Err(Fault::at(&valid, valid.len(), BadKind::InvalidUtf8))
                }
            },
        };
        let bad = |fault: Fault| BadLine {
            path: Arc::clone(&self.path),
            line,
            column: fault.column,
            kind: fault.kind,
            content: String::from_utf8_lossy(&self.lines.bytes).trim_end_matches('\r').to_owned(),
        };
        let parsed = parsed.map_err(bad);
        self.ended = parsed.as_ref().is_err_and(BadLine::is_fatal);
        Some(parsed)
    }

    fn origin(&self) -> Origin {
        Origin::new(&self.path, self.lines.number)
    }

    fn text_fields(&self) -> Vec<String> {
        self.format.text_fields()
    }
}
