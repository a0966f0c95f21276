//! The products of every two vectors.

use rayon::prelude::*;

use crate::text::tfidf::SparseRow;

/// ⟨xᵢ, xⱼ⟩ for all pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    n: usize,
    /// Row by row.
    cells: Vec<f64>,
}

impl Gram {
    /// The products of vectors scaled to length 1: cosines. A vector of zeros stays as it is.
    #[must_use]
    pub fn of_directions(vectors: &[SparseRow]) -> Self {
        let mut gram = Self::of(vectors);
        let lengths: Vec<f64> = (0..gram.n).map(|n| gram.at(n, n).sqrt()).collect();
        let inverse: Vec<f64> =
            lengths.iter().map(|length| if *length > 0.0 { length.recip() } else { 0.0 }).collect();
        let n = gram.n.max(1);
        gram.cells.par_chunks_mut(n).zip(&inverse).for_each(|(row, own)| {
            row.iter_mut().zip(&inverse).for_each(|(cell, other)| *cell *= own * other);
        });
        gram
    }

    /// The products of vectors as they are.
    #[must_use]
    pub fn of(vectors: &[SparseRow]) -> Self {
        let n = vectors.len();
        let columns = Columns::of(vectors);
        let mut cells = vec![0.0; n * n];
        cells.par_chunks_mut(n.max(1)).zip(vectors).for_each(|(row, vector)| {
            for &(column, value) in vector {
                let value = f64::from(value);
                for &(other, weight) in columns.of_column(column) {
                    row[other as usize] += value * f64::from(weight);
                }
            }
        });
        Self { n, cells }
    }

    /// The number of vectors.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// ⟨xᵢ, xⱼ⟩.
    #[must_use]
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.cells[i * self.n + j]
    }

    /// The products of one vector with all.
    #[must_use]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.cells[i * self.n..(i + 1) * self.n]
    }

    /// All products, row by row.
    pub(super) fn cells(&self) -> &[f64] {
        &self.cells
    }

    /// The products of xᵢ − x̄, where x̄ is the mean of all vectors.
    #[must_use]
    pub(super) fn centred(&self) -> Self {
        let n = self.n.max(1);
        let means: Vec<f64> =
            self.cells.par_chunks(n).map(|row| row.iter().sum::<f64>() / n as f64).collect();
        let mean = means.iter().sum::<f64>() / n as f64;
        let mut cells = self.cells.clone();
        cells.par_chunks_mut(n).zip(&means).for_each(|(row, own)| {
            row.iter_mut().zip(&means).for_each(|(cell, other)| *cell += mean - own - other);
        });
        Self { n: self.n, cells }
    }

    /// |xᵢ − xⱼ|² for all pairs, row by row.
    #[must_use]
    pub(super) fn into_distances(mut self) -> Vec<f64> {
        let squares: Vec<f64> = (0..self.n).map(|n| self.at(n, n)).collect();
        self.cells.par_chunks_mut(self.n.max(1)).zip(&squares).for_each(|(row, own)| {
            row.iter_mut()
                .zip(&squares)
                .for_each(|(cell, other)| *cell = (own + other - 2.0 * *cell).max(0.0));
        });
        self.cells
    }
}

/// Vectors by column: who has a value there.
struct Columns {
    starts: Vec<usize>,
    cells: Vec<(u32, f32)>,
}

impl Columns {
    fn of(vectors: &[SparseRow]) -> Self {
        let columns = || vectors.iter().flatten().map(|&(column, _)| column as usize);
        let mut starts = vec![0; columns().max().map_or(1, |last| last + 2)];
        columns().for_each(|column| starts[column + 1] += 1);
        for column in 1..starts.len() {
            starts[column] += starts[column - 1];
        }
        let mut next = starts.clone();
        let mut cells = vec![(0, 0.0); starts.last().copied().unwrap_or(0)];
        for (number, vector) in (0..).zip(vectors) {
            for &(column, value) in vector {
                let place = &mut next[column as usize];
                cells[*place] = (number, value);
                *place += 1;
            }
        }
        Self { starts, cells }
    }

    fn of_column(&self, column: u32) -> &[(u32, f32)] {
        &self.cells[self.starts[column as usize]..self.starts[column as usize + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_dense_and_sparse_vectors() {
        let vectors = vec![vec![(0, 3.0), (1, 4.0)], vec![(1, 2.0), (7, 5.0)], Vec::new()];
        let gram = Gram::of(&vectors);
        assert_eq!(gram.row(0), [25.0, 8.0, 0.0]);
        assert_eq!(gram.row(1), [8.0, 29.0, 0.0]);
        assert_eq!(gram.row(2), [0.0; 3]);
        assert_eq!(gram.clone().into_distances()[1], 9.0 + 4.0 + 25.0);
        let directions = Gram::of_directions(&vectors);
        assert!((directions.at(0, 0) - 1.0).abs() < 1e-15 && directions.at(2, 2) == 0.0);
        assert!((directions.at(0, 1) - 8.0 / (5.0 * 29f64.sqrt())).abs() < 1e-15);
        assert_eq!(Gram::of(&[]).n(), 0);
        assert_eq!(Gram::of_directions(&[Vec::new()]).row(0), [0.0]);
    }

    #[test]
    fn centred_products_are_those_of_centred_vectors() {
        // The mean is (2, 2): (−1, 0), (1, −2), (0, 2).
        let vectors = vec![vec![(0, 1.0), (1, 2.0)], vec![(0, 3.0)], vec![(0, 2.0), (1, 4.0)]];
        let centred = Gram::of(&vectors).centred();
        for (row, expected) in (0..3).zip([[1.0, -1.0, 0.0], [-1.0, 5.0, -4.0], [0.0, -4.0, 4.0]]) {
            for (found, expected) in centred.row(row).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
            }
        }
    }
}
