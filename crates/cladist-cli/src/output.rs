//! The only writer to the terminal: results to standard output, everything else to standard error.

mod table;

use std::borrow::Cow;
use std::io::{self, IsTerminal, StdoutLock, Write};

use anyhow::Context;

pub use table::Table;

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
        let mut stdout = stdout()?;
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
        let _ = writeln!(io::stderr().lock(), "{}", message(error, hint));
    }
}

/// Standard output, unless there is none.
pub fn stdout() -> anyhow::Result<StdoutLock<'static>> {
    if cladist_kernels::process::stdout_was_closed() {
        return Err(io::Error::other("it is closed")).context("cannot write to standard output");
    }
    Ok(io::stdout().lock())
}

/// Ends the program when memory runs out; nothing here allocates.
pub fn out_of_memory(bytes: usize) -> ! {
    let _ = writeln!(io::stderr(), "error: out of memory: {bytes} bytes more are needed");
    std::process::exit(i32::from(crate::error::OUT_OF_MEMORY))
}

/// An error with its causes, and what would help.
#[must_use]
pub fn message(error: &anyhow::Error, hint: Option<&str>) -> String {
    let mut said = error.to_string();
    let mut lines = vec![format!("error: {said}")];
    for cause in error.chain().skip(1) {
        let text = cause.to_string();
        // Parsers end in a line break.
        let text = text.trim_end();
        if !said.contains(text) {
            lines.push(format!("  because: {text}"));
            said = text.to_owned();
        }
    }
    lines.extend(hint.map(|hint| format!("hint: {hint}")));
    lines.join("\n")
}

/// Characters of a line of standard output: as `COLUMNS` says, or as wide as the terminal; no limit elsewhere.
fn width() -> Option<usize> {
    width_of(terminal_size::terminal_size_of(io::stdout()))
}

/// A line of standard error as far as it fits the terminal.
#[must_use]
pub fn fitted(line: &str) -> Cow<'_, str> {
    let width = width_of(terminal_size::terminal_size_of(io::stderr()));
    match width.and_then(|width| line.char_indices().nth(width).map(|_| width)) {
        Some(width) => Cow::Owned(line.chars().take(width.saturating_sub(1)).chain(['…']).collect()),
        None => Cow::Borrowed(line),
    }
}

fn width_of(terminal: Option<(terminal_size::Width, terminal_size::Height)>) -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    asked.or_else(|| terminal.map(|(width, _)| usize::from(width.0))).filter(|&width| width > 0)
}
