//! Real corpora, where they are at hand: every count must equal that of the corpus's own META.json.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it measured"
)]

mod common;

use cladist_core::corpus::{CorpusSource, DataConfig, SplitName, check, load, load_split, split, stats};
use cladist_core::readers::BadLines;
use cladist_core::{Cancel, Job};
use serde_json::Value;

/// The corpus folder and its META.json, or nothing if it is not at hand.
fn corpus(name: &str) -> Option<(CorpusSource, Value)> {
    let folder = common::shared(name)?;
    let meta = std::fs::read_to_string(folder.join("META.json")).unwrap();
    Some((CorpusSource::folder(&folder).unwrap(), serde_json::from_str(&meta).unwrap()))
}

const SPLITS: [SplitName; 3] = [SplitName::Train, SplitName::Dev, SplitName::Test];

/// Compares everything that META.json counts with what is loaded and with what is streamed.
fn counts_equal_meta(name: &str) {
    let Some((source, meta)) = corpus(name) else { return };
    let config = DataConfig::default();
    let (loaded, report) = load(&source, &config, &mut BadLines::Stop, &Job::silent()).unwrap();
    let stats = stats(&source, &config, 5, &mut BadLines::Stop, &Job::silent()).unwrap();
    for split in SPLITS {
        let expected = &meta["splits"][split.to_string()];
        assert_eq!(loaded.split(split).is_some(), expected.is_object(), "{name} {split}");
        let Some(documents) = loaded.split(split) else { continue };
        let number = |key: &str| expected[key].as_u64().unwrap() as usize;
        let stats = &stats.splits[&split];
        assert_eq!(documents.documents.len(), number("docs"), "{name} {split}");
        assert_eq!(documents.gold.len(), number("docs"), "{name} {split}");
        assert_eq!(stats.documents, number("docs"), "{name} {split}");
        assert_eq!(stats.labels_used, number("labels"), "{name} {split}");
        assert_eq!(stats.empty_documents, number("empty"), "{name} {split}");
        let tally = report.split(split).unwrap().tally;
        assert_eq!((tally.read, tally.rejected), (number("docs"), 0), "{name} {split}");
        let words = expected["avg_words"].as_f64().unwrap();
        assert!((stats.words.mean - words).abs() <= 0.051, "{name} {split}: {} words", stats.words.mean);
        // A document that names a label twice has it once here and twice in META.json.
        let labels = expected["avg_labels"].as_f64().unwrap();
        let mean = stats.labels_per_document.mean;
        assert!((mean - labels).abs() <= 0.001, "{name} {split}: {mean} labels");
        let named: usize = documents.gold.iter().map(|gold| gold.len()).sum();
        assert!((named as f64 / documents.gold.len() as f64 - mean).abs() < 1e-9, "{name} {split}");
    }
    let hierarchy = &meta["hierarchy"];
    if hierarchy.is_object() {
        let number = |key: &str| hierarchy[key].as_u64().unwrap() as usize;
        // META.json counts the root.
        assert_eq!(loaded.taxonomy.n_labels() + 1, number("nodes"), "{name}");
        assert_eq!(loaded.taxonomy.n_levels(), number("max_depth"), "{name}");
        // In a DAG the depth of a label depends on the path; META.json does not take the shortest.
        let is_tree = hierarchy["multi_parent"] == 0;
        for (depth, n) in hierarchy["nodes_per_depth"].as_object().unwrap() {
            let depth: usize = depth.parse().unwrap();
            if is_tree && depth > 0 {
                assert_eq!(
                    loaded.taxonomy.labels_at(depth).len() as u64,
                    n.as_u64().unwrap(),
                    "{name} {depth}"
                );
            }
        }
    } else {
        assert_eq!(loaded.taxonomy.n_levels(), 1, "{name}");
        assert_eq!(loaded.taxonomy.n_labels() as u64, meta["total"]["labels"].as_u64().unwrap(), "{name}");
    }
    let checked = check(&source, &config, &Job::silent()).unwrap();
    assert!(!checked.is_fatal(), "{name}: {checked}");
    assert_eq!(checked.data.leaks, report.leaks, "{name}");
    assert_eq!(checked.data.missing_ancestors, report.missing_ancestors, "{name}");
    println!("{name}\n{report}\n");
}

macro_rules! corpora {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            counts_equal_meta($name);
        })*
    };
}

corpora! {
    reuters: "reuters21578-aptemod",
    arxiv: "arxiv-2025-26",
    hallmarks_of_cancer: "hoc",
    medical_abstracts: "medical-abstracts-5-rebuilt",
    amazon: "amazon-hier-9k",
    clinc: "clinc150",
    goemotions: "goemotions",
    eurlex: "eurlex-law-1k",
    codiesp: "codiesp-icd10-d",
    tibkat: "tibkat-gnd",
}

#[test]
fn another_labels_field_can_be_chosen() {
    let Some((source, _)) = corpus("hoc") else { return };
    let config = DataConfig { labels_field: Some("top".into()), ..DataConfig::default() };
    let stats = stats(&source, &config, 20, &mut BadLines::Stop, &Job::silent()).unwrap();
    assert_eq!(stats.splits[&SplitName::Train].labels_used, 10);
    assert_eq!(stats.splits[&SplitName::Train].levels[0].labels_used, 10);
    assert_eq!(stats.splits[&SplitName::Train].levels[1].labels_used, 0);
}

#[test]
fn rows_that_leak_are_dropped_by_their_field() {
    let Some((source, _)) = corpus("medical-abstracts-5-rebuilt") else { return };
    let config = DataConfig { drop_field: Some("same_abstract_in_test".into()), ..DataConfig::default() };
    let (corpus, report) = load(&source, &config, &mut BadLines::Stop, &Job::silent()).unwrap();
    let tally = report.split(SplitName::Train).unwrap().tally;
    assert_eq!((tally.read, tally.kept, tally.dropped), (9543, 8617, 926));
    assert_eq!(corpus.train.unwrap().documents.len(), 8617);
    assert_eq!(corpus.test.unwrap().documents.len(), 2888);
}

#[test]
fn a_split_loads_alone_for_the_taxonomy_of_a_model() {
    let Some((source, _)) = corpus("reuters21578-aptemod") else { return };
    let config = DataConfig { dev: 0.1, ..DataConfig::default() };
    let (corpus, _) = load(&source, &config, &mut BadLines::Stop, &Job::silent()).unwrap();
    for name in SPLITS {
        let (bad, job) = (&mut BadLines::Stop, &Job::silent());
        let (split, _) = load_split(&source, name, &corpus.taxonomy, &config, bad, job).unwrap();
        assert_eq!(Some(&split), corpus.split(name));
    }
    assert_eq!(corpus.dev.unwrap().documents.len(), 777);
}

#[test]
fn stratification_keeps_the_shares_of_real_labels() {
    // In tibkat most documents have a label that few others have, and stay for its sake.
    for (name, fraction, tolerance) in
        [("reuters21578-aptemod", 0.1, 0.02), ("tibkat-gnd", 0.1, 0.2), ("codiesp-icd10-d", 0.2, 0.15)]
    {
        let Some((source, _)) = corpus(name) else { continue };
        let source = source.only(&[SplitName::Train]);
        let (corpus, _) = load(&source, &DataConfig::default(), &mut BadLines::Stop, &Job::silent()).unwrap();
        let gold = corpus.train.unwrap().gold;
        let (kept, held_out) = split(&gold, fraction, 13, true, &Cancel::default()).unwrap();
        assert_eq!(kept.len() + held_out.len(), gold.len());
        let n_labels = corpus.taxonomy.n_labels();
        let count = |documents: &[usize]| {
            let mut counts = vec![0usize; n_labels];
            for label in documents.iter().flat_map(|&document| &gold[document]) {
                counts[label.index()] += 1;
            }
            counts
        };
        let (kept, out) = (count(&kept), count(&held_out));
        let mut worst: f64 = 0.0;
        for label in 0..n_labels {
            let all = (kept[label] + out[label]) as f64;
            if all == 1.0 {
                assert_eq!(out[label], 0, "{name}");
            }
            if all >= 30.0 {
                worst = worst.max((out[label] as f64 - fraction * all).abs() / all);
            }
        }
        println!("{name}: the share of a label with at least 30 documents is off by at most {worst:.4}");
        assert!(worst <= tolerance, "{name}: {worst}");
    }
}
