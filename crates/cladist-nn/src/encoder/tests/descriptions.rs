//! Descriptions of all kinds: the same numbers as loops, gradients that are slopes, the same alone and in a batch.

use super::super::description::{
    Activation, AttentionSpec, DistanceBias, EmbeddingSpec, Gate, MlpSpec, NormKind, NormPlace, NormSpec,
    Positions, Projection, Rotary, Window,
};
use super::reference::Reference;
use super::*;

/// Encoders that differ from BERT in every part that can differ.
fn described() -> Vec<(&'static str, EncoderConfig)> {
    let base = || EncoderConfig { n_layers: 4, n_groups: 4, ..config(32, 4) };
    let rotary = Rotary { theta: 1000.0, local_theta: 1000.0, factor: 1.0 };
    let unplaced = EmbeddingSpec {
        width: 32,
        projection: Projection::None,
        positions: Positions::None { limit: 64 },
        n_types: 0,
        norm: true,
    };
    let bare = AttentionSpec { bias: false, ..AttentionSpec::bert(4) };
    let gated = |gate, activation| MlpSpec { gate, activation, up_bias: false, ..MlpSpec::bert(24) };
    let distance = DistanceBias { rows: 12, buckets: 8, max_distance: 16 };
    let local = vec![false, true, true, false];
    vec![
        ("BERT", base()),
        (
            "rotary positions, scaled, after the norm; a gated MLP without all biases",
            EncoderConfig {
                embeddings: EmbeddingSpec { n_types: 2, ..unplaced.clone() },
                attention: AttentionSpec {
                    rotary: Some(Rotary { factor: 2.0, ..rotary }),
                    ..AttentionSpec::bert(4)
                },
                mlp: gated(Gate::Second, Activation::Gelu),
                ..base()
            },
        ),
        (
            "windows and rotary positions of two kinds, norms before and without bias",
            EncoderConfig {
                embeddings: unplaced.clone(),
                attention: AttentionSpec {
                    rotary: Some(Rotary { theta: 16_000.0, local_theta: 100.0, ..rotary }),
                    window: Some(Window { radius: 3, local }),
                    ..bare.clone()
                },
                norm: NormSpec {
                    place: NormPlace::Pre { skip_first: true },
                    bias: false,
                    ..NormSpec::bert(1e-5)
                },
                mlp: MlpSpec { down_bias: false, ..gated(Gate::First, Activation::Gelu) },
                ..base()
            },
        ),
        (
            "RMS norms before, keys for groups of heads",
            EncoderConfig {
                embeddings: EmbeddingSpec { norm: false, ..unplaced },
                attention: AttentionSpec { n_key_heads: 2, rotary: Some(rotary), ..bare },
                norm: NormSpec {
                    place: NormPlace::Pre { skip_first: false },
                    kind: NormKind::Rms,
                    bias: false,
                    epsilon: 1e-5,
                },
                mlp: MlpSpec { down_bias: false, ..gated(Gate::First, Activation::Silu) },
                ..base()
            },
        ),
        (
            "shared layers on narrow embeddings",
            EncoderConfig {
                n_groups: 2,
                embeddings: EmbeddingSpec {
                    width: 12,
                    projection: Projection::AfterNorm,
                    ..base().embeddings
                },
                mlp: MlpSpec { activation: Activation::GeluTanh, ..MlpSpec::bert(24) },
                ..base()
            },
        ),
        (
            "a bias by distance on embeddings that are normalised last",
            EncoderConfig {
                embeddings: EmbeddingSpec {
                    width: 12,
                    projection: Projection::BeforeNorm,
                    ..base().embeddings
                },
                attention: AttentionSpec { distance: Some(distance), ..AttentionSpec::bert(4) },
                mlp: MlpSpec { activation: Activation::Relu, ..MlpSpec::bert(24) },
                ..base()
            },
        ),
    ]
}

#[test]
fn every_description_computes_what_it_says() {
    for (name, config) in described() {
        config.check().unwrap();
        let encoder = encoder(config);
        let reference = Reference { config: &encoder.config, values: named(&encoder) };
        let batch = batch(&[17, 1, 6]);
        let all: LayerSet = (0..=encoder.n_layers()).collect();
        let encoded = encoder.encode(&batch, &all, Mode::Inference(None));
        let mut expected = vec![Vec::new(); all.iter().len()];
        for range in batch.offsets.windows(2).map(|pair| pair[0]..pair[1]) {
            for (layer, rows) in reference.states(&batch.ids[range]).into_iter().enumerate() {
                expected[layer].extend(rows.concat().into_iter().map(|value| value as f32));
            }
        }
        for (layer, expected) in expected.iter().enumerate() {
            let states = to_vec(encoded.packed(layer));
            assert!(expected.iter().any(|value| value.abs() > 0.1), "{name}");
            assert!(apart(&states, expected) < 1e-4, "{name}, layer {layer}: {}", apart(&states, expected));
        }
        let firsts = encoder.encode(&batch, &all.clone().first_tokens(), Mode::Inference(None));
        let last = encoder.n_layers();
        assert!(apart(&to_vec(firsts.cls(last)), &to_vec(encoded.cls(last))) < 1e-5, "{name}");
    }
}

/// As for BERT: along its own gradient g, a parameter changes the loss by 2ε·|g|².
#[test]
fn every_description_learns_along_slopes_of_its_loss() {
    for (name, config) in described() {
        let encoder = encoder(config).with_dropout(0.2);
        let batch = batch(&[7, 1, 4]);
        let keep: LayerSet = (0..=4).collect();
        // With large weights attention is all or nothing, and the loss bends within a step.
        let mut start = named(&encoder);
        for (shape, values) in start.values_mut().filter(|(shape, _)| shape.len() == 2) {
            values.iter_mut().for_each(|value| *value *= if shape[1] == 4 { 1.0 } else { 0.5 });
        }
        let encoder = replace(encoder, start.clone()).unwrap();
        let loss = |encoder: &Encoder| {
            let encoded = encoder.encode(&batch, &keep, Mode::Training { seed: 5 });
            let part = |layer: usize| (encoded.packed(layer) * random_rows(12, 32, layer as u64)).mean();
            keep.iter().map(part).reduce(|a, b| a + b).unwrap()
        };
        let mut sum = crate::optim::GradientSum::default();
        sum.add(&encoder, loss(&encoder).backward());
        for parameter in names(&encoder) {
            let gradient = sum.values(&parameter).unwrap_or_else(|| panic!("{name}: {parameter}"));
            let square: f64 = gradient.iter().map(|g| f64::from(*g).powi(2)).sum();
            assert!(square > 0.0, "{name}: {parameter}");
            let epsilon = (5e-3 / square.sqrt()).min(5e-4 / square);
            let moved = |sign: f64| {
                let mut values = start.clone();
                let (_, values_of) = values.get_mut(&parameter).unwrap();
                for (value, g) in values_of.iter_mut().zip(&gradient) {
                    *value += (sign * epsilon * f64::from(*g)) as f32;
                }
                let moved = replace(encoder.clone(), values).unwrap();
                f64::from(loss(&moved).inner().into_scalar::<f32>())
            };
            let slope = (moved(1.0) - moved(-1.0)) / (2.0 * epsilon);
            let tolerance = 0.05 * square + 2e-7 / epsilon;
            assert!((slope - square).abs() < tolerance, "{name}: {parameter}: {slope} instead of {square}");
        }
    }
}

#[test]
fn descriptions_that_contradict_themselves_are_refused() {
    let base = || config(32, 4);
    let attention = |change: fn(&mut AttentionSpec)| {
        let mut config = base();
        change(&mut config.attention);
        config
    };
    for (config, word) in [
        (attention(|spec| spec.n_key_heads = 3), "3 heads of keys"),
        (attention(|spec| spec.window = Some(Window { radius: 3, local: vec![true] })), "of 2"),
        (
            attention(|spec| {
                spec.rotary = Some(Rotary { theta: 0.0, local_theta: 1.0, factor: 1.0 });
            }),
            "rotary",
        ),
        (
            EncoderConfig {
                hidden_size: 12,
                embeddings: EmbeddingSpec { width: 12, ..base().embeddings },
                attention: AttentionSpec {
                    rotary: Some(Rotary { theta: 1e4, local_theta: 1e4, factor: 1.0 }),
                    ..base().attention
                },
                ..base()
            },
            "even width: 3",
        ),
        (EncoderConfig { norm: NormSpec { kind: NormKind::Rms, ..NormSpec::bert(1e-5) }, ..base() }, "RMS"),
        (EncoderConfig { n_groups: 3, ..base() }, "share"),
        (EncoderConfig { n_groups: 0, ..base() }, "share"),
        (EncoderConfig { embeddings: EmbeddingSpec { width: 8, ..base().embeddings }, ..base() }, "width 8"),
    ] {
        let message = config.check().unwrap_err();
        assert!(message.contains(word), "{message}");
    }
}
