//! Principal components: the plane on which vectors differ most.

use super::eigen::largest;
use super::{Gram, Point};

/// Vectors on the plane of their first two principal components.
#[derive(Debug, Clone, PartialEq)]
pub struct Pca {
    /// A place for each vector; the mean of all vectors is at the origin.
    pub points: Vec<Point>,
    /// The share of the variance that each axis shows.
    pub shares: [f64; 2],
}

/// Places vectors by their products. The farthest point along each axis is on its positive side.
#[must_use]
pub fn pca(gram: &Gram) -> Pca {
    let n = gram.n();
    let centred = gram.centred();
    let all: f64 = (0..n).map(|i| centred.at(i, i)).sum();
    let mut points = vec![[0.0; 2]; n];
    let mut shares = [0.0; 2];
    for (axis, (value, vector)) in largest(centred.cells(), n, 2).into_iter().enumerate() {
        // What is left of nothing is rounding.
        if value <= 1e-12 * all {
            continue;
        }
        shares[axis] = value / all;
        let farthest = vector.iter().fold(0.0f64, |far, &x| if x.abs() > far.abs() + 1e-9 { x } else { far });
        let scale = value.sqrt() * if farthest < 0.0 { -1.0 } else { 1.0 };
        points.iter_mut().zip(vector).for_each(|(point, x)| point[axis] = x * scale);
    }
    Pca { points, shares }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tfidf::SparseRow;

    fn dense(vectors: &[&[f32]]) -> Vec<SparseRow> {
        vectors.iter().map(|vector| (0..).zip(vector.iter().copied()).collect()).collect()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    }

    #[test]
    fn an_example_by_hand() {
        // Around the mean (1, 1, 1): ±(2, 2, 0) and ±(1, −1, 0). The axes are (1, 1, 0)/√2 with 16 of the variance
        // and (1, −1, 0)/√2 with 4.
        let vectors = dense(&[&[3.0, 3.0, 1.0], &[-1.0, -1.0, 1.0], &[2.0, 0.0, 1.0], &[0.0, 2.0, 1.0]]);
        let Pca { points, shares } = pca(&Gram::of(&vectors));
        close(shares[0], 0.8);
        close(shares[1], 0.2);
        let (long, short) = (8f64.sqrt(), 2f64.sqrt());
        for (point, expected) in points.iter().zip([[long, 0.0], [-long, 0.0], [0.0, short], [0.0, -short]]) {
            close(point[0].abs(), expected[0].abs());
            close(point[1].abs(), expected[1].abs());
        }
        close(points[0][0] + points[1][0], 0.0);
        close(points[2][1] + points[3][1], 0.0);
    }

    #[test]
    fn turning_vectors_changes_nothing() {
        let value = |n: usize, k: usize| ((n * 31 + k * k * 17 + n * k * 7) % 23) as f32 / 5.0;
        let straight: Vec<Vec<f32>> = (0..40).map(|n| (0..4).map(|k| value(n, k)).collect()).collect();
        // By an angle whose sine and cosine are 0.6 and 0.8, in two planes one after the other.
        let turned: Vec<Vec<f32>> = (straight.iter())
            .map(|v| {
                let (a, c) = (0.8 * v[0] - 0.6 * v[2], 0.6 * v[0] + 0.8 * v[2]);
                vec![a, 0.8 * v[1] - 0.6 * c, 0.6 * v[1] + 0.8 * c, v[3]]
            })
            .collect();
        let of = |vectors: &[Vec<f32>]| {
            let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
            pca(&Gram::of(&dense(&vectors)))
        };
        let (a, b) = (of(&straight), of(&turned));
        close(a.shares[0], b.shares[0]);
        close(a.shares[1], b.shares[1]);
        assert!(a.shares[0] > a.shares[1] && a.shares[0] + a.shares[1] < 1.0, "{:?}", a.shares);
        for (a, b) in a.points.iter().zip(&b.points) {
            assert!((a[0] - b[0]).abs() < 1e-4 && (a[1] - b[1]).abs() < 1e-4, "{a:?} {b:?}");
        }
    }

    #[test]
    fn vectors_on_a_line_or_in_one_place_have_no_second_axis() {
        let line = pca(&Gram::of(&dense(&[&[0.0, 0.0], &[1.0, 2.0], &[2.0, 4.0]])));
        close(line.shares[0], 1.0);
        assert!(line.shares[1] == 0.0 && line.points.iter().all(|point| point[1] == 0.0));
        let same = pca(&Gram::of(&dense(&[&[1.0, 2.0], &[1.0, 2.0], &[1.0, 2.0]])));
        assert_eq!(same, Pca { points: vec![[0.0; 2]; 3], shares: [0.0; 2] });
        assert!(pca(&Gram::of(&[])).points.is_empty());
    }
}
