//! How long features and trees of labels take against the number of labels, on synthetic documents.
//!
//! `cargo run --release -p cladist-core --example label_tree_scale -- [MOST_LABELS]`
#![expect(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::time::Instant;

use cladist_core::Job;
use cladist_core::label_tree::{LabelTree, Partition, PartitionConfig, TreeConfig, label_features};
use cladist_core::sparse::{Lists, SparseMatrix};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Terms of all documents.
const COLUMNS: u32 = 200_000;
/// Terms of a document.
const TERMS: usize = 60;
/// Labels of a document.
const LABELS: usize = 4;
/// Labels of a topic, which has terms of its own.
const TOPIC: u32 = 50;

/// As many documents as labels, each of one topic: half of its terms are the topic's, half anything.
fn documents(n_labels: u32) -> (SparseMatrix, Vec<Vec<u32>>) {
    let mut random = ChaCha8Rng::seed_from_u64(u64::from(n_labels));
    let mut rows = SparseMatrix::new(COLUMNS as usize);
    let mut labels = Vec::new();
    for _ in 0..n_labels {
        let topic = random.random_range(0..n_labels.div_ceil(TOPIC));
        let mut terms: Vec<u32> = (0..TERMS)
            .map(|n| {
                let own = topic.wrapping_mul(2_654_435_761).wrapping_add(random.random_range(0..40) * 40_503);
                if n.is_multiple_of(2) { own % COLUMNS } else { random.random_range(0..COLUMNS) }
            })
            .collect();
        terms.sort_unstable();
        terms.dedup();
        let value = (terms.len() as f32).sqrt().recip();
        rows.push_row(terms.into_iter().map(|term| (term, value)));
        let mut own: Vec<u32> =
            (0..LABELS).map(|_| (topic * TOPIC + random.random_range(0..TOPIC)).min(n_labels - 1)).collect();
        own.sort_unstable();
        own.dedup();
        labels.push(own);
    }
    (rows, labels)
}

fn main() -> Result<(), Box<dyn Error>> {
    let most: u32 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    println!("| labels | features | groups of 100 | number | 16-means, leaves of 16 | leaves | same topic |");
    println!("|---|---|---|---|---|---|---|");
    let job = Job::silent();
    for n in [10_000, 100_000, 1_000_000].into_iter().filter(|&n| n <= most) {
        let (rows, labels) = documents(n);
        let documents_of = Lists::inverted(labels.iter().map(Vec::as_slice), n as usize);
        let start = Instant::now();
        let features = label_features(&rows, &documents_of, 128, &job)?;
        let made = start.elapsed().as_secs_f64();
        drop((rows, labels));
        let used: Vec<u32> = (0..n).filter(|&label| !documents_of.of(label).is_empty()).collect();
        let start = Instant::now();
        let config = PartitionConfig { leaf: 100, seed: 1 };
        let groups = Partition::of_features(&features, used.clone(), &config, &job)?;
        let halves = start.elapsed().as_secs_f64();
        // Neighbours in a group that are of one topic: what clustering is for.
        let pairs =
            (1..groups.n_rows()).filter(|&row| groups.label(row) / TOPIC == groups.label(row - 1) / TOPIC);
        let together = pairs.count() as f64 / groups.n_rows().max(2) as f64;
        let start = Instant::now();
        let config =
            TreeConfig { k: 16, balanced: false, min_split: 17, max_depth: 20, ..TreeConfig::default() };
        let tree = LabelTree::grow(&features, used, &config, 1, &job)?;
        let means = start.elapsed().as_secs_f64();
        println!(
            "| {n} | {made:.2} s | {halves:.2} s | {} | {means:.2} s | {} | {:.1} % |",
            groups.n_groups(),
            tree.leaves().len(),
            100.0 * together
        );
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("\npeak memory {}", peak.trim());
    }
    Ok(())
}
