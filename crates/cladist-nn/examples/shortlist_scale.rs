//! What training and prediction cost against the number of labels, with a shortlist and without.
//!
//! `cargo run --release -p cladist-nn --example shortlist_scale -- [MOST_LABELS] [MOST_WITHOUT] [ENCODER]`
//!
//! Documents are synthetic, and so is the encoder unless it is named. Each measurement has a process of its own, so that
//! its memory is its own too. "After the encoder" is the time of a document less that with eight labels. A table goes to
//! standard error, a JSON object per measurement to standard output.

use std::error::Error;
use std::process::{Command, Stdio};
use std::time::Instant;

use burn::tensor::Device;
use cladist_core::bundle::Writer;
use cladist_core::linear::RankerConfig;
use cladist_core::{Cancel, Classifier, Document, LabelCounts, LabelSet, Request, Taxonomy};
use cladist_nn::heads::flat::FlatConfig;
use cladist_nn::heads::{AnyHeadConfig, Task};
use cladist_nn::model::{Design, NeuralModel, Start};
use cladist_nn::shortlist::ShortlistConfig;
use cladist_nn::source::EncoderSource;
use cladist_nn::tokens::TokensConfig;
use cladist_nn::train::Examples;
use serde_json::{Value, json};

mod steps;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Labels of a topic, whose documents share words.
const TOPIC: usize = 50;
/// Labels of a document.
const LABELS: usize = 5;
/// Documents of a step, and steps, the first of which do not count.
const BATCH: usize = 16;
const STEPS: usize = 24;
const WARM: usize = 8;
/// Documents that are scored.
const SCORED: usize = 256;

/// Documents such that every label has one.
fn documents(taxonomy: &Taxonomy) -> (Vec<Document>, Vec<LabelSet>) {
    let labels: Vec<_> = taxonomy.labels().collect();
    let topics = labels.len().div_ceil(TOPIC);
    let n = (topics * TOPIC / LABELS).max(2 * BATCH * STEPS);
    let one = |number: usize| {
        // Neighbours in the order are of topics far apart.
        let topic = number.wrapping_mul(7919) % topics;
        let first = number / topics * LABELS % TOPIC;
        let gold = (0..LABELS).map(|n| labels[(topic * TOPIC + first + n) % labels.len()]).collect();
        let word = |n: usize| {
            let seed = if n.is_multiple_of(3) { number * 31 + n } else { topic * 17 + n };
            format!("w{}", seed.wrapping_mul(2_654_435_761) % 20_011)
        };
        let text: Vec<String> = (0..40).map(word).collect();
        (Document::from_text(number.to_string(), text.join(" ")), gold)
    };
    (0..n).map(one).unzip()
}

/// One measurement: of a shortlist if groups have labels.
fn measure(n_labels: usize, group_size: usize, encoder: &str) -> Result<Value, Box<dyn Error>> {
    let taxonomy = Taxonomy::flat((0..n_labels).map(|n| format!("{n:07}")));
    let (documents, gold) = documents(&taxonomy);
    let counts = LabelCounts::of(&gold, n_labels);
    let design = Design {
        head: AnyHeadConfig::Flat(FlatConfig::default()),
        branches: Default::default(),
        task: Task::MultiLabel,
        tokens: TokensConfig { max_tokens: 64, ..TokensConfig::default() },
        label_smoothing: 0.0,
        prior_bias: true,
        shortlist: ShortlistConfig { group_size, ..ShortlistConfig::default() },
        ranker: RankerConfig::default(),
    };
    let device = Device::flex().autodiff();
    let examples = Examples { documents: &documents, gold: &gold };
    let start = Instant::now();
    let source = EncoderSource::parse(encoder)?;
    let (model, _) = NeuralModel::create(
        design.clone(),
        &source,
        &examples,
        taxonomy.clone(),
        &counts,
        &Start::new(1, &device),
    )?;
    let made = start.elapsed().as_secs_f64();
    let n_parameters = model.n_parameters();
    let some = BATCH * STEPS;
    let some = Examples { documents: &documents[..some], gold: &gold[..some] };
    let (model, steps) = steps::timed(model, some, BATCH, WARM)?;
    let folder = std::env::temp_dir().join(format!("shortlist-scale-{}", std::process::id()));
    let start = Instant::now();
    let writer = Writer::create(&folder, "model")?;
    model.save(&writer)?;
    writer.finish()?;
    let saved = start.elapsed().as_secs_f64();
    drop(model);
    let start = Instant::now();
    cladist_core::bundle::verify(&folder, "model")?;
    let model = NeuralModel::load(&folder, design, taxonomy, &counts, &Device::flex(), &Cancel::default())?;
    let opened = start.elapsed().as_secs_f64();
    let request = Request { top_k: Some(10), ..Request::default() };
    let scored = &documents[documents.len() - SCORED.min(documents.len())..];
    // Twice: the first time reads rows from the disk.
    let mut seconds = [0.0; 2];
    for seconds in &mut seconds {
        let start = Instant::now();
        model.score(scored, &request)?;
        *seconds = start.elapsed().as_secs_f64() / scored.len() as f64;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(json!({
        "labels": n_labels,
        "group_size": group_size,
        "encoder": encoder,
        "parameters": n_parameters,
        "made_seconds": made,
        "step_seconds": steps[steps.len() / 2],
        "save_seconds": saved,
        "open_seconds": opened,
        "first_document_seconds": seconds[0],
        "document_seconds": seconds[1],
        "peak_mb": peak_mb(),
    }))
}

/// The largest memory the process had, where the system tells.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}

/// The same in a process of its own.
fn apart(n_labels: usize, group_size: usize, encoder: &str) -> Result<Value, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--one", &n_labels.to_string(), &group_size.to_string(), encoder])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{n_labels} labels: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the result")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [one, n_labels, group_size, encoder] = arguments.as_slice()
        && one == "--one"
    {
        println!("{}", measure(n_labels.parse()?, group_size.parse()?, encoder)?);
        return Ok(());
    }
    let number = |n: usize, other: usize| arguments.get(n).map_or(Ok(other), |text| text.parse());
    let (most, most_without) = (number(0, 1_000_000)?, number(1, 100_000)?);
    let encoder = arguments.get(2).map_or("scratch:mini", String::as_str);
    let least = apart(8, 0, encoder)?;
    let of = |value: &Value, key: &str| value[key].as_f64().unwrap_or(f64::NAN);
    eprintln!(
        "| labels | shortlist | ready s | step ms | document ms | after the encoder ms | open s | peak MB |"
    );
    eprintln!("|---|---|---|---|---|---|---|---|");
    for n_labels in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|&n| n <= most) {
        for group_size in [0, 100] {
            if group_size == 0 && n_labels > most_without {
                continue;
            }
            let mut found = apart(n_labels, group_size, encoder)?;
            let after = of(&found, "document_seconds") - of(&least, "document_seconds");
            found["after_encoder_seconds"] = json!(after);
            eprintln!(
                "| {n_labels} | {} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {:.0} |",
                if group_size > 0 { "yes" } else { "no" },
                of(&found, "made_seconds"),
                1e3 * of(&found, "step_seconds"),
                1e3 * of(&found, "document_seconds"),
                1e3 * after,
                of(&found, "open_seconds"),
                of(&found, "peak_mb"),
            );
            println!("{found}");
        }
    }
    Ok(())
}
