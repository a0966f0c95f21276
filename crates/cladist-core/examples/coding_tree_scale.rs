//! How long coding trees take against the number of labels, on synthetic taxonomies of several shapes and on files.
//!
//! `cargo run --release -p cladist-core --example coding_tree_scale -- [MOST_LABELS] [TAXONOMY …]`
#![expect(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use cladist_core::taxonomy::{self, Builder, CodingRule, OnCycle, Origin, ReadOptions};
use cladist_core::{Cancel, Taxonomy};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A name and how many parents of which numbers a label has, given its number.
type Shape = (&'static str, fn(usize, &mut ChaCha8Rng) -> Vec<usize>);

const SHAPES: [Shape; 5] = [
    ("ten children each", |n, _| (n >= 10).then_some(n / 10).into_iter().collect()),
    ("random tree", |n, random| (n >= 20).then(|| random.random_range(0..n)).into_iter().collect()),
    ("random DAG", |n, random| {
        // Most labels have one parent, every fifth has two.
        let parents = if n < 20 { 0 } else { 1 + usize::from(n.is_multiple_of(5)) };
        (0..parents).map(|_| random.random_range(0..n)).collect()
    }),
    ("star", |n, _| (n > 0).then_some(0).into_iter().collect()),
    ("chain", |n, _| n.checked_sub(1).into_iter().collect()),
];

fn build(n: usize, (_, parents): Shape) -> Result<Taxonomy, Box<dyn Error>> {
    let mut random = ChaCha8Rng::seed_from_u64(n as u64);
    let mut builder = Builder::new();
    let origin = Origin::default();
    for child in 0..n {
        let id = format!("{child:07}");
        builder.label(&id, &origin);
        for parent in parents(child, &mut random) {
            builder.edge(Some(&format!("{parent:07}")), &id, &origin);
        }
    }
    builder.on_cycle(OnCycle::Break);
    Ok(builder.build()?)
}

fn measure(name: &str, taxonomy: &Taxonomy) -> Result<(), Box<dyn Error>> {
    print!("| {name} | {} |", taxonomy.n_labels());
    for rule in [CodingRule::Reference, CodingRule::StopWhenPositive] {
        for height in [2, 3] {
            let start = Instant::now();
            let tree = taxonomy.coding_tree(height, rule, &Cancel::default())?;
            let seconds = start.elapsed().as_secs_f64();
            print!(" {seconds:.3} s, H {:.4} |", tree.structural_entropy());
        }
    }
    println!();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let most: usize = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    println!("| taxonomy | labels | K = 2 | K = 3 | K = 2, stop | K = 3, stop |");
    println!("|---|---|---|---|---|---|");
    for path in arguments {
        let loaded = taxonomy::read(Path::new(&path), &ReadOptions::default())?;
        let name = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        measure(&name, &loaded.taxonomy)?;
    }
    for shape in SHAPES {
        for n in [1_000, 22_391, 100_000, 1_000_000].into_iter().filter(|&n| n <= most) {
            measure(shape.0, &build(n, shape)?)?;
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("\npeak memory {}", peak.trim());
    }
    Ok(())
}
