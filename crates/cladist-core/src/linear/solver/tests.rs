use super::*;
use crate::error::Error;
use crate::text::tfidf::SparseRow;
use proptest::prelude::*;

fn exact(loss: Loss) -> Settings {
    Settings { loss, c: 1.0, epsilon: 1e-6, epochs: 10_000, prune: 0.0 }
}

fn train(rows: &[Vec<(u32, f32)>], positives: &[&[u32]], settings: &Settings) -> Vec<Classifier> {
    let n_columns = rows.iter().flatten().map(|&(column, _)| column as usize + 1).max().unwrap_or(0);
    solve(&SparseMatrix::from_rows(rows, n_columns), positives, settings, 1, &Job::silent()).unwrap()
}

#[test]
fn one_example_has_the_optimum_calculated_by_hand() {
    // A row without features is the constant feature alone: x = 1, y = +1. ½w² + (1 − w)² is least at 2/3.
    let found = train(&[vec![]], &[&[0]], &exact(Loss::SquaredHinge));
    assert!((found[0].bias - 2.0 / 3.0).abs() < 1e-5, "{found:?}");
}

#[test]
fn two_opposed_examples_have_the_optimum_calculated_by_hand() {
    // x = ±1 on a column, where the constant feature cancels out: w = 4/5 on the column.
    let found = train(&[vec![(0, 1.0)], vec![(0, -1.0)]], &[&[0]], &exact(Loss::SquaredHinge));
    assert!((found[0].weights[0].1 - 0.8).abs() < 1e-5, "{found:?}");
    assert!(found[0].bias.abs() < 1e-5, "{found:?}");
}

#[test]
fn small_weights_are_dropped() {
    let rows = [vec![(0, 1.0), (1, 0.01)], vec![(0, -1.0)]];
    let kept = |prune| {
        let found = train(&rows, &[&[0]], &Settings { prune, ..exact(Loss::SquaredHinge) });
        found[0].weights.iter().map(|&(column, _)| column).collect::<Vec<_>>()
    };
    assert_eq!(kept(0.0), [0, 1]);
    assert_eq!(kept(0.1), [0]);
    assert_eq!(kept(0.9), [] as [u32; 0]);
}

#[test]
fn training_stops_when_asked() {
    let job = Job::silent();
    job.cancel.cancel();
    let rows = SparseMatrix::from_rows(&[vec![(0, 1.0)]], 1);
    let refused = solve(&rows, &[&[0]], &exact(Loss::SquaredHinge), 1, &job);
    assert!(matches!(refused, Err(Error::Cancelled)));
}

/// Rows, positive rows per classifier, C.
type Problem = (Vec<SparseRow>, Vec<Vec<u32>>, f32);

fn problem() -> impl Strategy<Value = Problem> {
    let row = proptest::collection::btree_map(0u32..6, -1f32..1.0, 0..4)
        .prop_map(|row| row.into_iter().collect::<Vec<_>>());
    (1usize..12, 1usize..20).prop_flat_map(move |(n_rows, n_outputs)| {
        let positive = proptest::collection::btree_set(0..n_rows as u32, 0..=n_rows)
            .prop_map(|rows| rows.into_iter().collect::<Vec<_>>());
        (
            proptest::collection::vec(row.clone(), n_rows),
            proptest::collection::vec(positive, n_outputs),
            0.1f32..4.0,
        )
    })
}

fn score(classifier: &Classifier, row: &[(u32, f32)]) -> f64 {
    row.iter().fold(f64::from(classifier.bias), |sum, &(column, value)| {
        let weight = classifier.weights.iter().find(|(c, _)| *c == column).map_or(0.0, |&(_, weight)| weight);
        sum + f64::from(weight * value)
    })
}

/// The gradient of the primal objective: at the optimum w = C Σ −loss′(yᵢsᵢ)·yᵢ·xᵢ.
fn primal_gradient(
    rows: &[Vec<(u32, f32)>],
    positive: &[u32],
    classifier: &Classifier,
    c: f64,
    slope: impl Fn(f64) -> f64,
) -> f64 {
    let mut gradient = [0.0; 7];
    for &(column, weight) in &classifier.weights {
        gradient[column as usize] = f64::from(weight);
    }
    gradient[6] = f64::from(classifier.bias);
    for (row, features) in rows.iter().enumerate() {
        let y = if positive.contains(&(row as u32)) { 1.0 } else { -1.0 };
        let pull = c * slope(y * score(classifier, features)) * y;
        for &(column, value) in features {
            gradient[column as usize] += pull * f64::from(value);
        }
        gradient[6] += pull;
    }
    gradient.into_iter().map(f64::abs).fold(0.0, f64::max)
}

fn primal(rows: &[Vec<(u32, f32)>], positive: &[u32], classifier: &Classifier, c: f32) -> f64 {
    let squares = classifier.weights.iter().map(|&(_, weight)| weight).chain([classifier.bias]);
    let losses = rows.iter().zip(0..).map(|(features, row)| {
        let y = if positive.contains(&row) { 1.0 } else { -1.0 };
        (1.0 - y * score(classifier, features)).max(0.0).powi(2)
    });
    squares.map(|weight| f64::from(weight).powi(2)).sum::<f64>() / 2.0 + f64::from(c) * losses.sum::<f64>()
}

proptest! {
    #[test]
    fn the_squared_hinge_optimum_has_no_gradient((rows, positives, c) in problem()) {
        let lists: Vec<&[u32]> = positives.iter().map(Vec::as_slice).collect();
        let found = train(&rows, &lists, &Settings { c, ..exact(Loss::SquaredHinge) });
        for (classifier, positive) in found.iter().zip(&positives) {
            let slope = |margin: f64| -2.0 * (1.0 - margin).max(0.0);
            let gradient = primal_gradient(&rows, positive, classifier, f64::from(c), slope);
            prop_assert!(gradient < 1e-3, "{} {:?}", gradient, classifier);
        }
    }

    #[test]
    fn the_logistic_optimum_has_no_gradient((rows, positives, c) in problem()) {
        let lists: Vec<&[u32]> = positives.iter().map(Vec::as_slice).collect();
        let found = train(&rows, &lists, &Settings { c, epsilon: 1e-4, ..exact(Loss::Logistic) });
        for (classifier, positive) in found.iter().zip(&positives) {
            let slope = |margin: f64| -1.0 / (1.0 + margin.exp());
            let gradient = primal_gradient(&rows, positive, classifier, f64::from(c), slope);
            prop_assert!(gradient < 2e-3, "{} {:?}", gradient, classifier);
        }
    }

    #[test]
    fn a_loose_criterion_comes_close_to_the_optimum((rows, positives, c) in problem()) {
        let lists: Vec<&[u32]> = positives.iter().map(Vec::as_slice).collect();
        let settings = Settings { c, ..exact(Loss::SquaredHinge) };
        let exact = train(&rows, &lists, &settings);
        let loose = train(&rows, &lists, &Settings { epsilon: 0.01, epochs: 100, ..settings });
        for ((exact, loose), positive) in exact.iter().zip(&loose).zip(&positives) {
            let (least, close) = (primal(&rows, positive, exact, c), primal(&rows, positive, loose, c));
            prop_assert!(close >= least - 1e-4 && close <= 1.05 * least + 0.01, "{} {}", close, least);
        }
    }
}
