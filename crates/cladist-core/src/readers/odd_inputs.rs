//! Files that people have and formats do not foresee.

use std::io::Read;

use super::*;

fn documents(name: &str, file: impl AsRef<[u8]>, options: &ReadOptions) -> Vec<Result<Document, String>> {
    let file = std::io::Cursor::new(file.as_ref().to_vec());
    match Reader::stream(name, file, None, options) {
        Ok(reader) => reader.map(|record| record.map_err(|bad| with_remedy(bad.into()))).collect(),
        Err(error) => vec![Err(with_remedy(error))],
    }
}

fn with_remedy(error: Error) -> String {
    error.remedy().map_or_else(|| error.to_string(), |remedy| format!("{error}; {remedy}"))
}

fn labels(file: &str) -> Vec<Result<Vec<String>, String>> {
    let read = documents("f.jsonl", file, &ReadOptions::default());
    read.into_iter().map(|record| record.map(|document| document.labels)).collect()
}

fn messages(name: &str, file: impl AsRef<[u8]>, options: &ReadOptions) -> Vec<String> {
    documents(name, file, options).into_iter().filter_map(Result::err).collect()
}

fn texts(name: &str, file: &str, options: &ReadOptions) -> Vec<String> {
    let texts = documents(name, file, options).into_iter().map(|record| record.map(|document| document.text));
    texts.collect::<Result<_, _>>().unwrap()
}

fn text_field(names: &str) -> ReadOptions {
    ReadOptions { text_field: Some(names.to_owned()), ..ReadOptions::default() }
}

#[test]
fn every_title_comes_with_its_body() {
    let default = ReadOptions::default();
    assert_eq!(texts("f.csv", "body,title,labels\nB,T,a\n", &default), ["T\nB"]);
    assert_eq!(texts("f.csv", "body,title,text\nB,T,X\n", &default), ["T\nX"]);
    assert_eq!(texts("f.csv", "content,abstract,other\nC,A,O\n", &default), ["A\nC"]);
    let lines = "{\"title\": \"T\", \"body\": \"B\"}\n{\"body\": {\"a\": 1}, \"text\": \"X\"}\n\
                 {\"title\": \"T\", \"text\": null, \"abstract\": \"A\"}\n";
    assert_eq!(texts("f.jsonl", lines, &default), ["T\nB", "X", "T\nA"]);
    let mut reader = Reader::stream("f.jsonl", lines.as_bytes(), None, &default).unwrap();
    assert_eq!(reader.by_ref().count(), 3);
    assert_eq!(reader.text_fields(), ["title", "text", "abstract", "body"]);
    let mut reader = Reader::stream("f.csv", &b"Body,title\nB,T\n"[..], None, &default).unwrap();
    assert_eq!(reader.by_ref().count(), 1);
    assert_eq!(reader.text_fields(), ["title", "Body"]);
}

#[test]
fn a_named_field_that_is_missing_is_an_error() {
    let options = text_field("body,nope");
    let csv = messages("f.csv", "id,body\n1,x\n", &options);
    assert_eq!(csv, ["f.csv:1: no column `nope`; the header has `id`, `body`"]);
    let tsv = messages("f.tsv", "id\ttext\tbody\n1\tx\ty\n", &options);
    assert_eq!(tsv, ["f.tsv:1: no column `nope`; the header has `id`, `text`, `body`"]);
    let lines = "{\"id\": 1, \"body\": \"x\"}\n{\"id\": 2, \"text\": \"y\"}\n";
    assert_eq!(
        messages("f.jsonl", lines, &options),
        [
            "f.jsonl:2: no field `body`, `nope`; there is `id`, `text`",
            "f.jsonl: no record has a field `nope`; there is `id`, `body`",
        ]
    );
    assert!(messages("f.jsonl", "\n", &options).is_empty());
    let dropping = ReadOptions { drop_field: Some("leak".into()), ..options };
    assert!(messages("f.jsonl", "{\"leak\": true, \"body\": \"x\"}\n", &dropping).is_empty());
    let options = ReadOptions { labels_field: Some("topics".into()), ..ReadOptions::default() };
    let message = messages("f.jsonl", "{\"text\": \"x\"}\n", &options);
    assert_eq!(message, ["f.jsonl: no record has a field `topics`; there is `text`"]);
    assert!(messages("f.jsonl", "{\"text\": \"x\"}\n", &options.expecting(Expect::Text)).is_empty());
}

#[test]
fn fields_inside_one_object_are_all_found() {
    let options = ReadOptions { labels_field: Some("doc.labels".into()), ..text_field("doc.title,doc.body") };
    let read = documents(
        "f.jsonl",
        "{\"doc\": {\"body\": \"B\", \"labels\": [\"a\"], \"title\": \"T\"}}\n",
        &options,
    );
    let document = read[0].as_ref().unwrap();
    assert_eq!((document.text.as_str(), document.labels.as_slice()), ("T\nB", &["a".to_owned()][..]));
}

#[test]
fn whole_numbers_keep_all_their_digits() {
    let big = "123456789012345678901234567890";
    let line = format!("{{\"id\": -{big}, \"text\": \"x\", \"labels\": [{big}, {big}1]}}\n");
    let read = documents("f.jsonl", &line, &ReadOptions::default());
    let document = read[0].as_ref().unwrap();
    assert_eq!(document.id, format!("-{big}"));
    assert_eq!(document.labels, [big.to_owned(), format!("{big}1")]);
    let line = line.replace("text", "token").replace("labels", "label");
    let read = documents("f.json", &line, &ReadOptions::default());
    assert_eq!(read[0].as_ref().unwrap().id, format!("-{big}"));
    let folder = tempfile::tempdir().unwrap();
    let act = format!("{{\"main_body\": \"x\", \"concepts\": [{big}], \"celex_id\": {big}}}");
    std::fs::write(folder.path().join("a.json"), act).unwrap();
    let mut reader = Reader::open(folder.path(), None, &ReadOptions::default()).unwrap();
    let document = reader.next().unwrap().unwrap();
    assert_eq!((document.id.as_str(), document.labels[0].as_str()), (big, big));
    assert!(reader.origin().to_string().ends_with("a.json"));
}

#[test]
fn numbers_for_all_labels_are_refused_and_numbers_as_ids_are_not() {
    let with = |labels: &str| format!("{{\"text\": \"x\", \"labels\": {labels}}}\n");
    for refused in ["[0.0, 1.0]", "[0, 1, 0]", "[0, 0]", "[0.25, 0.75]", "1.5"] {
        let message = labels(&with(refused))[0].clone().unwrap_err();
        assert!(
            message.contains("a number for each label") && message.contains("; list the ids"),
            "{message}"
        );
    }
    for taken in ["[0, 1]", "[1, 0, 2]", "0", "[0]", "[7, 7]"] {
        labels(&with(taken))[0].as_ref().unwrap();
    }
    let all = with("[0, 1]") + &with("[1, 0]");
    let message = labels(&all).pop().unwrap().unwrap_err();
    assert!(message.starts_with("f.jsonl: the labels of every record are `[0, 1]` or `[1, 0]`"), "{message}");
    assert!(labels(&(all + &with("[1]"))).iter().all(Result::is_ok));
    let cell =
        messages("f.csv", "text,labels\nx,0;1;1\ny,\"['a', 'b']\"\nz,[General]\n", &ReadOptions::default());
    assert!(cell[0].contains("a number for each label"), "{}", cell[0]);
    assert_eq!(cell[1..], ["f.csv:3: expected labels separated by `;`, found `['a', 'b']`"]);
}

#[test]
fn labels_of_other_types_are_refused_with_their_place() {
    let file = "{\"text\": \"x\", \"labels\": 7}\n{\"text\": \"x\", \"labels\": null}\n\
                {\"text\": \"x\", \"labels\": false}\n{\"text\": \"x\", \"labels\": [[\"a\"]]}\n\
                {\"text\": \"x\", \"labels\": {\"a\": 1}}\n{\"text\": \"x\", \"labels\": [null]}\n";
    let read = labels(file);
    assert_eq!(read[..2], [Ok(vec!["7".to_owned()]), Ok(vec![])]);
    let bad: Vec<&String> = read[2..].iter().map(|record| record.as_ref().unwrap_err()).collect();
    assert_eq!(bad[0], "f.jsonl:3:25: expected a string, a number or a list of them, found `false`");
    assert_eq!(bad[1], "f.jsonl:4:26: expected a string or a number, found `[\"a\"]`");
    assert!(bad[2].starts_with("f.jsonl:5:25: found an object"), "{}", bad[2]);
    assert_eq!(bad[3], "f.jsonl:6:26: expected a string or a number, found `null`");
}

#[test]
fn a_text_that_is_null_is_called_null() {
    let messages = messages("f.jsonl", "{\"id\": 1, \"text\": null}\n", &ReadOptions::default());
    assert_eq!(messages, ["f.jsonl:1: the text is null: field `text`"]);
}

#[test]
fn a_column_that_is_read_must_not_occur_twice() {
    let default = ReadOptions::default();
    let message = messages("f.csv", "id,text,labels,Text\n1,a,b,c\n", &default);
    assert_eq!(message, ["f.csv:1: column `text` occurs twice in the header"]);
    assert_eq!(texts("f.csv", "id,text,body,body\n1,a,b,c\n", &default), ["a"]);
}

#[test]
fn data_without_an_end_is_given_up() {
    let options = ReadOptions { max_record: 1000, ..ReadOptions::default() };
    for format in FORMATS.iter().filter(|info| !info.is_folder() && info.format != Format::Document) {
        let mut reader = Reader::stream("f", std::io::repeat(b'x'), Some(format.format), &options).unwrap();
        let bad = reader.next().unwrap().unwrap_err();
        assert_eq!(
            bad.to_string(),
            "f:1: a record of more than 1048576 bytes has no end: this is no file of records"
        );
        assert!(bad.is_fatal() && bad.content.len() < 5000 && reader.next().is_none());
    }
    let endless = std::io::Cursor::new("[\"").chain(std::io::repeat(b'x'));
    let mut reader = Reader::stream("f", endless, Some(Format::Jsonl), &options).unwrap();
    assert!(reader.next().unwrap().unwrap_err().is_fatal());
    let zeros = Reader::stream("/dev/zero", std::io::repeat(0), None, &ReadOptions::default());
    let error = zeros.err().unwrap();
    assert_eq!(
        (error.to_string().as_str(), error.kind()),
        (
            "cannot read `/dev/zero`: it is binary data, or text in another encoding than UTF-8",
            crate::ErrorKind::Data
        )
    );
    let mut whole = Reader::stream("f", std::io::repeat(b'x'), Some(Format::Document), &options).unwrap();
    assert_eq!(whole.next().unwrap().unwrap_err().to_string(), "f: longer than 1000 bytes");
}

#[test]
fn a_line_of_nul_bytes_is_bad_and_a_stray_one_is_not() {
    let file = "some words that are text\n\0\0\nmore\0words\n";
    let read = documents("f.txt", file, &ReadOptions::default());
    assert_eq!(read[1], Err("f.txt:2: nothing but NUL bytes".to_owned()));
    assert!(read[0].is_ok() && read[2].is_ok());
}

#[test]
fn other_encodings_and_line_ends_are_named() {
    let utf16: Vec<u8> = "\u{feff}id,text\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let message = messages("f.csv", utf16, &ReadOptions::default());
    assert_eq!(message, ["cannot read `f.csv`: it is UTF-16 text; save it as UTF-8"]);
    for (name, file) in [
        ("f.csv", "id,text\r1,a\r2,b\r"),
        ("f.jsonl", "{\"text\": \"a\"}\r{\"text\": \"b\"}\r"),
        ("f.txt", "__label__a x\r__label__b y"),
    ] {
        let message = messages(name, file, &ReadOptions::default());
        assert_eq!(message.len(), 1, "{message:?}");
        let expected = format!("{name}:1: lines end in carriage returns alone; save");
        assert!(message[0].starts_with(&expected), "{}", message[0]);
    }
    // One line with the line end of another system, and no other.
    assert_eq!(texts("f.txt", "one line\r", &ReadOptions::default()), ["one line"]);
}

#[test]
fn a_git_lfs_pointer_is_named_with_the_remedy() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n";
    let message = messages("train.jsonl", pointer, &ReadOptions::default());
    assert!(message[0].contains("Git LFS pointer") && message[0].contains("git lfs pull"), "{}", message[0]);
}

#[test]
fn files_without_a_record_have_no_documents() {
    for (name, file) in
        [("f.csv", ""), ("f.csv", "id,text,labels\n"), ("f.jsonl", "\n \n"), ("f.jsonl", "[]"), ("-", "")]
    {
        assert_eq!(documents(name, file, &ReadOptions::default()), [], "{name} {file}");
    }
}

#[test]
fn an_array_of_objects_reads_like_lines() {
    let file = "\u{feff}[\n  {\"id\": 1, \"text\": \"a ] \\\" }\", \"labels\": [\"x\"]},\n  {\n    \"text\": \"b\"\n  },\n\
                \"c\", {\"prose\": 1}, {\"text\": \"d\"}\n]\n";
    let read = documents("f.json", file, &ReadOptions::default());
    let first = read[0].as_ref().unwrap();
    assert_eq!((first.id.as_str(), first.text.as_str(), first.labels.len()), ("1", "a ] \" }", 1));
    let second = read[1].as_ref().unwrap();
    assert_eq!((second.id.as_str(), second.text.as_str()), ("line-2", "b"));
    assert!(read[2].as_ref().unwrap_err().starts_with("f.json:6: "), "{:?}", read[2]);
    assert_eq!(read[3], Err("f.json:6: no field `text`; there is `prose`".to_owned()));
    assert_eq!(read[4].as_ref().unwrap().text, "d");
    assert_eq!(read.len(), 5);
    let mut reader =
        Reader::stream("f.json", std::io::Cursor::new(file), None, &ReadOptions::default()).unwrap();
    reader.by_ref().take(2).for_each(drop);
    assert_eq!(reader.origin().to_string(), "f.json:3");
    for (cut, message) in [
        ("[{\"text\": \"a\"}", "f.json:1: not valid JSON: the file ends before its array does"),
        ("[{\"text\": \"a\"}]\nx", "f.json:2: expected a list of objects separated by commas, found `x`"),
        ("[{\"text\": \"a\"} {}]", "f.json:1: expected a list of objects separated by commas, found `{`"),
    ] {
        assert_eq!(messages("f.json", cut, &ReadOptions::default()), [message], "{cut}");
    }
}

#[test]
fn documents_to_be_classified_need_no_labels_and_lose_none_of_their_text() {
    let predict =
        ReadOptions { drop_field: Some("leak".into()), ..ReadOptions::default() }.expecting(Expect::Text);
    let read = |name: &str, file: &str| {
        let read: Vec<Document> = documents(name, file, &predict).into_iter().map(Result::unwrap).collect();
        assert!(read.iter().all(|document| document.labels.is_empty()));
        read.into_iter().map(|document| (document.id, document.text)).collect::<Vec<_>>()
    };
    let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    assert_eq!(read("f.tsv", "7\ta\tb\nno tab\n"), [pair("7", "a\tb"), pair("line-2", "no tab")]);
    assert_eq!(read("-", "7\ta\n"), [pair("line-1", "7\ta")]);
    assert_eq!(read("-", "__label__a the text\n"), [pair("line-1", "the text")]);
    let line = "{\"id\": 1, \"text\": \"a\", \"labels\": [0.5], \"leak\": true}\n";
    assert_eq!(read("-", line), [pair("1", "a")]);
    assert_eq!(read("f.csv", "text,labels,leak\na,0;1;1,true\n"), [pair("line-2", "a")]);
    let whole =
        Reader::stream("letter.txt", &b"\xef\xbb\xbfDear\n\nyou\n"[..], Some(Format::Document), &predict);
    let whole: Vec<Document> = whole.unwrap().map(Result::unwrap).collect();
    assert_eq!(whole, [Document::from_text("letter.txt", "Dear\n\nyou\n")]);
}
