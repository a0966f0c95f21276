//! The Rust half of `bench/omikuji`: writes a corpus as sparse features, and trains on such files.
//!
//! `linear_bench export CORPUS OUT` writes `OUT/train.txt` and `OUT/test.txt` in the format of the extreme
//! classification repository; `linear_bench run OUT HEAD PRUNE SEED` reads them, trains and prints one JSON object.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example talks to its user and stops at trouble"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

use cladist_core::linear::{LinearHead, LinearModel, LinearRecipe};
use cladist_core::text::tfidf::{FeatureConfig, Vectorizer};
use cladist_core::{Classifier, Document, Job, LabelSet, Request, Taxonomy};

fn read_jsonl(folder: &Path, split: &str) -> Vec<Document> {
    let plain = folder.join(format!("{split}.jsonl"));
    let path = if plain.exists() { plain } else { folder.join(format!("{split}.jsonl.gz")) };
    let lines = cladist_core::files::open(&path, &Job::silent().cancel).unwrap().lines();
    lines
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let labels = value["labels"].as_array().unwrap();
            let mut document = Document::from_text("", value["text"].as_str().unwrap());
            document.labels = labels.iter().map(|label| label.as_str().unwrap().to_owned()).collect();
            document
        })
        .collect()
}

fn export(corpus: &Path, out: &Path) {
    let (train, test) = (read_jsonl(corpus, "train"), read_jsonl(corpus, "test"));
    let vectorizer = Vectorizer::fit(&FeatureConfig::default(), &train, &Job::silent()).unwrap();
    let mut numbers = BTreeMap::new();
    for label in train.iter().chain(&test).flat_map(|document| &document.labels) {
        let next = numbers.len();
        numbers.entry(label).or_insert(next);
    }
    fs::create_dir_all(out).unwrap();
    for (split, documents) in [("train", &train), ("test", &test)] {
        let rows = vectorizer.transform_all(documents, &Job::silent()).unwrap();
        let kept: Vec<_> = documents.iter().zip(rows).filter(|(_, row)| !row.is_empty()).collect();
        let mut text = format!("{} {} {}\n", kept.len(), vectorizer.n_features(), numbers.len());
        for (document, row) in kept {
            let labels: Vec<String> =
                document.labels.iter().map(|label| numbers[label].to_string()).collect();
            text.push_str(&labels.join(","));
            for (feature, value) in row {
                write!(text, " {feature}:{value}").unwrap();
            }
            text.push('\n');
        }
        fs::write(out.join(format!("{split}.txt")), text).unwrap();
    }
}

fn read_features(path: &Path) -> Vec<Document> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .skip(1)
        .map(|line| {
            let (labels, features) = line.split_once(' ').unwrap();
            let pair = |pair: &str| {
                let (feature, value) = pair.split_once(':').unwrap();
                (feature.parse().unwrap(), value.parse().unwrap())
            };
            Document {
                labels: labels.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect(),
                features: Some(features.split(' ').map(pair).collect()),
                ..Document::default()
            }
        })
        .collect()
}

fn run(folder: &Path, head: LinearHead, prune: f32, seed: u64) {
    let start = Instant::now();
    let train = read_features(&folder.join("train.txt"));
    let taxonomy = Taxonomy::flat(train.iter().flat_map(|document| document.labels.clone()));
    let gold = |documents: &[Document]| -> Vec<LabelSet> {
        documents.iter().map(|d| d.labels.iter().filter_map(|label| taxonomy.get(label)).collect()).collect()
    };
    let mut recipe = LinearRecipe::new(head);
    recipe.linear.prune = prune;
    recipe.train.seed = seed;
    let model = LinearModel::train(&recipe, &train, &gold(&train), taxonomy.clone(), &Job::silent()).unwrap();
    let train_seconds = start.elapsed().as_secs_f64();

    let test = read_features(&folder.join("test.txt"));
    let gold = gold(&test);
    let start = Instant::now();
    let scores = model.score(&test, &Request::default()).unwrap();
    let score_seconds = start.elapsed().as_secs_f64();
    let precision = |k: usize| {
        let hits = |(row, gold): (&[(_, f32)], &LabelSet)| {
            row.iter().take(k).filter(|(label, _)| gold.contains(*label)).count()
        };
        scores.rows().zip(&gold).map(hits).sum::<usize>() as f64 / (k * gold.len()) as f64
    };
    let result = serde_json::json!({
        "train_seconds": train_seconds,
        "score_seconds": score_seconds,
        "precision": [precision(1), precision(3), precision(5)],
    });
    println!("{result}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["export", corpus, out] => export(Path::new(corpus), Path::new(out)),
        ["run", folder, head, prune, seed] => {
            let head = serde_json::from_value(serde_json::Value::from(*head)).unwrap();
            run(Path::new(folder), head, prune.parse().unwrap(), seed.parse().unwrap());
        }
        _ => println!("usage: linear_bench export CORPUS OUT | run OUT HEAD PRUNE SEED"),
    }
}
