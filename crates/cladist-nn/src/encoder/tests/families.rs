//! Families: parity of gradients with `transformers`, training, and writing.

use std::path::Path;

use safetensors::SafeTensors;

use super::super::families::Family;
use super::super::slots::slots;
use super::*;
use crate::model::{NeuralModel, Start};
use crate::source::EncoderSource;
use crate::toy::{bytes, near, on_threads};
use crate::train::TrainConfig;
use crate::train::tests::{Run, Stop, quick};

/// Folders of all families.
const FOLDERS: [(&str, Family); 5] = [
    ("bert", Family::Bert),
    ("roberta", Family::Roberta),
    ("distilbert", Family::Distilbert),
    ("electra", Family::Electra),
    ("mpnet", Family::Mpnet),
];

#[test]
fn a_family_names_every_parameter_of_its_description_and_no_other() {
    for (folder, family) in FOLDERS {
        let config = EncoderConfig::read(&golden(folder)).unwrap();
        assert_eq!(config.family, family);
        let slots = slots(&config, true);
        for slot in &slots {
            assert!(!slot.tensors(family).is_empty(), "{folder}: {}", slot.path);
        }
        for (path, _) in family.rows() {
            let path = path.replace('#', "0");
            assert!(slots.iter().any(|slot| slot.path == path), "{folder}: {path}");
        }
        let encoder = Encoder::random(config, true, 1, &device());
        let listed: Vec<String> = slots.into_iter().map(|slot| slot.path).collect();
        assert_eq!(names(&encoder), listed, "{folder}");
    }
}

/// As `wave` of `parity/encoders.py`.
fn wave(layer: usize, sequence: usize, token: usize, unit: usize) -> f32 {
    ((7 * layer + 31 * sequence + 13 * token + 3 * unit) % 17) as f32 / 8.0 - 1.0
}

#[test]
fn gradients_equal_those_of_transformers() {
    for name in ["electra", "mpnet"] {
        let (encoder, _) = Encoder::load(&golden(name), false, 1, &device()).unwrap();
        let bytes = std::fs::read(golden(name).join("golden.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let integers = |name: &str| -> Vec<usize> {
            let data = file.tensor(name).unwrap().data();
            data.as_chunks::<8>().0.iter().map(|&bytes| i64::from_le_bytes(bytes) as usize).collect()
        };
        let (ids, lengths) = (integers("input_ids"), integers("lengths"));
        let rows = ids.chunks(ids.len() / lengths.len()).zip(&lengths);
        let sequence = |(ids, &length): (&[usize], &usize)| Sequence {
            ids: ids[..length].iter().map(|&id| id as u32).collect(),
            ..Sequence::default()
        };
        let sequences: Vec<Sequence> = rows.map(sequence).collect();
        let batch = TokenBatch::new(&sequences.iter().collect::<Vec<_>>());
        let all: LayerSet = (0..=encoder.n_layers()).collect();
        let encoded = encoder.encode(&batch, &all, Mode::Training { seed: 1 });
        let mut loss = Tensor::<1>::zeros([1], &device());
        for layer in all.iter() {
            let states = encoded.packed(layer);
            let [tokens, hidden] = states.dims();
            let weights: Vec<f32> = (lengths.iter().enumerate())
                .flat_map(|(n, &length)| (0..length).map(move |token| (n, token)))
                .flat_map(|(n, token)| (0..hidden).map(move |unit| wave(layer, n, token, unit)))
                .collect();
            let weights = Tensor::from_data(TensorData::new(weights, [tokens, hidden]), &device());
            loss = loss + (states * weights).sum();
        }
        let mut sum = crate::optim::GradientSum::default();
        sum.add(&encoder, loss.backward());
        let mut n_compared = 0;
        for slot in slots(encoder.config(), false) {
            let gradient = sum.values(&slot.path).unwrap();
            let mut rest = gradient.as_slice();
            for (tensor, shape) in slot.tensors(encoder.config().family) {
                let (part, others) = rest.split_at(shape.iter().product());
                rest = others;
                let view = file.tensor(&format!("gradient.{tensor}")).unwrap();
                assert_eq!(view.shape(), shape, "{name}: {tensor}");
                let expected = view.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
                for (n, (actual, expected)) in part.iter().zip(expected).enumerate() {
                    let apart = (actual - expected).abs();
                    assert!(apart < 1e-3, "{name}: {tensor}[{n}]: {actual} instead of {expected}");
                }
                n_compared += 1;
            }
        }
        assert_eq!(n_compared, file.names().iter().filter(|name| name.starts_with("gradient.")).count());
    }
}

fn model(folder: &Path, toy: &Toy, device: &Device) -> NeuralModel {
    let source = EncoderSource::Folder(folder.to_owned());
    let (taxonomy, counts) = (toy.taxonomy.clone(), toy.counts());
    NeuralModel::create(flat(), &source, &toy.examples(), taxonomy, &counts, &Start::new(1, device))
        .unwrap()
        .0
}

#[test]
fn new_families_learn_and_the_same_seed_gives_the_same_bytes() {
    let toy = Toy::new(Task::MultiLabel);
    let config = TrainConfig { epochs: 30, learning_rate: 3e-3, dropout: Some(0.1), ..quick() };
    for name in ["electra", "mpnet"] {
        let learn = |threads: usize| {
            on_threads(threads, || {
                let start = model(&golden(name), &toy, &device());
                let before = bytes(&start);
                let (result, seen) = Run::new(&toy, config.clone()).go_from(start, Stop::Never);
                let model = result.unwrap().0;
                assert_ne!(bytes(&model), before, "{name}");
                (bytes(&model), seen.losses(), model)
            })
        };
        let (bytes, losses, model) = learn(1);
        let (other_bytes, other_losses, _) = learn(2);
        assert!(bytes == other_bytes && losses == other_losses, "{name}");
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        let (first, last) = (mean(&losses[..3]), mean(&losses[losses.len() - 3..]));
        assert!(last < 0.7 * first, "{name}: {first} to {last}");

        let folder = tempfile::tempdir().unwrap();
        let (config, weights) = model.network.encoder.export(None).unwrap();
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        std::fs::write(folder.path().join("model.safetensors"), weights).unwrap();
        let (again, report) = Encoder::load(folder.path(), false, 9, &device()).unwrap();
        assert_eq!(report, LoadReport::default());
        assert_eq!(named(&again), named(&model.network.encoder), "{name}");
    }
}

#[test]
fn what_is_written_has_the_tensors_that_were_read() {
    for (name, _) in FOLDERS {
        let original = std::fs::read(golden(name).join("model.safetensors")).unwrap();
        let original = SafeTensors::deserialize(&original).unwrap();
        let pooler = original.tensor("pooler.dense.weight").is_ok();
        let (encoder, _) = Encoder::load(&golden(name), pooler, 1, &device()).unwrap();
        let written = encoder.export(None).unwrap().1;
        let written = SafeTensors::deserialize(&written).unwrap();
        assert_eq!(written.len(), original.len(), "{name}");
        for (tensor, view) in original.iter() {
            assert_eq!(written.tensor(tensor).unwrap(), view, "{name}: {tensor}");
        }
    }
}

#[test]
fn an_encoder_that_is_written_reads_back_as_the_same_bytes() {
    let families = [
        "bert",
        "roberta",
        "distilbert",
        "electra",
        "mpnet",
        "bert-f16",
        "bert-sharded-bf16",
        "bert-prefixed",
        "bert-gamma-beta",
    ];
    for (family, pooler) in families.into_iter().flat_map(|family| [(family, true), (family, false)]) {
        let (encoder, _) = Encoder::load(&golden(family), pooler, 1, &device()).unwrap();
        let (config, weights) = encoder.export(None).unwrap();
        assert!(!String::from_utf8_lossy(&config).contains("float16"), "{family}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), &config).unwrap();
        std::fs::write(folder.path().join("model.safetensors"), &weights).unwrap();
        let (again, report) = Encoder::load(folder.path(), pooler, 2, &device()).unwrap();
        assert_eq!(report, LoadReport::default(), "{family}");
        assert!(again.export(None).unwrap() == (config, weights), "{family}");
        assert_eq!(named(&again), named(&encoder), "{family}");
    }
}

#[test]
fn frozen_layers_take_the_bias_by_distance_along() {
    let learns = |n_layers: usize| {
        let (encoder, _) = Encoder::load(&golden("mpnet"), false, 1, &device()).unwrap();
        let encoder = encoder.freeze(n_layers);
        let encoded = encoder.encode(&batch(&[9, 4]), &[3].into_iter().collect(), Mode::Training { seed: 1 });
        let sum = gradients(&encoder, encoded.packed(3));
        sum.names().map(str::to_owned).collect::<Vec<String>>()
    };
    assert!(learns(0).contains(&"distance_bias".to_owned()));
    let some = learns(2);
    assert!(some.iter().all(|name| name.starts_with("layers.2.")) && some.len() == 12, "{some:?}");
}

#[test]
fn layers_that_do_not_learn_run_without_dropout() {
    for family in ["bert", "electra", "mpnet"] {
        let load = || Encoder::load(&golden(family), false, 1, &device()).unwrap().0.with_dropout(0.3);
        let n_layers = load().n_layers();
        let batch = batch(&[9, 4]);
        let states = |encoder: &Encoder, mode: Mode<'_>, layer: usize| {
            to_vec(encoder.encode(&batch, &[layer].into_iter().collect(), mode).packed(layer))
        };
        let (training, other) = (Mode::Training { seed: 1 }, Mode::Training { seed: 2 });
        let all = load().freeze(usize::MAX);
        near(&states(&all, training, n_layers), &states(&all, Mode::Inference(None), n_layers), 1e-6);
        let some = load().freeze(1);
        near(&states(&some, training, 1), &states(&some, Mode::Inference(None), 1), 1e-6);
        assert!(states(&some, training, n_layers) != states(&some, other, n_layers), "{family}");
        let none = load();
        assert!(states(&none, training, 0) != states(&none, other, 0), "{family}");
    }
}
