//! LibMultiLabel's text format: `id TAB labels TAB text`, or without ids `labels TAB text`; labels are separated by
//! spaces. The first line decides which of the two a file is.

use std::path::PathBuf;
use std::sync::Arc;

use super::bad_line::Fault;
use super::lines::{LineFormat, LineRecords};
use super::write::{self, Reason, WriteOptions};
use super::{BadKind, Parsed, ReadOptions, Records, Stream};
use crate::document::Document;

pub(super) fn open(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    let format = Libmultilabel { options: options.clone(), with_ids: None };
    LineRecords::boxed(path, stream, options.max_record, format)
}

struct Libmultilabel {
    options: ReadOptions,
    with_ids: Option<bool>,
}

impl LineFormat for Libmultilabel {
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault> {
        let malformed = |expected: &str| {
            let kind = BadKind::Malformed { expected: expected.to_owned(), found: write::excerpt(line) };
            Fault::at(line, line.len(), kind)
        };
        let Some((first, rest)) = line.split_once('\t') else {
            return Err(malformed("id TAB labels TAB text"));
        };
        let with_ids = *self.with_ids.get_or_insert(rest.contains('\t'));
        let (id, labels, text) = if with_ids {
            let (labels, text) = rest.split_once('\t').ok_or_else(|| malformed("id TAB labels TAB text"))?;
            (first, labels, text)
        } else {
            ("", first, rest)
        };
        Ok(Parsed::Document(Document {
            id: if id.is_empty() { self.options.id_of_line(number) } else { id.to_owned() },
            text: text.to_owned(),
            labels: labels.split_whitespace().map(str::to_owned).collect(),
            features: None,
        }))
    }
}

pub(super) fn write(document: &Document, options: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Reason> {
    if document.features.is_some() {
        return Err(Reason::Features);
    }
    out.extend_from_slice(write::plain_id(&document.id)?.as_bytes());
    for (n, label) in document.labels.iter().enumerate() {
        out.push(if n == 0 { b'\t' } else { b' ' });
        out.extend_from_slice(write::spaceless(label, options)?.as_bytes());
    }
    if document.labels.is_empty() {
        out.push(b'\t');
    }
    out.push(b'\t');
    out.extend_from_slice(write::one_line(&document.text).as_bytes());
    out.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::readers::{Format, ReadOptions, Reader};

    type Read = Result<(String, Vec<String>, String), String>;

    fn read(file: &'static str) -> Vec<Read> {
        let options = ReadOptions::default();
        let reader = Reader::stream("f", file.as_bytes(), Some(Format::Libmultilabel), &options).unwrap();
        reader.map(|d| d.map(|d| (d.id, d.labels, d.text)).map_err(|bad| bad.to_string())).collect()
    }

    #[test]
    fn the_first_line_decides_whether_there_are_ids() {
        let two = read("a b\tsome text\nc\tmore\ttext\n");
        assert_eq!(two[1], Ok(("line-2".into(), vec!["c".into()], "more\ttext".into())));
        let three = read("7\ta b\tsome text\n8\tc\tmore\ttext\n\n9\tlost\n");
        assert_eq!(three[1], Ok(("8".into(), vec!["c".into()], "more\ttext".into())));
        assert_eq!(three[2], Err("f:4:7: expected id TAB labels TAB text, found `9\tlost`".into()));
    }
}
