//! Sparse rows in three flat arrays.

use std::cmp::Reverse;

use crate::text::tfidf::SparseRow;

/// A matrix of sparse rows.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseMatrix {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
    n_columns: usize,
}

impl SparseMatrix {
    /// No rows yet.
    #[must_use]
    pub fn new(n_columns: usize) -> Self {
        Self { starts: vec![0], columns: Vec::new(), values: Vec::new(), n_columns }
    }

    /// A matrix of given rows.
    #[must_use]
    pub fn from_rows(rows: &[SparseRow], n_columns: usize) -> Self {
        let mut matrix = Self::new(n_columns);
        matrix.columns.reserve_exact(rows.iter().map(Vec::len).sum());
        matrix.values.reserve_exact(matrix.columns.capacity());
        for row in rows {
            matrix.push_row(row.iter().copied());
        }
        matrix
    }

    /// Appends a row; columns must be below the number of columns.
    pub fn push_row(&mut self, row: impl IntoIterator<Item = (u32, f32)>) {
        for (column, value) in row {
            self.columns.push(column);
            self.values.push(value);
        }
        self.starts.push(self.columns.len());
    }

    /// Rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Columns, used or not.
    #[must_use]
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Columns and values of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let range = self.starts[row]..self.starts[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Some rows, with only the columns that occur in them; and which columns these are. Columns are numbered anew,
    /// the most frequent first: what is looked up most then lies close together. So they do not ascend in a row.
    pub(crate) fn select(&self, rows: &[u32], places: &mut ColumnPlaces) -> (Self, Vec<u32>) {
        let n_values = rows.iter().map(|&row| self.row(row as usize).0.len()).sum();
        let places = &mut places.0;
        places.resize(self.n_columns, 0);
        let mut used = Vec::new();
        for &row in rows {
            for &column in self.row(row as usize).0 {
                let count = &mut places[column as usize];
                if *count == 0 {
                    used.push(column);
                }
                *count += 1;
            }
        }
        used.sort_unstable_by_key(|&column| (Reverse(places[column as usize]), column));
        for (place, &column) in (0..).zip(&used) {
            places[column as usize] = place;
        }
        let mut selected = Self {
            starts: Vec::with_capacity(rows.len() + 1),
            columns: Vec::with_capacity(n_values),
            values: Vec::with_capacity(n_values),
            n_columns: used.len(),
        };
        selected.starts.push(0);
        for &row in rows {
            let (columns, values) = self.row(row as usize);
            selected.columns.extend(columns.iter().map(|&column| places[column as usize]));
            selected.values.extend_from_slice(values);
            selected.starts.push(selected.columns.len());
        }
        for &column in &used {
            places[column as usize] = 0;
        }
        (selected, used)
    }
}

/// Where columns go in a selection: a buffer to be reused, all zero between uses.
#[derive(Debug, Default)]
pub(crate) struct ColumnPlaces(Vec<u32>);

/// Lists of numbers in two flat arrays: the documents of each label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lists {
    starts: Vec<usize>,
    items: Vec<u32>,
}

impl Lists {
    /// Turns pairs of item → lists around: list → items, ascending.
    ///
    /// # Panics
    /// If an item names a list that is not below `n_lists`.
    pub fn inverted<'a>(lists_of_item: impl Iterator<Item = &'a [u32]> + Clone, n_lists: usize) -> Self {
        let mut starts = vec![0; n_lists + 1];
        for &list in lists_of_item.clone().flatten() {
            starts[list as usize + 1] += 1;
        }
        for list in 0..n_lists {
            starts[list + 1] += starts[list];
        }
        let mut items = vec![0; starts[n_lists]];
        let mut next = starts.clone();
        for (item, lists) in (0..).zip(lists_of_item) {
            for &list in lists {
                items[next[list as usize]] = item;
                next[list as usize] += 1;
            }
        }
        Self { starts, items }
    }

    /// The number of lists.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items of a list.
    ///
    /// # Panics
    /// If there is no such list.
    #[must_use]
    pub fn of(&self, list: u32) -> &[u32] {
        &self.items[self.starts[list as usize]..self.starts[list as usize + 1]]
    }

    /// The union of some lists, ascending.
    pub(crate) fn union(&self, lists: &[u32]) -> Vec<u32> {
        let mut union: Vec<u32> = lists.iter().flat_map(|&list| self.of(list)).copied().collect();
        union.sort_unstable();
        union.dedup();
        union
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_drops_empty_columns_and_leaves_its_buffer_clean() {
        let rows = vec![vec![(1, 1.0), (4, 2.0)], vec![(0, 3.0)], vec![(4, 5.0), (6, 6.0)]];
        let matrix = SparseMatrix::from_rows(&rows, 8);
        let mut places = ColumnPlaces::default();
        for _ in 0..2 {
            let (selected, used) = matrix.select(&[2, 0], &mut places);
            assert_eq!(used, [4, 1, 6]);
            assert_eq!(selected.n_columns(), 3);
            assert_eq!(selected.row(0), (&[0, 2][..], &[5.0, 6.0][..]));
            assert_eq!(selected.row(1), (&[1, 0][..], &[1.0, 2.0][..]));
        }
    }

    #[test]
    fn lists_turn_around() {
        let of_document: [&[u32]; 4] = [&[0, 2], &[], &[2], &[0]];
        let lists = Lists::inverted(of_document.into_iter(), 3);
        assert_eq!(lists.of(0), [0, 3]);
        assert_eq!(lists.of(1), [] as [u32; 0]);
        assert_eq!(lists.of(2), [0, 2]);
        assert_eq!(lists.union(&[2, 0, 1]), [0, 2, 3]);
    }
}
