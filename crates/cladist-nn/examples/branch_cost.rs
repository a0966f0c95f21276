//! What a head for each branch costs in training, beside one head for all labels.
//!
//! `cargo run --release -p cladist-nn --example branch_cost -- [ENCODER] [auto|full|small] [LIKE]`
//!
//! Documents and taxonomies are synthetic: as many labels and branches as in corpora, texts of given lengths. Variants are
//! trained in turn, several times, so that whatever else the machine does slows all of them; medians of steps, and how much more
//! than that of one head for all. LIKE is one of the corpora, if not all are wanted.

use std::error::Error;

use burn::tensor::Device;
use cladist_core::linear::RankerConfig;
use cladist_core::taxonomy::{Builder, Origin};
use cladist_core::{Document, LabelCounts, LabelSet, Taxonomy};
use cladist_nn::heads::branches::{BranchesConfig, Split};
use cladist_nn::heads::structure::Form;
use cladist_nn::heads::structure::coding_tree::CodingTreeConfig;
use cladist_nn::heads::structure::gcn::HierarchyGcnConfig;
use cladist_nn::heads::{AnyHeadConfig, Task};
use cladist_nn::model::{Design, NeuralModel, Start};
use cladist_nn::shortlist::ShortlistConfig;
use cladist_nn::source::EncoderSource;
use cladist_nn::tokens::TokensConfig;
use cladist_nn::train::Examples;

mod steps;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What it looks like, labels, branches, tokens of a document.
const SETTINGS: [(&str, usize, usize, usize); 5] = [
    ("hoc", 37, 10, 48),
    ("amazon-hier-9k", 385, 6, 48),
    ("eurlex-law-1k", 1387, 33, 48),
    ("WOS", 141, 7, 128),
    ("WOS", 141, 7, 300),
];
/// Documents of a step; steps, of which the first do not count; how often all is done.
const BATCH: usize = 8;
const STEPS: usize = 8;
const WARM: usize = 2;
const ROUNDS: usize = 3;

/// Branches of one size, in which a label has ten children at most.
fn taxonomy(n_labels: usize, n_branches: usize) -> Result<Taxonomy, Box<dyn Error>> {
    let mut builder = Builder::new();
    for label in 0..n_labels {
        let (branch, number) = (label % n_branches, label / n_branches);
        let id = |number: usize| format!("{branch:03}-{number:06}");
        let parent = number.checked_sub(1).map(|above| id(above / 10));
        builder.edge(parent.as_deref(), &id(number), &Origin::default());
    }
    Ok(builder.build()?)
}

fn documents(taxonomy: &Taxonomy, n_tokens: usize) -> (Vec<Document>, Vec<LabelSet>) {
    let labels: Vec<_> = taxonomy.labels().collect();
    let one = |number: usize| {
        let gold = taxonomy.close_upward(&[labels[number * 7919 % labels.len()]]);
        // Longer than what is read, so that all documents have the same length.
        let word = |n: usize| format!("w{}", (number * 31 + n).wrapping_mul(2_654_435_761) % 20_011);
        let text: Vec<String> = (0..n_tokens).map(word).collect();
        (Document::from_text(number.to_string(), text.join(" ")), gold)
    };
    (0..BATCH * STEPS).map(one).unzip()
}

/// Seconds of the steps of one variant.
fn measure(
    (head, split): (&AnyHeadConfig, Split),
    taxonomy: &Taxonomy,
    examples: &Examples<'_>,
    (encoder, n_tokens): (&str, usize),
) -> Result<Vec<f64>, Box<dyn Error>> {
    let design = Design {
        head: head.clone(),
        branches: BranchesConfig { split, ..BranchesConfig::default() },
        task: Task::MultiLabel,
        tokens: TokensConfig { max_tokens: n_tokens, ..TokensConfig::default() },
        label_smoothing: 0.0,
        prior_bias: true,
        shortlist: ShortlistConfig::default(),
        ranker: RankerConfig::default(),
    };
    let counts = LabelCounts::of(examples.gold, taxonomy.n_labels());
    let source = EncoderSource::parse(encoder)?;
    let device = Device::flex().autodiff();
    let (model, _) =
        NeuralModel::create(design, &source, examples, taxonomy.clone(), &counts, &Start::new(1, &device))?;
    let examples = Examples { documents: examples.documents, gold: examples.gold };
    Ok(steps::timed(model, examples, BATCH, WARM)?.1)
}

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let encoder = arguments.next().unwrap_or_else(|| "scratch:mini".to_owned());
    let form: Form = match arguments.next() {
        Some(name) => serde_json::from_value(name.into())?,
        None => Form::default(),
    };
    let like = arguments.next();
    let heads = [
        ("hierarchy-gcn", AnyHeadConfig::HierarchyGcn(HierarchyGcnConfig { form, ..Default::default() })),
        ("coding-tree", AnyHeadConfig::CodingTree(CodingTreeConfig { form, ..Default::default() })),
    ];
    let splits = [Split::None, Split::Masking, Split::Projection];
    println!("| like | labels | branches | tokens | head | step ms | masking | projection |");
    println!("|---|---|---|---|---|---|---|---|");
    let settings = SETTINGS.iter().filter(|setting| like.as_ref().is_none_or(|like| like == setting.0));
    for &(like, n_labels, n_branches, n_tokens) in settings {
        let taxonomy = taxonomy(n_labels, n_branches)?;
        let (documents, gold) = documents(&taxonomy, n_tokens);
        let examples = Examples { documents: &documents, gold: &gold };
        for (name, head) in &heads {
            let mut times: [Vec<f64>; 3] = Default::default();
            for _ in 0..ROUNDS {
                for (times, &split) in times.iter_mut().zip(&splits) {
                    times.extend(measure((head, split), &taxonomy, &examples, (&encoder, n_tokens))?);
                }
            }
            let [whole, masking, projection] = times.map(|mut times| {
                times.sort_by(f64::total_cmp);
                times[times.len() / 2]
            });
            println!(
                "| {like} | {n_labels} | {n_branches} | {n_tokens} | {name} | {:.0} | {:+.0}% | {:+.0}% |",
                1e3 * whole,
                100.0 * (masking / whole - 1.0),
                100.0 * (projection / whole - 1.0),
            );
        }
    }
    Ok(())
}
