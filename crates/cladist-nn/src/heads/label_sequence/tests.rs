//! The decoder against numbers made by hand, the search against a small world, and both against each other.

use burn::tensor::activation::softmax;

use super::*;
use crate::blocks::{Cell, Recurrence};
use crate::heads::AnyHeadConfig;
use crate::model::NeuralModel;
use crate::parameters::{named, replace};
use crate::toy::{Toy, design};

fn device() -> Device {
    Device::flex()
}

fn near(found: &[f32], expected: &[f32]) {
    crate::toy::near(found, expected, 2e-6);
}

/// A decoder of width 2 with three labels whose output matrices are given.
fn small() -> Decoder {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let decoder = Decoder::new(2, 3, Options::default(), &mut random, &device());
    let mut values = named(&decoder);
    let mut set = |name: &str, new: &[f32]| {
        let (_, values) = values.get_mut(name).unwrap_or_else(|| panic!("{name}"));
        values.copy_from_slice(new);
    };
    set("of_state.weight", &[1.0, 0.0, 0.0, 1.0]);
    set("of_context.weight", &[1.0, 0.0, 0.0, 1.0]);
    set("output.weight", &[1.0, 0.0, 0.0, 1.0, 1.0, -1.0, -1.0, 0.5]);
    replace(decoder, values).unwrap()
}

fn memory(bias: [f32; 3]) -> Memory {
    let tokens = Tensor::from_data([[[1.0f32, 0.0], [0.0, 2.0], [1.0, 1.0]]], &device());
    Memory { tokens, bias: Tensor::from_data([[bias]], &device()), keys: None }
}

#[test]
fn attention_is_a_plain_dot_product_over_words() {
    let state = Tensor::from_data([[1.0f32, 0.5]], &device());
    near(&to_vec(small().attend(&memory([0.0; 3]), state.clone())), &[0.7259314, 1.0]);
    // α = [½, ½] without the third token.
    near(&to_vec(small().attend(&memory([0.0, 0.0, -1e30]), state)), &[0.5, 1.0]);
}

#[test]
fn the_output_is_a_softmax_over_labels_that_have_not_come() {
    let (state, context) = ([[1.0f32, 0.5]], [[0.7259314f32, 1.0]]);
    let features =
        small().features(Tensor::from_data(state, &device()), Tensor::from_data(context, &device()));
    near(&to_vec(features.clone()), &[0.9385733, 0.9051483]);
    let logits = small().logits(features);
    near(&to_vec(softmax(logits.clone(), 1)), &[0.3828161, 0.3702319, 0.1548422, 0.0921099]);
    let mut row = to_vec(logits);
    rules(3).log_probabilities(&mut row, &[0]);
    near(&row.iter().map(|log| log.exp()).collect::<Vec<_>>(), &[0.0, 0.5998729, 0.250_885, 0.1492422]);
}

#[test]
fn the_cell_is_an_lstm() {
    let cell = Recurrence::new(Cell::Lstm, 1, &mut ChaCha8Rng::seed_from_u64(1), &device());
    let mut values = named(&cell);
    assert_eq!(values["recurrent.bias"].1, [0.0, 1.0, 0.0, 0.0], "the forget gate starts open");
    values.get_mut("recurrent.weight").unwrap().1.copy_from_slice(&[0.5, 0.6, 0.7, 0.8]);
    values.get_mut("recurrent.bias").unwrap().1.fill(0.0);
    let cell = replace(cell, values).unwrap();
    let input = Tensor::from_data([[0.1f32, 0.2, 0.3, 0.4]], &device());
    let state = cell.step(input, cell.begin(Tensor::from_data([[0.5f32]], &device())));
    near(&to_vec(state), &[0.2230834, 0.3353517]);
}

fn rules(n_labels: usize) -> Rules {
    Rules { n_labels, min_labels: 0, max_labels: n_labels, parents: None }
}

#[test]
fn the_loss_is_a_mean_over_labels_and_ends() {
    let rows = [0.6f32, 0.7, 0.6].map(|p| [p.ln(), (1.0 - p).ln()]);
    let loss = cross_entropy(Tensor::from_data(rows, &device()), &[0, 0, 0], 0.0).into_scalar::<f32>();
    assert!((loss - 0.459_442_1).abs() < 1e-6, "{loss}");
}

/// ln P of A, B and the end after a prefix.
fn world(prefix: &[u32]) -> [f32; 3] {
    let p: [f32; 3] = match prefix {
        [] => [0.5, 0.4, 0.1],
        [0] => [0.0, 0.3, 0.7],
        [1] => [0.05, 0.0, 0.95],
        _ => [0.0, 0.0, 1.0],
    };
    p.map(f32::ln)
}

fn find(width: usize, wanted: usize, by_length: bool) -> Vec<Hypothesis> {
    let mut beam = Beam::new(width, wanted, by_length);
    while !beam.is_done() {
        let rows: Vec<[f32; 3]> = beam.live.iter().map(|live| world(&live.labels)).collect();
        let rows: Vec<&[f32]> = rows.iter().map(|row| &row[..]).collect();
        beam.advance(&rows, &rules(2));
    }
    beam.into_best()
}

#[test]
fn a_beam_finds_what_the_greedy_sequence_misses() {
    let greedy = find(1, 1, false);
    assert_eq!(greedy[0].labels, [0]);
    assert!((greedy[0].log - 0.35f64.ln()).abs() < 1e-6);
    let best = find(2, 1, false);
    assert_eq!(best[0].labels, [1]);
    assert!((best[0].log + 0.967_584).abs() < 1e-6, "{}", best[0].log);
    let all = find(9, 9, true);
    let value = |labels: &[u32]| {
        let h = all.iter().find(|h| h.labels == labels).unwrap();
        h.log / (h.steps.len() + 1) as f64
    };
    for (labels, expected) in [(&[0][..], -0.349_941), (&[1], -0.322_528), (&[0, 1], -0.474_280)] {
        assert!((value(labels) - expected).abs() < 1e-6, "{labels:?}: {}", value(labels));
    }
    assert_eq!(all[0].labels, [1]);
}

#[test]
fn the_n_best_are_those_of_all_sequences() {
    let best = find(2, 4, false);
    let labels: Vec<&[u32]> = best.iter().map(|h| &h.labels[..]).collect();
    // P: {B} .38, {A} .35, {A, B} .15, {} .1
    assert_eq!(labels, [&[1][..], &[0], &[0, 1], &[]]);
}

#[test]
fn rules_forbid_an_early_end_and_labels_without_a_parent() {
    let strict = Rules { min_labels: 1, parents: Some(vec![vec![], vec![0], vec![1, 0]]), ..rules(3) };
    let open = |emitted: &[u32]| -> Vec<usize> {
        let mut row = vec![0.0; 4];
        strict.log_probabilities(&mut row, emitted);
        let sum: f32 = row.iter().map(|log| log.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-6);
        (0..4).filter(|&n| row[n].is_finite()).collect()
    };
    assert_eq!(open(&[]), [0]);
    assert_eq!(open(&[0]), [1, 2, 3]);
    assert_eq!(open(&[0, 2]), [1, 3]);
    assert_eq!(open(&[0, 1, 2]), [3]);
}

/// A head with large weights, so that documents differ, and the states of the toy's documents.
fn lively(config: LabelSequenceConfig, work: impl FnOnce(&LabelSequencer, &HeadInput<'_>, &Toy)) {
    let toy = Toy::new(Task::MultiLabel);
    let mut model: NeuralModel = toy.model(design(AnyHeadConfig::LabelSequence(config), Task::MultiLabel), 3);
    let mut values = named(&model.network);
    for (n, (_, values)) in values.values_mut().enumerate() {
        for (m, value) in values.iter_mut().enumerate() {
            *value += 0.4 * ((n * 31 + m * 17) as f32).sin();
        }
    }
    model.network = replace(model.network, values).unwrap();
    let encoded = toy.encoded(&model);
    let crate::heads::AnyHead::LabelSequence(head) = &model.network.head else { panic!("another head") };
    work(head, &HeadInput::new(&encoded), &toy);
}

/// Σ ln P of a sequence when it is forced, which knows nothing of beams.
fn forced_log(head: &LabelSequencer, input: &HeadInput<'_>, document: usize, labels: &[u32]) -> f64 {
    let n = input.documents.n_sequences();
    let mut sequence = labels.to_vec();
    sequence.push(head.end());
    let targets: Targets =
        (0..n).map(|d| if d == document { sequence.clone() } else { vec![head.end()] }).collect();
    let logits = to_vec(head.forced(input, &targets, None));
    let width = head.rules.n_labels + 1;
    let mut sum = 0.0;
    for (step, &label) in sequence.iter().enumerate() {
        let row = &mut logits[(document + step) * width..][..width].to_vec();
        head.rules.log_probabilities(row, &sequence[..step]);
        sum += f64::from(row[label as usize]);
    }
    sum
}

#[test]
fn the_search_scores_sequences_as_forcing_does() {
    for lagged_context in [false, true] {
        let config = LabelSequenceConfig { lagged_context, max_labels: 4, ..LabelSequenceConfig::default() };
        lively(config, |head, input, toy| {
            let best = head.search(input, 3);
            let mut lengths = std::collections::BTreeSet::new();
            for (document, best) in best.iter().enumerate() {
                assert!((1..=3).contains(&best.len()));
                assert!(best.windows(2).all(|pair| pair[0].log >= pair[1].log));
                for h in best.iter().filter(|h| h.steps.len() > h.labels.len()) {
                    let forced = forced_log(head, input, document, &h.labels);
                    assert!((h.log - forced).abs() < 1e-3, "document {document}: {h:?}, forced {forced}");
                    lengths.insert(h.labels.len());
                }
            }
            assert!(lengths.len() > 1 && toy.documents.len() == best.len(), "{lengths:?}");
        });
    }
}

#[test]
fn a_beam_of_one_is_the_greedy_sequence_and_its_steps_are_pooled() {
    let config = LabelSequenceConfig { beam: 1, ..LabelSequenceConfig::default() };
    lively(config, |head, input, _| {
        let (best, pooled) = (head.search(input, 1), head.pooled(input));
        for (best, pooled) in best.iter().zip(&pooled) {
            for (&label, step) in best[0].labels.iter().zip(&best[0].steps) {
                // A label is gone after its step, so nothing later is higher; earlier steps may be.
                assert!(pooled[label as usize] >= step.exp() - 1e-6);
            }
        }
        assert!(best.iter().any(|best| !best[0].labels.is_empty()));
    });
}

#[test]
fn targets_follow_the_order_and_end() {
    for (order, expected) in [
        (Order::Frequency, ["goods", "money", "fund", "metal", "gold-fund"]),
        (Order::DepthFirst, ["goods", "metal", "gold-fund", "money", "fund"]),
    ] {
        lively(LabelSequenceConfig { order, ..LabelSequenceConfig::default() }, |head, _, toy| {
            let target = &head.targets(&toy.gold)[3];
            let names: Vec<&str> = target[..target.len() - 1]
                .iter()
                .map(|&label| toy.taxonomy.id(head.labels[label as usize]))
                .collect();
            assert_eq!((names.as_slice(), target.last()), (&expected[..], Some(&head.end())), "{order:?}");
        });
    }
}

#[test]
fn a_mask_in_training_leaves_a_finite_lower_loss() {
    let loss = |mask_in_training| {
        let mut found = 0.0;
        lively(
            LabelSequenceConfig { mask_in_training, ..LabelSequenceConfig::default() },
            |head, input, toy| {
                let moment = Moment { epoch: 0.0, thawed: 0.0, seed: None };
                found = head.objective(input, &toy.gold, &moment).values()[0].1;
            },
        );
        found
    };
    let (plain, masked) = (loss(false), loss(true));
    assert!(masked.is_finite() && masked < plain, "{masked} {plain}");
}

#[test]
fn with_the_taxonomy_no_label_comes_before_a_parent() {
    let config = LabelSequenceConfig { constrain: Constrain::Taxonomy, ..LabelSequenceConfig::default() };
    lively(config, |head, input, toy| {
        for sequence in head.sequences(input, 4).unwrap().concat() {
            for (n, &label) in sequence.labels.iter().enumerate() {
                let parents = toy.taxonomy.parents(label);
                assert!(
                    parents.is_empty() || parents.iter().any(|parent| sequence.labels[..n].contains(parent))
                );
            }
        }
    });
}
