use super::*;
use crate::corpus::tests::{Folder, TREE, line};
use crate::corpus::{
    Ancestors, DuplicateIds, DuplicatesAcrossSplits, KeepOrDrop, LabelsWithoutDocuments, load,
};
use crate::readers::BadLines;
use crate::taxonomy::LabelSet;
use crate::text::normalise::Normalise;

fn folder() -> Folder {
    let labels = [["bus"], ["tram"], ["bus"], ["tram"], ["transit"]];
    let mut train: String =
        (0..20).map(|n| line(&format!("{n}"), &format!("Text {n}"), &labels[n % 5])).collect();
    train += &line("empty", " ", &["bus"]);
    train += &line("bare", "no label", &[]);
    let test = line("1", "Text 3", &["tram"]) + &line("2", "another", &["bike"]);
    Folder::new(&[TREE, ("train.jsonl", &train), ("test.jsonl", &test)])
}

fn adopted(config: &DataConfig) -> (Corpus, DataReport) {
    let (plain, _) = folder().load(&DataConfig::default()).unwrap();
    adopt(plain, config, &Job::silent()).unwrap()
}

/// What policies decide: the labels, and ids, texts and gold of each split.
fn decided(corpus: &Corpus) -> Vec<String> {
    let split = |split: &Split| {
        let one = |(document, gold): (&crate::Document, &LabelSet)| {
            let gold: Vec<&str> = gold.iter().map(|&label| corpus.taxonomy.id(label)).collect();
            format!("{} {:?} {gold:?}", document.id, document.text)
        };
        format!("{} {:?}", split.name, split.documents.iter().zip(&split.gold).map(one).collect::<Vec<_>>())
    };
    let labels: Vec<&str> = corpus.taxonomy.labels().map(|label| corpus.taxonomy.id(label)).collect();
    let splits = SplitName::ALL.into_iter().filter_map(|name| corpus.split(name)).map(split);
    [format!("{labels:?}")].into_iter().chain(splits).collect()
}

#[test]
fn every_setting_does_in_memory_what_it_does_to_files() {
    let default = DataConfig::default;
    let plain = decided(&adopted(&default()).0);
    let configs = [
        DataConfig { ancestors: Ancestors::Add, ..default() },
        DataConfig { max_levels: Some(1), ..default() },
        DataConfig { drop_top_levels: 1, ..default() },
        DataConfig { labels_without_documents: LabelsWithoutDocuments::Drop, ..default() },
        DataConfig { hold_out_labels: 0.5, ..default() },
        DataConfig { empty_documents: KeepOrDrop::Drop, ..default() },
        DataConfig { unlabelled_documents: KeepOrDrop::Drop, ..default() },
        DataConfig { duplicates_across_splits: DuplicatesAcrossSplits::DropFromTrain, ..default() },
        DataConfig { dev: 0.3, ..default() },
        DataConfig { dev: 0.3, stratified: false, ..default() },
        DataConfig { normalise: Normalise { lowercase: true, ..Normalise::default() }, ..default() },
    ];
    for config in configs {
        let (from_files, read) = folder().load(&config).unwrap();
        let (from_memory, counted) = adopted(&config);
        assert_eq!(decided(&from_memory), decided(&from_files), "{config:?}");
        assert_ne!(decided(&from_memory), plain, "{config:?}");
        assert_eq!(counted.missing_ancestors, read.missing_ancestors, "{config:?}");
        assert_eq!(counted.held_out_labels, read.held_out_labels, "{config:?}");
        let dropped = |report: &DataReport| -> Vec<(usize, usize, usize)> {
            report.splits.iter().map(|split| (split.documents, split.dropped, split.held_out)).collect()
        };
        assert_eq!(dropped(&counted), dropped(&read), "{config:?}");
    }
    let (_, report) = adopted(&DataConfig { dev: 0.3, ..default() });
    let shown = report.to_string();
    assert!(shown.contains("5 labels on 2 levels, in memory"), "{shown}");
    assert!(
        shown.contains("documents, in memory") && shown.contains("documents, held out of train"),
        "{shown}"
    );
}

#[test]
fn ids_that_occur_twice_are_refused_renamed_or_dropped() {
    let (mut corpus, _) = folder().load(&DataConfig::default()).unwrap();
    let train = corpus.train.as_mut().unwrap();
    train.documents[2].id = "0".to_owned();
    let adopt = |duplicate_ids| {
        adopt(corpus.clone(), &DataConfig { duplicate_ids, ..DataConfig::default() }, &Job::silent())
    };
    let message = adopt(DuplicateIds::Error).unwrap_err().to_string();
    assert_eq!(message, "in memory:3: id `0` occurs twice in the train split, first at in memory:1");
    let renamed = adopt(DuplicateIds::Rename).unwrap().0.train.unwrap();
    assert_eq!((renamed.documents.len(), renamed.documents[2].id.as_str()), (22, "0#2"));
    let dropped = adopt(DuplicateIds::Drop).unwrap().0.train.unwrap();
    assert_eq!((dropped.documents.len(), dropped.gold.len()), (21, 21));
}

#[test]
fn gold_that_does_not_fit_is_an_error() {
    let (corpus, _) =
        load(&folder().source(), &DataConfig::default(), &mut BadLines::Stop, &Job::silent()).unwrap();
    let refused =
        |corpus: Corpus| adopt(corpus, &DataConfig::default(), &Job::silent()).unwrap_err().to_string();
    let mut short = corpus.clone();
    short.train.as_mut().unwrap().gold.pop();
    assert_eq!(refused(short), "the train split has 22 documents and 21 gold sets");
    let foreign = Corpus { taxonomy: Taxonomy::flat(["a", "b"]), ..corpus };
    let message = refused(foreign);
    assert!(message.starts_with("document `0` of the train split has gold label "), "{message}");
    assert!(message.ends_with(" of a taxonomy with 2 labels"), "{message}");
}
