//! The only writer to the terminal: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;

/// Where results and remarks go.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    quiet: bool,
}

impl Output {
    /// Output that leaves remarks out if `quiet`.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Whether people watch standard error.
    #[must_use]
    pub fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// A result, with a line end.
    pub fn line(&self, text: impl std::fmt::Display) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush()).context("cannot write to standard output")
    }

    /// A result as JSON.
    pub fn json(&self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        self.line(serde_json::to_string_pretty(value)?)
    }

    /// A remark, not part of the result.
    pub fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            // Nobody to tell if standard error is gone.
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }

    /// Something the user should look at; shown even when quiet.
    pub fn warn(&self, text: impl std::fmt::Display) {
        let _ = writeln!(io::stderr().lock(), "warning: {text}");
    }

    /// The end of the program for a reason, with what would help.
    pub fn error(&self, error: &anyhow::Error, hint: Option<&str>) {
        let mut stderr = io::stderr().lock();
        let mut said = error.to_string();
        let _ = writeln!(stderr, "error: {said}");
        for cause in error.chain().skip(1) {
            let text = cause.to_string();
            if !said.contains(&text) {
                let _ = writeln!(stderr, "  because: {text}");
                said = text;
            }
        }
        if let Some(hint) = hint {
            let _ = writeln!(stderr, "hint: {hint}");
        }
    }
}

/// A plain-text table: the first column to the left, numbers to the right.
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
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..n_columns).map(width).collect();
        for (n, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                if column > 0 {
                    line.push_str("  ");
                }
                if column < self.n_left {
                    line.push_str(cell);
                    line.push_str(&pad);
                } else {
                    line.push_str(&pad);
                    line.push_str(cell);
                }
            }
            write!(f, "{}{}", if n > 0 { "\n" } else { "" }, line.trim_end())?;
            if n == 0 {
                let rule: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
                write!(f, "\n{}", "─".repeat(rule))?;
            }
        }
        Ok(())
    }
}
