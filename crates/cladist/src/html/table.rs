//! Tables of pages: cells are text, and the template escapes them.

/// Rows after which a table scrolls in its own box.
const LONG: usize = 30;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A column, which is text to the left or numbers to the right.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) is_text: bool,
}

/// A column of text.
pub(super) fn text(name: impl Into<String>) -> Column {
    Column { name: name.into(), is_text: true }
}

/// A column of numbers.
pub(super) fn numbers(name: impl Into<String>) -> Column {
    Column { name: name.into(), is_text: false }
}

impl Table {
    pub(super) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The cells of a row, each with whether it is text.
    pub(super) fn cells<'a>(&'a self, row: &'a [String]) -> impl Iterator<Item = (&'a str, bool)> {
        row.iter().zip(&self.columns).map(|(cell, column)| (cell.as_str(), column.is_text))
    }

    pub(super) fn is_long(&self) -> bool {
        self.rows.len() > LONG
    }
}
