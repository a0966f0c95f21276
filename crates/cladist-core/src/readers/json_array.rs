//! Objects in one JSON array, taken out of the stream one by one.
//!
//! An element ends where its brackets close, so an array need not fit into memory; what is inside is the business of
//! the format of its lines.

use std::path::PathBuf;
use std::sync::Arc;

use super::lines::LineFormat;
use super::{BadKind, BadLine, Parsed, Records, Stream};
use crate::taxonomy::Origin;

/// How much of an element is shown in a report.
const SHOWN: usize = 1 << 12;

pub(super) struct ArrayRecords<F> {
    path: Arc<PathBuf>,
    stream: Stream,
    limit: usize,
    format: F,
    place: Place,
    /// The line where the stream is, from 1.
    line: usize,
    /// The line where the last element starts.
    start: usize,
    n_elements: usize,
    element: Vec<u8>,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Opening,
    FirstElement,
    Element,
    Comma,
    Closed,
}

impl<F: LineFormat + 'static> ArrayRecords<F> {
    pub(super) fn boxed(path: Arc<PathBuf>, stream: Stream, limit: usize, format: F) -> Box<dyn Records> {
        let (place, element) = (Place::Opening, Vec::new());
        Box::new(Self { path, stream, limit, format, place, line: 1, start: 1, n_elements: 0, element })
    }
}

/// Why there is no next element.
enum Stop {
    End,
    Bad(BadKind),
}

impl<F: LineFormat> ArrayRecords<F> {
    fn peek(&mut self) -> Result<Option<u8>, Stop> {
        match self.stream.fill_buf() {
            Ok(block) => Ok(block.first().copied()),
            Err(error) => Err(Stop::Bad(BadKind::Unreadable(error))),
        }
    }

    fn consume(&mut self, byte: u8) {
        self.line += usize::from(byte == b'\n');
        self.stream.consume(1);
    }

    /// Moves to the start of the next element.
    fn advance(&mut self) -> Result<(), Stop> {
        loop {
            let Some(byte) = self.peek()? else {
                return Err(match self.place {
                    Place::Closed => Stop::End,
                    _ => Stop::Bad(BadKind::ArrayEnd),
                });
            };
            self.place = match (self.place, byte) {
                (place, b' ' | b'\t' | b'\r' | b'\n') => place,
                // A byte order mark.
                (Place::Opening, 0xef | 0xbb | 0xbf) => Place::Opening,
                (Place::Opening, b'[') => Place::FirstElement,
                (Place::FirstElement | Place::Comma, b']') => Place::Closed,
                (Place::Comma, b',') => Place::Element,
                (Place::FirstElement | Place::Element, byte) if byte != b',' && byte != b']' => return Ok(()),
                (_, byte) => {
                    let found = char::from(byte).to_string();
                    let expected = "a list of objects separated by commas".to_owned();
                    self.start = self.line;
                    return Err(Stop::Bad(BadKind::Header(format!("expected {expected}, found `{found}`"))));
                }
            };
            self.consume(byte);
        }
    }

    /// Reads one element up to the byte that ends it.
    fn take_element(&mut self) -> Result<(), Stop> {
        self.element.clear();
        self.start = self.line;
        let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
        loop {
            let Some(byte) = self.peek()? else { return Err(Stop::Bad(BadKind::ArrayEnd)) };
            if depth == 0 && !quoted && matches!(byte, b',' | b']' | b'}') {
                return Ok(());
            }
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' | b'[' if !quoted => depth += 1,
                b'}' | b']' if !quoted => depth -= 1,
                _ => {}
            }
            self.element.push(byte);
            self.consume(byte);
            if self.element.len() > self.limit {
                self.element.truncate(SHOWN);
                return Err(Stop::Bad(BadKind::Endless { limit: self.limit }));
            }
            if depth == 0 && !quoted && matches!(byte, b'}' | b']') {
                return Ok(());
            }
        }
    }
}

impl<F: LineFormat> Records for ArrayRecords<F> {
    fn next_record(&mut self) -> Option<Result<Parsed, BadLine>> {
        let parsed = match self.advance().and_then(|()| self.take_element()) {
            Ok(()) => {
                self.place = Place::Comma;
                self.n_elements += 1;
                match std::str::from_utf8(&self.element) {
                    // Columns are those of a line, and an element may have many.
                    Ok(json) => {
                        self.format.parse(json.trim_end(), self.n_elements).map_err(|fault| fault.kind)
                    }
                    Err(_) => Err(BadKind::InvalidUtf8),
                }
            }
            Err(Stop::Bad(kind)) => Err(kind),
            Err(Stop::End) => {
                let (line, kind) = self.format.end().err()?;
                self.start = line;
                Err(kind)
            }
        };
        Some(parsed.map_err(|kind| BadLine {
            path: Arc::clone(&self.path),
            line: self.start,
            column: None,
            kind,
            content: String::from_utf8_lossy(&self.element).into_owned(),
        }))
    }

    fn origin(&self) -> Origin {
        Origin::new(&self.path, self.start)
    }

    fn text_fields(&self) -> Vec<String> {
        self.format.text_fields()
    }
}
