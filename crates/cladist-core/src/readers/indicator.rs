//! Labels that are no ids but a zero or a one for every label there is (one-hot and multi-hot vectors).
//!
//! Whole numbers are good label ids, 0 and 1 among them, so only what cannot be a list of ids is refused: a list of
//! nothing but 0 and 1 that names one of them twice, as any of three or more does; and a file in which every record
//! has the two labels 0 and 1, in either order.

use super::{BadKind, write};

/// Refuses a list of zeros and ones.
pub(super) fn check(labels: &[String]) -> Result<(), BadKind> {
    if labels.iter().any(|label| label.trim().is_empty()) {
        return Err(BadKind::EmptyLabel);
    }
    let repeats = labels.len() > 2 || matches!(labels, [a, b] if a == b);
    if repeats && labels.iter().all(|label| label == "0" || label == "1") {
        return Err(BadKind::Indicator { found: write::excerpt(&labels.join(", ")) });
    }
    Ok(())
}

/// Looks for files whose records are all `0, 1` or `1, 0`.
#[derive(Debug, Default)]
pub(super) struct Indicators {
    ascending: bool,
    descending: bool,
    /// Whether a record had other labels.
    other: bool,
}

impl Indicators {
    /// Looks at the labels of one record.
    pub(super) fn see(&mut self, labels: &[String]) {
        match labels {
            [a, b] if a == "0" && b == "1" => self.ascending = true,
            [a, b] if a == "1" && b == "0" => self.descending = true,
            _ => self.other = true,
        }
    }

    /// What the records came to.
    pub(super) fn end(&self) -> Result<(), BadKind> {
        if self.ascending && self.descending && !self.other { Err(BadKind::Indicators) } else { Ok(()) }
    }
}
