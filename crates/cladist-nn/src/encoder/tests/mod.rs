//! The fused operations against ordinary ones, and dropout.

mod config;
mod descriptions;
mod families;
mod files;
mod reference;

use burn::tensor::TensorData;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::description::{EmbeddingSpec, Positions, Projection};
use super::*;
use crate::heads::{HeadInput, Moment, Task};
use crate::parameters::{named, names, replace, to_vec};
use crate::tokens::Sequence;
use crate::toy::{Toy, flat, golden};

const SHAPES: [&[usize]; 5] = [&[1], &[1, 7, 2], &[5, 1, 1, 3], &[17], &[9, 33, 4]];

fn device() -> Device {
    Device::flex().autodiff()
}

fn config(hidden: usize, heads: usize) -> EncoderConfig {
    // Larger than usual, so that every part matters.
    EncoderConfig { initializer_range: 0.3, ..EncoderConfig::bert(50, hidden, 2, heads) }
}

fn encoder(config: EncoderConfig) -> Encoder {
    let encoder = Encoder::random(config, false, 3, &device());
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut values = named(&encoder);
    for (_, values) in values.values_mut() {
        values.iter_mut().for_each(|value| *value += random.random_range(-0.2..0.2f32));
    }
    replace(encoder, values).unwrap()
}

fn batch(lengths: &[usize]) -> TokenBatch {
    let mut random = ChaCha8Rng::seed_from_u64(lengths.len() as u64);
    let sequences: Vec<Sequence> = (lengths.iter())
        .map(|&length| Sequence {
            ids: (0..length).map(|_| random.random_range(0..50)).collect(),
            ..Sequence::default()
        })
        .collect();
    TokenBatch::new(&sequences.iter().collect::<Vec<_>>())
}

fn setting<'a>(encoder: &'a Encoder, packing: &'a Packing, relations: &'a Relations) -> Setting<'a> {
    Setting {
        config: &encoder.config,
        number: 0,
        packing,
        relations,
        dropouts: Dropouts::NONE,
        panels: None,
        outputs: Outputs::All,
    }
}

fn random_rows(rows: usize, columns: usize, seed: u64) -> Tensor<2> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..rows * columns).map(|_| random.random_range(-1.0..1.0)).collect();
    Tensor::from_data(TensorData::new(values, [rows, columns]), &device())
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    assert!(a.iter().chain(b).all(|value| value.is_finite()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f32::max)
}

/// Gradients of Σ output·weight for every parameter of a module.
fn gradients(module: &impl Module, output: Tensor<2>) -> crate::optim::GradientSum {
    let [rows, columns] = output.dims();
    let loss = (output * random_rows(rows, columns, 9)).sum();
    let mut sum = crate::optim::GradientSum::default();
    sum.add(module, loss.backward());
    sum
}

#[test]
fn a_fused_layer_equals_ordinary_operations() {
    for (hidden, heads) in [(32, 4), (24, 2)] {
        let encoder = encoder(config(hidden, heads));
        let layer = &encoder.layers[0];
        let both = [Outputs::All, Outputs::First];
        for (lengths, outputs) in SHAPES.iter().flat_map(|&lengths| both.map(|outputs| (lengths, outputs))) {
            let packing = Packing::new(&batch(lengths).offsets);
            let relations = Relations::new(&encoder.config, None, &packing, &device());
            let setting = Setting { outputs, ..setting(&encoder, &packing, &relations) };
            let results = [Layer::forward, Layer::forward_plain].map(|forward| {
                let x = random_rows(lengths.iter().sum(), hidden, 5).require_grad();
                let y = forward(layer, x.clone(), &setting);
                let loss = (y.clone() * random_rows(y.dims()[0], hidden, 9)).sum();
                let mut all = loss.backward();
                let dx = x.grad_remove(&mut all).unwrap();
                let mut sum = crate::optim::GradientSum::default();
                sum.add(layer, all);
                (to_vec(y), dx.into_data().try_into_vec::<f32>().unwrap(), sum)
            });
            let [(y, dx, sum), (plain_y, plain_dx, plain_sum)] = results;
            assert!(apart(&y, &plain_y) < 1e-4, "output for {lengths:?}: {}", apart(&y, &plain_y));
            assert!(apart(&dx, &plain_dx) < 1e-4, "dx for {lengths:?}: {}", apart(&dx, &plain_dx));
            let names = names(layer);
            assert_eq!(names.len(), 12);
            for name in names {
                let (fused, plain) = (sum.values(&name).unwrap(), plain_sum.values(&name).unwrap());
                let apart = apart(&fused, &plain);
                assert!(apart < 1e-4, "{name} for {lengths:?}, {outputs:?}: {apart}");
                assert!(plain.iter().any(|value| value.abs() > 1e-3), "{name}");
            }
        }
    }
}

#[test]
fn packed_weights_give_the_same_states() {
    let encoder = encoder(config(32, 4));
    let (batch, all) = (batch(&[3, 1, 9]), (0..=2).collect());
    let packed = encoder.pack().unwrap();
    let [with, without] = [Some(&packed), None]
        .map(|packed| to_vec(encoder.encode(&batch, &all, Mode::Inference(packed)).packed(2)));
    assert_eq!(with, without);
}

#[test]
fn fused_embeddings_equal_ordinary_operations() {
    for (n_types, first, width) in [(2, 0, 32), (0, 0, 32), (1, 2, 32), (2, 0, 12)] {
        let projection = if width == 32 { Projection::None } else { Projection::AfterNorm };
        let positions = Positions::Learned { rows: 512, first };
        let embeddings = EmbeddingSpec { width, projection, positions, n_types, norm: true };
        let encoder = encoder(EncoderConfig { embeddings, ..config(32, 4) });
        let n_names = 4 + usize::from(n_types > 0) + if width == 32 { 0 } else { 2 };
        for lengths in SHAPES {
            let batch = batch(lengths);
            let fused = encoder.embeddings.forward(&encoder.config, &batch, Dropout::NONE);
            let plain = encoder.embeddings.forward_plain(&encoder.config, &batch, Dropout::NONE);
            let (values, plain_values) = (to_vec(fused.clone()), to_vec(plain.clone()));
            assert!(apart(&values, &plain_values) < 1e-5, "{}", apart(&values, &plain_values));
            let fused = gradients(&encoder.embeddings, fused);
            let plain = gradients(&encoder.embeddings, plain);
            let names = names(&encoder.embeddings);
            assert_eq!(names.len(), n_names);
            for name in names {
                let (fused, plain) = (fused.values(&name).unwrap(), plain.values(&name).unwrap());
                assert!(apart(&fused, &plain) < 1e-4, "{name}: {}", apart(&fused, &plain));
                assert!(plain.iter().any(|value| value.abs() > 1e-3), "{name}");
            }
        }
    }
}

#[test]
fn dropout_drops_its_share_and_is_a_function_of_the_seed() {
    let encoder = encoder(config(64, 4)).with_dropout(0.3);
    let (batch, all) = (batch(&[200, 100, 200]), (0..=2).collect());
    let states = |mode, layer| to_vec(encoder.encode(&batch, &all, mode).packed(layer));
    let dropped = states(Mode::Training { seed: 1 }, 0);
    let zeros = dropped.iter().filter(|value| **value == 0.0).count() as f64 / dropped.len() as f64;
    assert!((zeros - 0.3).abs() < 0.01, "{zeros}");
    let kept = states(Mode::Inference(None), 0);
    for (dropped, kept) in dropped.iter().zip(&kept) {
        assert!(*dropped == 0.0 || (dropped - kept / 0.7).abs() < 1e-5 * (1.0 + kept.abs()));
    }
    assert_eq!(states(Mode::Training { seed: 1 }, 2), states(Mode::Training { seed: 1 }, 2));
    assert_ne!(states(Mode::Training { seed: 1 }, 2), states(Mode::Training { seed: 2 }, 2));
    let none = Encoder::with_dropout(encoder.clone(), 0.0);
    assert_eq!(
        to_vec(none.encode(&batch, &all, Mode::Training { seed: 1 }).packed(2)),
        states(Mode::Inference(None), 2)
    );
}

#[test]
fn each_place_of_dropout_has_an_effect_of_its_own() {
    let encoder = encoder(config(32, 4));
    let packing = Packing::new(&[0, 5, 6]);
    let one = Dropout { rate: 0.5, seed: 1 };
    let none = Dropouts::NONE;
    let outputs = [
        none,
        Dropouts { attention: one, ..none },
        Dropouts { hidden1: one, ..none },
        Dropouts { hidden2: one, ..none },
    ]
    .map(|dropouts| {
        let relations = Relations::new(&encoder.config, None, &packing, &device());
        let setting = Setting { dropouts, ..setting(&encoder, &packing, &relations) };
        to_vec(encoder.layers[0].forward(random_rows(6, 32, 5), &setting))
    });
    for (n, a) in outputs.iter().enumerate() {
        assert!(outputs[n + 1..].iter().all(|b| apart(a, b) > 0.1));
    }
}

/// Along its own gradient g, a parameter p changes the loss by L(p + εg) − L(p − εg) = 2ε·|g|².
#[test]
fn gradients_through_dropout_are_slopes_of_the_loss() {
    let toy = Toy::new(Task::MultiLabel);
    let model = toy.model(flat(), 1);
    let tokens = model.tokenize(&toy.documents).unwrap();
    let sequences: Vec<&Sequence> = tokens.iter().flatten().collect();
    let batch = TokenBatch::new(&sequences);
    let mut network = model.network.clone();
    network.encoder = network.encoder.with_dropout(0.3);
    // Gradients of a fresh encoder are lost in the rounding of the loss.
    let mut start = named(&network);
    let mut random = ChaCha8Rng::seed_from_u64(4);
    for (_, values) in start.values_mut() {
        values.iter_mut().for_each(|value| *value += random.random_range(-0.3..0.3f32));
    }
    let loss = |values: &crate::parameters::Tensors| {
        let network = replace(network.clone(), values.clone()).unwrap();
        let encoded = network.encoder.encode(&batch, &model.layers, Mode::Training { seed: 7 });
        let moment = Moment { epoch: 0.0, thawed: 0.0, seed: Some(7) };
        let objective = network.head.objective(&HeadInput::new(&encoded), &toy.gold, &moment);
        (objective.total().unwrap(), network)
    };
    let (value, at) = loss(&start);
    let mut sum = crate::optim::GradientSum::default();
    sum.add(&at, value.backward());
    for name in names(&network) {
        let gradient = sum.values(&name).unwrap();
        let square: f64 = gradient.iter().map(|g| f64::from(*g).powi(2)).sum();
        assert!(square > 0.0, "{name}");
        let epsilon = 2e-2 / square.sqrt();
        let moved = |sign: f64| {
            let mut values = start.clone();
            let (_, parameter) = values.get_mut(&name).unwrap();
            for (value, g) in parameter.iter_mut().zip(&gradient) {
                *value += (sign * epsilon * f64::from(*g)) as f32;
            }
            f64::from(loss(&values).0.inner().into_scalar::<f32>())
        };
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * epsilon);
        // The loss has seven digits, of which the difference leaves few when the gradient is small.
        let tolerance = 0.02 * square + 3e-7 / epsilon;
        assert!((slope - square).abs() < tolerance, "{name}: {slope} instead of {square}");
    }
}

#[test]
fn the_states_of_a_sequence_do_not_depend_on_its_batch() {
    let encoder = encoder(config(64, 4));
    let lengths = [9, 1, 33, 4, 17];
    let (together, all) = (batch(&lengths), (0..=2).collect());
    let packed = encoder.pack();
    let states = encoder.encode(&together, &all, Mode::Inference(packed.as_ref()));
    for (n, range) in together.offsets.windows(2).map(|pair| pair[0]..pair[1]).enumerate() {
        let one = Sequence { ids: together.ids[range.clone()].to_vec(), ..Sequence::default() };
        let alone = encoder.encode(&TokenBatch::new(&[&one]), &all, Mode::Inference(packed.as_ref()));
        for layer in 0..=2 {
            let rows = states.packed(layer).slice([range.clone(), 0..64]);
            assert_eq!(to_vec(alone.packed(layer)), to_vec(rows), "layer {layer}, sequence {n}");
        }
    }
}

#[test]
fn the_mean_of_packed_tokens_is_that_of_the_padded_rectangle() {
    let encoder = encoder(config(32, 4));
    for lengths in SHAPES {
        let encoded = encoder.encode(&batch(lengths), &[2].into_iter().collect(), Mode::Inference(None));
        let (tokens, mask) = encoded.tokens(2);
        let [n, _, hidden] = tokens.dims();
        let padded = tokens.sum_dim(1).reshape([n, hidden]) / mask.sum_dim(1);
        assert!(apart(&to_vec(encoded.mean(2)), &to_vec(padded)) < 1e-6, "{lengths:?}");
    }
}

#[test]
fn first_tokens_are_the_same_when_nothing_else_is_read() {
    let encoder = encoder(config(32, 4)).with_dropout(0.2);
    let batch = batch(&[9, 1, 33]);
    let all: LayerSet = [1, 2].into_iter().collect();
    for mode in [Mode::Inference(None), Mode::Training { seed: 3 }] {
        let whole = encoder.encode(&batch, &all, mode);
        let firsts = encoder.encode(&batch, &all.clone().first_tokens(), mode);
        for layer in [1, 2] {
            assert_eq!(to_vec(whole.cls(layer)), to_vec(firsts.cls(layer)), "layer {layer}");
        }
        assert_eq!(to_vec(whole.packed(1)), to_vec(firsts.packed(1)));
    }
}
