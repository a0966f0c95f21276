//! Studies of the toy world against the long way round.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::divergence::{entropy, kl_divergence};
use super::*;
use crate::heads::Task;
use crate::model::Design;
use crate::parameters::{named, replace};
use crate::toy::{Toy, flat, on_threads};

/// A model with larger weights than a new one has, so that it attends to some tokens more than to others.
fn model(toy: &Toy, design: Design, seed: u64) -> NeuralModel {
    let mut model = toy.model(design, seed);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut values = named(&model.network.encoder);
    for (_, values) in values.values_mut() {
        values.iter_mut().for_each(|value| *value += random.random_range(-0.2..0.2f32));
    }
    model.network.encoder = replace(model.network.encoder, values).unwrap();
    model
}

fn texts(toy: &Toy) -> Vec<Cow<'_, str>> {
    toy.documents.iter().map(|document| Cow::Borrowed(document.text.as_str())).collect()
}

/// Every number of a study.
fn numbers(study: &LayerStudy) -> Vec<f64> {
    let LayerStudy { distance, attention_kl, entropy, head_kl, .. } = study;
    let matrices = distance.iter().chain(attention_kl).flatten();
    matrices.chain(entropy).chain(head_kl.iter().flatten()).copied().collect()
}

fn assert_close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    }
}

/// The definitions, one document and one pair at a time.
fn naive(model: &NeuralModel, text: &str) -> Vec<f64> {
    let encoder = &model.network.encoder;
    let sequence = model.tokenizer.encode(&[text], &model.design.tokens).unwrap().remove(0).remove(0);
    let all: LayerSet = (1..=encoder.n_layers()).collect();
    let encoded =
        encoder.encode_with_attention(&TokenBatch::new(&[&sequence]), &all, &all, Mode::Inference(None));
    let (length, n_heads) = (sequence.len(), encoder.config().n_heads);
    let attention: Vec<Vec<f32>> =
        all.iter().map(|layer| to_vec(encoded.attention(layer).unwrap())).collect();
    let head = |layer: usize, head: usize, query: usize| -> Vec<f64> {
        let start = (head * length + query) * length;
        attention[layer][start..start + length].iter().map(|&p| f64::from(p)).collect()
    };
    let averaged = |layer: usize, query: usize| -> Vec<f64> {
        let heads: Vec<Vec<f64>> = (0..n_heads).map(|n| head(layer, n, query)).collect();
        (0..length).map(|key| heads.iter().map(|head| head[key]).sum::<f64>() / n_heads as f64).collect()
    };
    let over_queries = |f: &dyn Fn(usize) -> f64| -> f64 { (0..length).map(f).sum::<f64>() / length as f64 };
    let n = encoder.n_layers();
    let pairs = || (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
    let mut found: Vec<f64> = pairs()
        .map(|(i, j)| {
            let [a, b] = [i, j].map(|layer| to_vec(encoded.cls(layer + 1)));
            if i == j { 0.0 } else { angular_distance(&a, &b) }
        })
        .collect();
    found.extend(
        pairs().map(|(i, j)| over_queries(&|query| kl_divergence(&averaged(i, query), &averaged(j, query)))),
    );
    found.extend((0..n).map(|layer| over_queries(&|query| entropy(&averaged(layer, query)))));
    found.extend((0..n).map(|layer| {
        over_queries(&|query| {
            let pairs = (0..n_heads).flat_map(|g| (0..n_heads).map(move |h| (g, h)));
            let kl: f64 = (pairs.filter(|(g, h)| g != h))
                .map(|(g, h)| kl_divergence(&head(layer, g, query), &head(layer, h, query)))
                .sum();
            kl / (n_heads * (n_heads - 1)) as f64
        })
    }));
    found
}

#[test]
fn a_study_is_the_mean_of_its_documents_by_definition() {
    let toy = Toy::new(Task::MultiLabel);
    for packed in [false, true] {
        let mut model = model(&toy, flat(), 3);
        if packed {
            model = model.ready();
        }
        let study = model.study_layers(texts(&toy), &Job::silent()).unwrap();
        let found = numbers(&study);
        let each: Vec<Vec<f64>> =
            toy.documents.iter().map(|document| naive(&model, &document.text)).collect();
        let expected: Vec<f64> = (0..found.len())
            .map(|n| each.iter().map(|numbers| numbers[n]).sum::<f64>() / each.len() as f64)
            .collect();
        assert_close(&found, &expected);
        assert!(found.iter().filter(|value| **value > 1e-3).count() == 8, "{found:?}");
        // What a document adds does not depend on who shares its batch.
        for (document, expected) in toy.documents.iter().zip(&each) {
            let alone = model.study_layers([Cow::Borrowed(document.text.as_str())], &Job::silent()).unwrap();
            assert_close(&numbers(&alone), expected);
        }
    }
}

#[test]
fn distances_are_symmetric_and_nothing_is_apart_from_itself() {
    let toy = Toy::new(Task::MultiLabel);
    let model = model(&toy, flat(), 1);
    let study = model.study_layers(texts(&toy), &Job::silent()).unwrap();
    assert_eq!((study.n_documents, study.n_layers, study.n_heads), (8, 2, 2));
    let lengths = model.tokenize(&toy.documents).unwrap();
    assert_eq!(study.n_tokens, lengths.iter().map(|windows| windows[0].len() as u64).sum::<u64>());
    let longest = lengths.iter().map(|windows| windows[0].len()).max().unwrap();
    for i in 0..2 {
        assert_eq!((study.distance[i][i], study.attention_kl[i][i]), (0.0, 0.0));
        assert!(study.entropy[i] > 0.0 && study.entropy[i] <= (longest as f64).ln(), "{:?}", study.entropy);
        for j in 0..2 {
            assert_eq!(study.distance[i][j], study.distance[j][i]);
            assert!((0.0..=1.0).contains(&study.distance[i][j]) && study.attention_kl[i][j] >= 0.0);
        }
    }
    assert!(study.distance[0][1] > 0.0 && study.attention_kl[0][1] > 0.0 && study.attention_kl[1][0] > 0.0);
    assert!(study.head_kl.unwrap().iter().all(|kl| *kl > 0.0));
}

#[test]
fn a_study_is_the_same_on_any_number_of_threads() {
    let toy = Toy::new(Task::MultiLabel);
    let model = model(&toy, flat(), 2).ready();
    let study = |threads| on_threads(threads, || model.study_layers(texts(&toy), &Job::silent()).unwrap());
    assert_eq!(study(1), study(3));
}

#[test]
fn of_a_document_in_windows_the_first_counts() {
    let toy = Toy::new(Task::MultiLabel);
    let study = |windows: usize| {
        let tokens = TokensConfig { max_tokens: 8, windows, stride: 2, ..TokensConfig::default() };
        let model = model(&toy, Design { tokens, ..flat() }, 1);
        model.study_layers(texts(&toy), &Job::silent()).unwrap()
    };
    assert_eq!(study(1), study(3));
    assert!(study(1).n_tokens <= 8 * 8);
}

#[test]
fn long_work_stops_when_asked_and_nothing_is_no_study() {
    let toy = Toy::new(Task::MultiLabel);
    let model = model(&toy, flat(), 1);
    let job = Job::silent();
    assert!(matches!(model.study_layers([], &job), Err(Error::NothingToStudy)));
    job.cancel.cancel();
    assert!(matches!(
        model.study_layers(texts(&toy), &job),
        Err(Error::Core(cladist_core::Error::Cancelled))
    ));
}

proptest! {
    #[test]
    fn every_sequence_is_looked_at_and_no_shared_batch_is_too_large(
        lengths in prop::collection::vec(1usize..60, 0..40),
        per_pair in 1usize..20,
        cells in 1usize..20_000,
    ) {
        let batches = plan(&lengths, per_pair, cells);
        for batch in &batches {
            let longest = batch.iter().map(|&n| lengths[n]).max().unwrap();
            prop_assert!(batch.len() == 1 || batch.len() * longest * longest * per_pair <= cells);
        }
        let mut all = batches.concat();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..lengths.len()));
    }
}
