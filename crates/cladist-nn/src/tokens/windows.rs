//! Windows of many documents in one list.

use super::Sequence;

/// Windows, each with the number of its document.
pub(crate) type Windows<'a> = [(usize, &'a Sequence)];

/// All windows, each with the number of its document.
pub(crate) fn numbered(documents: &[Vec<Sequence>]) -> Vec<(usize, &Sequence)> {
    let windows = documents.iter().enumerate();
    windows.flat_map(|(n, windows)| windows.iter().map(move |window| (n, window))).collect()
}
