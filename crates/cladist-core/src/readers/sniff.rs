//! Guessing a format: first by the file's ending, then by its first line.

use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use super::folder::{list, stem_and_ending};
use super::{BadKind, BadLine, FORMATS, Format, Stream, sparse};
use crate::error::Result;

/// The most that is looked at.
const LIMIT: u64 = 1 << 20;

/// Column names that tell a header from a line of data.
const COLUMNS: [&str; 5] = ["text", "labels", "label", "title", "id"];

/// Reads up to the end of the first line that says something; a slow stream is not waited for any longer.
pub(super) fn peek(stream: &mut Stream) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    loop {
        let from = start.len();
        let allowed = LIMIT.saturating_sub(from as u64);
        if stream.take(allowed).read_until(b'\n', &mut start)? == 0 || !start[from..].trim_ascii().is_empty()
        {
            return Ok(start);
        }
    }
}

/// The format of a file of this name that starts like this.
pub(super) fn content(path: &Path, start: &[u8]) -> Format {
    let guess = guess(start);
    let ending = stem_and_ending(path).map(|(_, ending)| ending.to_ascii_lowercase());
    let with_ending: Vec<Format> = FORMATS
        .iter()
        .filter(|info| ending.as_deref().is_some_and(|ending| info.endings.contains(&ending)))
        .map(|info| info.format)
        .collect();
    match with_ending.as_slice() {
        [] => guess,
        formats if formats.contains(&guess) => guess,
        [first, ..] => *first,
    }
}

fn guess(start: &[u8]) -> Format {
    let start = String::from_utf8_lossy(start);
    let start = start.trim_start_matches('\u{feff}');
    let Some(line) = start.lines().find(|line| !line.trim().is_empty()) else { return Format::Text };
    let word = line.split_whitespace().next().unwrap_or_default();
    if line.trim_start().starts_with('{') {
        let tokens = ["\"token\"", "\"doc_token\""].iter().any(|field| line.contains(field));
        return if tokens { Format::Hiagm } else { Format::Jsonl };
    }
    if sparse::header(line).is_some() {
        return Format::Xmc;
    }
    if word.starts_with("__label__") {
        return Format::Fasttext;
    }
    let named = |separator: char| {
        let mut names = line.split(separator).map(|name| name.trim().trim_matches('"').to_ascii_lowercase());
        names.clone().any(|name| name == "text" || name == "title")
            || names.by_ref().filter(|name| COLUMNS.contains(&name.as_str())).count() > 1
    };
    if let Some((_, rest)) = line.split_once('\t') {
        return if named('\t') {
            Format::TsvColumns
        } else if rest.split_whitespace().all(|uri| uri.starts_with('<') && uri.ends_with('>')) {
            Format::AnnifTsv
        } else {
            Format::Libmultilabel
        };
    }
    if line.contains(',') && named(',') {
        return Format::Csv;
    }
    let mut features = line.split_whitespace().skip(usize::from(!word.contains(':'))).peekable();
    if features.peek().is_some() && features.all(is_feature) {
        return Format::Libsvm;
    }
    Format::Text
}

fn is_feature(word: &str) -> bool {
    word.split_once(':')
        .is_some_and(|(index, value)| index.parse::<u32>().is_ok() && value.parse::<f32>().is_ok())
}

/// The format of a folder, by the endings of its files.
pub(super) fn folder(path: &Path) -> Result<Format> {
    let mut text = false;
    for file in list(path)? {
        match stem_and_ending(&file) {
            Some((_, "json")) => return Ok(Format::Eurlex57k),
            Some((_, "txt")) => text = true,
            _ => {}
        }
    }
    if text {
        return Ok(Format::AnnifFulltext);
    }
    let message = "a folder of documents has .json files (eurlex57k) or .txt files (annif-fulltext); \
                   this one has neither";
    Err(BadLine {
        path: Arc::new(path.to_owned()),
        line: 0,
        column: None,
        kind: BadKind::Header(message.to_owned()),
        content: String::new(),
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_the_format() {
        let cases = [
            ("x.jsonl", "\n{\"id\": 1, \"text\": \"a\"}\n", Format::Jsonl),
            ("x.json", "{\"token\": [\"a\"], \"label\": [\"b\"]}\n", Format::Hiagm),
            ("x.csv", "a,b\n", Format::Csv),
            ("x.tsv", "id\tlabels\ttext\n", Format::TsvColumns),
            ("x.tsv", "some text\t<http://a> <http://b>\n", Format::AnnifTsv),
            ("x.tsv.gz", "1\ta b\tsome text\n", Format::Libmultilabel),
            ("x.txt", "1\ta b\tsome text\n", Format::Libmultilabel),
            ("x.txt", "__label__a some text\n", Format::Fasttext),
            ("x.txt", "3 100 20\n", Format::Xmc),
            ("x.txt", "3,17 12:0.5 40:1\n", Format::Libsvm),
            ("x.txt", "just some text: see 12:30\n", Format::Text),
            ("-", "\u{feff}id,text,labels\n", Format::Csv),
            ("-", "", Format::Text),
            ("x.jsonl", "not json\n", Format::Jsonl),
        ];
        for (name, start, format) in cases {
            assert_eq!(content(Path::new(name), start.as_bytes()), format, "{name}: {start}");
        }
    }

    #[test]
    fn the_table_is_in_the_order_of_the_formats() {
        for info in &FORMATS {
            assert_eq!(info.format.info().name, info.name);
            assert_eq!(info.name.parse(), Ok(info.format));
            assert_eq!(serde_json::to_value(info.format).unwrap(), info.name);
        }
    }
}
