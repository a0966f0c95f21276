//! What every head of the table must do.

mod sizes;
mod terms;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use burn::module::Module;
use burn::tensor::Device;
use cladist_core::bundle::Writer;
use cladist_core::taxonomy::CodingRule;
use cladist_core::{Cancel, Classifier, Document, LabelCounts, Request, Scores};
use rayon::prelude::*;

use super::branches::{BranchesConfig, Split};
use super::experts::{ExpertLoss, ExpertsConfig};
use super::flat::{FlatConfig, Pool};
use super::label_attention::{Encode, LabelAttentionConfig, Output};
use super::label_pooling::caml::CamlConfig;
use super::label_pooling::lwan::LwanConfig;
use super::layer_guided::{LayerGuidedConfig, TieRule, Ties};
use super::structure::coding_tree::{CodingTreeConfig, LevelPool};
use super::structure::gcn::HierarchyGcnConfig;
use super::structure::hi_match::HiMatchConfig;
use super::structure::{Form, Variant};
use super::*;
use crate::descriptions::DescriptionVector::Mean;
use crate::encoder::Mode;
use crate::losses::Loss;
use crate::model::{Design, NeuralModel, Start};
use crate::optim::GradientSum;
use crate::parameters::names;
use crate::source::EncoderSource;
use crate::tokens::{Sequence, TokenBatch};
use crate::toy::{Toy, design, fitting};
use crate::train::TrainConfig;
use crate::train::config::GroupConfig;
use crate::train::labels::label_states;
use crate::train::tests::Run;

/// Every head as it is by default, and the flat one's other choices.
fn designs() -> Vec<(String, Design)> {
    let mut designs: Vec<(String, Design)> = HEADS
        .iter()
        .map(|(name, _, config)| ((*name).to_owned(), design(fitting(config()), Task::MultiLabel)))
        .collect();
    for (rule, name) in TieRule::ALL {
        let config = LayerGuidedConfig { ties: Ties::Rule(rule), ..LayerGuidedConfig::default() };
        let head = fitting(AnyHeadConfig::LayerGuided(config));
        designs.push((format!("layer-guided {name}"), design(head, Task::MultiLabel)));
    }
    let flat = |pool, task| design(AnyHeadConfig::Flat(FlatConfig { pool, ..FlatConfig::default() }), task);
    designs.push(("flat on pooled".to_owned(), flat(Pool::Pooled, Task::MultiLabel)));
    designs.push(("flat on mean".to_owned(), flat(Pool::Mean, Task::MultiLabel)));
    designs.push(("flat softmax".to_owned(), flat(Pool::Pooled, Task::MultiClass)));
    for task in [Task::MultiLabel, Task::MultiClass] {
        let smooth = Design { label_smoothing: 0.1, ..flat(Pool::Cls, task) };
        designs.push((format!("flat {task:?} with smoothing"), smooth));
    }
    let attentive = |change: fn(&mut LabelAttentionConfig), task| {
        let mut config = LabelAttentionConfig::default();
        change(&mut config);
        design(AnyHeadConfig::LabelAttention(config), task)
    };
    let multi = Task::MultiLabel;
    for (name, design) in [
        // `[CLS]` of a new encoder is the same whatever it reads.
        ("every-n", attentive(|config| (config.encode, config.vector) = (Encode::EveryN, Mean), multi)),
        ("sampled", attentive(|config| (config.encode, config.sample) = (Encode::Sampled, 6), multi)),
        ("table", attentive(|config| (config.encode, config.vector) = (Encode::Table, Mean), multi)),
        ("per-label", attentive(|config| (config.output, config.blocks) = (Output::PerLabel, 2), multi)),
        ("bare", attentive(|config| (config.descriptions, config.feed_forward) = (false, 0), multi)),
        ("f-measure", attentive(|config| config.loss = Loss::BceAndF, multi)),
        ("softmax", attentive(|config| config.path = true, Task::MultiClass)),
    ] {
        designs.push((format!("label-attention {name}"), design));
    }
    let lwan = LwanConfig { descriptions: true, ..LwanConfig::default() };
    designs.push(("lwan by descriptions".to_owned(), design(AnyHeadConfig::Lwan(lwan), multi)));
    let caml = CamlConfig { description_weight: 0.01, ..CamlConfig::default() };
    designs.push(("caml with descriptions".to_owned(), design(AnyHeadConfig::Caml(caml), multi)));
    let names = ["D-last+1", "A-last"].map(|name| name.to_owned().try_into().unwrap());
    let experts = ExpertsConfig {
        experts: names.into(),
        loss: ExpertLoss::Collaborative,
        symmetric: true,
        hidden: Vec::new(),
        document_hidden: vec![24],
        dropout: 0.1,
        ..ExpertsConfig::default()
    };
    designs.push(("experts together".to_owned(), design(AnyHeadConfig::Experts(experts), multi)));
    let gcn = |change: fn(&mut HierarchyGcnConfig)| {
        let mut config = HierarchyGcnConfig { node_size: 12, ..HierarchyGcnConfig::default() };
        change(&mut config);
        design(AnyHeadConfig::HierarchyGcn(config), multi)
    };
    let tree = |change: fn(&mut CodingTreeConfig)| {
        let mut config = CodingTreeConfig::default();
        change(&mut config);
        design(AnyHeadConfig::CodingTree(config), multi)
    };
    let matching = HiMatchConfig { form: Form::Small, ..HiMatchConfig::default() };
    let AnyHeadConfig::HiMatch(matching) = fitting(AnyHeadConfig::HiMatch(matching)) else { unreachable!() };
    let matching = HiMatchConfig { node_size: 32, match_weight: 0.02, ..matching };
    let coherent =
        FlatConfig { loss: Loss::Coherent, recursive_regularisation: 1e-4, ..FlatConfig::default() };
    for (name, design) in [
        ("hierarchy-gcn small", gcn(|config| (config.form, config.layers) = (Form::Small, 2))),
        ("hierarchy-gcn that looks", gcn(|config| config.variant = Variant::LabelAttention)),
        (
            "hierarchy-gcn that looks, small",
            gcn(|config| (config.variant, config.form) = (Variant::LabelAttention, Form::Small)),
        ),
        ("coding-tree small", tree(|config| (config.form, config.height) = (Form::Small, 3))),
        ("coding-tree to the root", tree(|config| (config.level_pool, config.height) = (LevelPool::Root, 1))),
        (
            "coding-tree by maxima",
            tree(|config| (config.level_pool, config.tree) = (LevelPool::Max, CodingRule::StopWhenPositive)),
        ),
        ("hi-match small", design(AnyHeadConfig::HiMatch(matching), multi)),
        ("flat coherent", design(AnyHeadConfig::Flat(coherent), multi)),
    ] {
        designs.push((name.to_owned(), design));
    }
    let sampled =
        LabelAttentionConfig { encode: Encode::Sampled, sample: 4, ..LabelAttentionConfig::default() };
    let caml = CamlConfig { description_weight: 0.01, ..CamlConfig::default() };
    let (masking, projection) = (Split::Masking, Split::Projection);
    for (split, head) in [
        (
            masking,
            AnyHeadConfig::Flat(FlatConfig { recursive_regularisation: 1e-4, ..FlatConfig::default() }),
        ),
        (masking, AnyHeadConfig::CodingTree(CodingTreeConfig::default())),
        (masking, AnyHeadConfig::HierarchyGcn(HierarchyGcnConfig::default())),
        (masking, AnyHeadConfig::HiMatch(HiMatchConfig::default())),
        (masking, AnyHeadConfig::LabelAttention(sampled.clone())),
        (projection, AnyHeadConfig::LabelAttention(sampled)),
        (projection, AnyHeadConfig::LabelAttention(LabelAttentionConfig::default())),
        (projection, AnyHeadConfig::Caml(caml)),
        (projection, AnyHeadConfig::HierarchyGcn(HierarchyGcnConfig::default())),
        (projection, AnyHeadConfig::CodingTree(CodingTreeConfig::default())),
        (projection, AnyHeadConfig::HiMatch(HiMatchConfig::default())),
    ] {
        let name = format!("{} by {split:?} {}", head.name(), designs.len());
        let branches = BranchesConfig { split, ..BranchesConfig::default() };
        designs.push((name, Design { branches, ..design(fitting(head), multi) }));
    }
    designs
}

fn score(model: &NeuralModel, documents: &[Document]) -> Scores {
    model.score(documents, &Request::default()).unwrap()
}

#[test]
fn it_learns_eight_documents_by_heart() {
    // One after the other they would take minutes. What goes wrong on another thread is told on this one.
    let wrong: Vec<String> =
        designs().into_par_iter().filter_map(|(name, design)| learn_by_heart(&name, design).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn learn_by_heart(name: &str, design: Design) -> Result<(), String> {
    let toy = Toy::new(design.task);
    // With one label a document and labels read by the encoder that learns, the rate of the others leaps too far.
    let rate = if name == "label-attention softmax" { 1e-3 } else { 2e-3 };
    let config = TrainConfig {
        epochs: 100,
        batch_size: 4,
        learning_rate: rate,
        output: GroupConfig { learning_rate: Some(1e-2), ..GroupConfig::default() },
        labels: GroupConfig { learning_rate: Some(rate), ..GroupConfig::default() },
        dropout: Some(0.0),
        checkpoint_minutes: 0.0,
        ..TrainConfig::default()
    };
    let smooth = design.label_smoothing > 0.0;
    let (model, _, seen) = Run { design, ..Run::new(&toy, config) }.finish();
    let losses = seen.losses();
    let (first, last) = (losses[0], losses[losses.len() - 2..].iter().sum::<f64>() / 2.0);
    // Smoothing leaves a loss that nothing can take away.
    // And so does a document that cannot be near all of its labels.
    let stays = smooth || name.starts_with("hi-match");
    if last >= first / if stays { 1.5 } else { 10.0 } {
        return Err(format!("{name}: from {first} to {last}"));
    }
    let scores = score(&model, &toy.documents);
    for (n, gold) in toy.gold.iter().enumerate() {
        let top: LabelSet = scores.row(n)[..gold.len()].iter().map(|(label, _)| *label).collect();
        if top != *gold {
            return Err(format!("{name}, document {n}: {:?}", scores.row(n)));
        }
    }
    Ok(())
}

#[test]
fn scores_are_probabilities_of_every_label() {
    for (name, design) in designs() {
        let toy = Toy::new(design.task);
        let task = design.task;
        let model = toy.model(design, 1);
        let scores = score(&model, &toy.documents);
        assert_eq!(scores.len(), toy.documents.len());
        for row in scores.rows() {
            assert_eq!(row.len(), toy.taxonomy.n_labels(), "{name}");
            assert!(row.iter().all(|(_, score)| (0.0..=1.0).contains(score)), "{name}: {row:?}");
            assert!(row.iter().any(|(_, score)| *score != row[0].1), "{name}: {row:?}");
            if task == Task::MultiClass {
                let sum: f32 = row.iter().map(|(_, score)| score).sum();
                assert!((sum - 1.0).abs() < 1e-5, "{name}: {sum}");
            }
        }
        let request = Request { top_k: Some(3), ..Request::default() };
        let best = model.score(&toy.documents, &request).unwrap();
        assert_eq!(best.len(), scores.len(), "{name}");
        assert!(best.rows().zip(scores.rows()).all(|(best, all)| *best == all[..3]), "{name}");
    }
}

#[test]
fn a_document_scores_the_same_alone_and_in_a_batch() {
    for (name, design) in designs() {
        let toy = Toy::new(design.task);
        let model = toy.model(design, 1).ready();
        let together = score(&model, &toy.documents);
        for (n, document) in toy.documents.iter().enumerate() {
            let alone = score(&model, std::slice::from_ref(document));
            // The encoder's states are equal to the bit; products of few rows may round otherwise than of many.
            let mut rows = [alone.row(0).to_vec(), together.row(n).to_vec()];
            rows.iter_mut().for_each(|row| row.sort_by_key(|(label, _)| *label));
            assert_eq!(rows[0].len(), rows[1].len(), "{name}, document {n}");
            for ((one, alone), (other, together)) in rows[0].iter().zip(&rows[1]) {
                let same = one == other && (alone - together).abs() < 1e-6;
                assert!(same, "{name}, document {n}: {alone} and {together}");
            }
        }
    }
}

#[test]
fn every_parameter_gets_a_gradient() {
    for (name, design) in designs() {
        let toy = Toy::new(design.task);
        let model = toy.model(design, 1);
        let tokens = model.tokenize(&toy.documents).unwrap();
        let sequences: Vec<&Sequence> = tokens.iter().flatten().collect();
        let batch = TokenBatch::new(&sequences);
        let mut sum = GradientSum::default();
        // At several times, for heads that change what they learn as they go.
        for (seed, epoch) in [(1, 0.0), (2, 1.5), (3, 40.0)] {
            let encoded = model.network.encoder.encode(&batch, &model.layers, Mode::Training { seed });
            let moment = Moment { epoch, thawed: epoch, seed: Some(seed) };
            let (network, descriptions) = (&model.network, model.descriptions());
            let labels = label_states(network, descriptions, &toy.gold, &moment, None, &mut None);
            let input = HeadInput::of(&encoded, labels.as_ref());
            let objective = model.network.head.objective(&input, &toy.gold, &moment);
            assert!(!objective.values().is_empty(), "{name}");
            sum.add(&model.network, objective.total().unwrap().backward());
        }
        for parameter in names(&model.network) {
            let gradient = sum.values(&parameter);
            let moves = gradient.is_some_and(|values| values.iter().any(|value| *value != 0.0));
            assert!(moves, "{name}: {parameter}");
        }
    }
}

fn saved(model: &NeuralModel, path: &Path) -> BTreeMap<String, Vec<u8>> {
    let writer = Writer::create(path, "model").unwrap();
    model.save(&writer).unwrap();
    writer.finish().unwrap();
    let name = |entry: &fs::DirEntry| entry.file_name().into_string().unwrap();
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    entries.map(|entry| (name(&entry), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn it_is_the_same_after_saving_and_loading() {
    let folder = tempfile::tempdir().unwrap();
    for (name, design) in designs() {
        let toy = Toy::new(design.task);
        let mut model = toy.model(design.clone(), 1);
        model.network = model.network.valid();
        let path = folder.path().join("first");
        let first = saved(&model, &path);
        assert!(first.contains_key("head.safetensors"), "{:?}", first.keys());
        let has_tree = matches!(design.head, AnyHeadConfig::CodingTree(_));
        assert_eq!(first.contains_key("coding_trees.json"), has_tree, "{name}: {:?}", first.keys());
        let design = Design { head: model.head_config().clone(), ..design };
        let loaded = NeuralModel::load(
            &path,
            design,
            toy.taxonomy.clone(),
            &toy.counts(),
            &Device::flex(),
            &Cancel::default(),
        )
        .unwrap();
        let again = saved(&loaded, &folder.path().join("again"));
        assert!(first == again, "{name}");
        assert_eq!(score(&model, &toy.documents), score(&loaded, &toy.documents), "{name}");
    }
}

#[test]
fn its_section_survives_writing_and_unknown_keys_are_refused() {
    for (name, about, config) in HEADS {
        let config = config();
        assert_eq!(config.name(), *name);
        assert!(!about.is_empty());
        let section = config.serialize_section(serde_json::value::Serializer).unwrap();
        assert_eq!(AnyHeadConfig::parse(name, section.clone()).unwrap().unwrap(), config);
        assert_eq!(AnyHeadConfig::parse(name, serde_json::json!({})).unwrap().unwrap(), config);
        let mut odd = section;
        odd.as_object_mut().unwrap().insert("no_such_key".to_owned(), 1.into());
        let message = AnyHeadConfig::parse(name, odd).unwrap().unwrap_err().to_string();
        assert!(message.contains("no_such_key"), "{message}");
    }
    assert!(AnyHeadConfig::parse("no-such-head", serde_json::json!({})).is_none());
}

#[test]
fn labels_have_vectors_as_wide_as_what_their_outputs_read() {
    for (name, design) in designs() {
        let toy = Toy::new(design.task);
        let model = toy.model(design, 1);
        let Some(vectors) = model.label_vectors() else {
            // One output for all labels: what they say tells them apart. Branches of other sizes read other things.
            let has_none = name.starts_with("label-attention") || name == "lwan by descriptions";
            assert!(has_none || name.contains("by Projection"), "{name}");
            continue;
        };
        assert_eq!(vectors.len(), toy.taxonomy.n_labels(), "{name}");
        let width = vectors[0].len();
        for vector in &vectors {
            assert!(
                !vector.is_empty()
                    && (name == "aplc" || name.starts_with("layer-guided") || vector.len() == width),
                "{name}"
            );
            assert!(vector.is_sorted_by(|a, b| a.0 < b.0) && vector.iter().any(|(_, weight)| *weight != 0.0));
        }
    }
}

#[test]
fn the_page_on_heads_shows_the_example_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/your-own-head.md")).unwrap();
    let shown = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let example = fs::read_to_string(root.join("../cladist/examples/own_head.rs")).unwrap();
    assert!(
        shown.contains("impl Head for") && example.contains(shown.trim_end()),
        "docs/your-own-head.md is out of date"
    );
}

/// Heads whose outputs are not log-odds of labels.
const WITHOUT_BIASES: [&str; 6] =
    ["label-sequence", "sgm", "enc-dec", "hilap", "aplc", "lwan by descriptions"];

#[test]
fn new_outputs_know_how_rare_their_labels_are() {
    for (name, design) in designs() {
        if design.task == Task::MultiClass || WITHOUT_BIASES.contains(&name.as_str()) {
            continue;
        }
        let toy = Toy::new(design.task);
        let rare = LabelCounts { n_documents: 20_000, counts: vec![2; toy.taxonomy.n_labels()] };
        let mean = |prior_bias: bool| {
            let source = EncoderSource::parse("scratch:tiny").unwrap();
            let design = Design { prior_bias, ..design.clone() };
            let (examples, taxonomy) = (toy.examples(), toy.taxonomy.clone());
            let model = NeuralModel::create(
                design,
                &source,
                &examples,
                taxonomy,
                &rare,
                &Start::new(1, &Device::flex()),
            )
            .unwrap()
            .0;
            let scores = score(&model, &toy.documents);
            let all: Vec<f32> = scores.rows().flatten().map(|(_, score)| *score).collect();
            all.iter().sum::<f32>() / all.len() as f32
        };
        let (even, prior) = (mean(false), mean(true));
        // Logits of some heads are large at random.
        assert!(even > 0.1 && prior < 0.3 * even, "{name}: {even} and {prior}");
    }
}

#[test]
fn a_softmax_starts_at_the_prior_of_labels() {
    let toy = Toy::new(Task::MultiClass);
    let counts: Vec<u32> = (0..toy.taxonomy.n_labels() as u32).map(|label| 1 + 10 * label).collect();
    let n_documents = counts.iter().sum::<u32>() as usize;
    let counts = LabelCounts { n_documents, counts };
    let trees = Default::default();
    let device = Device::flex();
    let context = HeadContext {
        taxonomy: &toy.taxonomy,
        only: None,
        label_counts: &counts,
        hidden_size: 8,
        n_layers: 2,
        task: Task::MultiClass,
        label_smoothing: 0.0,
        prior_bias: true,
        labels: None,
        shortlist: None,
        trees: &trees,
        device: &device,
        seed: 1,
    };
    let exponentials: Vec<f32> = context.biases().iter().map(|bias| bias.exp()).collect();
    let sum: f32 = exponentials.iter().sum();
    for (p, &count) in exponentials.iter().map(|e| e / sum).zip(&counts.counts) {
        let share = count as f32 / n_documents as f32;
        assert!((p - share).abs() < 0.02, "{p} and {share}");
    }
}
