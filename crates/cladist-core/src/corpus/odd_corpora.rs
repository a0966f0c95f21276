//! Corpora that are not what their names say, and texts that must be the same wherever they are read.

use super::tests::{Folder, TREE, line};
use super::*;
use crate::readers::{Expect, Reader};
use crate::text::normalise::Normalise;

#[test]
fn a_text_is_made_in_the_same_way_for_training_and_for_prediction() {
    let csv = "id,title,body,topics\n1,The BUS,is late,x\n2,A tram,is 7 minutes late,y\n";
    let folder = Folder::new(&[("train.csv", csv)]);
    let config = DataConfig {
        text_field: Some("title,body".into()),
        labels_field: Some("topics".into()),
        normalise: Normalise { lowercase: true, drop_numbers: true, ..Normalise::default() },
        ..DataConfig::default()
    };
    let (corpus, report) = folder.load(&config).unwrap();
    assert_eq!(report.splits[0].text_fields, ["title", "body"]);
    let shown = report.to_string();
    assert!(shown.contains("train: 2 documents, csv, text from `title`, `body`"), "{shown}");
    // As a bundle keeps it.
    let kept: DataConfig = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
    let read = |csv: &str| -> Vec<String> {
        let file = std::io::Cursor::new(csv.to_owned());
        let options = kept.read_options().expecting(Expect::Text);
        let reader = Reader::stream("new.csv", file, None, &options).unwrap();
        let documents: Vec<Document> = reader.map(|record| record.unwrap()).collect();
        kept.normalise.documents(&documents).iter().map(|document| document.text.clone()).collect()
    };
    let trained: Vec<String> = corpus.train.unwrap().documents.into_iter().map(|d| d.text).collect();
    assert_eq!(trained, ["the bus is late", "a tram is minutes late"]);
    assert_eq!(read(csv), trained);
    assert_eq!(read(&csv.replace(",topics", ",other")), trained);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_an_error() {
    for name in ["hierarchy.tsv", "labels.tsv", "taxonomy.json"] {
        let folder = Folder::new(&[("train.jsonl", &line("1", "a", &["bus"]))]);
        std::fs::create_dir(folder.0.path().join(name)).unwrap();
        let error = folder.load(&DataConfig::default()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(error.kind(), crate::ErrorKind::NotFound, "{error}");
    }
    let folder = Folder::new(&[TREE, ("train.jsonl", &line("1", "a", &["bus"]))]);
    std::fs::create_dir(folder.0.path().join("dev.csv")).unwrap();
    let error = folder.load(&DataConfig::default()).unwrap_err().to_string();
    assert!(error.contains("dev.csv"), "{error}");
}

#[test]
fn a_git_lfs_pointer_is_named_wherever_it_is() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n";
    for name in ["train.jsonl", "hierarchy.tsv", "labels.tsv"] {
        let folder = Folder::new(&[("test.jsonl", &line("1", "a", &["bus"])), (name, pointer)]);
        let error = folder.load(&DataConfig::default()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(error.remedy(), Some("`git lfs pull` fetches the file"));
        assert_eq!(error.kind(), crate::ErrorKind::Data);
    }
}

#[cfg(unix)]
#[test]
fn a_path_that_cannot_be_written_down_is_refused_before_anything_is_read() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::new(&[]);
    let odd = folder.0.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("train.jsonl"), line("1", "a", &["bus"])).unwrap();
    let source = CorpusSource::folder(&odd).unwrap();
    let error = load(&source, &DataConfig::default(), &mut BadLines::Stop, &Job::silent()).unwrap_err();
    assert!(error.to_string().ends_with("is not UTF-8"), "{error}");
    assert_eq!(error.remedy(), Some("rename the file or folder"));
    assert_eq!(error.kind(), crate::ErrorKind::Data);
    assert!(check(&source, &DataConfig::default(), &Job::silent()).is_err());
}
