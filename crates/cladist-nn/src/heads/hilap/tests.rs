use burn::tensor::Device;

use super::*;
use crate::heads::{AnyHead, AnyHeadConfig, Task};
use crate::model::NeuralModel;
use crate::optim::GradientSum;
use crate::parameters::names;
use crate::toy::{Toy, design};

fn near(got: &[f64], expected: &[f64]) -> bool {
    got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6)
}

fn model(toy: &Toy, config: HilapConfig) -> NeuralModel {
    let config = HilapConfig { hidden: 32, width: 16, ..config };
    toy.model(design(AnyHeadConfig::Hilap(config), Task::MultiLabel), 1)
}

fn head(model: &NeuralModel) -> &Hilap {
    let AnyHead::Hilap(head) = &model.network.head else { panic!("another head") };
    head
}

#[test]
fn rewards_are_what_labels_add_to_f1() {
    let toy = Toy::new(Task::MultiLabel);
    let label = |id: &str| toy.taxonomy.get(id).unwrap();
    let gold: LabelSet = [label("goods"), label("metal")].into_iter().collect();
    let walk = ["goods", "grain", "metal"].map(|id| label(id).index() as u32);
    let got = rewards(&walk, &gold);
    assert!(near(&got, &[0.666_666_7, -0.166_666_7, 0.3]), "{got:?}");
    // 0.3 and before it −1/6 + 0.9·0.3, and before that 2/3 + 0.9 times this.
    let got = returns(&got, 0.9);
    assert!(near(&got, &[0.666_666_7 + 0.9 * 0.103_333_3, 0.103_333_3, 0.3]), "{got:?}");
    assert!(rewards(&[], &gold).is_empty() && returns(&[], 0.9).is_empty());
}

#[test]
fn advantages_have_mean_zero_and_deviation_one() {
    let mut values = [1.0, 2.0, 3.0, 6.0];
    standardise(values.iter_mut());
    assert!(near(&[values.iter().sum(), values.iter().map(|x| x * x).sum::<f64>() / 4.0], &[0.0, 1.0]));
    let mut equal = [3.0, 3.0];
    standardise(equal.iter_mut());
    assert_eq!(equal, [0.0, 0.0]);
}

#[test]
fn a_draw_falls_on_each_by_its_share() {
    let logits = [0.0, 3f32.ln(), -1e4];
    assert_eq!((drawn(&logits, 0.0), drawn(&logits, 0.24), drawn(&logits, 0.26)), (0, 0, 1));
    assert_eq!((drawn(&logits, 0.999_999), drawn(&[5.0], 0.5)), (1, 0));
    assert_eq!((highest(&[1.0, 4.0, 4.0, 2.0]), highest(&[0.5])), (1, 0));
}

#[test]
fn a_label_follows_all_of_its_parents() {
    let toy = Toy::new(Task::MultiLabel);
    let model = model(&toy, HilapConfig::default());
    let documents = toy.encoded(&model);
    let head = head(&model);
    let vectors = head.vectors(&HeadInput::new(&documents), None);
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut seen = Vec::new();
    for _ in 0..20 {
        // Anything but the end, as long as there is something: every label comes.
        let (steps, walks) = head.walk(&vectors, |_, candidates, _| {
            assert_eq!(*candidates.last().unwrap(), head.policy.end());
            // Neither the end nor the root is among the labels.
            assert!(candidates[..candidates.len() - 1].iter().all(|&label| label < head.policy.end()));
            random.random_range(0..candidates.len() - 1)
        });
        assert_eq!(steps.len(), toy.taxonomy.n_labels());
        for walk in walks {
            assert_eq!(walk.labels.len(), toy.taxonomy.n_labels());
            for (n, &label) in walk.labels.iter().enumerate() {
                let label = toy.taxonomy.at(label as usize).unwrap();
                let before = |parent: &LabelId| walk.labels[..n].contains(&(parent.index() as u32));
                assert!(toy.taxonomy.parents(label).iter().all(before), "{:?}", walk.labels);
            }
            seen.push(walk.labels);
        }
    }
    assert!(seen.iter().any(|walk| *walk != seen[0]));
}

#[test]
fn what_scores_above_one_half_has_its_ancestors() {
    let toy = Toy::new(Task::MultiLabel);
    for max_labels in [1, 3, 30] {
        let model = model(&toy, HilapConfig { max_labels, ..HilapConfig::default() });
        let documents = toy.encoded(&model);
        let rows = head(&model).score(&HeadInput::new(&documents), None);
        let walks = head(&model).greedy(&head(&model).vectors(&HeadInput::new(&documents), None));
        for (row, walk) in rows.into_iter().zip(walks) {
            let chosen: LabelSet =
                row.into_iter().filter(|(_, score)| *score > 0.5).map(|(label, _)| label).collect();
            assert!(chosen.len() <= max_labels && chosen.len() == walk.labels.len());
            assert_eq!(toy.taxonomy.close_upward(&chosen), chosen);
        }
    }
}

#[test]
fn walks_are_drawn_when_it_is_time_and_the_same_from_the_same_seed() {
    let toy = Toy::new(Task::MultiLabel);
    let mut config = HilapConfig::default();
    config.settle(3);
    assert_eq!(config.reinforce_after, Some(2));
    let model = model(&toy, config);
    let documents = toy.encoded(&model);
    let values = |epoch, seed| {
        let moment = Moment { epoch, thawed: epoch, seed };
        head(&model).objective(&HeadInput::new(&documents), &toy.gold, &moment).values()
    };
    let names = |epoch, seed| values(epoch, seed).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(1.9, Some(1)), ["bce", "bce-walk"]);
    assert_eq!(names(2.0, Some(1)), ["bce", "bce-walk", "policy", "entropy"]);
    assert_eq!(names(9.0, None), ["bce", "bce-walk"]);
    assert_eq!(values(2.0, Some(1)), values(2.0, Some(1)));
    assert_ne!(values(2.0, Some(1)), values(2.0, Some(2)));
    assert!(values(2.0, Some(1)).iter().all(|(_, value)| value.is_finite()));
}

#[test]
fn reinforcement_makes_worthy_walks_likelier() {
    let toy = Toy::new(Task::MultiLabel);
    let model = model(&toy, HilapConfig::default());
    let documents = toy.encoded(&model);
    let head = head(&model);
    let vectors = head.vectors(&HeadInput::new(&documents), None);
    let (policy, entropy) = head.reinforced(&vectors, &toy.gold, 5).unwrap();
    // π·ln π is below 0 and, over n candidates, not below −ln(n)/n.
    let value = entropy.inner().into_scalar::<f32>();
    assert!(value < 0.0 && value > -0.37, "{value}");
    let mut sum = GradientSum::default();
    sum.add(head, policy.backward());
    for name in names(head).iter().filter(|name| name.starts_with("policy.")) {
        let gradient = sum.values(name).unwrap();
        assert!(gradient.iter().all(|slope| slope.is_finite()), "{name}");
        assert!(gradient.iter().any(|slope| *slope != 0.0), "{name}");
    }
    // The slope of a logit is (π − 1)·weight where it was drawn: the sign of the advantage decides.
    let (steps, walks) = {
        let mut random = ChaCha8Rng::seed_from_u64(place(5, WALKS[1]));
        head.walk(&vectors, |_, _, logits| drawn(logits, random.random()))
    };
    let greedy = head.greedy(&vectors);
    let advantages = head.advantages(&steps, &walks, &greedy, &toy.gold);
    let all: Vec<f64> = advantages.concat();
    assert!(all.iter().sum::<f64>().abs() < 1e-6 && all.iter().any(|advantage| *advantage > 0.0));
    let n_steps: usize = steps.iter().map(|step| step.documents.len()).sum();
    assert_eq!(all.len(), n_steps);
}

#[test]
fn supervision_ends_walks_when_no_gold_label_is_left() {
    let device = Device::flex();
    let step = |logits: Tensor<2>, chosen: usize| Step {
        documents: vec![0],
        candidates: vec![vec![0, 1, 7]],
        logits,
        chosen: vec![chosen],
    };
    let logits: Tensor<2> = Tensor::from_floats([[2.0, -1.0, 0.5]], &device);
    let steps = [step(logits.clone(), 0), step(logits, 2)];
    let value = mean_over_steps(&steps, |step, row, cells| cells[step.chosen[row]] = 1.0).unwrap();
    let softplus = |z: f64| z.exp().ln_1p();
    let all = softplus(2.0) + softplus(-1.0) + softplus(0.5);
    let expected = ((all - 2.0) / 3.0 + (all - 0.5) / 3.0) / 2.0;
    assert!((f64::from(value.into_scalar::<f32>()) - expected).abs() < 1e-6);
    assert!(mean_over_steps(&[], |_, _, _| {}).is_none());
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let refused = |config: HilapConfig, key: &str| {
        let message = config.check(Task::MultiLabel).unwrap_err().to_string();
        assert!(message.contains(key), "{message}");
    };
    let default = HilapConfig::default;
    refused(HilapConfig { width: 0, ..default() }, "hilap.width");
    refused(HilapConfig { max_labels: 0, ..default() }, "hilap.max_labels");
    refused(HilapConfig { discount: 1.1, ..default() }, "hilap.discount");
    refused(HilapConfig { entropy: f64::NAN, ..default() }, "hilap.entropy");
    refused(HilapConfig { dropout: 1.0, ..default() }, "hilap.dropout");
    assert!(default().check(Task::MultiClass).is_err());
}
