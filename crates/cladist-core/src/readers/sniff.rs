//! Guessing a format: first by the file's ending, then by its first line.

use std::io::{self, BufRead, Read, Seek};
use std::path::Path;

use super::folder::{self, list, stem_and_ending};
use super::{BadKind, Expect, FORMATS, Format, Input, Stream, sparse};
use crate::error::{Error, Result};
use crate::files;

/// The most that is looked at.
const LIMIT: u64 = 1 << 20;

/// Column names that tell a header from a line of data.
const COLUMNS: [&str; 5] = ["text", "labels", "label", "title", "id"];

/// The format of an input, which is left at its start.
pub(super) fn input(path: &Path, input: &mut Input, expect: Expect) -> Result<Format> {
    let start = match input {
        Input::Folder => return folder_format(path),
        Input::File(file) => start_of_file(file),
        Input::Stream(stream) => start_of_stream(stream),
    };
    Ok(content(path, &start.map_err(Error::io("read", path))?, expect))
}

fn start_of_file(file: &mut std::fs::File) -> io::Result<Vec<u8>> {
    let start = peek(&mut files::decompress(file.try_clone()?)?)?;
    file.rewind()?;
    Ok(start)
}

fn start_of_stream(stream: &mut Stream) -> io::Result<Vec<u8>> {
    let start = peek(stream)?;
    let rest = std::mem::replace(stream, Box::new(io::empty()));
    *stream = Box::new(io::Cursor::new(start.clone()).chain(rest));
    Ok(start)
}

/// Reads up to the end of the first line that says something; a slow stream is not waited for any longer.
fn peek(stream: &mut Stream) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    loop {
        let from = start.len();
        let allowed = LIMIT.saturating_sub(from as u64);
        let n = stream.take(allowed).read_until(b'\n', &mut start)?;
        let line = start[from..].strip_prefix("\u{feff}".as_bytes()).unwrap_or(&start[from..]);
        if n == 0 || !line.trim_ascii().is_empty() {
            return Ok(start);
        }
    }
}

/// The format of a file of this name that starts like this.
fn content(path: &Path, start: &[u8], expect: Expect) -> Format {
    let guess = guess(start, expect);
    let ending = stem_and_ending(path).map(|(_, ending)| ending.to_ascii_lowercase());
    let with_ending: Vec<Format> = FORMATS
        .iter()
        .filter(|info| ending.as_deref().is_some_and(|ending| info.endings.contains(&ending)))
        .map(|info| info.format)
        .collect();
    if with_ending.contains(&guess) {
        return guess;
    }
    // Where nothing says what a text to be classified looks like, it has no labels.
    let unlabelled = with_ending.iter().find(|format| expect == Expect::Text && !format.info().has_labels);
    match unlabelled.or(with_ending.first()) {
        Some(&format) => format,
        // Only the ending makes a tab more than a tab in a text.
        None if guess == Format::IdText => Format::Text,
        None => guess,
    }
}

fn guess(start: &[u8], expect: Expect) -> Format {
    let start = String::from_utf8_lossy(start);
    let start = start.trim_start_matches('\u{feff}');
    let Some(line) = start.lines().find(|line| !line.trim().is_empty()) else { return Format::Text };
    let is_text = expect == Expect::Text;
    let word = line.split_whitespace().next().unwrap_or_default();
    if line.trim_start().starts_with('{') || is_array_of_objects(line) {
        let has = |field: &str| line.contains(field);
        let tokens = (has("\"token\"") || has("\"doc_token\"")) && !has("\"text\"");
        return if tokens { Format::Hiagm } else { Format::Jsonl };
    }
    if !is_text && sparse::header(line).is_some() {
        return Format::Xmc;
    }
    if word.starts_with("__label__") {
        return Format::Fasttext;
    }
    let named = |separator: char| {
        let names = line.split(separator).map(|name| name.trim().trim_matches('"').to_ascii_lowercase());
        let is_title = |name: &String| name == "text" || name == "title";
        // A sentence may well have the word between commas.
        (!is_text && names.clone().any(|name| is_title(&name)))
            || names.filter(|name| COLUMNS.contains(&name.as_str())).count() > 1
    };
    if let Some((_, rest)) = line.split_once('\t') {
        let mut subjects = rest.split_whitespace().peekable();
        return if named('\t') {
            Format::TsvColumns
        } else if (!is_text || subjects.peek().is_some())
            && subjects.all(|uri| uri.starts_with('<') && uri.ends_with('>'))
        {
            Format::AnnifTsv
        } else if is_text {
            Format::IdText
        } else {
            Format::Libmultilabel
        };
    }
    if line.contains(',') && named(',') {
        return Format::Csv;
    }
    let mut features = line.split_whitespace().skip(usize::from(!word.contains(':'))).peekable();
    if !is_text && features.peek().is_some() && features.all(is_feature) {
        return Format::Libsvm;
    }
    Format::Text
}

/// `[` alone in its line, or before an object.
fn is_array_of_objects(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix('[').map(str::trim_start);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
}

fn is_feature(word: &str) -> bool {
    word.split_once(':')
        .is_some_and(|(index, value)| index.parse::<u32>().is_ok() && value.parse::<f32>().is_ok())
}

/// The format of a folder, by the endings of its files.
fn folder_format(path: &Path) -> Result<Format> {
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
    Err(folder::whole(path, BadKind::Header(message.to_owned()), String::new()).into())
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
            let sniffed = content(Path::new(name), start.as_bytes(), Expect::Labelled);
            assert_eq!(sniffed, format, "{name}: {start}");
        }
    }

    #[test]
    fn a_text_to_be_classified_has_no_labels_unless_the_file_says_so() {
        let cases = [
            ("x.jsonl", "{\"id\": 1, \"text\": \"a\", \"token\": \"b\"}\n", Format::Jsonl),
            ("-", "[\n{\"text\": \"a\"}]\n", Format::Jsonl),
            ("x.tsv", "7\tsome text\n", Format::IdText),
            ("x.tsv.gz", "7\tsome\ttext\n", Format::IdText),
            ("x.tsv", "some text\n", Format::IdText),
            ("x.tsv", "id\ttext\n", Format::TsvColumns),
            ("x.tsv", "some text\t<http://a>\n", Format::AnnifTsv),
            ("x.txt", "7\tsome text\n", Format::Text),
            ("-", "7\tsome text\n", Format::Text),
            ("-", "some text\t\n", Format::Text),
            ("x.txt", "3 100 20\n", Format::Text),
            ("-", "3,17 12:0.5 40:1\n", Format::Text),
            ("-", "__label__a some text\n", Format::Fasttext),
            ("-", "a word, title, and more\n", Format::Text),
            ("x.txt", "id,text\n", Format::Text),
            ("-", "id,text\n", Format::Csv),
            ("x.csv", "name,prose\n", Format::Csv),
            ("x.svm", "0 0:1\n", Format::Libsvm),
            ("-", "", Format::Text),
        ];
        for (name, start, format) in cases {
            let sniffed = content(Path::new(name), start.as_bytes(), Expect::Text);
            assert_eq!(sniffed, format, "{name}: {start}");
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
