//! Trains a linear head on a corpus folder and prints how good and how fast it is.
//!
//! `cargo run --release --example linear_try -- FOLDER svm [key=value …]`
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example talks to its user and stops at trouble"
)]

use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

use cladist_core::linear::{LinearModel, LinearRecipe};
use cladist_core::{Classifier, Document, Job, LabelId, LabelSet, Request, Scores, Taxonomy};

fn read(folder: &Path, split: &str) -> Vec<Document> {
    let plain = folder.join(format!("{split}.jsonl"));
    let path = if plain.exists() { plain } else { folder.join(format!("{split}.jsonl.gz")) };
    let lines = cladist_core::files::open(&path).unwrap().lines();
    lines
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let labels = value["labels"].as_array().unwrap();
            Document {
                id: value["id"].to_string(),
                text: value["text"].as_str().unwrap().to_owned(),
                labels: labels.iter().map(|label| label.as_str().unwrap().to_owned()).collect(),
                features: None,
            }
        })
        .collect()
}

fn precision(scores: &Scores, gold: &[LabelSet], k: usize) -> f64 {
    let hits = scores
        .rows()
        .zip(gold)
        .map(|(row, gold)| row.iter().take(k).filter(|(label, _)| gold.contains(*label)).count())
        .sum::<usize>();
    hits as f64 / (k * gold.len()) as f64
}

/// Micro and macro F1 with one threshold per label.
fn f1(scores: &Scores, gold: &[LabelSet], thresholds: &[f32], n_scored: usize) -> (f64, f64) {
    let n = thresholds.len();
    let (mut hit, mut said, mut true_) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    for (row, gold) in scores.rows().zip(gold) {
        for &(label, score) in row {
            if score >= thresholds[label.index()] {
                said[label.index()] += 1.0;
                hit[label.index()] += f64::from(u8::from(gold.contains(label)));
            }
        }
        for label in gold {
            true_[label.index()] += 1.0;
        }
    }
    let f = |hit: f64, said: f64, gold: f64| if hit == 0.0 { 0.0 } else { 2.0 * hit / (said + gold) };
    let micro = f(hit.iter().sum(), said.iter().sum(), true_.iter().sum());
    let macro_ = (0..n).map(|l| f(hit[l], said[l], true_[l])).sum::<f64>() / n_scored as f64;
    (micro, macro_)
}

/// The threshold with the best F1 per label, on held-out documents; `fallback` for labels with few of them.
fn fit(scores: &Scores, gold: &[LabelSet], labels: impl Iterator<Item = LabelId>, fallback: f32) -> Vec<f32> {
    labels
        .map(|label| {
            let mut pairs: Vec<(f32, bool)> = Vec::new();
            for (row, gold) in scores.rows().zip(gold) {
                if let Some(&(_, score)) = row.iter().find(|(l, _)| *l == label) {
                    pairs.push((score, gold.contains(label)));
                }
            }
            pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
            let gold = pairs.iter().filter(|pair| pair.1).count() as f64;
            let (mut best, mut threshold, mut hit) = (0.0, fallback, 0.0);
            if gold < 5.0 {
                return fallback;
            }
            for n in 0..pairs.len() - 1 {
                hit += f64::from(u8::from(pairs[n].1));
                let f = 2.0 * hit / (n as f64 + 1.0 + gold);
                if f > best {
                    best = f;
                    threshold = 0.5 * (pairs[n].0 + pairs[n + 1].0);
                }
            }
            threshold
        })
        .collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let folder = Path::new(&arguments[1]);
    let mut recipe = serde_json::json!({ "head": arguments[2], "features": {}, "linear": {}, "train": {} });
    for setting in &arguments[3..] {
        let (key, value) = setting.split_once('=').unwrap();
        let (section, key) = key.split_once('.').unwrap();
        recipe[section][key] = serde_json::from_str(value).unwrap();
    }
    let recipe: LinearRecipe = serde_json::from_value(recipe).unwrap();
    let (train, test) = (read(folder, "train"), read(folder, "test"));
    let taxonomy = Taxonomy::flat(train.iter().chain(&test).flat_map(|document| document.labels.clone()));
    let gold = |documents: &[Document]| -> Vec<LabelSet> {
        documents.iter().map(|d| d.labels.iter().filter_map(|label| taxonomy.get(label)).collect()).collect()
    };
    let (gold_train, gold_test) = (gold(&train), gold(&test));
    let start = Instant::now();
    let model = LinearModel::train(&recipe, &train, &gold_train, taxonomy.clone(), &Job::silent()).unwrap();
    let trained = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let scores = model.score(&test, &Request::default()).unwrap();
    let scored = start.elapsed().as_secs_f64();
    println!(
        "{} {} features {} weights: train {trained:.2} s, score {scored:.2} s, P@1/3/5 {:.4} {:.4} {:.4}",
        arguments[2],
        model.vectorizer().n_features(),
        model.n_weights(),
        precision(&scores, &gold_test, 1),
        precision(&scores, &gold_test, 3),
        precision(&scores, &gold_test, 5),
    );
    if taxonomy.n_labels() < 2000 {
        let n = taxonomy.n_labels();
        let (micro, macro_) = f1(&scores, &gold_test, &vec![0.5; n], n);
        println!("threshold 0.5: micro-F1 {micro:.4} macro-F1 {macro_:.4}");
        let cut = train.len() * 4 / 5;
        let held =
            LinearModel::train(&recipe, &train[..cut], &gold_train[..cut], taxonomy.clone(), &Job::silent());
        let dev = held.unwrap().score(&train[cut..], &Request::default()).unwrap();
        let mut one = (0.0, 0.5);
        for step in 1..100 {
            let threshold = step as f32 / 100.0;
            let (micro, _) = f1(&dev, &gold_train[cut..], &vec![threshold; n], n);
            if micro > one.0 {
                one = (micro, threshold);
            }
        }
        let (micro, macro_) = f1(&scores, &gold_test, &vec![one.1; n], n);
        println!(
            "threshold {} (fitted on a fifth of train): micro-F1 {micro:.4} macro-F1 {macro_:.4}",
            one.1
        );
        let per_label = fit(&dev, &gold_train[cut..], taxonomy.labels(), one.1);
        let (micro, macro_) = f1(&scores, &gold_test, &per_label, n);
        println!("threshold per label: micro-F1 {micro:.4} macro-F1 {macro_:.4}");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find(|line| line.starts_with("VmHWM")) {
        println!("peak memory {}", peak.trim_start_matches("VmHWM:").trim());
    }
}
