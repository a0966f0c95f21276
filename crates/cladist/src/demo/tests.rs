//! What the demo corpus promises.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;

const SEED: u64 = 42;

fn all(corpus: &DemoCorpus) -> impl Iterator<Item = &Document> {
    corpus.train.iter().chain(&corpus.dev).chain(&corpus.test)
}

fn hash(corpus: &DemoCorpus) -> u64 {
    let mut hasher = DefaultHasher::new();
    for document in all(corpus) {
        (&document.id, &document.text, &document.labels).hash(&mut hasher);
    }
    hasher.finish()
}

fn words(document: &Document) -> usize {
    document.text.split_whitespace().count()
}

#[test]
fn the_taxonomy_is_a_dag_of_three_levels_with_names_and_descriptions() {
    let taxonomy = taxonomy().unwrap();
    assert!(taxonomy.n_labels() >= 70, "{}", taxonomy.n_labels());
    assert_eq!(taxonomy.n_levels(), 3);
    let several = taxonomy.labels().filter(|&label| taxonomy.parents(label).len() >= 2).count();
    assert!(several >= 8, "{several}");
    for label in taxonomy.labels() {
        let id = taxonomy.id(label);
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
        let Label { name, description, .. } = taxonomy.label(label);
        assert!(name.as_deref().is_some_and(|name| name.len() > 2), "{id}");
        assert!(description.as_deref().is_some_and(|text| text.len() > 30 && text.ends_with('.')), "{id}");
        // Every path from the top has the same length, so levels are the same however they are counted.
        for &parent in taxonomy.parents(label) {
            assert_eq!(taxonomy.level(parent) + 1, taxonomy.level(label), "{id}");
        }
        assert_eq!(taxonomy.children(label).is_empty(), taxonomy.level(label) == 3, "{id}");
    }
    let names: BTreeSet<&str> = taxonomy.labels().map(|label| taxonomy.name(label)).collect();
    assert_eq!(names.len(), taxonomy.n_labels(), "two labels share a name");
}

#[test]
fn every_leaf_has_eight_sentences_and_every_section_is_a_label() {
    let taxonomy = taxonomy().unwrap();
    let topics = Grammar::embedded().topics;
    let by_label: BTreeMap<&str, &Topic> = topics.iter().map(|topic| (topic.label, topic)).collect();
    for topic in &topics {
        let label = taxonomy.get(topic.label).unwrap_or_else(|| panic!("`{}` is no label", topic.label));
        assert!(taxonomy.level(label) >= 2, "{}", topic.label);
        assert!(topic.matters.len() >= 4, "{}", topic.label);
        for companion in &topic.companions {
            let companion_label = taxonomy.get(companion).unwrap_or_else(|| panic!("`{companion}`"));
            assert!(by_label.contains_key(companion), "`{companion}` has no sentences");
            assert_ne!(companion_label, label);
            assert!(!taxonomy.parents(label).contains(&companion_label), "{companion} above {}", topic.label);
            assert!(!taxonomy.parents(companion_label).contains(&label), "{companion} below {}", topic.label);
        }
    }
    for &leaf in taxonomy.labels_at(3) {
        let topic = by_label.get(taxonomy.id(leaf)).unwrap_or_else(|| panic!("{}", taxonomy.id(leaf)));
        assert!(topic.matters.len() >= 8, "`{}` has {} sentences", topic.label, topic.matters.len());
        assert!(topic.details.len() >= 2, "`{}` has {} details", topic.label, topic.details.len());
    }
}

#[test]
fn the_same_seed_gives_the_same_tickets_and_another_seed_others() {
    assert_eq!(hash(&corpus(SEED)), hash(&corpus(SEED)));
    assert_ne!(hash(&corpus(SEED)), hash(&corpus(SEED + 1)));
}

#[test]
fn the_splits_have_their_sizes_and_share_neither_ids_nor_texts() {
    for seed in [0, SEED, u64::MAX] {
        let corpus = corpus(seed);
        assert_eq!((corpus.train.len(), corpus.dev.len(), corpus.test.len()), (TRAIN, DEV, TEST));
        let ids: BTreeSet<&str> = all(&corpus).map(|document| document.id.as_str()).collect();
        let texts: BTreeSet<&str> = all(&corpus).map(|document| document.text.as_str()).collect();
        assert_eq!(ids.len(), TRAIN + DEV + TEST);
        assert_eq!(texts.len(), TRAIN + DEV + TEST);
    }
    assert_eq!(corpus(SEED).train[0].id, "ticket-0001");
}

#[test]
fn labels_are_known_distinct_deepest_and_every_leaf_occurs_in_training() {
    let taxonomy = taxonomy().unwrap();
    for seed in [0, SEED] {
        let corpus = corpus(seed);
        for document in all(&corpus) {
            let labels: Vec<_> = document.labels.iter().map(|id| taxonomy.get(id).unwrap()).collect();
            assert!((1..=4).contains(&labels.len()));
            assert_eq!(labels.iter().collect::<BTreeSet<_>>().len(), labels.len());
            for &label in &labels {
                assert!(
                    taxonomy.parents(label).iter().all(|parent| !labels.contains(parent)),
                    "{document:?}"
                );
            }
        }
        let trained: BTreeSet<&str> =
            corpus.train.iter().flat_map(|document| &document.labels).map(String::as_str).collect();
        for &leaf in taxonomy.labels_at(3) {
            assert!(trained.contains(taxonomy.id(leaf)), "{} is not in train", taxonomy.id(leaf));
        }
        for label in all(&corpus).flat_map(|document| &document.labels) {
            assert!(trained.contains(label.as_str()), "{label} is not in train");
        }
    }
}

#[test]
fn label_frequencies_have_a_head_and_a_long_tail() {
    let corpus = corpus(SEED);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for label in all(&corpus).flat_map(|document| &document.labels) {
        *counts.entry(label).or_default() += 1;
    }
    let mean = counts.values().sum::<usize>() as f64 / all(&corpus).count() as f64;
    assert!((1.3..=2.5).contains(&mean), "{mean}");
    assert!(counts.values().filter(|&&n| n > 100).count() >= 3, "{counts:?}");
    assert!(counts.values().filter(|&&n| n < 8).count() >= 3, "{counts:?}");
    let taxonomy = taxonomy().unwrap();
    let vague: usize = counts
        .iter()
        .filter(|(id, _)| taxonomy.get(id).is_some_and(|l| taxonomy.level(l) == 2))
        .map(|(_, n)| n)
        .sum();
    assert!((100..400).contains(&vague), "{vague}");
}

#[test]
fn tickets_vary_in_length_and_beginning() {
    let corpus = corpus(SEED);
    let lengths: Vec<usize> = all(&corpus).map(words).collect();
    let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
    assert!((20.0..80.0).contains(&mean), "{mean}");
    assert!(lengths.iter().filter(|&&n| n <= 10).count() >= 40);
    assert!(lengths.iter().filter(|&&n| n >= 80).count() >= 40);
    assert!(lengths.iter().all(|n| (1..250).contains(n)));
    assert!(all(&corpus).filter(|document| document.text.contains("\n\n")).count() >= 100);
    let beginnings: BTreeSet<&str> =
        all(&corpus).filter_map(|document| document.text.split(['.', '!', '?', '\n', ',']).next()).collect();
    assert!(beginnings.len() >= 700, "{}", beginnings.len());
}

#[test]
fn no_placeholder_or_tab_is_left_in_a_ticket() {
    for document in all(&corpus(SEED)) {
        assert!(!document.text.contains(['{', '}', '|', '#', '\t', '\r']), "{}", document.text);
        assert_eq!(document.text.trim(), document.text);
    }
}

#[test]
fn the_examples_are_not_made_of_the_grammar() {
    let texts: BTreeSet<String> = all(&corpus(SEED)).map(|document| document.text.clone()).collect();
    assert!((3..=4).contains(&EXAMPLES.len()));
    for example in EXAMPLES {
        assert!(!texts.contains(*example));
        for topic in Grammar::embedded().topics {
            assert!(topic.matters.iter().all(|matter| !example.contains(matter)), "{example}");
        }
    }
}

#[test]
fn the_folder_holds_what_the_program_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/demo");
    write_folder(&path, SEED).unwrap();
    let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    let corpus = corpus(SEED);
    for (name, documents) in
        [("train.jsonl", &corpus.train), ("dev.jsonl", &corpus.dev), ("test.jsonl", &corpus.test)]
    {
        let text = read(name);
        assert_eq!(text.lines().count(), documents.len());
        for (line, document) in text.lines().zip(documents) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["id"], document.id);
            assert_eq!(line["text"], document.text);
            assert_eq!(line["labels"], serde_json::json!(document.labels));
        }
    }
    let taxonomy = taxonomy().unwrap();
    let mut builder = Builder::new();
    for line in read("hierarchy.tsv").lines() {
        let (parent, child) = line.split_once('\t').unwrap();
        builder.edge((parent != "ROOT").then_some(parent), child, &Origin::default());
    }
    let again = builder.build().unwrap();
    assert_eq!((again.n_labels(), again.n_edges()), (taxonomy.n_labels(), taxonomy.n_edges()));
    let labels = read("labels.tsv");
    assert_eq!(labels.lines().count(), taxonomy.n_labels());
    for line in labels.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(columns.len(), 3, "{line}");
        assert!(again.get(columns[0]).is_some(), "{line}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("taken");
    std::fs::write(&file, "").unwrap();
    let error = write_folder(&file, SEED).unwrap_err().to_string();
    assert!(error.contains("cannot create") && error.contains("taken"), "{error}");
}
