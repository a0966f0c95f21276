//! Annif's full-text corpora: a folder where `x.txt` is a document called `x` and its labels are beside it, in
//! `x.tsv` (`<uri> TAB name`) or `x.key` (a label per line). Without either it has no labels.

use std::path::Path;
use std::sync::Arc;

use super::folder::{self, FolderRecords};
use super::{BadKind, BadLine, ReadOptions, Records, annif_tsv};
use crate::document::Document;
use crate::error::Result;

pub(super) fn open(folder: &Path, options: &ReadOptions) -> Result<Box<dyn Records>> {
    FolderRecords::open(folder, "txt", options, parse)
}

fn parse(path: &Path, stem: &str, options: &ReadOptions) -> Result<Document, BadLine> {
    let text = folder::file_text(path, options)?;
    let mut labels = Vec::new();
    let beside = ["tsv", "key"]
        .iter()
        .flat_map(|ending| ["", ".gz", ".zst"].map(|packed| format!("{stem}.{ending}{packed}")))
        .map(|name| path.with_file_name(name))
        .find(|path| path.is_file());
    if let Some(beside) = beside.filter(|_| options.reads_labels()) {
        let is_tsv = folder::stem_and_ending(&beside).is_some_and(|(_, ending)| ending == "tsv");
        let lines = folder::file_text(&beside, options)?;
        for (n, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let subject = if is_tsv { line.split('\t').next().unwrap_or_default() } else { line };
            let label = annif_tsv::subject(subject.trim());
            if label.is_empty() {
                return Err(BadLine {
                    path: Arc::new(beside),
                    line: n + 1,
                    column: Some(1),
                    kind: BadKind::EmptyLabel,
                    content: line.to_owned(),
                });
            }
            labels.push(label.to_owned());
        }
    }
    Ok(Document { id: stem.to_owned(), text, labels, features: None })
}

#[cfg(test)]
mod tests {
    use crate::readers::{Format, ReadOptions, Reader};

    #[test]
    fn labels_stand_beside_the_text_and_files_come_in_order_of_name() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("b.txt", "second\ntext");
        write("b.key", "bus\n\nlate bus\n");
        write("a.txt", "first");
        write("a.tsv", "<http://x/1>\tone\n<http://x/2>\ttwo\n");
        write("c.txt", "third");
        let reader = Reader::open(folder.path(), None, &ReadOptions::default()).unwrap();
        assert_eq!(reader.format(), Format::AnnifFulltext);
        let documents: Vec<_> = reader.map(Result::unwrap).collect();
        let ids: Vec<_> = documents.iter().map(|d| d.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(documents[0].labels, ["http://x/1", "http://x/2"]);
        assert_eq!(documents[1].labels, ["bus", "late bus"]);
        assert_eq!(documents[1].text, "second\ntext");
        assert!(documents[2].labels.is_empty());
    }
}
