//! Tables of plain text that fit the terminal.

use std::fmt;

/// The narrowest column that text is wrapped in.
const NARROWEST: usize = 12;

/// Between columns.
const GAP: usize = 2;

/// A plain-text table: the first columns to the left, numbers to the right. Where it is wider than the terminal, columns
/// of text are wrapped; where that does not do, each row becomes a block of lines.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    n_left: usize,
}

impl Table {
    /// A table with these column heads, of which the first `n_left` are text.
    pub fn new<S: Into<String>>(n_left: usize, heads: impl IntoIterator<Item = S>) -> Self {
        Self { rows: vec![heads.into_iter().map(Into::into).collect()], n_left }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether there is nothing below the heads.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The table in lines of at most so many characters.
    #[must_use]
    pub fn fitted(&self, width: Option<usize>) -> String {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let natural: Vec<usize> =
            (0..n_columns).map(|column| cells(column).map(|cell| length(cell)).max().unwrap_or(0)).collect();
        match width {
            None => self.beside(&natural),
            Some(width) => match self.narrowed(natural, width) {
                Some(widths) => self.beside(&widths),
                None => self.stacked(width),
            },
        }
    }

    /// Widths that fit, the widest columns of text made narrower; none if that does not do.
    fn narrowed(&self, mut widths: Vec<usize>, width: usize) -> Option<Vec<usize>> {
        loop {
            if line_width(&widths) <= width {
                return Some(widths);
            }
            let text = widths.iter_mut().take(self.n_left);
            let widest = text.max_by_key(|width| **width).filter(|width| **width > NARROWEST)?;
            *widest -= 1;
        }
    }

    /// Row by row, cell beside cell.
    fn beside(&self, widths: &[usize]) -> String {
        let mut lines = Vec::new();
        for (n, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<String>> =
                row.iter().zip(widths).map(|(cell, &width)| wrapped(cell, width)).collect();
            for part in 0..cells.iter().map(Vec::len).max().unwrap_or(1) {
                let mut line = String::new();
                for (column, (cell, &width)) in cells.iter().zip(widths).enumerate() {
                    let text = cell.get(part).map_or("", String::as_str);
                    let pad = " ".repeat(width.saturating_sub(length(text)));
                    let gap = if column > 0 { " ".repeat(GAP) } else { String::new() };
                    let (before, after) =
                        if column < self.n_left { ("", pad.as_str()) } else { (pad.as_str(), "") };
                    line.extend([gap.as_str(), before, text, after]);
                }
                lines.push(line.trim_end().to_owned());
            }
            if n == 0 {
                lines.push("─".repeat(line_width(widths)));
            }
        }
        lines.join("\n")
    }

    /// A block for each row, with a line for each cell that has something in it.
    fn stacked(&self, width: usize) -> String {
        let Some((heads, rows)) = self.rows.split_first() else { return String::new() };
        let widest = heads.iter().map(|head| length(head)).max().unwrap_or(0).min(width / 2);
        let room = width.saturating_sub(widest + GAP).max(1);
        let mut blocks = Vec::new();
        for row in rows {
            let mut lines = Vec::new();
            for (head, cell) in heads.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
                let (names, values) = (wrapped(head, widest), wrapped(cell, room));
                for part in 0..names.len().max(values.len()) {
                    let text = |parts: &[String]| parts.get(part).cloned().unwrap_or_default();
                    let line = format!("{:widest$}{}{}", text(&names), " ".repeat(GAP), text(&values));
                    lines.push(line.trim_end().to_owned());
                }
            }
            blocks.push(lines.join("\n"));
        }
        blocks.join("\n\n")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fitted(super::width()))
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn line_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Lines of at most so many characters, broken between words where there are any.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    if length(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let space = usize::from(used > 0);
        let mut rest: Vec<char> = word.chars().collect();
        if used + space + rest.len() > width && used > 0 {
            lines.push(String::new());
            used = 0;
        }
        // A word that is wider than the column is broken anywhere.
        while rest.len() > width.max(1) {
            let tail = rest.split_off(width.max(1));
            if let Some(line) = lines.last_mut() {
                line.extend(rest);
            }
            lines.push(String::new());
            rest = tail;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
            }
            used += usize::from(used > 0) + rest.len();
            line.extend(rest);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(2, ["label", "what it is", "documents"]);
        table.row(["cats", "animals that purr, and that catch mice when they want to", "12"]);
        table.row(["a-very-long-identifier-without-a-space", "Größe", "3"]);
        table
    }

    fn widest(text: &str) -> usize {
        text.lines().map(length).max().unwrap_or(0)
    }

    #[test]
    fn a_table_that_fits_stays_as_it_is() {
        let whole = table().fitted(None);
        assert_eq!(whole.lines().count(), 4);
        assert_eq!(table().fitted(Some(widest(&whole))), whole);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let words = |text: &str| text.replace(|c: char| c.is_whitespace() || c == '─', "");
        let characters = |text: &str| {
            let mut characters: Vec<char> = words(text).chars().collect();
            characters.sort_unstable();
            characters
        };
        for width in 40..100 {
            let text = table().fitted(Some(width));
            assert!(widest(&text) <= width, "{width}\n{text}");
            assert_eq!(characters(&text), characters(&table().fitted(None)), "{width}\n{text}");
        }
    }

    #[test]
    fn rows_become_blocks_where_columns_do_not_fit() {
        assert_eq!(
            table().fitted(Some(30)),
            "label       cats\n\
             what it is  animals that purr,\n\
             \x20           and that catch\n\
             \x20           mice when they\n\
             \x20           want to\n\
             documents   12\n\
             \n\
             label       a-very-long-identi\n\
             \x20           fier-without-a-spa\n\
             \x20           ce\n\
             what it is  Größe\n\
             documents   3"
        );
    }
}
