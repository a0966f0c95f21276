//! A shortlist of every label is no shortlist, and what a step does not look at stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use cladist_core::bundle::Writer;
use cladist_core::{Cancel, Classifier, Request, Scores};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::learner::{RowLearner, RowSum};
use super::table::{RowGradients, Table};
use super::*;
use crate::encoder::Mode;
use crate::heads::light_xml::LightXmlConfig;
use crate::heads::{AnyHeadConfig, HeadInput, Moment, Task};
use crate::model::{Design, NeuralModel, Start};
use crate::optim::{AdamW, AdamWConfig, GradientSum, scale};
use crate::parameters::{named, replace, to_vec};
use crate::tokens::{Sequence, TokenBatch};
use crate::toy::{Toy, bytes, design, fitting, flat, on_threads};
use crate::train::TrainConfig;
use crate::train::config::GroupConfig;
use crate::train::tests::{Run, quick};

/// Groups of at most so many labels, all of which are looked at.
fn all(group_size: usize) -> ShortlistConfig {
    ShortlistConfig { group_size, top_groups: 99, random: 0, size: 999, match_only: false }
}

/// Groups of two labels, of which few are looked at.
fn few() -> ShortlistConfig {
    ShortlistConfig { group_size: 2, top_groups: 1, random: 0, size: 4, match_only: false }
}

fn listed(shortlist: ShortlistConfig) -> Design {
    Design { shortlist, ..flat() }
}

fn light(shortlist: ShortlistConfig) -> Design {
    let head = fitting(AnyHeadConfig::LightXml(LightXmlConfig {
        bottleneck: Some(24),
        ..LightXmlConfig::default()
    }));
    Design { shortlist, ..design(head, Task::MultiLabel) }
}

/// Loss terms of all documents, gradients of parameters, and gradients of rows.
fn learnt(model: &NeuralModel, toy: &Toy) -> (BTreeMap<String, f64>, GradientSum, Vec<RowGradients>) {
    let tokens = model.tokenize(&toy.documents).unwrap();
    let sequences: Vec<&Sequence> = tokens.iter().flatten().collect();
    let batch = TokenBatch::new(&sequences);
    let encoded = model.network.encoder.encode(&batch, &model.layers, Mode::Training { seed: 5 });
    let rows = model.table().map(Rows::learning);
    let input = HeadInput { rows: rows.as_ref(), ..HeadInput::new(&encoded) };
    let moment = Moment { epoch: 0.0, thawed: 0.0, seed: Some(5) };
    let objective = model.network.head.objective(&input, &toy.gold, &moment);
    let terms = objective.values().into_iter().collect();
    let mut gradients = objective.total().unwrap().backward();
    let of_rows = rows.map_or_else(Vec::new, |rows| rows.gradients(&mut gradients));
    let mut sum = GradientSum::default();
    sum.add(&model.network, gradients);
    (terms, sum, of_rows)
}

/// A model without a shortlist, and one with whose rows are the first one's outputs.
fn pair(toy: &Toy, shortlist: ShortlistConfig) -> [NeuralModel; 2] {
    let dense = toy.model(flat(), 1);
    let mut short = toy.model(listed(shortlist), 1);
    let parameters = named(&dense.network.head);
    let (weight, bias) = (&parameters["output.weight"].1, &parameters["output.bias"].1);
    let partition = short.shortlist().unwrap().partition.clone();
    let width = weight.len() / bias.len();
    let rows = (0..partition.n_rows()).flat_map(|row| {
        let label = partition.label(row) as usize;
        weight[label * width..][..width].iter().chain(&bias[label..=label]).copied()
    });
    *short.table_mut().unwrap().values_mut() = rows.collect();
    [dense, short]
}

fn near(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 1e-6, "{what}: {apart}");
}

#[test]
fn with_every_label_it_learns_what_a_head_without_learns() {
    let toy = Toy::new(Task::MultiLabel);
    for (group_size, n_groups) in [(8, 1), (2, 4)] {
        let [dense, short] = pair(&toy, all(group_size));
        let partition = &short.shortlist().unwrap().partition;
        assert_eq!(partition.n_groups(), n_groups);
        let (terms, sum, _) = learnt(&dense, &toy);
        let (short_terms, short_sum, rows) = learnt(&short, &toy);
        assert!((terms["bce"] - short_terms["bce"]).abs() < 1e-6, "{terms:?} {short_terms:?}");
        assert_eq!(short_terms.contains_key("groups"), n_groups > 1);
        let [(numbers, values)] = rows.as_slice() else { panic!("{}", rows.len()) };
        assert_eq!(*numbers, (0..8).collect::<Vec<u32>>());
        let weight = sum.values("head.output.weight").unwrap();
        let bias = sum.values("head.output.bias").unwrap();
        for (row, values) in values.chunks_exact(65).enumerate() {
            let label = partition.label(row) as usize;
            near(&values[..64], &weight[label * 64..][..64], "weights");
            near(&values[64..], &bias[label..=label], "bias");
        }
        if n_groups == 1 {
            // Nothing else pulls at the encoder.
            for name in sum.names().filter(|name| name.starts_with("encoder.")) {
                near(&sum.values(name).unwrap(), &short_sum.values(name).unwrap(), name);
            }
        }
    }
}

#[test]
fn with_every_label_it_scores_as_a_head_without() {
    let toy = Toy::new(Task::MultiLabel);
    let [dense, short] = pair(&toy, all(8));
    let by_label = |scores: &Scores, n: usize| {
        let mut row = scores.row(n).to_vec();
        row.sort_by_key(|(label, _)| *label);
        row.into_iter().map(|(_, score)| score).collect::<Vec<f32>>()
    };
    let [a, b] = [&dense, &short].map(|model| model.score(&toy.documents, &Request::default()).unwrap());
    for n in 0..toy.documents.len() {
        near(&by_label(&a, n), &by_label(&b, n), "scores");
    }
    let vectors = |model: &NeuralModel| model.label_vectors().unwrap();
    assert_eq!(vectors(&dense), vectors(&short));
}

#[test]
fn scores_are_of_the_best_groups_and_count_how_good_these_are() {
    let toy = Toy::new(Task::MultiLabel);
    let [dense, whole] = pair(&toy, all(2));
    let [_, short] = pair(&toy, few());
    let request = |top_k| Request { top_k, ..Request::default() };
    let all = whole.score(&toy.documents, &request(None)).unwrap();
    let best = short.score(&toy.documents, &request(None)).unwrap();
    for (best, all) in best.rows().zip(all.rows()) {
        assert_eq!((best.len(), all.len()), (2, 8));
        assert!(best.iter().all(|entry| all.contains(entry)));
    }
    // Times the probability of its group, no label has more than without groups.
    let plain = dense.score(&toy.documents, &request(None)).unwrap();
    for (all, plain) in all.rows().zip(plain.rows()) {
        let alone = |label| plain.iter().find(|(other, _)| *other == label).unwrap().1;
        assert!(all.iter().all(|(label, score)| (0.0..alone(*label)).contains(score)));
    }
    let one = short.score(&toy.documents, &request(Some(1))).unwrap();
    assert!(one.rows().zip(best.rows()).all(|(one, best)| *one == best[..1]));
    for (n, document) in toy.documents.iter().enumerate() {
        let alone = short.score(std::slice::from_ref(document), &request(None)).unwrap();
        let near = |(a, b): (&(_, f32), &(_, f32))| (a.1 - b.1).abs() < 1e-6;
        assert!(alone.row(0).iter().zip(best.row(n)).all(near), "document {n}");
    }
}

#[test]
fn a_step_learns_from_groups_that_the_matcher_takes_for_gold() {
    let toy = Toy::new(Task::MultiLabel);
    let config = ShortlistConfig { top_groups: 2, size: 7, ..few() };
    let model = toy.model(listed(config), 1);
    let listed = model.listed().unwrap();
    assert_eq!(model.n_groups(), Some(4));
    // Two documents with a gold label in each of three groups: these alone would fill the room.
    let gold: Vec<Vec<u32>> = vec![[0, 1, 2].map(|group| listed.group(group).start).to_vec(); 2];
    let logits = Tensor::from_data([[0.0f32, 0.0, 0.0, 9.0], [0.0, 0.0, 0.0, 9.0]], &Device::flex());
    let rows = |seed| listed.pick(Some(&logits), &gold, seed);
    for row in listed.group(3).chain(gold.concat()) {
        assert!(rows(Some(1)).contains(&row), "{row}: {:?}", rows(Some(1)));
    }
    assert!(rows(Some(1)).len() <= 7);
    assert_eq!(rows(None).len(), 8, "what is not learnt from has no limit");
}

#[test]
fn a_step_changes_the_rows_it_looks_at_and_no_other() {
    let toy = Toy::new(Task::MultiLabel);
    let few = ShortlistConfig { size: 1, ..few() };
    let config = TrainConfig { epochs: 1, batch_size: 1, ..quick() };
    // One document with two labels: with room for one label, gold labels alone are looked at.
    let one = Toy {
        documents: toy.documents[6..7].to_vec(),
        gold: toy.gold[6..7].to_vec(),
        ..Toy::new(Task::MultiLabel)
    };
    let mut model = toy.model(listed(few), 1);
    let before = model.table().unwrap().values().to_vec();
    let width = model.table().unwrap().width();
    let shortlist = Arc::clone(model.shortlist().unwrap());
    let run = Run { design: listed(few), ..Run::new(&one, config) };
    model = run.go_from(model, crate::train::tests::Stop::Never).0.unwrap().0;
    let after = model.table().unwrap().values();
    for (row, (before, after)) in before.chunks_exact(width).zip(after.chunks_exact(width)).enumerate() {
        let gold = one.gold[0].iter().any(|label| label.index() == shortlist.partition.label(row) as usize);
        assert_eq!(before != after, gold, "row {row}");
    }
}

/// Rows of a table as they are after steps with these gradients, each of some rows.
fn stepped(table: &mut Table, steps: &[RowGradients], config: AdamWConfig) -> RowLearner {
    let mut learner = RowLearner::new(Some(table));
    let mut optimiser = AdamW::new(config);
    for gradients in steps {
        // Two batches, each with half.
        let half = |(numbers, values): &RowGradients| -> RowGradients {
            (numbers.clone(), values.iter().map(|value| value / 2.0).collect())
        };
        let mut sum = RowSum::default();
        sum.add(vec![half(gradients), half(gradients)]);
        let nothing = Empty { nothing: None };
        let _ = optimiser.step(nothing, GradientSum::default(), 0.0, None, &|_| 0.0);
        let norm = sum.norm(0.0, 1);
        learner.step(Some(&mut *table), sum, &optimiser, scale(1, norm, Some(1.0)), 0.1);
    }
    learner
}

#[derive(Module, Debug)]
struct Empty {
    nothing: Option<crate::blocks::Matrix>,
}

fn gradients(rows: &[u32], width: usize, seed: f32) -> RowGradients {
    let values = (0..rows.len() * width).map(|n| ((n as f32 + seed) * 0.7).sin()).collect();
    (rows.to_vec(), values)
}

#[test]
fn where_every_step_touches_every_row_it_is_adamw() {
    let device = Device::flex().autodiff();
    let config = AdamWConfig { weight_decay: 0.1, ..AdamWConfig::default() };
    let mut table = Table::new(6, 5, 1);
    let start = table.values().to_vec();
    let steps: Vec<RowGradients> = (0..4).map(|n| gradients(&[0, 1, 2, 3, 4, 5], 5, n as f32)).collect();
    let matrix = |columns: std::ops::Range<usize>, values: &[f32]| {
        let values: Vec<f32> = values.chunks_exact(5).flat_map(|row| row[columns.clone()].to_vec()).collect();
        let shape = [6, columns.len()];
        Tensor::<2>::from_data(TensorData::new(values, shape), &device)
    };
    // A block with weights that decay and biases that do not.
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let block = crate::blocks::Linear::new(4, 6, &mut random, &device);
    let values = |columns| to_vec(matrix(columns, &start));
    let parts = [("weight", vec![6, 4], values(0..4)), ("bias", vec![6], values(4..5))];
    let parts = parts.map(|(name, shape, values)| (name.to_owned(), (shape, values)));
    let mut block = replace(block, parts.into()).unwrap();
    let mut optimiser = AdamW::new(config);
    for (_, values) in &steps {
        let pull = |columns, x: Tensor<2>| (x * matrix(columns, values)).sum();
        let rows = block.rows();
        let loss = pull(0..4, rows.clone().narrow(1, 0, 4)) + pull(4..5, rows.narrow(1, 4, 1));
        let mut sum = GradientSum::default();
        sum.add(&block, loss.backward());
        let norm = sum.norm();
        block = optimiser.step(block, sum, norm, Some(1.0), &|_| 0.1);
    }
    stepped(&mut table, &steps, config);
    near(&to_vec(block.rows()), table.values(), "rows");
}

#[test]
fn moments_of_rows_that_were_left_alone_are_those_of_adamw() {
    let config = AdamWConfig { weight_decay: 0.0, beta1: 0.8, beta2: 0.9, ..AdamWConfig::default() };
    let mut table = Table::new(3, 2, 1);
    let before = table.values().to_vec();
    let steps = [
        gradients(&[0, 1], 2, 0.1),
        gradients(&[1], 2, 0.2),
        gradients(&[1], 2, 0.3),
        gradients(&[0, 1], 2, 0.4),
    ];
    let learner = stepped(&mut table, &steps, config);
    // The same in f64, a gradient of 0 where there is none; each step is clipped to norm 1.
    let (mut m, mut v) = ([0.0f64; 2], [0.0f64; 2]);
    for (numbers, values) in &steps {
        let norm = values.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        for column in 0..2 {
            let g =
                if numbers.contains(&0) { f64::from(values[column]) / (norm + 1e-6).max(1.0) } else { 0.0 };
            m[column] = 0.8 * m[column] + 0.2 * g;
            v[column] = 0.9 * v[column] + 0.1 * g * g;
        }
    }
    for column in 0..2 {
        assert!((f64::from(learner.first[column]) - m[column]).abs() < 1e-6);
        assert!((f64::from(learner.second[column]) - v[column]).abs() < 1e-6);
    }
    assert_eq!(learner.stamps, [4, 4, 0]);
    assert_eq!(table.values()[4..], before[4..], "no step touched it");
}

#[test]
fn rows_that_were_left_alone_go_on_as_adamw_would() {
    let config = AdamWConfig { weight_decay: 0.05, ..AdamWConfig::default() };
    // The second row is touched early, late and never after; the first one always, with no gradient for the second.
    let touched = |n: usize| n == 3 || n == 40;
    let steps: Vec<RowGradients> = (0..60)
        .map(|n| if touched(n) { gradients(&[0, 1], 4, n as f32) } else { gradients(&[0], 4, n as f32) })
        .collect();
    let every: Vec<RowGradients> = (steps.iter())
        .map(|(rows, values)| {
            let rest = if rows.len() == 1 { vec![0.0; 4] } else { Vec::new() };
            (vec![0, 1], [values.clone(), rest].concat())
        })
        .collect();
    let [mut lazy, mut dense] = [Table::new(2, 4, 1), Table::new(2, 4, 1)];
    let start = lazy.rows(1..2).to_vec();
    let mut learner = stepped(&mut lazy, &steps, config);
    let optimiser = after(60, config);
    let before = lazy.rows(1..2).to_vec();
    learner.catch_up(Some(&mut lazy), &optimiser, 0.1);
    assert_eq!(learner.stamps, [60, 60]);
    // Without decay the dense one stays put before its first gradient.
    let mut other = stepped(&mut dense, &every, config);
    other.catch_up(Some(&mut dense), &optimiser, 0.1);
    for column in 0..4 {
        let moved = dense.rows(1..2)[column] - start[column];
        let (at_once, in_all) = (before[column] - start[column], lazy.rows(1..2)[column] - start[column]);
        assert!((in_all - moved).abs() < 0.15 * moved.abs() + 0.02, "{column}: {in_all} instead of {moved}");
        assert!(
            (in_all - moved).abs() < (at_once - moved).abs(),
            "{column}: {at_once} was nearer to {moved}"
        );
    }
    let settled = lazy.values().to_vec();
    learner.catch_up(Some(&mut lazy), &optimiser, 0.1);
    assert_eq!(lazy.values(), settled, "twice is as once");
}

/// An optimiser that took so many steps.
fn after(steps: usize, config: AdamWConfig) -> AdamW {
    let mut optimiser = AdamW::new(config);
    for _ in 0..steps {
        let _ = optimiser.step(Empty { nothing: None }, GradientSum::default(), 0.0, None, &|_| 0.0);
    }
    optimiser
}

proptest! {
    #[test]
    fn sums_of_gradients_are_of_all_rows(
        a in proptest::collection::btree_set(0u32..9, 1..6), b in proptest::collection::btree_set(0u32..9, 1..6),
    ) {
        let (a, b): (Vec<u32>, Vec<u32>) = (a.into_iter().collect(), b.into_iter().collect());
        let (a, b) = (gradients(&a, 3, 0.0), gradients(&b, 3, 9.0));
        let mut sum = RowSum::default();
        sum.add(vec![a.clone(), b.clone()]);
        let (numbers, values) = sum.rows().unwrap();
        prop_assert!(numbers.is_sorted_by(|a, b| a < b));
        for (number, row) in numbers.iter().zip(values.chunks_exact(3)) {
            let of = |(numbers, values): &RowGradients, column: usize| {
                numbers.binary_search(number).map_or(0.0, |at| values[at * 3 + column])
            };
            for (column, value) in row.iter().enumerate() {
                prop_assert_eq!(*value, of(&a, column) + of(&b, column));
            }
        }
        prop_assert!(a.0.iter().chain(&b.0).all(|number| numbers.contains(number)));
    }
}

#[test]
fn it_is_the_same_after_saving_and_loading() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    for (name, design) in [("flat", listed(few())), ("light", light(few())), ("one", listed(all(8)))] {
        let mut model = toy.model(design.clone(), 1);
        model.network = model.network.valid();
        let path = folder.path().join(name);
        let writer = Writer::create(&path, "model").unwrap();
        model.save(&writer).unwrap();
        writer.finish().unwrap();
        let load = || {
            NeuralModel::load(
                &path,
                design.clone(),
                toy.taxonomy.clone(),
                &toy.counts(),
                &Device::flex(),
                &Cancel::default(),
            )
        };
        let loaded = load().unwrap();
        assert!(bytes(&loaded) == bytes(&model), "{name}");
        let score = |model: &NeuralModel| model.score(&toy.documents, &Request::default()).unwrap();
        assert_eq!(score(&loaded), score(&model), "{name}");
        for file in ["rows.safetensors", "groups.safetensors"] {
            let whole = std::fs::read(path.join(file)).unwrap();
            std::fs::write(path.join(file), &whole[..whole.len() - 4]).unwrap();
            assert!(load().unwrap_err().to_string().contains(file), "{name}");
            std::fs::write(path.join(file), whole).unwrap();
        }
    }
}

#[test]
fn it_learns_eight_documents_by_heart() {
    let toy = Toy::new(Task::MultiLabel);
    let two = ShortlistConfig { top_groups: 3, random: 1, size: 6, ..few() };
    for (name, design) in [("flat", listed(two)), ("light-xml", light(two))] {
        let config = TrainConfig {
            epochs: 100,
            batch_size: 4,
            learning_rate: 2e-3,
            output: GroupConfig { learning_rate: Some(1e-2), ..GroupConfig::default() },
            dropout: Some(0.0),
            checkpoint_minutes: 0.0,
            ..TrainConfig::default()
        };
        let (model, _, seen) = Run { design, ..Run::new(&toy, config) }.finish();
        let losses = seen.losses();
        assert!(
            losses[losses.len() - 1] < losses[0] / 5.0,
            "{name}: {} to {}",
            losses[0],
            losses[losses.len() - 1]
        );
        let scores = model.score(&toy.documents, &Request::default()).unwrap();
        for (n, gold) in toy.gold.iter().enumerate() {
            // A document may have more groups than are looked at.
            let row = scores.row(n);
            assert!(gold.contains(row[0].0) && row[0].1 > 0.5, "{name}, document {n}: {row:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let toy = Toy::new(Task::MultiLabel);
    let some = ShortlistConfig { random: 2, size: 6, ..few() };
    let made = |threads: usize| {
        on_threads(threads, || bytes(&Run { design: listed(some), ..Run::new(&toy, quick()) }.finish().0))
    };
    let first = made(1);
    assert!(first == made(1) && first == made(2) && first == made(3));
}

#[test]
fn heads_and_tasks_that_need_all_labels_refuse_it() {
    let toy = Toy::new(Task::MultiLabel);
    let refused = |design: Design| {
        let source = crate::source::EncoderSource::parse("scratch:tiny").unwrap();
        let (taxonomy, counts) = (toy.taxonomy.clone(), toy.counts());
        let made = NeuralModel::create(
            design,
            &source,
            &toy.examples(),
            taxonomy,
            &counts,
            &Start::new(1, &Device::flex()),
        );
        made.unwrap_err().to_string()
    };
    let lwan = design(AnyHeadConfig::Lwan(Default::default()), Task::MultiLabel);
    assert!(refused(Design { shortlist: few(), ..lwan }).contains("`lwan`"));
    assert!(refused(Design { task: Task::MultiClass, ..listed(few()) }).contains("softmax"));
    let none = ShortlistConfig { top_groups: 0, ..few() };
    assert!(refused(listed(none)).contains("shortlist.top_groups"));
}

#[test]
fn rows_and_groups_together_start_at_the_prior_of_labels() {
    let toy = Toy::new(Task::MultiLabel);
    let model = toy.model(Design { prior_bias: true, ..listed(few()) }, 1);
    let partition = &model.shortlist().unwrap().partition;
    let counts = toy.counts();
    let odds = counts.log_odds(toy.taxonomy.n_labels());
    let table = model.table().unwrap();
    let groups = &named(&model.network.head)["output.matcher.bias"].1;
    for (group, bias) in groups.iter().enumerate() {
        let share: f64 = (partition.labels(group).iter())
            .map(|&label| 1.0 / (1.0 + f64::from(-odds[label as usize]).exp()))
            .sum::<f64>()
            .min(0.5);
        assert!((f64::from(*bias) - (share / (1.0 - share)).ln()).abs() < 1e-5, "{group}: {bias}");
        // The probability of a label is σ(row) · σ(group): about its share of all documents, less what smoothing adds.
        for row in partition.rows(group) {
            let bias = f64::from(table.rows(row..row + 1)[table.width() - 1]);
            let p = share / (1.0 + (-bias).exp());
            let n = counts.counts[partition.label(row) as usize];
            let prior = f64::from(n) / counts.n_documents as f64;
            // A group that most documents have is even at most.
            let prior = prior.min(0.5);
            assert!((p - prior).abs() < 1.0 / counts.n_documents as f64, "{n} documents: {p} and {prior}");
        }
    }
}

#[test]
fn rows_of_rare_groups_start_at_the_odds_within_their_group() {
    let toy = Toy::new(Task::MultiLabel);
    let model = toy.model(Design { prior_bias: true, ..listed(few()) }, 1);
    let shortlist = model.shortlist().unwrap();
    let n_labels = toy.taxonomy.n_labels();
    // Labels of 10 documents each among 100,000: within a group of two either is as likely as not.
    let counts = LabelCounts { n_documents: 100_000, counts: vec![10; n_labels] };
    let biases = shortlist.row_biases(&counts);
    assert!(biases.iter().all(|bias| (-0.1..5.0).contains(bias)), "{biases:?}");
}

#[test]
fn grouping_stops_when_it_is_asked_to() {
    let toy = Toy::new(Task::MultiLabel);
    let job = Job::silent();
    job.cancel.cancel();
    let config = ShortlistConfig { group_size: 2, ..ShortlistConfig::default() };
    let groups = config.group(&toy.examples(), toy.taxonomy.n_labels(), 1, &job);
    assert!(matches!(groups, Err(crate::Error::Core(CoreError::Cancelled))));
}
