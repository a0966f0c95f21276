//! Features of labels: what the documents of a label have in common.

use rayon::prelude::*;

use crate::error::Result;
use crate::job::Job;
use crate::sparse::{Lists, SparseMatrix};
use crate::text::tfidf::SparseRow;

/// Labels whose features are made at once: what is not yet in the matrix stays small.
const BLOCK: usize = 1 << 15;

/// One row per label: the sum of its documents' features, its `keep` largest ones, scaled to length 1. A label without
/// documents has an empty row.
pub fn label_features(
    rows: &SparseMatrix,
    documents_of: &Lists,
    keep: usize,
    job: &Job,
) -> Result<SparseMatrix> {
    let mut features = SparseMatrix::new(rows.n_columns());
    for first in (0..documents_of.len()).step_by(BLOCK) {
        let last = documents_of.len().min(first + BLOCK);
        let block: Vec<SparseRow> = (first as u32..last as u32)
            .into_par_iter()
            .with_min_len(16)
            .map_init(
                || (vec![0.0f32; rows.n_columns()], Vec::new()),
                |(sums, touched), label| {
                    job.cancel.check()?;
                    Ok(row(rows, documents_of.of(label), keep, sums, touched))
                },
            )
            .collect::<Result<_>>()?;
        block.into_iter().for_each(|row| features.push_row(row));
    }
    Ok(features)
}

/// The row of one label. `sums` is all zero and `touched` empty, before and after.
fn row(
    rows: &SparseMatrix,
    documents: &[u32],
    keep: usize,
    sums: &mut [f32],
    touched: &mut Vec<u32>,
) -> SparseRow {
    for &document in documents {
        let (columns, values) = rows.row(document as usize);
        for (&column, &value) in columns.iter().zip(values) {
            let sum = &mut sums[column as usize];
            // A sum may come back to 0, which is why doubles go below.
            if *sum == 0.0 {
                touched.push(column);
            }
            *sum += value;
        }
    }
    touched.sort_unstable();
    touched.dedup();
    let mut row: SparseRow = touched.iter().map(|&column| (column, sums[column as usize])).collect();
    for column in touched.drain(..) {
        sums[column as usize] = 0.0;
    }
    if row.len() > keep {
        row.select_nth_unstable_by(keep.max(1) - 1, |a, b| {
            b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0))
        });
        row.truncate(keep);
        row.sort_unstable_by_key(|&(column, _)| column);
    }
    let squares: f64 = row.iter().map(|&(_, sum)| f64::from(sum).powi(2)).sum();
    let scale = if squares > 0.0 { squares.sqrt().recip() as f32 } else { 0.0 };
    row.iter_mut().for_each(|(_, value)| *value *= scale);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(keep: usize) -> SparseMatrix {
        let rows = vec![vec![(0, 0.6), (2, 0.8)], vec![(0, 1.0)], vec![(1, -0.6), (2, -0.8)]];
        let of_document: [&[u32]; 3] = [&[0, 2], &[0], &[2]];
        let documents_of = Lists::inverted(of_document.into_iter(), 3);
        label_features(&SparseMatrix::from_rows(&rows, 3), &documents_of, keep, &Job::silent()).unwrap()
    }

    #[test]
    fn a_label_has_the_normalised_sum_of_its_documents() {
        let features = features(usize::MAX);
        assert_eq!(features.n_rows(), 3);
        let length = (1.6f32 * 1.6 + 0.64).sqrt();
        let (columns, values) = features.row(0);
        assert_eq!(columns, [0, 2]);
        assert!((values[0] - 1.6 / length).abs() < 1e-6 && (values[1] - 0.8 / length).abs() < 1e-6);
        assert_eq!(features.row(1), (&[][..], &[][..]), "no document has it");
        // 0.8 − 0.8 was touched but is nothing.
        assert_eq!(features.row(2).0, [0, 1, 2]);
        assert_eq!(features.row(2).1[2], 0.0);
    }

    #[test]
    fn of_many_features_the_largest_stay_and_have_length_one() {
        assert_eq!(features(1).row(0), (&[0][..], &[1.0][..]));
        let features = features(2);
        let (columns, values) = features.row(2);
        assert_eq!(columns, [0, 1]);
        assert!((values[0] - 0.5f32.sqrt()).abs() < 1e-6 && (values[1] + 0.5f32.sqrt()).abs() < 1e-6);
    }
}
