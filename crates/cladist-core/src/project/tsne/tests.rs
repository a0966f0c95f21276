use super::*;
use crate::text::tfidf::SparseRow;

/// Points around far places, in 5 dimensions.
fn clusters(n: usize, n_clusters: usize) -> Vec<SparseRow> {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut value = |far: bool| (if far { 20.0 } else { 0.0 }) + random.random_range(-1.0..1.0);
    (0..n).map(|i| (0..5u32).map(|k| (k, value(k as usize == i % n_clusters))).collect()).collect()
}

fn placed(vectors: &[SparseRow], config: &TsneConfig) -> Tsne {
    tsne(Gram::of(vectors), config, &Job::silent()).unwrap()
}

#[test]
fn rows_have_the_entropy_that_was_asked_for() {
    let n = 50;
    for perplexity in [2.0, 5.0, 16.0] {
        let mut cells = Gram::of(&clusters(n, 2)).into_distances();
        for (i, row) in cells.chunks_exact_mut(n).enumerate() {
            conditional(row, i, f64::ln(perplexity));
            let entropy: f64 = row.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
            assert!((entropy.exp() - perplexity).abs() < 1e-6, "{} instead of {perplexity}", entropy.exp());
            assert!(row[i] == 0.0 && (row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
    let p = affinities(Gram::of(&clusters(n, 2)).into_distances(), n, 10.0);
    assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn the_gradient_is_that_of_the_divergence() {
    let n = 12;
    let p = affinities(Gram::of(&clusters(n, 3)).into_distances(), n, 3.0);
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut points: Vec<Point> = (0..n).map(|_| [0, 1].map(|_| random.random_range(-1.0..1.0))).collect();
    let found = gradient(&p, &points, 1.0);
    for i in 0..n {
        for axis in 0..2 {
            const STEP: f64 = 1e-5;
            let here = points[i][axis];
            let [below, above] = [here - STEP, here + STEP].map(|place| {
                points[i][axis] = place;
                divergence(&p, &points)
            });
            points[i][axis] = here;
            let expected = (above - below) / (2.0 * STEP);
            assert!((found[i][axis] - expected).abs() < 1e-8, "{} instead of {expected}", found[i][axis]);
        }
    }
}

#[test]
fn clusters_that_are_far_apart_stay_apart() {
    let placed = placed(&clusters(60, 2), &TsneConfig { perplexity: 10.0, ..TsneConfig::default() });
    let apart = |a: &Point, b: &Point| (a[0] - b[0]).hypot(a[1] - b[1]);
    for (i, a) in placed.points.iter().enumerate() {
        let nearest = (0..60)
            .filter(|j| *j != i)
            .min_by(|j, k| apart(a, &placed.points[*j]).total_cmp(&apart(a, &placed.points[*k])));
        assert_eq!(nearest.unwrap() % 2, i % 2);
    }
    let middle = |cluster: usize| -> Point {
        let own = || placed.points.iter().skip(cluster).step_by(2);
        [0, 1].map(|axis| own().map(|point| point[axis]).sum::<f64>() / 30.0)
    };
    let middles = [middle(0), middle(1)];
    let widest = (placed.points.iter().enumerate())
        .map(|(i, point)| apart(point, &middles[i % 2]))
        .fold(0.0, f64::max);
    assert!(apart(&middles[0], &middles[1]) > 2.0 * widest, "{middles:?} {widest}");
    assert!(placed.kl > 0.0 && placed.kl < 1.0, "{}", placed.kl);
}

#[test]
fn the_same_vectors_give_the_same_points_on_any_number_of_threads() {
    let config = TsneConfig { iterations: 300, ..TsneConfig::default() };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| placed(&clusters(150, 4), &config))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn few_equal_or_far_vectors_have_places() {
    for vectors in [
        Vec::new(),
        clusters(1, 1),
        clusters(2, 1),
        clusters(3, 3),
        vec![vec![(0, 1.0)]; 5],
        vec![vec![(0, 1e18)], vec![(0, -1e18)], vec![(0, 1e-18)], vec![(0, 0.0)]],
    ] {
        let found = placed(&vectors, &TsneConfig::default());
        assert_eq!(found.points.len(), vectors.len());
        assert!(found.points.iter().flatten().all(|value| value.is_finite()), "{found:?}");
        assert!(found.kl.is_finite(), "{found:?}");
    }
    let wrong = TsneConfig { perplexity: 0.5, ..TsneConfig::default() };
    let message = tsne(Gram::of(&[]), &wrong, &Job::silent()).unwrap_err().to_string();
    assert!(message.contains("perplexity"), "{message}");
}
