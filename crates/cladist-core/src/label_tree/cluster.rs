//! Spherical k-means over sparse rows of length 1: two equal halves, or k clusters of any size.
//!
//! Both maximise the mean cosine similarity of rows to the centre of their cluster and stop when it grows by less
//! than ε. Centres are normalised sums, held densely over the columns in use.

use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::TreeConfig;
use crate::job::Cancel;
use crate::sparse::{ColumnPlaces, SparseMatrix};

/// More rounds than any real clustering takes; re-seeded clusters could go in circles.
const MOST_ROUNDS: usize = 200;

/// Clusters with fewer rows are dissolved into the next best ones.
const SMALLEST: usize = 2;

/// Nodes with fewer rows are not worth splitting over threads; there are others to work on.
const PARALLEL: usize = 4096;

/// The same for k-means, in multiplications of a round.
const PARALLEL_WORK: usize = 1 << 20;

/// Splits rows into at most `k` clusters, each ascending, ordered by their first centre. Fewer than two clusters if
/// the rows do not come apart.
pub(super) fn split(
    features: &SparseMatrix,
    members: &[u32],
    config: &TreeConfig,
    seed: u64,
    places: &mut ColumnPlaces,
    cancel: &Cancel,
) -> Vec<Vec<u32>> {
    let TreeConfig { k, balanced, epsilon, .. } = *config;
    let halved = balanced && k == 2;
    let k = k.min(members.len());
    if k < 2 {
        return vec![members.to_vec()];
    }
    let centres = index::sample(&mut ChaCha8Rng::seed_from_u64(seed), members.len(), k).into_vec();
    let (rows, _) = features.select(members, places);
    let cluster_of = if halved {
        halves(&rows, [centres[0], centres[1]], epsilon, cancel).cluster_of
    } else {
        k_means(&rows, &centres, epsilon, cancel)
    };
    let mut clusters = vec![Vec::new(); k];
    for (&member, cluster) in members.iter().zip(cluster_of) {
        clusters[cluster as usize].push(member);
    }
    clusters.retain(|cluster| !cluster.is_empty());
    clusters
}

/// What [`halves`] found.
#[derive(Debug)]
struct Halves {
    cluster_of: Vec<u32>,
    /// Mean similarity to the own centre, round by round.
    #[cfg_attr(not(test), expect(dead_code, reason = "the course of the objective is what tests look at"))]
    objective: Vec<f64>,
}

/// Balanced 2-means: rows are ordered by (similarity to centre 1 − similarity to centre 0, row); the first
/// ⌊n/2⌋ are cluster 0, the rest cluster 1.
fn halves(rows: &SparseMatrix, centres: [usize; 2], epsilon: f32, cancel: &Cancel) -> Halves {
    let n = rows.n_rows();
    let mut sums = vec![[0.0f32; 2]; rows.n_columns()];
    for (cluster, &centre) in centres.iter().enumerate() {
        add_row(&mut sums, rows, centre, cluster);
    }
    let mut order: Vec<(f64, u32)> = Vec::with_capacity(n);
    let mut cluster_of = vec![0; n];
    let mut objective = Vec::new();
    let mut before = f64::NEG_INFINITY;
    for round in 0..MOST_ROUNDS {
        let dots: Vec<[f64; 2]> = if n < PARALLEL {
            (0..n).map(|row| dots(&sums, rows, row)).collect()
        } else {
            (0..n).into_par_iter().with_min_len(256).map(|row| dots(&sums, rows, row)).collect()
        };
        // The square of a sum's length is the sum of its rows' dot products with it.
        let mut squares = [0.0; 2];
        if round == 0 {
            squares = [dots[centres[0]][0], dots[centres[1]][1]];
        } else {
            for (dots, &cluster) in dots.iter().zip(&cluster_of) {
                squares[cluster as usize] += dots[cluster as usize];
            }
        }
        let scale = squares.map(|square: f64| if square > 0.0 { square.sqrt().recip() } else { 0.0 });
        order.clear();
        order.extend(dots.iter().zip(0..).map(|(dots, row)| (dots[1] * scale[1] - dots[0] * scale[0], row)));
        if n / 2 > 0 {
            order.select_nth_unstable_by(n / 2 - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        for (rank, &(_, row)) in order.iter().enumerate() {
            cluster_of[row as usize] = u32::from(rank >= n / 2);
        }
        let total: f64 =
            dots.iter().zip(&cluster_of).map(|(dots, &c)| dots[c as usize] * scale[c as usize]).sum();
        let mean = total / n as f64;
        objective.push(mean);
        if mean - before < f64::from(epsilon) || cancel.is_cancelled() {
            break;
        }
        before = mean;
        sums.fill([0.0; 2]);
        for (row, &cluster) in cluster_of.iter().enumerate() {
            add_row(&mut sums, rows, row, cluster as usize);
        }
    }
    Halves { cluster_of, objective }
}

fn add_row(sums: &mut [[f32; 2]], rows: &SparseMatrix, row: usize, cluster: usize) {
    let (columns, values) = rows.row(row);
    for (&column, &value) in columns.iter().zip(values) {
        sums[column as usize][cluster] += value;
    }
}

fn dots(sums: &[[f32; 2]], rows: &SparseMatrix, row: usize) -> [f64; 2] {
    let (columns, values) = rows.row(row);
    let mut dots = [0.0; 2];
    for (&column, &value) in columns.iter().zip(values) {
        let sum = sums[column as usize];
        dots[0] += value * sum[0];
        dots[1] += value * sum[1];
    }
    dots.map(f64::from)
}

/// k-means without balance; returns the cluster of each row. A cluster that runs empty starts again from the row
/// that is least similar to its centre.
fn k_means(rows: &SparseMatrix, centres: &[usize], epsilon: f32, cancel: &Cancel) -> Vec<u32> {
    let (n, k) = (rows.n_rows(), centres.len());
    let n_values: usize = (0..n).map(|row| rows.row(row).0.len()).sum();
    let mut sums = vec![0.0f32; rows.n_columns() * k];
    for (cluster, &centre) in centres.iter().enumerate() {
        add_to(&mut sums, k, rows, centre, cluster);
    }
    let mut best: Vec<(u32, f32)> = Vec::new();
    let mut before = f64::NEG_INFINITY;
    let mut scale = Vec::new();
    for _ in 0..MOST_ROUNDS {
        scale = inverse_lengths(&sums, k);
        let closest = |row: usize, similar: &mut Vec<f32>| {
            similarities(&sums, &scale, rows, row, similar);
            best_of(similar, |_| true)
        };
        best = if n_values * k < PARALLEL_WORK {
            let mut similar = Vec::new();
            (0..n).map(|row| closest(row, &mut similar)).collect()
        } else {
            (0..n)
                .into_par_iter()
                .with_min_len(8)
                .map_init(Vec::new, |similar, row| closest(row, similar))
                .collect()
        };
        let mean = best.iter().map(|&(_, similarity)| f64::from(similarity)).sum::<f64>() / n as f64;
        let moved = fill_empty(&mut best, k);
        if (!moved && mean - before < f64::from(epsilon)) || cancel.is_cancelled() {
            break;
        }
        before = mean;
        sums.fill(0.0);
        for (row, &(cluster, _)) in best.iter().enumerate() {
            add_to(&mut sums, k, rows, row, cluster as usize);
        }
    }
    let mut cluster_of: Vec<u32> = best.into_iter().map(|(cluster, _)| cluster).collect();
    dissolve_small(&mut cluster_of, k, |row, similar| similarities(&sums, &scale, rows, row, similar));
    cluster_of
}

fn add_to(sums: &mut [f32], k: usize, rows: &SparseMatrix, row: usize, cluster: usize) {
    let (columns, values) = rows.row(row);
    for (&column, &value) in columns.iter().zip(values) {
        sums[column as usize * k + cluster] += value;
    }
}

fn inverse_lengths(sums: &[f32], k: usize) -> Vec<f32> {
    let mut squares = vec![0.0f32; k];
    for sums in sums.chunks_exact(k) {
        for (square, &sum) in squares.iter_mut().zip(sums) {
            *square += sum * sum;
        }
    }
    squares.into_iter().map(|square| if square > 0.0 { square.sqrt().recip() } else { 0.0 }).collect()
}

fn similarities(sums: &[f32], scale: &[f32], rows: &SparseMatrix, row: usize, similar: &mut Vec<f32>) {
    let k = scale.len();
    similar.clear();
    similar.resize(k, 0.0);
    let (columns, values) = rows.row(row);
    for (&column, &value) in columns.iter().zip(values) {
        let sums = &sums[column as usize * k..][..k];
        for (similar, &sum) in similar.iter_mut().zip(sums) {
            *similar += value * sum;
        }
    }
    for (similar, &scale) in similar.iter_mut().zip(scale) {
        *similar *= scale;
    }
}

/// The most similar of the allowed clusters, the first of equals.
fn best_of(similar: &[f32], allowed: impl Fn(usize) -> bool) -> (u32, f32) {
    let mut best = (0, f32::NEG_INFINITY);
    for (cluster, &similarity) in similar.iter().enumerate() {
        if similarity > best.1 && allowed(cluster) {
            best = (cluster as u32, similarity);
        }
    }
    best
}

/// Gives every empty cluster one row: the least similar rows of clusters that can spare one.
fn fill_empty(best: &mut [(u32, f32)], k: usize) -> bool {
    let mut sizes = vec![0usize; k];
    for &(cluster, _) in best.iter() {
        sizes[cluster as usize] += 1;
    }
    if sizes.iter().all(|&size| size > 0) {
        return false;
    }
    let mut rows: Vec<usize> = (0..best.len()).collect();
    rows.sort_unstable_by(|&a, &b| best[a].1.total_cmp(&best[b].1).then(a.cmp(&b)));
    let mut rows = rows.into_iter();
    let mut moved = false;
    for cluster in 0..k {
        if sizes[cluster] > 0 {
            continue;
        }
        // A row that is its own centre already would only swap places.
        let Some(row) = rows.find(|&row| sizes[best[row].0 as usize] > 1 && best[row].1 < 0.999) else {
            break;
        };
        sizes[best[row].0 as usize] -= 1;
        sizes[cluster] = 1;
        best[row] = (cluster as u32, 1.0);
        moved = true;
    }
    moved
}

/// Dissolves the smallest cluster, the first of equals, until none is too small or only one is left.
fn dissolve_small(cluster_of: &mut [u32], k: usize, similarities: impl Fn(usize, &mut Vec<f32>)) {
    let mut members = vec![Vec::new(); k];
    for (row, &cluster) in cluster_of.iter().enumerate() {
        members[cluster as usize].push(row);
    }
    let mut similar = Vec::new();
    let mut alive: Vec<bool> = members.iter().map(|members| !members.is_empty()).collect();
    loop {
        let smallest = (0..k).filter(|&cluster| alive[cluster]).min_by_key(|&cluster| members[cluster].len());
        let Some(smallest) = smallest else { return };
        if members[smallest].len() >= SMALLEST || alive.iter().filter(|&&alive| alive).count() == 1 {
            return;
        }
        alive[smallest] = false;
        for row in std::mem::take(&mut members[smallest]) {
            similarities(row, &mut similar);
            let (cluster, _) = best_of(&similar, |cluster| alive[cluster]);
            cluster_of[row] = cluster;
            members[cluster as usize].push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn oracle() -> SparseMatrix {
        let rows = vec![vec![(0, 1.0)], vec![(0, 0.8), (1, 0.6)], vec![(1, 1.0)], vec![(0, 0.6), (1, 0.8)]];
        SparseMatrix::from_rows(&rows, 2)
    }

    #[test]
    fn four_rows_split_as_calculated_by_hand() {
        let found = halves(&oracle(), [0, 2], 1e-4, &Cancel::default());
        assert_eq!(found.cluster_of, [0, 0, 1, 1]);
        assert_eq!(found.objective.len(), 3, "{:?}", found.objective);
        for (mean, expected) in found.objective.iter().zip([0.9, 0.948_683_3, 0.948_683_3]) {
            assert!((mean - expected).abs() < 1e-6, "{:?}", found.objective);
        }
    }

    #[test]
    fn equal_rows_are_halved_by_their_index() {
        let rows = vec![vec![(0, 1.0)]; 5];
        let found = halves(&SparseMatrix::from_rows(&rows, 1), [3, 1], 1e-4, &Cancel::default());
        assert_eq!(found.cluster_of, [0, 0, 1, 1, 1]);
    }

    #[test]
    fn clear_clusters_are_found_and_lone_rows_join_the_next_best() {
        let axis = |column: u32| vec![(column, 0.99f32), (9, 0.141f32)];
        // Columns 0, 1, 2 three times each; one row of column 3 that leans towards column 0.
        let mut rows: Vec<_> = (0..9).map(|n| axis(n % 3)).collect();
        rows.push(vec![(0, 0.3), (3, 0.954)]);
        let matrix = SparseMatrix::from_rows(&rows, 10);
        let cluster_of = k_means(&matrix, &[0, 1, 2, 9], 1e-4, &Cancel::default());
        assert_eq!(cluster_of, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_cluster_that_runs_empty_starts_again() {
        let rows: Vec<_> = [0, 0, 0, 1, 1, 1].into_iter().map(|column| vec![(column, 1.0)]).collect();
        // Both first centres are the same row: the second cluster gets nothing at first.
        let cluster_of = k_means(&SparseMatrix::from_rows(&rows, 2), &[0, 1], 1e-4, &Cancel::default());
        assert_eq!(cluster_of, [0, 0, 0, 1, 1, 1]);
    }

    fn unit_rows() -> impl Strategy<Value = SparseMatrix> {
        let row = proptest::collection::btree_map(0u32..12, 0.01f32..1.0, 1..5).prop_map(|row| {
            let length = row.values().map(|value| value * value).sum::<f32>().sqrt();
            row.into_iter().map(|(column, value)| (column, value / length)).collect::<Vec<_>>()
        });
        proptest::collection::vec(row, 2..40).prop_map(|rows| SparseMatrix::from_rows(&rows, 12))
    }

    proptest! {
        #[test]
        fn every_row_is_in_exactly_one_cluster(
            rows in unit_rows(), k in 2usize..8, balanced: bool, seed: u64,
        ) {
            let members: Vec<u32> = (0..rows.n_rows() as u32).collect();
            let mut places = ColumnPlaces::default();
            let config = TreeConfig { k, balanced, ..TreeConfig::default() };
            let clusters = split(&rows, &members, &config, seed, &mut places, &Cancel::default());
            let mut all: Vec<u32> = clusters.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, members.clone());
            prop_assert!(clusters.iter().all(|cluster| cluster.is_sorted() && !cluster.is_empty()));
            if balanced && k == 2 {
                prop_assert_eq!(clusters[0].len(), rows.n_rows() / 2);
            } else if clusters.len() > 1 {
                prop_assert!(clusters.iter().all(|cluster| cluster.len() >= SMALLEST));
            }
            prop_assert_eq!(clusters, split(&rows, &members, &config, seed, &mut places, &Cancel::default()));
        }

        #[test]
        fn halving_never_lowers_the_objective(rows in unit_rows()) {
            let found = halves(&rows, [0, 1], 1e-4, &Cancel::default());
            prop_assert!(found.objective.windows(2).all(|pair| pair[1] >= pair[0] - 1e-5), "{:?}", found.objective);
        }
    }
}
