//! Policies, on small corpora in a temporary folder.

use std::path::Path;

use super::assemble::{find_leaks, hold_out};
use super::*;
use crate::job::Cancel;
use crate::readers::BadLine;

pub(super) struct Folder(pub(super) tempfile::TempDir);

impl Folder {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    pub(super) fn source(&self) -> CorpusSource {
        CorpusSource::folder(self.0.path()).unwrap()
    }

    pub(super) fn load(&self, config: &DataConfig) -> Result<(Corpus, DataReport)> {
        load(&self.source(), config, &mut BadLines::Stop, &Job::silent())
    }
}

pub(super) fn line(id: &str, text: &str, labels: &[&str]) -> String {
    serde_json::json!({ "id": id, "text": text, "labels": labels }).to_string() + "\n"
}

fn ids(split: Option<&Split>) -> Vec<&str> {
    split.map_or(Vec::new(), |split| split.documents.iter().map(|d| d.id.as_str()).collect())
}

fn gold(corpus: &Corpus, split: &Split) -> Vec<Vec<String>> {
    let names = |set: &LabelSet| set.iter().map(|&l| corpus.taxonomy.id(l).to_owned()).collect();
    split.gold.iter().map(names).collect()
}

pub(super) const TREE: (&str, &str) =
    ("hierarchy.tsv", "ROOT\ttransit\nROOT\troads\ntransit\tbus\ntransit\ttram\nroads\tbike\n");

#[test]
fn without_a_taxonomy_the_labels_of_all_splits_make_one() {
    let folder = Folder::new(&[
        ("train.jsonl", &line("1", "a", &["x", "y"])),
        ("test.jsonl", &line("2", "b", &["z"])),
    ]);
    let (corpus, report) = folder.load(&DataConfig::default()).unwrap();
    assert_eq!((corpus.taxonomy.n_labels(), corpus.taxonomy.n_levels()), (3, 1));
    assert_eq!(gold(&corpus, corpus.train.as_ref().unwrap()), [["x", "y"]]);
    assert_eq!((report.vocabulary.path, report.labels_without_documents), (None, Some(1)));
    assert!(corpus.dev.is_none());
}

#[test]
fn unknown_labels_stop_are_dropped_or_added() {
    let train = line("1", "a", &["bus", "ferry"]) + &line("2", "b", &["ferry"]) + &line("3", "c", &["boat"]);
    let folder = Folder::new(&[TREE, ("train.jsonl", &train)]);
    let error = folder.load(&DataConfig::default()).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Data);
    let file = folder.0.path().join("train.jsonl").display().to_string();
    assert_eq!(
        error.to_string(),
        format!(
            "2 gold labels in 3 documents are not in the taxonomy: `ferry` (2) from {file}:1, `boat` (1) from {file}:3"
        )
    );
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("data.unknown_labels")));

    let drop = DataConfig { unknown_labels: UnknownLabels::Drop, ..DataConfig::default() };
    let (corpus, report) = folder.load(&drop).unwrap();
    assert_eq!(gold(&corpus, corpus.train.as_ref().unwrap()), [vec!["bus"], vec![], vec![]]);
    assert_eq!((report.unknown_labels.labels, report.unknown_labels.occurrences), (2, 3));
    assert_eq!(report.dropped_gold, 0);

    let add = DataConfig { unknown_labels: UnknownLabels::Add, ..DataConfig::default() };
    let (corpus, report) = folder.load(&add).unwrap();
    assert_eq!(corpus.taxonomy.level(corpus.taxonomy.get("ferry").unwrap()), 1);
    assert_eq!(corpus.taxonomy.n_labels(), 7);
    assert_eq!(report.unknown_labels.labels, 2);
}

#[test]
fn missing_ancestors_are_counted_and_may_be_added() {
    let train = line("1", "a", &["bus", "transit"]) + &line("2", "b", &["bus", "bike"]);
    let folder = Folder::new(&[TREE, ("train.jsonl", &train)]);
    let (corpus, report) = folder.load(&DataConfig::default()).unwrap();
    assert_eq!(report.missing_ancestors, MissingAncestors { documents: 1, labels: 2, added: false });
    let remedy = "missing ancestors: 2 in 1 document; `data.ancestors = \"add\"` adds them";
    assert!(report.to_string().contains(remedy), "{report}");
    assert_eq!(corpus.train.as_ref().unwrap().gold[1].len(), 2);
    let add = DataConfig { ancestors: Ancestors::Add, ..DataConfig::default() };
    let (corpus, report) = folder.load(&add).unwrap();
    assert_eq!(report.missing_ancestors.labels, 2);
    assert!(report.to_string().contains("missing ancestors: 2 in 1 document; added"), "{report}");
    assert_eq!(gold(&corpus, corpus.train.as_ref().unwrap())[1], ["roads", "transit", "bike", "bus"]);
}

#[test]
fn labels_without_documents_leave_with_their_gold() {
    let folder = Folder::new(&[
        TREE,
        ("train.jsonl", &line("1", "a", &["bus"])),
        ("test.jsonl", &line("2", "b", &["bus", "bike"])),
    ]);
    let (corpus, report) = folder.load(&DataConfig::default()).unwrap();
    assert_eq!((corpus.taxonomy.n_labels(), report.labels_without_documents), (5, Some(3)));
    let drop = DataConfig { labels_without_documents: LabelsWithoutDocuments::Drop, ..DataConfig::default() };
    let (corpus, report) = folder.load(&drop).unwrap();
    assert_eq!((corpus.taxonomy.n_labels(), report.vocabulary.labels, report.dropped_gold), (2, 2, 1));
    assert_eq!(gold(&corpus, corpus.test.as_ref().unwrap()), [["bus"]]);
    assert_eq!(corpus.taxonomy.level(corpus.taxonomy.get("bus").unwrap()), 2);

    let load_test = |config| {
        load_split(
            &folder.source(),
            SplitName::Test,
            &corpus.taxonomy,
            config,
            &mut BadLines::Stop,
            &Job::silent(),
        )
    };
    let (split, report) = load_test(&drop).unwrap();
    assert_eq!((split.gold[0].len(), report.unknown_labels.labels), (1, 1));
    assert!(load_test(&DataConfig::default()).unwrap_err().to_string().contains("`bike` (1) from "));
}

#[test]
fn empty_and_unlabelled_documents_are_counted_and_may_go() {
    let train = line("1", "the 7", &["bus"]) + &line("2", "b", &[]) + &line("3", "c", &["bus"]);
    let folder = Folder::new(&[TREE, ("train.jsonl", &train)]);
    let mut config = DataConfig::default();
    let (_, report) = folder.load(&config).unwrap();
    let split = report.split(SplitName::Train).unwrap();
    assert_eq!((split.empty_documents, split.unlabelled_documents, split.documents), (0, 1, 3));
    config.normalise.drop_numbers = true;
    config.normalise.drop_stopwords = true;
    config.empty_documents = KeepOrDrop::Drop;
    config.unlabelled_documents = KeepOrDrop::Drop;
    let (corpus, report) = folder.load(&config).unwrap();
    let split = report.split(SplitName::Train).unwrap();
    assert_eq!(ids(corpus.train.as_ref()), ["3"]);
    assert_eq!((split.empty_documents, split.unlabelled_documents, split.dropped), (1, 1, 2));
    assert_eq!((split.tally.kept, split.documents), (3, 1));
}

#[test]
fn duplicate_ids_stop_are_renamed_or_dropped() {
    let train = ["1", "1#2", "1", "1"].map(|id| line(id, "a", &["bus"])).concat();
    let folder = Folder::new(&[TREE, ("train.jsonl", &train)]);
    let error = folder.load(&DataConfig::default()).unwrap_err();
    let file = folder.0.path().join("train.jsonl").display().to_string();
    let expected = format!("{file}:3: id `1` occurs twice in the train split, first at {file}:1");
    assert_eq!(error.to_string(), expected);
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("data.duplicate_ids")));
    let with = |duplicate_ids| {
        let (corpus, report) = folder.load(&DataConfig { duplicate_ids, ..DataConfig::default() }).unwrap();
        assert_eq!(report.split(SplitName::Train).unwrap().duplicate_ids, 2);
        ids(corpus.train.as_ref()).iter().map(|&id| id.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(with(DuplicateIds::Rename), ["1", "1#2", "1#3", "1#4"]);
    assert_eq!(with(DuplicateIds::Drop), ["1", "1#2"]);
}

#[test]
fn leaks_are_reported_and_may_leave_train() {
    let folder = Folder::new(&[
        TREE,
        ("train.jsonl", &(line("1", "same  text", &["bus"]) + &line("2", "own", &["tram"]))),
        ("test.jsonl", &line("9", "same text ", &["bus"])),
    ]);
    let (corpus, report) = folder.load(&DataConfig::default()).unwrap();
    assert_eq!((report.leaks.train_in_test, report.leaks.dropped), (1, 0));
    assert_eq!(report.leaks.examples[0].other_id, "9");
    assert_eq!(ids(corpus.train.as_ref()), ["1", "2"]);
    let config = DataConfig {
        duplicates_across_splits: DuplicatesAcrossSplits::DropFromTrain,
        ..DataConfig::default()
    };
    let (corpus, report) = folder.load(&config).unwrap();
    assert_eq!((report.leaks.train_in_test, report.leaks.dropped), (1, 1));
    assert_eq!(ids(corpus.train.as_ref()), ["2"]);
}

#[test]
fn dev_is_held_out_once_and_again_the_same_way() {
    let label = |n: usize| ["bus", "tram", "bike"][n % 3];
    let train: String =
        (0..90).map(|n| line(&n.to_string(), &format!("text {}", n / 2), &[label(n)])).collect();
    let folder =
        Folder::new(&[TREE, ("train.jsonl", &train), ("test.jsonl", &line("t", "text 7", &["bus"]))]);
    for duplicates_across_splits in [DuplicatesAcrossSplits::Keep, DuplicatesAcrossSplits::DropFromTrain] {
        let config = DataConfig { dev: 0.2, duplicates_across_splits, ..DataConfig::default() };
        let (corpus, report) = folder.load(&config).unwrap();
        let dev = corpus.dev.as_ref().unwrap();
        let train = report.split(SplitName::Train).unwrap();
        assert_eq!((dev.documents.len(), train.held_out), (18, 18));
        assert_eq!(train.documents + 18 + report.leaks.dropped, 90);
        let again = |name| {
            let (bad, job) = (&mut BadLines::Stop, &Job::silent());
            load_split(&folder.source(), name, &corpus.taxonomy, &config, bad, job).unwrap().0
        };
        assert_eq!(&again(SplitName::Dev), dev);
        assert_eq!(Some(&again(SplitName::Train)), corpus.train.as_ref());
        let other = folder.load(&DataConfig { seed: 7, ..config.clone() }).unwrap().0;
        assert_ne!(other.dev.as_ref(), Some(dev));
    }
}

#[test]
fn bad_lines_are_rejected_and_the_numbers_add_up() {
    let train = line("1", "a", &["bus"]) + "oops\n" + &line("2", "b", &["tram"]);
    let folder = Folder::new(&[TREE, ("train.jsonl", &train)]);
    let message = folder.load(&DataConfig::default()).unwrap_err().to_string();
    assert!(message.ends_with("train.jsonl:2:1: not valid JSON: expected value"), "{message}");
    let mut rejects = Vec::new();
    let mut sink = |bad: BadLine| {
        rejects.push(bad.content);
        Ok(())
    };
    let skip = &mut BadLines::Skip(&mut sink);
    let (_, report) = load(&folder.source(), &DataConfig::default(), skip, &Job::silent()).unwrap();
    let tally = report.splits[0].tally;
    assert_eq!((tally.read, tally.kept, tally.rejected), (3, 2, 1));
    assert_eq!(rejects, ["oops"]);
}

#[test]
fn a_corpus_to_learn_from_has_documents_with_labels() {
    let folder = Folder::new(&[TREE, ("train.jsonl", "{\"text\": \"a\", \"topics\": [\"bus\"]}\n")]);
    let message = folder.load(&DataConfig::default()).unwrap_err().to_string();
    assert!(message.contains("none of the 1 documents in the train split has a label"), "{message}");
    let folder = Folder::new(&[TREE, ("train.jsonl", "\n")]);
    let message = folder.load(&DataConfig::default()).unwrap_err().to_string();
    assert_eq!(message, "no document in the train split");
    let (bad, job) = (&mut BadLines::Stop, &Job::silent());
    let taxonomy = Taxonomy::flat(["bus"]);
    let missing = load_split(&folder.source(), SplitName::Test, &taxonomy, &DataConfig::default(), bad, job);
    assert_eq!(missing.unwrap_err().to_string(), "the corpus has no test split");
}

#[test]
fn several_files_make_a_split_and_their_unnamed_documents_differ() {
    let folder = Folder::new(&[("a.txt", "__label__x one\n"), ("b.txt", "__label__y two\n")]);
    let file = |name: &str| folder.0.path().join(name);
    let source = CorpusSource { train: vec![file("a.txt"), file("b.txt")], ..CorpusSource::default() };
    let (corpus, report) =
        load(&source, &DataConfig::default(), &mut BadLines::Stop, &Job::silent()).unwrap();
    assert_eq!(ids(corpus.train.as_ref()), ["a.txt-line-1", "b.txt-line-1"]);
    assert_eq!(report.splits[0].tally.read, 2);
}

#[test]
fn a_check_finds_everything_at_once() {
    let train = line("1", "same", &["bus"])
        + "oops\n"
        + &line("1", "b", &["ferry"])
        + &line("3", "", &[])
        + &line("4", "c", &["tram", "tram"]);
    let folder = Folder::new(&[
        TREE,
        ("train.jsonl", &train),
        ("dev.jsonl", &line("9", "same", &["transit", "bike"])),
    ]);
    let report = check(&folder.source(), &DataConfig::default(), &Job::silent()).unwrap();
    assert!(report.is_fatal() && !report.is_clean());
    assert_eq!(report.bad_lines.len(), 1);
    let train = report.data.split(SplitName::Train).unwrap();
    assert_eq!((train.tally.rejected, train.duplicate_ids, train.empty_documents), (1, 1, 1));
    assert_eq!(train.unlabelled_documents, 1);
    let unknown = &report.data.unknown_labels.examples[0];
    assert_eq!((unknown.id.as_str(), unknown.documents), ("ferry", 1));
    assert_eq!(report.data.missing_ancestors, MissingAncestors { documents: 3, labels: 3, added: false });
    assert_eq!((report.data.leaks.train_in_dev, report.data.repeated_labels), (1, 1));
    assert_eq!(report.data.labels_without_documents, Some(2));
    let text = report.to_string().replace(&folder.0.path().display().to_string(), "DIR");
    let expected = "DIR/train.jsonl:2:1: not valid JSON: expected value\n\
        taxonomy: 5 labels on 2 levels, DIR/hierarchy.tsv\n\
        train: 4 documents, jsonl, text from `text`; 1 rejected, 1 empty, 1 without labels, 1 with an id that was there before\n\
        dev: 1 document, jsonl, text from `text`\n\
        unknown labels: 1 in 1 document\n\
        missing ancestors: 3 in 3 documents; `data.ancestors = \"add\"` adds them\n\
        labels named twice by a document: 1\n\
        labels without training documents: 2\n\
        leaks: 1 of train in dev\n  \
          id `1` at DIR/train.jsonl:3 was there before, at DIR/train.jsonl:1\n  \
          unknown label `ferry` in 1 document, first at DIR/train.jsonl:3\n  \
          train `1` has the text of dev `9`";
    assert_eq!(text, expected);
}

#[test]
fn a_check_survives_a_broken_taxonomy_and_a_broken_file() {
    let folder = Folder::new(&[
        ("hierarchy.tsv", "a\tb\nb\ta\n"),
        ("train.csv", "id,prose\n1,x\n"),
        ("test.jsonl", &line("2", "b", &["a"])),
    ]);
    let report = check(&folder.source(), &DataConfig::default(), &Job::silent()).unwrap();
    assert!(report.taxonomy_problems[0].contains("cycle"), "{:?}", report.taxonomy_problems);
    assert!(report.unreadable[0].contains("train.csv:1: no column `text`"), "{:?}", report.unreadable);
    assert_eq!(report.data.splits.len(), 1);
    assert!(report.is_fatal());
}

#[test]
fn stats_look_at_every_split_and_at_leaks() {
    let folder = Folder::new(&[
        TREE,
        ("train.jsonl", &(line("1", "one two", &["bus", "tram"]) + &line("2", "x", &["bus"]))),
        ("test.jsonl", &line("3", "one two", &["bike"])),
    ]);
    let (bad, job) = (&mut BadLines::Stop, &Job::silent());
    let stats = stats(&folder.source(), &DataConfig::default(), 3, bad, job).unwrap();
    let train = &stats.splits[&SplitName::Train];
    assert_eq!((train.documents, train.labels_used, train.words.max), (2, 2, 2));
    assert_eq!(train.top_pairs[0].labels, ("bus".to_owned(), "tram".to_owned()));
    assert_eq!(stats.leaks.train_in_test, 1);
    assert_eq!(stats.vocabulary.unwrap().labels, 5);
    let json = serde_json::to_value(&stats.splits).unwrap();
    assert_eq!(json["test"]["levels"][1]["documents"], 1);
}

#[test]
fn a_cancelled_job_stops_reading() {
    let folder = Folder::new(&[TREE, ("train.jsonl", &line("1", "a", &["bus"]))]);
    let job = Job::silent();
    job.cancel.cancel();
    let result = load(&folder.source(), &DataConfig::default(), &mut BadLines::Stop, &job);
    assert!(matches!(result, Err(Error::Cancelled)));
    assert!(CorpusSource::folder(Path::new("nowhere")).is_err());
}

#[test]
fn gold_of_dropped_levels_moves_to_kept_ancestors() {
    let train = line("1", "a", &["bus", "tram", "bike"]) + &line("2", "b", &["roads"]);
    let folder =
        Folder::new(&[TREE, ("train.jsonl", &train), ("test.jsonl", &line("3", "c", &["tram", "ferry"]))]);
    let config = |top, max| DataConfig {
        drop_top_levels: top,
        max_levels: max,
        unknown_labels: UnknownLabels::Drop,
        ..DataConfig::default()
    };
    let (corpus, report) = folder.load(&config(0, Some(1))).unwrap();
    assert_eq!(corpus.taxonomy.n_levels(), 1);
    assert_eq!(gold(&corpus, corpus.train.as_ref().unwrap()), [vec!["roads", "transit"], vec!["roads"]]);
    assert_eq!((report.truncated_gold, report.unknown_labels.labels, report.repeated_labels), (4, 1, 0));

    // A split on its own is cut in the same way.
    let taxonomy = corpus.taxonomy.clone();
    let config1 = config(0, Some(1));
    let (split, _) = load_split(
        &folder.source(),
        SplitName::Test,
        &taxonomy,
        &config1,
        &mut BadLines::Stop,
        &Job::silent(),
    )
    .unwrap();
    assert_eq!(split.gold, corpus.test.as_ref().unwrap().gold);
    assert_eq!(gold(&corpus, &split), [["transit"]]);

    let (corpus, _) = folder.load(&config(1, None)).unwrap();
    assert_eq!(gold(&corpus, corpus.train.as_ref().unwrap()), [vec!["bike", "bus", "tram"], vec![]]);
    let error = folder.load(&config(2, None)).unwrap_err().to_string();
    assert!(error.starts_with("no level is left: the taxonomy has 2"), "{error}");
}

#[test]
fn looking_for_leaks_and_holding_out_stop_when_they_are_asked_to() {
    let document = |id: &str| Document::from_text(id, id);
    let mut splits = vec![(SplitName::Train, vec![document("1"), document("2"), document("3")])];
    let (config, cancel) = (DataConfig { dev: 0.5, ..DataConfig::default() }, Cancel::default());
    cancel.cancel();
    let report = &mut DataReport::default();
    assert!(matches!(find_leaks(&mut splits, &config, report, &cancel), Err(Error::Cancelled)));
    assert!(matches!(hold_out(&mut splits, &config, report, &cancel), Err(Error::Cancelled)));
    for stratified in [true, false] {
        let sides = split(&[vec![0], vec![1]], 0.5, 1, stratified, &cancel);
        assert!(matches!(sides, Err(Error::Cancelled)));
    }
}
