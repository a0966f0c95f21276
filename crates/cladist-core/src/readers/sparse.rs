//! Feature corpora: the extreme classification repository's sparse format and libsvm with several labels.
//!
//! `3,17 12:0.5 40:1`: labels, then features as index and value. A line that starts with a space or with a feature
//! has no labels. Features are sorted; an index twice, a value that is no number, infinite or not finite makes the
//! line bad. The first line of an xmc file is `documents features labels`; indices must be below these numbers, a
//! blank line is a document without anything, and a file with another number of documents is reported at its end.

use std::path::PathBuf;
use std::sync::Arc;

use super::bad_line::Fault;
use super::lines::{LineFormat, LineRecords};
use super::write::{self, Reason, WriteOptions};
use super::{BadKind, Parsed, ReadOptions, Records, Shape, Stream};
use crate::document::Document;

pub(super) fn open_xmc(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    let format = Xmc { options: options.clone(), header: None, found: 0 };
    LineRecords::boxed(path, stream, options.max_record, format)
}

pub(super) fn open_libsvm(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    LineRecords::boxed(path, stream, options.max_record, Libsvm(options.clone()))
}

struct Libsvm(ReadOptions);

impl LineFormat for Libsvm {
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault> {
        row(line, self.0.id_of_line(number)).map(Parsed::Document)
    }
}

struct Xmc {
    options: ReadOptions,
    /// The shape, and the line that announced it.
    header: Option<(Shape, usize)>,
    found: u64,
}

/// The three numbers of an xmc header.
pub(super) fn header(line: &str) -> Option<Shape> {
    let mut numbers = line.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    let (n_documents, n_features, n_labels) = (next()?, next()?, next()?);
    numbers.next().is_none().then_some(Shape { n_documents, n_features, n_labels })
}

impl LineFormat for Xmc {
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault> {
        let Some((shape, _)) = self.header else {
            let Some(shape) = header(line) else {
                let found = write::excerpt(line);
                let message = format!("expected the header `documents features labels`, found `{found}`");
                return Err(BadKind::Header(message).into());
            };
            self.header = Some((shape, number));
            return Ok(Parsed::Nothing);
        };
        self.found += 1;
        let document = row(line, self.options.id_of_line(number))?;
        for label in &document.labels {
            let Ok(index) = label.parse::<u64>() else {
                let expected = "a label number".to_owned();
                return Err(BadKind::Malformed { expected, found: write::excerpt(label) }.into());
            };
            if index >= shape.n_labels {
                return Err(BadKind::OutOfRange { what: "label", index, limit: shape.n_labels }.into());
            }
        }
        let last = document.features.as_deref().and_then(<[_]>::last).map(|&(index, _)| u64::from(index));
        match last {
            Some(index) if index >= shape.n_features => {
                Err(BadKind::OutOfRange { what: "feature", index, limit: shape.n_features }.into())
            }
            _ => Ok(Parsed::Document(document)),
        }
    }

    fn blank(&mut self, number: usize) -> Parsed {
        match self.header {
            Some((shape, _)) if self.found < shape.n_documents => {
                self.found += 1;
                let id = self.options.id_of_line(number);
                Parsed::Document(Document { id, features: Some(Vec::new()), ..Document::default() })
            }
            _ => Parsed::Nothing,
        }
    }

    fn end(&mut self) -> Result<(), (usize, BadKind)> {
        match self.header {
            Some((shape, line)) if shape.n_documents != self.found => {
                Err((line, BadKind::DocumentCount { announced: shape.n_documents, found: self.found }))
            }
            _ => Ok(()),
        }
    }
}

fn row(line: &str, id: String) -> Result<Document, Fault> {
    // A line cannot be empty here, so the first word is at its start unless white space is.
    let (first, rest) = match line.find(char::is_whitespace) {
        Some(end) => (&line[..end], &line[end..]),
        None => (line, ""),
    };
    let (labels, features) = if first.contains(':') { ("", line) } else { (first, rest) };
    let labels: Vec<String> =
        if labels.is_empty() { Vec::new() } else { labels.split(',').map(str::to_owned).collect() };
    if labels.iter().any(String::is_empty) {
        return Err(Fault::at(line, 0, BadKind::EmptyLabel));
    }
    let mut parsed: Vec<(u32, f32)> = Vec::new();
    for word in features.split_whitespace() {
        let feature = word.split_once(':').and_then(|(index, value)| {
            let value: f32 = value.parse().ok()?;
            value.is_finite().then_some((index.parse().ok()?, value))
        });
        let Some(feature) = feature else {
            let byte = word.as_ptr() as usize - line.as_ptr() as usize;
            let expected = "a feature as index:value".to_owned();
            return Err(Fault::at(line, byte, BadKind::Malformed { expected, found: write::excerpt(word) }));
        };
        parsed.push(feature);
    }
    if !parsed.is_sorted_by_key(|&(index, _)| index) {
        parsed.sort_by_key(|&(index, _)| index);
    }
    if let Some(pair) = parsed.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(BadKind::DuplicateFeature { index: pair[0].0 }.into());
    }
    Ok(Document { id, text: String::new(), labels, features: Some(parsed) })
}

pub(super) fn write_xmc(
    document: &Document,
    options: &WriteOptions,
    out: &mut Vec<u8>,
) -> Result<(), Reason> {
    let shape = options.shape.ok_or(Reason::Shape)?;
    for label in &document.labels {
        if label.parse::<u64>().map_or(true, |index| index >= shape.n_labels) {
            return Err(Reason::LabelNumber { label: label.clone(), limit: shape.n_labels });
        }
    }
    let last = document.features.as_deref().and_then(<[_]>::last);
    match last {
        Some(&(index, _)) if u64::from(index) >= shape.n_features => Err(Reason::Shape),
        _ => write_row(document, out),
    }
}

pub(super) fn write_libsvm(document: &Document, _: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Reason> {
    if document.labels.is_empty() && document.is_empty() && document.features.is_some() {
        return Err(Reason::Blank);
    }
    write_row(document, out)
}

fn write_row(document: &Document, out: &mut Vec<u8>) -> Result<(), Reason> {
    let features = document.features.as_deref().ok_or(Reason::NoFeatures)?;
    for (n, label) in document.labels.iter().enumerate() {
        if label.is_empty() || label.contains([',', ':']) || label.contains(char::is_whitespace) {
            return Err(Reason::Label { label: label.clone(), problem: "a comma, a colon or white space" });
        }
        if n > 0 {
            out.push(b',');
        }
        out.extend_from_slice(label.as_bytes());
    }
    for (index, value) in features {
        if !value.is_finite() {
            return Err(Reason::NotFinite(*index));
        }
        out.extend_from_slice(format!(" {index}:{value}").as_bytes());
    }
    out.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::readers::{Format, ReadOptions, Reader};

    type Row = (Vec<String>, Vec<(u32, f32)>);

    fn read(format: Format, file: &'static str) -> (Vec<Row>, Vec<String>) {
        let reader = Reader::stream("f", file.as_bytes(), Some(format), &ReadOptions::default()).unwrap();
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for record in reader {
            match record {
                Ok(document) => good.push((document.labels, document.features.unwrap())),
                Err(line) => bad.push(line.to_string()),
            }
        }
        (good, bad)
    }

    #[test]
    fn features_are_sorted_and_bad_ones_named_with_their_column() {
        let (good, bad) = read(
            Format::Libsvm,
            "3,17 40:1 12:0.5\n 5:1\n5:2\n9\n1 2:x\n1 2:nan\n1 2:inf\n1 3:1 3:2\n1,,2 3:1\n1 -1:2\n",
        );
        assert_eq!(good[0], (vec!["3".into(), "17".into()], vec![(12, 0.5), (40, 1.0)]));
        assert_eq!(good[1], (vec![], vec![(5, 1.0)]));
        assert_eq!(good[2], (vec![], vec![(5, 2.0)]));
        assert_eq!(good[3], (vec!["9".into()], vec![]));
        assert_eq!(good.len(), 4);
        assert_eq!(bad[0], "f:5:3: expected a feature as index:value, found `2:x`");
        assert_eq!(bad[3], "f:8: feature 3 occurs twice");
        assert_eq!(bad[4], "f:9:1: empty label id");
        assert_eq!(bad.len(), 6);
    }

    #[test]
    fn an_xmc_header_is_held_to() {
        let (good, bad) = read(Format::Xmc, "4 5 2\n0,1 0:1 4:2\n\n1 5:1\n2 0:1\n0 1:1\n\n");
        assert_eq!(good.len(), 3);
        assert_eq!(good[1], (vec![], vec![]));
        assert_eq!(
            bad,
            [
                "f:4: feature 5 is not below 5, the number in the header",
                "f:5: label 2 is not below 2, the number in the header",
                "f:1: the header announces 4 documents, the file has 5"
            ]
        );
        let (good, bad) = read(Format::Xmc, "0,1 0:1\n0 1:1\n");
        assert_eq!(good, []);
        assert_eq!(bad, ["f:1: expected the header `documents features labels`, found `0,1 0:1`"]);
    }
}
