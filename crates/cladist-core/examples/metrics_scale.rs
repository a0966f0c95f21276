//! How long evaluation takes at scale, on synthetic documents.
//!
//! `cargo run --release -p cladist-core --example metrics_scale -- [DOCUMENTS] [LABELS] [SCORED]`
#![expect(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::time::Instant;

use cladist_core::calibrate::{CalibrateConfig, FitThresholds, Granularity, Objective, fit_thresholds};
use cladist_core::decode::{ClosureRule, DecodeConfig};
use cladist_core::metrics::bootstrap::{ResampleOptions, bootstrap};
use cladist_core::metrics::{Judged, MetricOptions, evaluate};
use cladist_core::taxonomy::{Builder, Origin};
use cladist_core::{Cancel, Job, LabelCounts, LabelId, LabelSet, Scores, Taxonomy};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Four levels of growing width; every tenth label has two parents.
fn taxonomy(n: usize) -> Result<Taxonomy, Box<dyn Error>> {
    let mut builder = Builder::new();
    let origin = Origin::default();
    for child in 0..n {
        let id = format!("{child:07}");
        builder.label(&id, &origin);
        if child >= 20 {
            builder.edge(Some(&format!("{:07}", child / 20)), &id, &origin);
            if child % 10 == 0 {
                builder.edge(Some(&format!("{:07}", child / 20 - 1)), &id, &origin);
            }
        }
    }
    Ok(builder.build()?)
}

/// Labels as skewed as they are in life: the square of a uniform number.
fn label(taxonomy: &Taxonomy, random: &mut ChaCha8Rng) -> Option<LabelId> {
    let u: f64 = random.random();
    taxonomy.at((u * u * taxonomy.n_labels() as f64) as usize)
}

/// The most memory this process ever held, as Linux tells it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.map_or_else(|| "unknown".to_owned(), |line| line[6..].trim().to_owned())
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{what:32} {:7.2} s   peak memory {}", start.elapsed().as_secs_f64(), peak_memory());
    result
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (n_documents, n_labels, n_scored) = (number(1_000_000)?, number(30_000)?, number(50)?);
    println!("{n_documents} documents, {n_labels} labels, {n_scored} scored labels each");
    let taxonomy = taxonomy(n_labels)?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut scores = Scores::new();
    let mut gold: Vec<LabelSet> = Vec::with_capacity(n_documents);
    timed("make documents", || {
        for _ in 0..n_documents {
            let drawn: LabelSet = (0..n_scored).filter_map(|_| label(&taxonomy, &mut random)).collect();
            let row: Vec<(LabelId, f32)> =
                drawn.iter().map(|&l| (l, random.random::<f32>().powi(4))).collect();
            // Likely labels are gold about as often as they should be; one gold label in six is never scored.
            let hits = row.iter().filter(|entry| random.random::<f32>() * 2.0 < entry.1).map(|entry| entry.0);
            let mut truth: Vec<LabelId> = hits.collect();
            truth.extend(label(&taxonomy, &mut random));
            gold.push(truth.into_iter().collect());
            scores.push_row(row);
        }
    });
    let counts = LabelCounts::of(&gold, taxonomy.n_labels());
    let options = MetricOptions::default();
    let job = Job::silent();

    let decode = DecodeConfig { closure: ClosureRule::CloseUpward, ..DecodeConfig::default() };
    let decoder = decode.build(&taxonomy)?;
    let predicted = timed("decode, closed", || decoder.decode(&scores));
    let report =
        timed("evaluate", || evaluate(&scores, &predicted, &gold, &taxonomy, &counts, &options, &job))?;
    for name in ["micro-f1", "macro-f1", "ndcg@5", "psp@5", "r-precision-macro", "ece"] {
        println!("    {name} = {:.6}", report.metrics.get(name).copied().unwrap_or(f64::NAN));
    }

    let calibration = timed("fit isotonic", || {
        CalibrateConfig::default().fit(&scores, &gold, &taxonomy, &Cancel::default())
    })?;
    let calibrated = timed("apply isotonic", || calibration.apply(scores.clone(), &taxonomy));
    for (what, objective, granularity) in [
        ("fit threshold, micro", Objective::MicroF1, Granularity::Global),
        ("fit thresholds by label, micro", Objective::MicroF1, Granularity::Label),
        ("fit thresholds by label, macro", Objective::MacroF1, Granularity::Label),
    ] {
        let config = FitThresholds { objective, granularity, ..FitThresholds::default() };
        let fitted =
            timed(what, || fit_thresholds(&calibrated, &gold, &taxonomy, &config, &Cancel::default()))?;
        println!("    value = {:.6}", fitted.value);
    }
    drop(calibrated);
    let judged =
        Judged { scores: &scores, predicted: &predicted, gold: &gold, taxonomy: &taxonomy, counts: &counts };
    let resample = ResampleOptions { resamples: 20, ..ResampleOptions::default() };
    timed("bootstrap, 9 metrics, 20 rounds", || bootstrap(&judged, &options, &resample, &job))?;
    Ok(())
}
