//! What holds for every format.

use std::io::Write as _;
use std::path::Path;

use proptest::prelude::*;

use super::*;

fn read(format: Format, bytes: &[u8], options: &ReadOptions) -> (Vec<Document>, Vec<BadLine>, Tally) {
    let reader = Reader::stream("f", std::io::Cursor::new(bytes.to_vec()), Some(format), options);
    // Bytes that are no text at all are refused before the format sees them.
    let Ok(mut reader) = reader else { return (Vec::new(), Vec::new(), Tally::default()) };
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for record in reader.by_ref() {
        match record {
            Ok(document) => good.push(document),
            Err(line) => bad.push(line),
        }
    }
    (good, bad, reader.tally())
}

fn jsonl(file: &str, options: &ReadOptions) -> Vec<Result<Document, String>> {
    let reader = Reader::stream("f", std::io::Cursor::new(file.to_owned()), Some(Format::Jsonl), options);
    reader.unwrap().map(|record| record.map_err(|bad| bad.to_string())).collect()
}

fn document(id: &str, text: &str, labels: &[&str]) -> Document {
    let labels = labels.iter().map(|&label| label.to_owned()).collect();
    Document { labels, ..Document::from_text(id, text) }
}

#[test]
fn json_lines_take_numbers_single_labels_and_titles() {
    let file = "\u{feff}{\"id\": 7, \"text\": \"a\", \"labels\": [1, \"b\"], \"extra\": {\"x\": [1]}}\r\n\r\n\
                {\"title\": \"T\", \"label\": \"c\", \"text\": \"x\"}\n\
                {\"labels\": null, \"title\": \"only\"}\n";
    let records = jsonl(file, &ReadOptions::default());
    assert_eq!(records[0], Ok(document("7", "a", &["1", "b"])));
    assert_eq!(records[1], Ok(document("line-3", "T\nx", &["c"])));
    assert_eq!(records[2], Ok(document("line-4", "only", &[])));
}

#[test]
fn json_faults_have_line_and_column() {
    let file = "{\"text\": \"fine\"}\n{\"text\": \"äöü\", \"labels\": true}\n{\"text\": \"cut\n[1]\n{\"prose\": 1}\n\
                {\"text\": \"a\", \"labels\": [\"\"]}\n{\"text\": \"a\"} x\n{\"text\": \"a\", \"text\": \"b\"}\n";
    let messages: Vec<String> =
        jsonl(file, &ReadOptions::default()).into_iter().filter_map(Result::err).collect();
    assert_eq!(
        messages,
        [
            "f:2:27: expected a string, a number or a list of them, found `true`",
            "f:3:13: not valid JSON: EOF while parsing a string",
            "f:4:1: invalid type: sequence, expected an object",
            "f:5: no field `text`; there is `prose`",
            "f:6: empty label id",
            "f:7:15: not valid JSON: trailing characters",
            "f:8:20: field `text` occurs twice",
        ]
    );
}

#[test]
fn fields_can_be_chosen_and_lie_inside_others() {
    let options = ReadOptions {
        id_field: Some("celex_id".into()),
        labels_field: Some("eurovoc_concepts.level_1".into()),
        language: Some("de".into()),
        ..ReadOptions::default()
    };
    let file = "{\"celex_id\": \"3\", \"text\": {\"en\": \"law\", \"de\": \"Recht\"}, \
                \"eurovoc_concepts\": {\"level_1\": [\"1\", \"2\"], \"level_2\": [\"3\"]}}\n\
                {\"celex_id\": \"4\", \"text\": {\"en\": \"law\"}, \"eurovoc_concepts\": {}}\n\
                {\"celex_id\": \"5\", \"text\": {\"de\": null}, \"eurovoc_concepts\": {}}\n";
    let (good, bad, tally) = read(Format::Jsonl, file.as_bytes(), &options);
    assert_eq!(good, [document("3", "Recht", &["1", "2"])]);
    assert!(bad.is_empty());
    assert_eq!(tally, Tally { read: 3, kept: 1, rejected: 0, dropped: 2 });
    let options = ReadOptions { text_field: Some("a.en,b".into()), ..ReadOptions::default() };
    let records = jsonl("{\"b\": \"two\", \"a\": {\"en\": \"one\"}}", &options);
    assert_eq!(records, [Ok(document("line-1", "one\ntwo", &[]))]);
    let records = jsonl("{\"text\": {\"en\": \"law\"}}", &ReadOptions::default());
    assert!(records[0].as_ref().unwrap_err().contains("set a language"));
}

#[test]
fn documents_are_dropped_by_a_field_that_is_true() {
    let options = ReadOptions { drop_field: Some("leak".into()), ..ReadOptions::default() };
    let file = "{\"text\": \"a\", \"leak\": true}\n{\"text\": \"b\", \"leak\": false}\n{\"text\": \"c\"}\n\
                {\"text\": \"d\", \"leak\": \"yes\"}\n";
    let (good, bad, tally) = read(Format::Jsonl, file.as_bytes(), &options);
    assert_eq!(good.iter().map(|d| d.text.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(bad[0].line, 4);
    assert_eq!(tally, Tally { read: 4, kept: 2, rejected: 1, dropped: 1 });
}

#[test]
fn invalid_utf8_is_one_bad_line_and_not_the_end() {
    let (good, bad, tally) = read(Format::Text, b"one\ntw\xc3\xa4\xff\xfeo\nthree", &ReadOptions::default());
    assert_eq!(good.len(), 2);
    assert_eq!((bad[0].line, bad[0].column), (2, Some(4)));
    assert_eq!(bad[0].to_string(), "f:2:4: invalid UTF-8");
    assert_eq!(tally.read, 3);
}

#[test]
fn an_overlong_line_is_skipped_without_being_held() {
    let options = ReadOptions { max_record: 8, ..ReadOptions::default() };
    let mut file = b"12345678\n123456789\n".to_vec();
    file.extend(std::iter::repeat_n(b'x', 200_000));
    file.extend(b"\nlast\n");
    let (good, bad, _) = read(Format::Text, &file, &options);
    assert_eq!(good.iter().map(|d| d.text.as_str()).collect::<Vec<_>>(), ["12345678", "last"]);
    assert_eq!(bad.iter().map(|b| b.line).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(bad[1].to_string(), "f:3: longer than 8 bytes");
    assert!(bad[1].content.len() < 5000);
    let (good, bad, _) = read(Format::Csv, b"text\n\"1\n2\n3\n4\n5\"\nok\n", &options);
    assert_eq!((good.len(), bad[0].line), (1, 2));
}

#[test]
fn compressed_files_read_like_plain_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.jsonl.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for n in 0..2000 {
        writeln!(gzip, "{{\"id\": {n}, \"text\": \"text {n}\"}}").unwrap();
    }
    let whole = gzip.finish().unwrap();
    std::fs::write(&path, &whole).unwrap();
    let reader = Reader::open(&path, None, &ReadOptions::default()).unwrap();
    assert_eq!(reader.map(Result::unwrap).count(), 2000);

    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let mut reader = Reader::open(&path, None, &ReadOptions::default()).unwrap();
    let mut rejects = 0;
    let mut sink = |_| {
        rejects += 1;
        Ok(())
    };
    let mut bad_lines = BadLines::Skip(&mut sink);
    let error = loop {
        match reader.next_document(&mut bad_lines) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a cut file was read to its end"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), crate::ErrorKind::Data, "{error}");
    assert_eq!(rejects, 0);
}

#[test]
fn bad_lines_stop_or_are_handed_over() {
    let file = "{\"text\": \"a\"}\noops\n{\"text\": \"b\"}\n";
    let open = || Reader::stream("f", file.as_bytes(), Some(Format::Jsonl), &ReadOptions::default()).unwrap();
    let mut reader = open();
    assert!(reader.next_document(&mut BadLines::Stop).unwrap().is_some());
    let error = reader.next_document(&mut BadLines::Stop).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.kind()),
        ("f:2:1: not valid JSON: expected value", crate::ErrorKind::Data)
    );

    let mut written = Vec::new();
    let mut sink =
        |bad: BadLine| Reject::from(&bad).write(&mut written).map_err(Error::io("write", Path::new("r")));
    let mut reader = open();
    let mut n = 0;
    while reader.next_document(&mut BadLines::Skip(&mut sink)).unwrap().is_some() {
        n += 1;
    }
    assert_eq!(n, 2);
    assert_eq!(
        String::from_utf8(written).unwrap(),
        "{\"path\":\"f\",\"line\":2,\"column\":1,\"reason\":\"not valid JSON: expected value\",\"content\":\"oops\"}\n"
    );
}

#[test]
fn a_folder_format_on_a_file_says_so() {
    let error =
        Reader::stream("f", &b""[..], Some(Format::Eurlex57k), &ReadOptions::default()).err().unwrap();
    assert_eq!(error.to_string(), "f: format `eurlex57k` is a folder of files, this is a stream");
    let missing = Reader::open(Path::new("nowhere"), Some(Format::Eurlex57k), &ReadOptions::default());
    assert_eq!(missing.err().unwrap().kind(), crate::ErrorKind::NotFound);
}

fn streams() -> impl Iterator<Item = Format> {
    FORMATS.iter().filter(|info| !info.is_folder()).map(|info| info.format)
}

/// Text with everything that makes formats stumble.
fn awkward() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\t"),
        Just("\n"),
        Just("\r\n"),
        Just("\r"),
        Just(" "),
        Just("\""),
        Just(","),
        Just(";"),
        Just(":"),
        Just("<"),
        Just(">"),
        Just("__label__x"),
        Just("\u{feff}"),
        Just("\u{a0}"),
        Just("\u{2028}"),
        Just("ä"),
        Just("word"),
        Just("12:0.5"),
        Just("#"),
        Just("--"),
        Just("{"),
        Just("'"),
        Just("\\"),
        Just("nul\u{0}nul"),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let one = (awkward(), awkward(), prop::collection::vec(awkward(), 0..4));
    prop::collection::vec(one, 0..6).prop_map(|documents| {
        let numbered = documents.into_iter().enumerate();
        numbered
            .map(|(n, (id, text, labels))| Document { id: format!("{id}{n}"), text, labels, features: None })
            .collect()
    })
}

fn feature_documents() -> impl Strategy<Value = Vec<Document>> {
    let features = prop::collection::btree_map(0u32..50, -1e6f32..1e6, 0..6);
    let one = (features, prop::collection::vec(0u32..20, 0..4));
    prop::collection::vec(one, 0..8).prop_map(|documents| {
        let made = documents.into_iter().map(|(features, labels)| Document {
            labels: labels.iter().map(ToString::to_string).collect(),
            features: Some(features.into_iter().collect()),
            ..Document::default()
        });
        made.collect()
    })
}

/// What a format makes of a document it can hold.
fn as_read(format: Format, document: &Document) -> Document {
    let one_line = || document.text.replace(['\t', '\n', '\r', '\u{feff}'], " ");
    let text = match format {
        Format::Jsonl | Format::Csv | Format::TsvColumns => document.text.clone(),
        Format::Hiagm => document.text.split_whitespace().collect::<Vec<_>>().join(" "),
        _ => one_line(),
    };
    let keeps_id = matches!(
        format,
        Format::Jsonl | Format::Csv | Format::TsvColumns | Format::Hiagm | Format::Libmultilabel
    );
    let id = if keeps_id { document.id.clone() } else { String::new() };
    Document { id, text, ..document.clone() }
}

proptest! {
    #[test]
    fn no_format_panics_on_bytes(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        options in prop_oneof![
            Just(ReadOptions::default()),
            Just(ReadOptions { max_record: 20, drop_field: Some("id".into()), ..ReadOptions::default() }),
            Just(ReadOptions { text_field: Some("text,a.b".into()), expect: Expect::Text, ..ReadOptions::default() }),
        ],
    ) {
        for format in streams() {
            let (good, bad, tally) = read(format, &bytes, &options);
            prop_assert_eq!(tally.read, tally.kept + tally.rejected + tally.dropped);
            prop_assert_eq!((good.len(), bad.len()), (tally.kept, tally.rejected));
        }
        let sniffed = Reader::stream("f", std::io::Cursor::new(bytes), None, &options);
        if let Ok(reader) = sniffed {
            reader.count();
        }
    }

    #[test]
    fn no_format_panics_on_its_own_characters(
        file in "(id|text|labels|,|\t|\n|\r|\"|__label__| |[0-9]|:|<|>|\\{|\\}|\\[|\\]|\\.|;|ä|NaN){0,60}",
    ) {
        for format in streams() {
            let (_, _, tally) = read(format, file.as_bytes(), &ReadOptions::default());
            prop_assert_eq!(tally.read, tally.kept + tally.rejected + tally.dropped);
        }
    }

    #[test]
    fn what_is_written_is_read_again(documents in documents()) {
        for info in FORMATS.iter().filter(|info| info.is_writable()) {
            let format = info.format;
            if matches!(format, Format::Xmc | Format::Libsvm) {
                continue;
            }
            let mut writer =
                Writer::new(format, Vec::new(), Path::new("f"), &WriteOptions::default()).unwrap();
            let mut expected = Vec::new();
            for document in &documents {
                if writer.write(document).is_ok() {
                    expected.push(as_read(format, document));
                }
            }
            let bytes = writer.finish().unwrap();
            let (mut good, bad, _) = read(format, &bytes, &ReadOptions::default());
            for (document, expected) in good.iter_mut().zip(&expected) {
                if expected.id.is_empty() {
                    document.id.clear();
                }
            }
            prop_assert!(bad.is_empty(), "{format}: {}", bad[0]);
            prop_assert_eq!(good, expected, "{}", format);
        }
    }

    #[test]
    fn features_that_are_written_are_read_again(documents in feature_documents()) {
        let mut shape = Shape::default();
        documents.iter().for_each(|document| shape.add(document));
        for format in [Format::Xmc, Format::Libsvm] {
            let options = WriteOptions { shape: Some(shape), ..WriteOptions::default() };
            let mut writer = Writer::new(format, Vec::new(), Path::new("f"), &options).unwrap();
            let mut expected = Vec::new();
            for document in &documents {
                match writer.write(document) {
                    Ok(()) => expected.push(document.clone()),
                    // Nothing at all is a blank line, which only xmc can hold.
                    Err(_) => prop_assert!(
                        format == Format::Libsvm && document.is_empty() && document.labels.is_empty()
                    ),
                }
            }
            let bytes = writer.finish().unwrap();
            let (mut good, bad, _) = read(format, &bytes, &ReadOptions::default());
            good.iter_mut().for_each(|document| document.id.clear());
            prop_assert!(bad.is_empty(), "{format}: {}", bad[0]);
            prop_assert_eq!(good, expected);
        }
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused_with_the_document() {
    let refuse = |format, document: &Document, options: &WriteOptions| {
        let mut writer = Writer::new(format, Vec::new(), Path::new("f"), options).unwrap();
        let message = writer.write(document).unwrap_err().to_string();
        assert!(writer.finish().unwrap().is_empty());
        message
    };
    let options = WriteOptions::default();
    let spaced = document("7", "text", &["late bus"]);
    assert_eq!(
        refuse(Format::Fasttext, &spaced, &options),
        "document `7` cannot be written as fasttext: label `late bus` is empty or holds white space"
    );
    assert!(refuse(Format::Libsvm, &spaced, &options).contains("it has text, not features"));
    assert!(refuse(Format::Text, &spaced, &options).contains("can only be read"));
    let prefixed = document("8", "see __label__y", &["x"]);
    assert!(refuse(Format::Fasttext, &prefixed, &options).contains("would read as a label"));

    let options = WriteOptions { replace_spaces: true, ..options };
    let mut writer = Writer::new(Format::Libmultilabel, Vec::new(), Path::new("f"), &options).unwrap();
    writer.write(&spaced).unwrap();
    assert_eq!(writer.finish().unwrap(), b"7\tlate_bus\ttext\n");
}
