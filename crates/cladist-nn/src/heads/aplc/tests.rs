use std::collections::BTreeMap;

use super::*;
use crate::heads::levels::LevelColumns;
use crate::heads::{AnyHead, AnyHeadConfig, Task};
use crate::parameters::{names, replace, to_vec};
use crate::toy::{Toy, design};

fn close(got: &[f32], expected: &[f64]) -> bool {
    got.len() == expected.len()
        && got.iter().zip(expected).all(|(got, expected)| (f64::from(*got) - expected).abs() < 1e-6)
}

#[test]
fn odds_of_two_at_once_are_those_of_the_product() {
    let device = Device::flex();
    let a: Tensor<2> = Tensor::from_floats([[0.0], [-60.0]], &device);
    let b: Tensor<2> = Tensor::from_floats([[0.3, -0.4], [-50.0, 80.0]], &device);
    let odds = both(a, b);
    let got = to_vec(odds.clone());
    // e⁻¹¹⁰ is no number of 32 bits.
    assert!((got[2] + 110.0).abs() < 1e-4 && (got[3] + 60.0).abs() < 1e-4, "{got:?}");
    let p = to_vec(activation::sigmoid(odds));
    assert!(close(&p[..2], &[0.287_221_3, 0.200_656_2]), "{p:?}");
}

/// Two labels in the head and two behind a gate, with outputs on x = (1, −1) as worked out by hand.
fn by_hand(device: &Device) -> (Aplc, Tensor<2>) {
    let toy = Toy::new(Task::MultiLabel);
    let labels: Vec<LabelId> = toy.taxonomy.labels().take(4).collect();
    let config = AplcConfig { cuts: vec![2], ..AplcConfig::default() };
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let clusters = vec![labels[..2].to_vec(), labels[2..].to_vec()];
    let head = Aplc {
        summary: Linear::new(2, 2, &mut random, device),
        head: Matrix::new(2, 3, &mut random, device),
        tails: vec![Tail {
            narrow: Matrix::new(2, 2, &mut random, device),
            norm: LayerNorm::new(2, device),
            output: Matrix::new(2, 2, &mut random, device),
        }],
        clusters: Clusters { columns: LevelColumns::new(&clusters, 4), labels: clusters },
        vector: DocumentVector::default(),
        config,
        label_smoothing: 0.0,
    };
    let values = BTreeMap::from([
        ("summary.weight".to_owned(), (vec![2, 2], vec![0.0; 4])),
        ("summary.bias".to_owned(), (vec![2], vec![0.0; 2])),
        ("head.weight".to_owned(), (vec![3, 2], vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5])),
        // (1, −1) is normalised already; ReLU leaves (1, 0).
        ("tails.0.narrow.weight".to_owned(), (vec![2, 2], vec![1.0, 0.0, 0.0, 1.0])),
        ("tails.0.norm.gain".to_owned(), (vec![2], vec![1.0; 2])),
        ("tails.0.norm.bias".to_owned(), (vec![2], vec![0.0; 2])),
        ("tails.0.output.weight".to_owned(), (vec![2, 2], vec![0.3, 0.0, -0.4, 0.0])),
    ]);
    assert_eq!(names(&head).len(), values.len());
    (replace(head, values).unwrap(), Tensor::from_floats([[1.0, -1.0]], device))
}

#[test]
fn the_loss_is_as_worked_out_by_hand() {
    let device = Device::flex();
    let (head, x) = by_hand(&device);
    let (logits, gates) = head.of_head(x.clone());
    assert!(close(&to_vec(activation::sigmoid(logits)), &[0.731_058_6, 0.268_941_4]));
    assert!(close(&to_vec(activation::sigmoid(gates)), &[0.5]));
    let loss = |head_gold: &[u32], tail_gold: &[u32]| {
        let gold = [vec![head_gold.to_vec()], vec![tail_gold.to_vec()]];
        head.loss(x.clone(), &gold).into_scalar::<f32>()
    };
    assert!((loss(&[], &[0]) - 0.774_497_5).abs() < 1e-6, "{}", loss(&[], &[0]));
    assert!((loss(&[0], &[]) - 0.439_890_2).abs() < 1e-6, "{}", loss(&[0], &[]));
    // Documents count alike.
    let two = Tensor::cat(vec![x.clone(), x.clone()], 0);
    let gold = [vec![vec![], vec![0]], vec![vec![0], vec![]]];
    let mean = head.loss(two, &gold).into_scalar::<f32>();
    assert!((f64::from(mean) - (0.774_497_5 + 0.439_890_2) / 2.0).abs() < 1e-6, "{mean}");
}

#[test]
fn clusters_are_of_frequent_and_of_rare_labels() {
    let toy = Toy::new(Task::MultiLabel);
    let counts = toy.counts();
    for (cuts, expected) in [(vec![], vec![4, 4]), (vec![1, 3], vec![1, 2, 5])] {
        let config = AplcConfig { cuts, ..AplcConfig::default() };
        let model = toy.model(design(AnyHeadConfig::Aplc(config), Task::MultiLabel), 1);
        let AnyHead::Aplc(head) = &model.network.head else { panic!("another head") };
        let sizes: Vec<usize> = head.clusters.labels.iter().map(Vec::len).collect();
        assert_eq!(sizes, expected);
        assert!(
            head.labels().is_sorted_by_key(|label| {
                (std::cmp::Reverse(counts.counts[label.index()]), label.index())
            })
        );
    }
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let refused = |config: AplcConfig, key: &str| {
        let message = config.checked_cuts(8, Task::MultiLabel).unwrap_err().to_string();
        assert!(message.contains(key), "{message}");
    };
    let default = AplcConfig::default;
    for cuts in [vec![0], vec![8], vec![3, 3], vec![5, 2]] {
        refused(AplcConfig { cuts, ..default() }, "aplc.cuts");
    }
    refused(AplcConfig { divisor: 0, ..default() }, "aplc.divisor");
    refused(AplcConfig { dropout: -1.0, ..default() }, "aplc.dropout");
    assert!(default().checked_cuts(1, Task::MultiLabel).unwrap().is_empty());
    assert!(default().checked_cuts(8, Task::MultiClass).is_err());
}
