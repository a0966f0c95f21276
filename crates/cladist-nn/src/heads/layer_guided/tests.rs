use burn::tensor::Device;
use cladist_core::taxonomy::{Builder, Origin};
use cladist_core::{Classifier, LabelCounts, Request};

use super::*;
use crate::encoder::{Mode, Pooling};
use crate::heads::AnyHeadConfig;
use crate::model::{Design, NeuralModel, Start};
use crate::optim::GradientSum;
use crate::parameters::{names, to_vec};
use crate::tokens::{Sequence, TokenBatch};
use crate::toy::{self, Toy, design};

fn guided(config: LayerGuidedConfig) -> Design {
    design(AnyHeadConfig::LayerGuided(config), Task::MultiLabel)
}

/// A taxonomy with so many labels at each level, in one chain of first labels.
fn with_counts(counts: &[usize]) -> Taxonomy {
    let mut builder = Builder::new();
    for (level, &count) in counts.iter().enumerate() {
        let parent = (level > 0).then(|| format!("{level}-0"));
        for n in 0..count {
            builder.edge(parent.as_deref(), &format!("{}-{n}", level + 1), &Origin::default());
        }
    }
    builder.build().unwrap()
}

fn built(
    config: &LayerGuidedConfig,
    taxonomy: &Taxonomy,
    n_layers: usize,
    hidden_size: usize,
) -> LayerGuided {
    let counts = LabelCounts::of(&[], taxonomy.n_labels());
    let device = Device::flex();
    let context = HeadContext { hidden_size, n_layers, ..toy::context(taxonomy, &counts, &device) };
    config.build(&context).unwrap()
}

fn tied(rule: TieRule) -> LayerGuidedConfig {
    LayerGuidedConfig { ties: Ties::Rule(rule), ..LayerGuidedConfig::default() }
}

#[test]
fn weights_follow_the_numbers_of_labels() {
    let weights = |counts: &[usize]| LevelWeights::default().resolve(counts).unwrap();
    let eurlex = weights(&[21, 127, 567, 3861, 2284, 481]);
    for (weight, expected) in eurlex.iter().zip([0.002861, 0.017300, 0.077237, 0.525950, 0.311129, 0.065522])
    {
        assert!((weight - expected).abs() < 1e-6, "{weight}");
    }
    assert!((eurlex.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((weights(&[79, 589, 3982, 9640, 7234, 867])[3] - 0.4305301).abs() < 1e-7);
    let uniform = LevelWeights::Rule(WeightRule::Uniform).resolve(&[1, 9]).unwrap();
    assert_eq!(uniform, [0.5, 0.5]);
    for wrong in [vec![1.0], vec![0.0, 0.0], vec![-1.0, 1.0], vec![f64::NAN, 1.0]] {
        let message = LevelWeights::Each(wrong).resolve(&[1, 9]).unwrap_err().to_string();
        assert!(message.contains("layer-guided.weights"), "{message}");
    }
}

#[test]
fn the_weighted_sum_is_the_mean_over_all_labels() {
    let device = Device::flex();
    let value = |logits: Tensor<2>, gold: &[u32]| {
        f64::from(bce_with_logits(logits, &[gold.to_vec()], 0.0).into_scalar::<f32>())
    };
    let first: Tensor<2> = Tensor::from_data([[0.5f32, -1.0]], &device);
    let second: Tensor<2> = Tensor::from_data([[2.0f32, -0.3, 0.1]], &device);
    let (one, two) = (value(first.clone(), &[0]), value(second.clone(), &[0]));
    assert!((one - 0.3936693).abs() < 1e-6 && (two - 0.4752266).abs() < 1e-6, "{one} {two}");
    let weights = LevelWeights::default().resolve(&[2, 3]).unwrap();
    let sum = weights[0] * one + weights[1] * two;
    assert!((sum - 0.4426037).abs() < 1e-6, "{sum}");
    assert!((sum - value(Tensor::cat(vec![first, second], 1), &[0, 2])).abs() < 1e-6);
}

#[test]
fn heads_are_as_wide_as_their_layers() {
    let taxonomy = with_counts(&[21, 127, 567, 3861, 2284, 481]);
    let pairs = built(&tied(TieRule::InGroups), &taxonomy, 12, 768);
    assert_eq!(pairs.levels[2].num_params(), 871_479);
    let hybrid = built(&tied(TieRule::Hybrid), &taxonomy, 12, 768);
    assert_eq!(hybrid.levels[5].num_params(), 369_889);
}

/// Labels of the toy world's three levels merged into two, on an encoder of two layers.
fn merged(rule: TieRule) -> Design {
    guided(LayerGuidedConfig { merge_levels: true, ..tied(rule) })
}

#[test]
fn a_level_teaches_only_its_layers_and_those_below() {
    let toy = Toy::new(Task::MultiLabel);
    let model = toy.model(merged(TieRule::Last), 1);
    let tokens = model.tokenize(&toy.documents).unwrap();
    let sequences: Vec<&Sequence> = tokens.iter().flatten().collect();
    let encoded = model.network.encoder.encode(
        &TokenBatch::new(&sequences),
        &model.network.head.layers(None),
        Mode::Training { seed: 1 },
    );
    let crate::heads::AnyHead::LayerGuided(head) = &model.network.head else { panic!("another head") };
    let gold = head.columns.of(&toy.gold);
    let loss = bce_with_logits(head.levels[0].logits(&encoded, head.vector, 0.0, None), &gold[0], 0.0);
    let mut sum = GradientSum::default();
    sum.add(&model.network, loss.backward());
    for name in names(&model.network) {
        let moves = sum.values(&name).is_some_and(|values| values.iter().any(|value| *value != 0.0));
        let below = name.contains("embeddings") || name.contains("layers.0") || name.contains("levels.0");
        assert_eq!(moves, below, "{name}");
    }
}

#[test]
fn levels_read_the_mean_of_tokens_if_they_are_told_to() {
    let toy = Toy::new(Task::MultiLabel);
    let config = LayerGuidedConfig { pool: Pool::Mean, merge_levels: true, ..tied(TieRule::InGroups) };
    let model = toy.model(guided(config.clone()), 1);
    let tokens = model.tokenize(&toy.documents).unwrap();
    let batch = TokenBatch::new(&tokens.iter().flatten().collect::<Vec<&Sequence>>());
    let whole = model.network.encoder.encode(&batch, &[1, 2].into_iter().collect(), Mode::Inference(None));
    let crate::heads::AnyHead::LayerGuided(head) = &model.network.head else { panic!("another head") };
    let expected: Vec<Tensor<2>> = head
        .levels
        .iter()
        .map(|level| {
            let means = level.layers.iter().map(|&layer| whole.mean(layer)).collect();
            level.output.forward(Tensor::cat(means, 1))
        })
        .collect();
    let (logits, _) = model.network.head.logits(&HeadInput::new(&toy.encoded(&model))).unwrap();
    for (one, other) in to_vec(logits).into_iter().zip(to_vec(Tensor::cat(expected, 1))) {
        assert!((one - other).abs() < 1e-5, "{one} {other}");
    }
    let counts = toy.counts();
    let device = Device::flex();
    let context = HeadContext { n_layers: 2, ..toy::context(&toy.taxonomy, &counts, &device) };
    let error = LayerGuidedConfig { pool: Pool::Pooled, ..config }.build(&context).unwrap_err().to_string();
    assert!(error.contains("layer-guided.pool"), "{error}");
}

#[test]
fn a_head_reads_documents_as_the_encoder_was_pretrained_unless_told_otherwise() {
    let settled = |pool: Pool, pretrained: Pooling| {
        let mut head = AnyHeadConfig::LayerGuided(LayerGuidedConfig { pool, ..Default::default() });
        head.settle_pool(pretrained);
        head.pool()
    };
    assert_eq!(settled(Pool::Auto, Pooling::Mean), Some(Pool::Mean));
    assert_eq!(settled(Pool::Auto, Pooling::Cls), Some(Pool::Cls));
    assert_eq!(settled(Pool::Cls, Pooling::Mean), Some(Pool::Cls));
}

#[test]
fn with_last_layers_alone_it_is_the_flat_loss() {
    let toy = Toy::new(Task::MultiLabel);
    let table = Ties::Table(vec![vec![2], vec![2], vec![2]]);
    let model = toy.model(guided(LayerGuidedConfig { ties: table, dropout: 0.0, ..Default::default() }), 1);
    let encoded = toy.encoded(&model);
    let input = HeadInput::new(&encoded);
    let moment = Moment { epoch: 0.0, thawed: 0.0, seed: None };
    let total = model.network.head.objective(&input, &toy.gold, &moment).total().unwrap();
    let rows = model.network.head.score(&input, None);
    let mut flat = 0.0;
    for (row, gold) in rows.iter().zip(&toy.gold) {
        for &(label, p) in row {
            let p = f64::from(p);
            flat -= if gold.contains(label) { p.ln() } else { (1.0 - p).ln() };
        }
    }
    flat /= (rows.len() * toy.taxonomy.n_labels()) as f64;
    let total = f64::from(total.into_scalar::<f32>());
    assert!((total - flat).abs() < 1e-5, "{total} {flat}");
}

#[test]
fn an_exit_at_a_level_gives_the_same_scores_for_it() {
    let toy = Toy::new(Task::MultiLabel);
    let model: NeuralModel = toy.model(merged(TieRule::Last), 1).ready();
    let scores = |levels| {
        let request = Request { levels, ..Request::default() };
        model.score(&toy.documents, &request).unwrap()
    };
    let all = scores(None);
    let top = scores(Some(1..=1));
    assert_eq!(model.network.head.layers(Some(&(1..=1))).last(), Some(1));
    assert_eq!(model.network.head.layers(Some(&(2..=3))).iter().collect::<Vec<_>>(), [2]);
    for (all, top) in all.rows().zip(top.rows()) {
        let expected: Vec<_> =
            all.iter().copied().filter(|(label, _)| toy.taxonomy.level(*label) == 1).collect();
        assert_eq!(top, expected);
    }
    // The second head has levels 2 and 3; only those asked for come out.
    assert!(scores(Some(3..=3)).rows().all(|row| row.len() == toy.taxonomy.labels_at(3).len()));
}

#[test]
fn more_levels_than_layers_are_refused_unless_merged() {
    let toy = Toy::new(Task::MultiLabel);
    let source = crate::source::EncoderSource::parse("scratch:tiny").unwrap();
    let create = |design| {
        let taxonomy = toy.taxonomy.clone();
        NeuralModel::create(
            design,
            &source,
            &toy.examples(),
            taxonomy,
            &toy.counts(),
            &Start::new(1, &Device::flex()),
        )
    };
    let error = create(guided(LayerGuidedConfig::default())).unwrap_err();
    assert!(error.to_string().contains("3 levels"), "{error}");
    assert!(error.remedy().unwrap().contains("layer-guided.merge_levels"));
    assert!(create(merged(TieRule::Hybrid)).is_ok());
    let one = design(AnyHeadConfig::LayerGuided(LayerGuidedConfig::default()), Task::MultiClass);
    assert!(create(one).unwrap_err().remedy().unwrap().contains("multi-label"));
}

#[test]
fn label_vectors_have_their_weights_at_their_layers() {
    let taxonomy = with_counts(&[2, 3]);
    let ties = Ties::Table(vec![vec![1], vec![3, 2]]);
    let head = built(&LayerGuidedConfig { ties, ..LayerGuidedConfig::default() }, &taxonomy, 3, 4);
    let vectors = head.label_vectors().unwrap();
    let columns = |id: &str| -> Vec<u32> {
        vectors[taxonomy.get(id).unwrap().index()].iter().map(|&(column, _)| column).collect()
    };
    assert_eq!(columns("1-1"), (4..8).collect::<Vec<_>>());
    assert_eq!(columns("2-2"), (8..16).collect::<Vec<_>>());
    // Layer 3 comes first in the weights, and last in the vector.
    let own = &head.levels[1].output.outputs()[2];
    let vector: Vec<f32> = vectors[taxonomy.get("2-2").unwrap().index()].iter().map(|&(_, w)| w).collect();
    let expected: Vec<f32> = own[4..].iter().chain(&own[..4]).map(|&(_, weight)| weight).collect();
    assert_eq!(vector, expected);
}
