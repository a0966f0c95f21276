use std::collections::BTreeMap;

use burn::tensor::{Device, TensorData};
use cladist_core::{Classifier, Request};

use super::*;
use crate::encoder::Packing;
use crate::heads::{AnyHead, AnyHeadConfig, Task};
use crate::model::{Design, NeuralModel};
use crate::optim::GradientSum;
use crate::parameters::{Tensors, named, names, replace, to_vec};
use crate::random::normal;
use crate::shortlist::{Rows, ShortlistConfig};
use crate::toy::{Toy, design, fitting, near};

const U: [f32; 3] = [0.4, -1.2, 2.0];
const V: [f32; 3] = [-0.6, -0.8, 0.5];

fn close(got: &[f32], expected: &[f64]) -> bool {
    got.len() == expected.len()
        && got.iter().zip(expected).all(|(got, expected)| (f64::from(*got) - expected).abs() < 1e-6)
}

fn random(rows: usize, width: usize, seed: u64, device: &Device) -> Tensor<2> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..rows * width).map(|_| normal(&mut random)).collect();
    Tensor::from_data(TensorData::new(values, [rows, width]), device)
}

fn names_of(experts: &[&str]) -> Vec<ExpertName> {
    experts.iter().map(|name| ExpertName::try_from((*name).to_owned()).unwrap()).collect()
}

#[test]
fn labels_look_as_worked_out_by_hand() {
    let device = Device::flex();
    let look = LabelLook::new(2, &[], Some(2), &mut ChaCha8Rng::seed_from_u64(1), &device);
    let values = BTreeMap::from([
        ("queries.weight".to_owned(), (vec![2, 2], vec![1.0, 0.0, 0.0, 2.0])),
        ("first.weight".to_owned(), (vec![1, 2], vec![0.5, -1.0])),
        ("first.bias".to_owned(), (vec![1], vec![0.1])),
    ]);
    let look = replace(look, values).unwrap();
    let tokens: Tensor<2> = Tensor::from_floats([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], &device);
    let packing = Packing::new(&[0, 3]);
    let toy = Toy::new(Task::MultiLabel);
    let labels: Vec<LabelId> = toy.taxonomy.labels().take(2).collect();
    let weights = to_vec(LabelLook::weights(look.own_of(&labels), tokens.clone(), &packing));
    let expected = [0.422_318_8, 0.155_362_4, 0.422_318_8, 0.063_378_9, 0.468_310_5, 0.468_310_5];
    assert!(close(&weights, &expected), "{weights:?}");
    let logits = to_vec(look.logits(look.own(), tokens, &packing));
    assert!(close(&logits, &[-0.055_362_4, -0.570_776_3]), "{logits:?}");
}

#[test]
fn the_first_layer_on_tokens_is_the_first_layer_on_what_a_label_sees() {
    let device = Device::flex();
    let packing = Packing::new(&[0, 3, 4, 9]);
    for hidden in [vec![], vec![5], vec![5, 4]] {
        let look = LabelLook::new(6, &hidden, Some(7), &mut ChaCha8Rng::seed_from_u64(1), &device);
        let tokens = random(9, 6, 2, &device);
        let got = to_vec(look.logits(look.own(), tokens.clone(), &packing));
        for document in 0..3 {
            let span = packing.offsets[document]..packing.offsets[document + 1];
            let tokens = tokens.clone().narrow(0, span.start, span.len());
            let scores = look.own().matmul(tokens.clone().transpose());
            let seen = look.first.forward(activation::softmax(scores, 1).matmul(tokens));
            let seen = if hidden.is_empty() { seen } else { look.rest.forward(activation::relu(seen)) };
            for (got, expected) in got[document * 7..].iter().zip(to_vec(seen)) {
                assert!((got - expected).abs() < 1e-5, "{hidden:?}, document {document}: {got} {expected}");
            }
        }
    }
}

#[test]
fn labels_in_parts_have_the_logits_and_gradients_of_all_at_once() {
    let device = Device::flex().autodiff();
    let packing = Packing::new(&[0, 3, 4, 9]);
    for hidden in [vec![], vec![5]] {
        let look = LabelLook::new(6, &hidden, Some(7), &mut ChaCha8Rng::seed_from_u64(1), &device);
        let run = |at_once: usize| {
            let tokens = random(9, 6, 2, &device).require_grad();
            let logits = look.logits_in_parts(look.own(), tokens.clone(), &packing, Some(at_once));
            let mut gradients = (logits.clone() * 3.0).sin().sum().backward();
            let mut values = vec![to_vec(logits), to_vec(tokens.grad_remove(&mut gradients).unwrap())];
            let mut sum = GradientSum::default();
            sum.add(&look, gradients);
            values.extend(names(&look).iter().map(|name| sum.values(name).unwrap()));
            values
        };
        let whole = run(1000);
        for at_once in [1, 3] {
            let parts = run(at_once);
            assert_eq!(parts.len(), whole.len());
            parts.iter().zip(&whole).for_each(|(part, whole)| near(part, whole, 1e-4));
        }
    }
}

fn diversity(pairs: Pairs, symmetric: bool) -> Diversity {
    Diversity { pairs, symmetric, cap: None, counts: vec![2, 10, 50] }
}

#[test]
fn losses_are_as_worked_out_by_hand() {
    let device = Device::flex().autodiff();
    let row = |cells: [f32; 3]| Tensor::<2>::from_floats([cells], &device).require_grad();
    let (u, v) = (row(U), row(V));
    let gold = [vec![0, 1]];
    let value = |tensor: Tensor<1>| f64::from(tensor.inner().into_scalar::<f32>());
    let bce = |logits: Tensor<2>| value(bce_with_logits(logits, &gold, 0.0));
    let individual = (bce(u.clone()) + bce(v.clone())) / 2.0;
    assert!((individual - 1.214_315_2).abs() < 1e-6, "{individual}");
    let collaborative = bce((u.clone() + v.clone()) / 2.0);
    assert!((collaborative - 1.186_529_1).abs() < 1e-6, "{collaborative}");
    let both = [u.clone(), v.clone()];
    let (loss, kl) = diversity(Pairs::All, false).of(&both, &gold, |label| label).unwrap();
    assert!((value(loss.clone()) + 0.025_763_6).abs() < 1e-6);
    assert!((individual + 0.01 * value(loss.clone()) - 1.214_057_6).abs() < 1e-6);
    assert!((value(kl) - (0.123_160_4 + 0.015_228_1) / 2.0).abs() < 1e-6);
    let gradients = loss.backward();
    let of = |tensor: &Tensor<2>| to_vec(tensor.grad(&gradients).unwrap());
    assert!(close(&of(&u), &[-0.048_209_8, 0.004_909_7, 0.0]), "{:?}", of(&u));
    assert!(close(&of(&v), &[0.049_029_1, -0.005_419_8, 0.0]), "{:?}", of(&v));
    let both = [v.clone(), u.clone()];
    let (_, kl) = diversity(Pairs::All, false).of(&both, &gold, |label| label).unwrap();
    assert!((value(kl) - (0.121_183_6 + 0.016_192_0) / 2.0).abs() < 1e-6);
    let odds = to_vec(activation::sigmoid(log_odds(&both.map(|logits| (logits, 1.0))).unwrap()));
    assert!(close(&odds, &[0.476_515_7, 0.270_750_4, 0.751_628_2]), "{odds:?}");
}

#[test]
fn gradients_of_diversity_are_finite_differences() {
    let device = Device::flex().autodiff();
    let gold = [vec![0u32, 2], vec![], vec![1]];
    let counts = [2.0, 10.0, 50.0];
    let start: Vec<Vec<f64>> =
        (0..3).map(|seed| to_vec(random(3, 3, seed, &device)).into_iter().map(f64::from).collect()).collect();
    let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
    let kl = |u: f64, v: f64| {
        let (p, q) = (sigma(u), sigma(v));
        p * (p / q).ln() + (1.0 - p) * ((1.0 - p) / (1.0 - q)).ln()
    };
    for (pairs, symmetric, compared) in
        [(Pairs::All, false, &[(0, 1), (0, 2), (1, 2)][..]), (Pairs::First, true, &[(0, 1), (0, 2)])]
    {
        let formula = |z: &[Vec<f64>]| {
            let mut sum = 0.0;
            for &(j, k) in compared {
                for (document, labels) in gold.iter().enumerate() {
                    for &label in labels {
                        let cell = document * 3 + label as usize;
                        // Weights are constants: those of the start.
                        let unsure = 1.0 - sigma(start[j][cell].max(start[k][cell]));
                        let (u, v) = (z[j][cell], z[k][cell]);
                        let kl = if symmetric { (kl(u, v) + kl(v, u)) / 2.0 } else { kl(u, v) };
                        sum -= unsure / counts[label as usize] * kl;
                    }
                }
            }
            sum / (3.0 * compared.len() as f64)
        };
        let logits: Vec<Tensor<2>> = (0..3).map(|seed| random(3, 3, seed, &device).require_grad()).collect();
        let (loss, _) = diversity(pairs, symmetric).of(&logits, &gold, |label| label).unwrap();
        let value = f64::from(loss.clone().inner().into_scalar::<f32>());
        assert!((value - formula(&start)).abs() < 1e-6, "{value} {}", formula(&start));
        let gradients = loss.backward();
        for (expert, logits) in logits.iter().enumerate() {
            for (cell, slope) in to_vec(logits.grad(&gradients).unwrap()).into_iter().enumerate() {
                let mut moved = [start.clone(), start.clone()];
                moved[0][expert][cell] += 1e-5;
                moved[1][expert][cell] -= 1e-5;
                let expected = (formula(&moved[0]) - formula(&moved[1])) / 2e-5;
                assert!((f64::from(slope) - expected).abs() < 1e-6, "{expert} {cell}: {slope} {expected}");
            }
        }
    }
}

#[test]
fn experts_far_apart_are_driven_no_further() {
    let device = Device::flex().autodiff();
    let row = |cell: f32| Tensor::<2>::from_floats([[cell, 0.0, 0.0]], &device).require_grad();
    let logits = [row(-1.0), row(-90.0)];
    let (loss, kl) = diversity(Pairs::All, false).of(&logits, &[vec![0]], |label| label).unwrap();
    assert!(kl.inner().into_scalar::<f32>() < 3.0);
    let gradients = loss.backward();
    assert_eq!(to_vec(logits[1].grad(&gradients).unwrap()), [0.0; 3]);
    let none = diversity(Pairs::All, false);
    assert!(
        none.of(&logits[..1], &[vec![0]], |label| label).is_none()
            && none.of(&logits, &[vec![]], |label| label).is_none()
    );
}

/// For labels of one document, the slopes of both losses on the logit of the gold label, one of 2,048, in each expert.
fn slopes(logits: &[f32], pairs: Pairs, symmetric: bool, cap: Option<f64>) -> Vec<[f64; 2]> {
    let device = Device::flex().autodiff();
    let row = |&logit: &f32| {
        let mut cells = vec![0.0; 2048];
        cells[0] = logit;
        Tensor::<2>::from_data(TensorData::new(cells, [1, 2048]), &device).require_grad()
    };
    let (gold, logits) = ([vec![0]], logits.iter().map(row).collect::<Vec<_>>());
    let diversity = Diversity { pairs, symmetric, cap, counts: vec![1] };
    let (loss, _) = diversity.of(&logits, &gold, |label| label).unwrap();
    let driven = (loss * 0.01).backward();
    let n = logits.len() as f64;
    let own = logits.iter().map(|logits| bce_with_logits(logits.clone(), &gold, 0.0)).reduce(|a, b| a + b);
    let pulled = (own.unwrap() / n).backward();
    let slope = |logits: &Tensor<2>, gradients| f64::from(to_vec(logits.grad(gradients).unwrap())[0]);
    logits.iter().map(|logits| [slope(logits, &driven), slope(logits, &pulled)]).collect()
}

#[test]
fn no_expert_is_driven_from_a_gold_label_by_more_than_it_is_pulled() {
    // p = 0.5 and q = 0.1 of a label with one training document.
    let published = slopes(&[0.0, -2.197_224_6], Pairs::All, false, None)[1];
    assert!((published[0] - 2e-3).abs() < 1e-5 && (published[1] + 2.2e-4).abs() < 1e-5, "{published:?}");
    // Not at 0 itself, where softplus has a kink.
    let ends = [-9.0, -4.0, -2.197_224_6, -0.5, 0.1, 1.0, 3.7, 6.0, 12.0];
    for (pairs, symmetric) in [(Pairs::All, false), (Pairs::All, true), (Pairs::First, false)] {
        for u in ends {
            for v in ends {
                for logits in [&[u, v][..], &[u, v, 0.3], &[v, 0.3, u]] {
                    for [driven, pulled] in slopes(logits, pairs, symmetric, Some(0.01)) {
                        assert!(
                            pulled < 0.0 && driven + pulled < 0.0,
                            "{logits:?} {pairs:?} {symmetric}: {driven} {pulled}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_cap_leaves_frequent_labels_alone() {
    let device = Device::flex();
    let both = [U, V].map(|cells| Tensor::<2>::from_floats([cells], &device));
    let gold = [vec![0, 1]];
    let loss = |cap| {
        let diversity = Diversity { cap, ..diversity(Pairs::All, false) };
        diversity.of(&both, &gold, |label| label).unwrap().0.into_scalar::<f32>()
    };
    // λ is 0.2 at most here, the cap 1/(0.01·2·3).
    assert_eq!(loss(Some(0.01)), loss(None));
    assert!(ExpertsConfig::default().diversity_cap);
}

fn model(toy: &Toy, config: ExpertsConfig) -> NeuralModel {
    toy.model(design(fitting(AnyHeadConfig::Experts(config)), Task::MultiLabel), 1)
}

fn head(model: &NeuralModel) -> &Experts {
    let AnyHead::Experts(head) = &model.network.head else { panic!("another head") };
    head
}

#[test]
fn the_answer_is_the_mean_and_every_expert_can_be_asked() {
    let toy = Toy::new(Task::MultiLabel);
    let model = model(&toy, ExpertsConfig::default());
    let documents = toy.encoded(&model);
    let input = HeadInput::new(&documents);
    let each = head(&model).each(&input);
    let names: Vec<&str> = each.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["D-last", "A-1", "A-mid"]);
    let mean = sum(each.into_iter().map(|(_, logits)| activation::sigmoid(logits))).unwrap() / 3.0;
    let rows = head(&model).score(&input, None).concat();
    let scores: Vec<f32> = rows.into_iter().map(|(_, score)| score).collect();
    let odds = activation::sigmoid(head(&model).logits(&input).unwrap().0);
    for ((mean, score), odds) in to_vec(mean).into_iter().zip(scores).zip(to_vec(odds)) {
        assert!((mean - score).abs() < 1e-6 && (odds - score).abs() < 1e-6, "{mean} {score} {odds}");
    }
    let labels: Vec<LabelId> = toy.taxonomy.labels().take(2).collect();
    let longest = documents.packing().longest();
    for row in to_vec(head(&model).attention(&input, &labels).unwrap()).chunks_exact(longest) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
    }
}

#[test]
fn they_are_driven_apart_when_it_is_time() {
    let toy = Toy::new(Task::MultiLabel);
    let mut config = ExpertsConfig::default();
    config.settle(5);
    assert_eq!(config.diversity_after, Some(3));
    let model = model(&toy, config);
    let documents = toy.encoded(&model);
    let terms = |epoch, seed| {
        let moment = Moment { epoch, thawed: epoch, seed };
        let values = head(&model).objective(&HeadInput::new(&documents), &toy.gold, &moment).values();
        values.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    let own = ["bce-D-last", "bce-A-1", "bce-A-mid"];
    assert_eq!(terms(2.9, Some(1)), [&own[..], &["expert-kl"]].concat());
    assert_eq!(terms(3.0, Some(1)), [&own[..], &["diversity", "expert-kl"]].concat());
    assert_eq!(terms(0.0, None), own);
}

#[test]
fn document_experts_read_the_mean_of_tokens_if_they_are_told_to() {
    let toy = Toy::new(Task::MultiLabel);
    let of = |pool: Pool| {
        let config =
            ExpertsConfig { experts: names_of(&["D-1", "D-last", "A-1"]), pool, ..Default::default() };
        let model = model(&toy, config);
        let logits = head(&model).each(&HeadInput::new(&toy.encoded(&model)));
        logits.into_iter().map(|(_, logits)| to_vec(logits)).collect::<Vec<_>>()
    };
    let (cls, mean) = (of(Pool::Cls), of(Pool::Mean));
    assert!(cls[0] != mean[0] && cls[1] != mean[1], "the same parameters read something else");
    assert_eq!(cls[2], mean[2], "label-wise attention reads tokens");
    assert_eq!(of(Pool::Auto), cls);
}

#[test]
fn an_expert_runs_no_layer_above_its_own() {
    let toy = Toy::new(Task::MultiLabel);
    for (experts, expected, first_tokens) in [
        (&["D-last", "A-1"][..], vec![1, 2], &[2][..]),
        (&["D-last", "A-last"], vec![2], &[]),
        (&["A-1"], vec![1], &[]),
        (&["D-last+1"], vec![1, 2], &[1, 2]),
    ] {
        let model = model(&toy, ExpertsConfig { experts: names_of(experts), ..Default::default() });
        let layers = head(&model).layers(None);
        assert_eq!(layers.iter().collect::<Vec<_>>(), expected, "{experts:?}");
        let first: Vec<usize> = layers.iter().filter(|&layer| layers.only_first_tokens(layer)).collect();
        assert_eq!(first, first_tokens, "{experts:?}");
        assert_eq!(head(&model).score(&HeadInput::new(&toy.encoded(&model)), None).len(), 8);
    }
}

#[test]
fn groups_are_label_vectors_and_outputs() {
    let toy = Toy::new(Task::MultiLabel);
    let model = model(&toy, ExpertsConfig::default());
    let of_labels: Vec<String> =
        names(head(&model)).into_iter().filter(|name| head(&model).group(name) == Group::Labels).collect();
    assert_eq!(of_labels, ["experts.1.parts.queries.weight", "experts.2.parts.queries.weight"]);
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let refused = |config: ExpertsConfig, key: &str| {
        let message = config.check(Task::MultiLabel).unwrap_err().to_string();
        assert!(message.contains(key), "{message}");
    };
    let default = ExpertsConfig::default;
    refused(ExpertsConfig { experts: Vec::new(), ..default() }, "experts.experts");
    refused(ExpertsConfig { experts: names_of(&["A-1", "A-1"]), ..default() }, "experts.experts");
    refused(ExpertsConfig { hidden: vec![0], ..default() }, "experts.hidden");
    refused(ExpertsConfig { diversity: f64::NAN, ..default() }, "experts.diversity");
    refused(ExpertsConfig { dropout: 1.0, ..default() }, "experts.dropout");
    assert!(default().check(Task::MultiClass).is_err());
}

/// A model whose labels all are in one group, with the parameters of one without a shortlist.
#[test]
fn with_every_label_on_the_list_experts_are_as_without() {
    let toy = Toy::new(Task::MultiLabel);
    let config = ExpertsConfig { hidden: vec![4], dropout: 0.0, ..ExpertsConfig::default() };
    let whole = design(AnyHeadConfig::Experts(config), Task::MultiLabel);
    let shortlist = ShortlistConfig { group_size: 999, ..ShortlistConfig::default() };
    let dense = toy.model(whole.clone(), 1);
    let mut listed = toy.model(Design { shortlist, ..whole }, 1);
    let of_dense = named(&dense.network);
    let partition = listed.shortlist().unwrap().partition.clone();
    let table = listed.table_mut().unwrap();
    let (width, n_labels) = (table.width(), toy.taxonomy.n_labels());
    let hidden = (width - 1) / 3;
    let rows: Vec<usize> = (0..partition.n_rows()).map(|row| partition.label(row) as usize).collect();
    assert_eq!((rows.len(), width), (n_labels, 3 * hidden + 1));
    let parameter = |end: &str| {
        let found: Vec<_> = of_dense.iter().filter(|(name, _)| name.ends_with(end)).collect();
        assert_eq!(found.len(), 1, "{end}");
        found[0].1.1.clone()
    };
    let output = parameter("experts.0.parts.layers.0.weight");
    let bias = parameter("experts.0.parts.layers.0.bias");
    let looks = [1, 2].map(|n| parameter(&format!("experts.{n}.parts.queries.weight")));
    for (row, &label) in table.values_mut().chunks_exact_mut(width).zip(&rows) {
        let own = |all: &[f32]| all[label * hidden..][..hidden].to_vec();
        // Experts of a row share its bias, which is 0 in all of them here.
        let parts = [own(&output), own(&looks[0]), own(&looks[1]), vec![bias[label]]];
        row.copy_from_slice(&parts.concat());
    }
    // What is not of labels is the same in both, by name.
    let others: Tensors = (named(&listed.network).into_iter())
        .map(|(name, own)| (name.clone(), of_dense.get(&name).cloned().unwrap_or(own)))
        .collect();
    listed.network = replace(listed.network.clone(), others).unwrap();
    let learnt = |model: &NeuralModel| {
        let encoded = toy.encoded(model);
        let rows = model.table().map(Rows::new);
        let input = HeadInput { rows: rows.as_ref(), ..HeadInput::new(&encoded) };
        let moment = Moment { epoch: 9.0, thawed: 9.0, seed: Some(5) };
        model.network.head.objective(&input, &toy.gold, &moment).values()
    };
    let (of_all, of_listed) = (learnt(&dense), learnt(&listed));
    assert_eq!(of_all.len(), of_listed.len(), "{of_all:?} {of_listed:?}");
    for ((name, a), (other, b)) in of_all.iter().zip(&of_listed) {
        assert!(name == other && (a - b).abs() < 1e-5, "{name} {a} {other} {b}");
    }
    let scores = |model: &NeuralModel| {
        let scores = model.score(&toy.documents, &Request::default()).unwrap();
        (0..toy.documents.len())
            .map(|document| scores.row(document).iter().copied().collect::<BTreeMap<LabelId, f32>>())
            .collect::<Vec<_>>()
    };
    for (a, b) in scores(&dense).iter().zip(scores(&listed)) {
        assert!(a.len() == n_labels && a.keys().eq(b.keys()));
        assert!(a.iter().all(|(label, score)| (score - b[label]).abs() < 1e-5), "{a:?} {b:?}");
    }
}
