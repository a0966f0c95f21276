use super::*;
use crate::linear::solver::Classifier;
use proptest::prelude::*;

fn score_one(forest: &Forest, head: LinearHead, beam: usize, row: &[(u32, f32)]) -> Vec<(u32, f32)> {
    let scoring = Scoring { head, loss: Loss::SquaredHinge, beam };
    forest.score(&scoring, &[row.to_vec()]).remove(0)
}

#[test]
fn a_path_multiplies_its_probabilities() {
    let log: f64 = [1.5, 0.5, 0.2].into_iter().map(|raw| log_probability(Loss::SquaredHinge, raw)).sum();
    assert!((log.exp() - 0.410_655_8).abs() < 1e-6, "{}", log.exp());
    assert!((log_probability(Loss::SquaredHinge, 0.5) + 0.25).abs() < 1e-12);
    assert!((log_probability(Loss::SquaredHinge, -0.5) + 2.25).abs() < 1e-12);
    assert!((log_probability(Loss::Logistic, 0.0) + 2f64.ln()).abs() < 1e-12);
}

#[test]
fn a_tree_of_two_levels_scores_as_calculated() {
    // Every score is a bias: path 1.5 and 0.5, label 0.2; the row only has to be there.
    let constant = |bias: f32| Classifier { bias, weights: Vec::new() };
    let mut forest = Forest::new(1, 3);
    forest.roots.push(0);
    forest.push_node(false, [1], &[constant(1.5)], &[0]);
    forest.push_node(false, [2], &[constant(0.5)], &[0]);
    forest.push_node(true, [0, 2], &[constant(0.2), constant(0.2)], &[0]);
    forest.index();
    let score = |row: &[(u32, f32)]| score_one(&forest, LinearHead::Parabel, 10, row);
    let found = score(&[(0, 1.0)]);
    assert_eq!(found.iter().map(|&(label, _)| label).collect::<Vec<_>>(), [0, 2]);
    assert!(found.iter().all(|&(_, p)| (p - 0.410_655_8).abs() < 1e-3), "{found:?}");
    assert_eq!(score(&[]), []);
}

#[test]
fn saturated_labels_are_told_apart_by_their_raw_scores() {
    let constant = |bias: f32| Classifier { bias, weights: Vec::new() };
    let mut forest = Forest::new(1, 3);
    forest.roots.push(0);
    forest.push_node(true, [0, 1, 2], &[constant(1.5), constant(2.5), constant(1.1)], &[0]);
    forest.index();
    for head in [LinearHead::Parabel, LinearHead::Svm] {
        let mut found = score_one(&forest, head, 1, &[(0, 1.0)]);
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        assert_eq!(found.iter().map(|&(label, _)| label).collect::<Vec<_>>(), [1, 0, 2]);
        assert!(found.iter().all(|&(_, p)| p > 0.0 && p < 1.0));
        assert!(found.windows(2).all(|pair| pair[0].1 > pair[1].1));
    }
}

#[test]
fn squashed_scores_stay_within_bounds() {
    assert!((squash(Loss::SquaredHinge, 0.0) - 0.5).abs() < 1e-7);
    assert!((squash(Loss::SquaredHinge, 0.01) - 0.505).abs() < 1e-5);
    assert!((squash(Loss::Logistic, 1.0) - 0.731_058_6).abs() < 1e-6);
    for raw in [f32::MAX, f32::MIN, 1e9, -1e9] {
        let p = squash(Loss::SquaredHinge, raw);
        assert!(p > 0.0 && p < 1.0);
    }
}

/// Trees of three levels with random biases and weights; node numbers as the trainer gives them.
fn forests() -> impl Strategy<Value = (Forest, Vec<(u32, f32)>)> {
    let weights = || proptest::collection::btree_map(0u32..8, -2f32..2.0, 0..5);
    let classifier = move || {
        (-1f32..2.0, weights()).prop_map(|(bias, w)| Classifier { bias, weights: w.into_iter().collect() })
    };
    let tree = (
        proptest::collection::vec(classifier(), 3),
        proptest::collection::vec(proptest::collection::vec(classifier(), 4), 3),
    );
    let row = proptest::collection::btree_map(0u32..8, -1f32..1.0, 1..6);
    (proptest::collection::vec(tree, 1..4), row).prop_map(|(trees, row)| {
        let mut forest = Forest::new(8, 12);
        let features: Vec<u32> = (0..8).collect();
        for (branch, leaves) in trees {
            let root = forest.n_nodes() as u32;
            forest.roots.push(root);
            forest.push_node(false, root + 1..root + 4, &branch, &features);
            for (leaf, classifiers) in (0..).zip(leaves) {
                forest.push_node(true, leaf * 4..leaf * 4 + 4, &classifiers, &features);
            }
        }
        forest.index();
        (forest, row.into_iter().collect())
    })
}

proptest! {
    #[test]
    fn a_beam_as_wide_as_the_tree_is_an_exhaustive_search((forest, row) in forests()) {
        let loss = Loss::SquaredHinge;
        let found = score_one(&forest, LinearHead::Bonsai, 3, &row);
        let mut expected = [0.0f64; 12];
        let (mut branch, mut leaf) = (Vec::new(), Vec::new());
        for &root in &forest.roots {
            forest.raw_scores(root as usize, &row, &mut branch);
            for (&node, &path) in forest.targets_of(root as usize).iter().zip(&branch) {
                forest.raw_scores(node as usize, &row, &mut leaf);
                for (&label, &raw) in forest.targets_of(node as usize).iter().zip(&leaf) {
                    let log = log_probability(loss, path) + log_probability(loss, raw);
                    expected[label as usize] += log.exp() / forest.roots.len() as f64;
                }
            }
        }
        for (label, &expected) in expected.iter().enumerate() {
            let p = found.iter().find(|(l, _)| *l as usize == label).map_or(0.0, |&(_, p)| f64::from(p));
            prop_assert!((p - expected).abs() <= TIE * expected + 1e-12, "{} {}", p, expected);
        }
    }

    #[test]
    fn a_narrow_beam_finds_a_part_of_what_a_wide_one_finds((forest, row) in forests(), beam in 1usize..3) {
        let score = |beam| {
            let mut found = score_one(&forest, LinearHead::Bonsai, beam, &row);
            found.sort_by_key(|&(label, _)| label);
            found
        };
        let (narrow, wide) = (score(beam), score(3));
        prop_assert!(narrow.len() <= 4 * beam * forest.roots.len());
        for (label, p) in narrow {
            let (_, most) = wide.iter().find(|(l, _)| *l == label).copied().unwrap();
            // Not reached in some tree, a label loses that tree's share.
            prop_assert!(p <= most * 1.002, "{} {}", p, most);
        }
    }
}
