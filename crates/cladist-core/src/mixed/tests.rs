use proptest::prelude::*;

use super::*;
use crate::decode::{DecodeConfig, Thresholds};
use crate::job::Cancel;
use crate::taxonomy::LabelSet;

/// A classifier that knows its answers.
struct Fixed {
    taxonomy: Taxonomy,
    rows: Vec<Vec<f32>>,
}

impl Classifier for Fixed {
    fn taxonomy(&self) -> &Taxonomy {
        &self.taxonomy
    }

    fn score(&self, documents: &[Document], request: &Request) -> Result<Scores> {
        assert!(request.top_k.is_none(), "members give all they have");
        let row = |row: &Vec<f32>| self.taxonomy.labels().zip(row.iter().copied()).collect();
        Ok(Scores::from_rows(self.rows[..documents.len()].iter().map(row)))
    }
}

fn fixed(ids: &[&str], rows: &[&[f32]]) -> Arc<dyn Classifier> {
    let taxonomy = Taxonomy::flat(ids.iter().copied());
    Arc::new(Fixed { taxonomy, rows: rows.iter().map(|row| row.to_vec()).collect() })
}

fn documents(n: usize) -> Vec<Document> {
    (0..n).map(|n| Document::from_text(n.to_string(), "")).collect()
}

fn weights(shares: &[f64], n_labels: usize) -> Weights {
    Weights { weights: vec![shares.to_vec()], ..Weights::even(shares.len(), n_labels) }
}

fn by_label(scores: &Scores) -> Vec<f32> {
    let mut row = scores.row(0).to_vec();
    row.sort_by_key(|(label, _)| *label);
    row.into_iter().map(|(_, score)| score).collect()
}

#[test]
fn it_mixes_as_published() {
    let ids = ["a", "b", "c"];
    let mixed = |share: f64| {
        let members = vec![fixed(&ids, &[&[0.9, 0.4, 0.45]]), fixed(&ids, &[&[0.55, 0.62, 0.20]])];
        Mixed::new(members, Taxonomy::flat(ids))
            .unwrap()
            .with_weights(weights(&[1.0 - share, share], 3))
            .unwrap()
    };
    for (share, expected, answer) in
        [(0.5, [0.725, 0.51, 0.325], vec![0, 1]), (0.3, [0.795, 0.466, 0.375], vec![0])]
    {
        let mixed = mixed(share);
        let scores = mixed.score(&documents(1), &Request::default()).unwrap();
        for (found, expected) in by_label(&scores).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        let decode = DecodeConfig { threshold: Thresholds::One(0.5), ..DecodeConfig::default() };
        let sets = decode.build(mixed.taxonomy()).unwrap().decode(&scores);
        assert_eq!(sets[0].iter().map(|label| label.index()).collect::<Vec<_>>(), answer);
    }
}

#[test]
fn members_may_know_fewer_labels() {
    let members = vec![fixed(&["b", "c"], &[&[0.8, 0.2]]), fixed(&["a", "b", "c"], &[&[0.4, 0.6, 0.0]])];
    let mixed = Mixed::new(members, Taxonomy::flat(["a", "b", "c"])).unwrap();
    let scores = mixed.score(&documents(1), &Request::default()).unwrap();
    for (found, expected) in by_label(&scores).iter().zip([0.2, 0.7, 0.1]) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
    let best = mixed.score(&documents(1), &Request { top_k: Some(1), ..Request::default() }).unwrap();
    assert_eq!(best.row(0), &scores.row(0)[..1]);
    let stranger = vec![fixed(&["a", "z"], &[&[0.1, 0.1]])];
    let message = Mixed::new(stranger, Taxonomy::flat(["a"])).unwrap_err().to_string();
    assert!(message.contains('z'), "{message}");
}

fn sets(taxonomy: &Taxonomy, gold: &[&[usize]]) -> Vec<LabelSet> {
    gold.iter().map(|labels| labels.iter().map(|&n| taxonomy.at(n).unwrap()).collect()).collect()
}

#[test]
fn the_grid_finds_the_best_weight_and_keeps_the_curve() {
    let taxonomy = Taxonomy::flat(["a", "b"]);
    let rows = |rows: &[[f32; 2]]| {
        Scores::from_rows(rows.iter().map(|row| taxonomy.labels().zip(row.iter().copied()).collect()))
    };
    // The first is right about a, the second about b; only together are they right about both.
    let members = [rows(&[[0.9, 0.45], [0.1, 0.4]]), rows(&[[0.45, 0.9], [0.4, 0.1]])];
    let gold = sets(&taxonomy, &[&[0, 1], &[]]);
    let fitted =
        fit(Weights::even(2, 2), &members, &gold, &MixedConfig::default(), &Cancel::default()).unwrap();
    assert_eq!(fitted.values, [1.0]);
    assert_eq!(fitted.curves[0].len(), 21);
    assert!((fitted.curves[0][0].1 - 2.0 / 3.0).abs() < 1e-12);
    assert_eq!(fitted.weights.weights, [[0.5, 0.5]]);
}

#[test]
fn classes_of_labels_get_weights_of_their_own() {
    let taxonomy = Taxonomy::flat(["rare", "common"]);
    let rows = |row: [f32; 2]| Scores::from_rows([taxonomy.labels().zip(row).collect()]);
    // The first knows the common label, the second the rare one.
    let members = [rows([0.0, 0.9]), rows([0.9, 0.0])];
    let gold = sets(&taxonomy, &[&[0, 1]]);
    let counts = LabelCounts { n_documents: 500, counts: vec![3, 400] };
    let start = Weights::by_frequency(2, &counts, 20, 100);
    assert_eq!((start.classes.len(), start.labels.as_slice()), (3, &[0, 2][..]));
    let fitted = fit(start, &members, &gold, &MixedConfig::default(), &Cancel::default()).unwrap();
    assert!(fitted.weights.weights[0][1] > 0.55 && fitted.weights.weights[2][0] > 0.55, "{fitted:?}");
    assert_eq!((fitted.values[0], fitted.values[2]), (1.0, 1.0));
    // No weight that both share is right about both.
    let together =
        fit(Weights::even(2, 2), &members, &gold, &MixedConfig::default(), &Cancel::default()).unwrap();
    assert!(together.values[0] < 1.0);
}

proptest! {
    #[test]
    fn fitted_weights_are_a_mean_and_no_worse_than_any_member(
        rows in prop::collection::vec(prop::collection::vec(0.0f32..1.0, 12), 3),
        gold in prop::collection::vec(any::<bool>(), 12),
        macro_f1 in any::<bool>(),
    ) {
        let taxonomy = Taxonomy::flat(["a", "b", "c"]);
        let scores: Vec<Scores> = rows
            .iter()
            .map(|row| Scores::from_rows(row.chunks(3).map(|row| taxonomy.labels().zip(row.iter().copied()).collect())))
            .collect();
        let gold: Vec<LabelSet> = gold
            .chunks(3)
            .map(|row| taxonomy.labels().zip(row).filter(|(_, gold)| **gold).map(|(label, _)| label).collect())
            .collect();
        let objective = if macro_f1 { crate::calibrate::Objective::MacroF1 } else { crate::calibrate::Objective::MicroF1 };
        let config = MixedConfig { objective, ..MixedConfig::default() };
        for n in [2, 3] {
            let fitted = fit(Weights::even(n, 3), &scores[..n], &gold, &config, &Cancel::default()).unwrap();
            prop_assert!(fitted.weights.are_sound(n, 3));
            prop_assert!((fitted.weights.weights[0].iter().sum::<f64>() - 1.0).abs() < 1e-9);
            for one in scores[..n].iter().filter(|_| n == 2) {
                let alone = fit(Weights::even(1, 3), std::slice::from_ref(one), &gold, &config, &Cancel::default()).unwrap().values[0];
                prop_assert!(fitted.values[0] >= alone - 1e-12);
            }
        }
    }
}

#[test]
fn fitting_stops_when_it_is_asked_to() {
    let taxonomy = Taxonomy::flat(["a"]);
    let scores = vec![Scores::from_rows([taxonomy.labels().map(|label| (label, 0.5)).collect()]); 3];
    let gold = [taxonomy.labels().collect::<LabelSet>()];
    let cancel = Cancel::default();
    cancel.cancel();
    for n in [2, 3] {
        let fitted = fit(Weights::even(n, 1), &scores[..n], &gold, &MixedConfig::default(), &cancel);
        assert!(matches!(fitted, Err(Error::Cancelled)));
    }
}
