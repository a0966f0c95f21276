//! Documents per second of training steps or of inference, on batches of token ids from a file.
//!
//! `bench/speed.py` runs this and PyTorch on the same batches. One JSON object goes to standard output.

use std::time::Instant;

use burn::module::Module;
use burn::tensor::Device;
use cladist_core::{LabelCounts, LabelId, LabelSet, Taxonomy};
use cladist_nn::encoder::{Encoder, EncoderConfig, LayerSet, Mode};
use cladist_nn::heads::flat::{Flat, FlatConfig, Pool};
use cladist_nn::heads::{Head, HeadConfig, HeadContext, HeadInput, Moment, Task};
use cladist_nn::optim::{AdamW, AdamWConfig, GradientSum};
use cladist_nn::tokens::{Sequence, TokenBatch};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Module, Debug)]
struct Network {
    encoder: Encoder,
    head: Flat,
}

#[derive(serde::Deserialize)]
struct Batch {
    ids: Vec<Vec<u32>>,
    labels: Vec<Vec<usize>>,
}

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, batches, mode, n_labels, warmup] = arguments.as_slice() else {
        return Err(
            "usage: speed FOLDER|LAYERS,HIDDEN,HEADS BATCHES.jsonl train|infer N_LABELS WARMUP".into()
        );
    };
    let (n_labels, warmup): (usize, usize) = (n_labels.parse()?, warmup.parse()?);
    let batches: Vec<Batch> =
        std::fs::read_to_string(batches)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let device = Device::flex();
    let sizes: Vec<usize> = model.split(',').filter_map(|part| part.parse().ok()).collect();
    let encoder = match sizes.as_slice() {
        [layers, hidden, heads] => {
            Encoder::random(EncoderConfig::bert(30_522, *hidden, *layers, *heads), true, 1, &device)
        }
        _ => Encoder::load(model.as_ref(), true, 1, &device)?.0,
    };
    let taxonomy = Taxonomy::flat((0..n_labels).map(|n| format!("label {n:05}")));
    let labels: Vec<LabelId> = taxonomy.labels().collect();
    let gold = |batch: &Batch| -> Vec<LabelSet> {
        batch.labels.iter().map(|set| set.iter().map(|&n| labels[n]).collect()).collect()
    };
    let counts = LabelCounts::of(&[], n_labels);
    let context = HeadContext {
        taxonomy: &taxonomy,
        only: None,
        label_counts: &counts,
        hidden_size: encoder.hidden_size(),
        n_layers: encoder.n_layers(),
        task: Task::MultiLabel,
        label_smoothing: 0.0,
        prior_bias: true,
        labels: None,
        shortlist: None,
        trees: &Default::default(),
        device: &device,
        seed: 1,
    };
    // As the PyTorch side has it.
    let head = FlatConfig { pool: Pool::Pooled, ..FlatConfig::default() }.build(&context)?;
    let layers: LayerSet = head.layers(None);
    let mut network = Network { encoder, head };
    let tokens = |batch: &Batch| {
        let sequences: Vec<Sequence> =
            batch.ids.iter().map(|ids| Sequence { ids: ids.clone(), ..Sequence::default() }).collect();
        TokenBatch::new(&sequences.iter().collect::<Vec<_>>())
    };
    let training = mode == "train";
    let packed = network.encoder.pack();
    if training {
        network = network.train();
    }
    let mut optimiser = AdamW::new(AdamWConfig::default());
    let (mut documents, mut n_tokens, mut losses) = (0, 0, Vec::new());
    let mut start = Instant::now();
    for (n, batch) in batches.iter().enumerate() {
        if n == warmup {
            start = Instant::now();
        }
        let packed_batch = tokens(batch);
        if training {
            let seed = n as u64 + 1;
            let encoded = network.encoder.encode(&packed_batch, &layers, Mode::Training { seed });
            let moment = Moment { epoch: 0.0, thawed: 0.0, seed: Some(seed) };
            let objective = network.head.objective(&HeadInput::new(&encoded), &gold(batch), &moment);
            drop(encoded);
            losses.push(objective.values()[0].1);
            let mut sum = GradientSum::default();
            if let Some(loss) = objective.total() {
                sum.add(&network, loss.backward());
            }
            let rate = |name: &str| if name.starts_with("head") { 2e-3 } else { 2e-4 };
            let norm = sum.norm();
            network = optimiser.step(network, sum, norm, Some(1.0), &rate);
        } else {
            let encoded = network.encoder.encode(&packed_batch, &layers, Mode::Inference(packed.as_ref()));
            losses.push(f64::from(network.head.score(&HeadInput::new(&encoded), None)[0][0].1));
        }
        if n >= warmup {
            documents += batch.ids.len();
            n_tokens += batch.ids.iter().map(Vec::len).sum::<usize>();
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}",
        serde_json::json!({
            "docs_per_second": documents as f64 / seconds,
            "tokens_per_second": n_tokens as f64 / seconds,
            "seconds": seconds,
            "peak_rss_mb": peak_rss(),
            "losses": losses,
        })
    );
    Ok(())
}

/// The largest memory the process had, in MB, where the system tells.
fn peak_rss() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}
