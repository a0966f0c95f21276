//! Tokenising no more of a text than is needed.
//!
//! A text is taken in chunks that end before white space, where no tokenizer in use joins anything: the pieces of
//! the chunks are the pieces of the text. Where there is no white space, the pieces near the end of a chunk are
//! given up, and the next chunk begins with the first word that was given up. Only a single word longer than a chunk
//! is not seen whole; its pieces are those of its beginning (or, from the end, of its end), and the rest is passed
//! over.

use super::tokenizer::Tokenizer;
use crate::error::Result;

/// Bytes of ordinary text per piece, rounded up: too few means another chunk, too many means wasted work.
const BYTES_PER_PIECE: usize = 8;
/// Chunks of text that give no pieces are looked through this many times over, then the text counts as ended.
const PATIENCE: usize = 16;

/// A token of the text itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) id: u32,
    /// Bytes of the original text, white space before or after included where the tokenizer includes it.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Which word of the chunk it is of.
    pub(super) word: u32,
}

impl Tokenizer {
    /// The size of chunks in which about `n` pieces are looked for.
    pub(super) fn chunk(&self, n: usize) -> usize {
        n.saturating_mul(BYTES_PER_PIECE).saturating_add(256).max(4 * self.margin)
    }

    /// The first `n` pieces of a text or somewhat more, and whether they are all that it has.
    pub(super) fn head(&self, text: &str, n: usize, chunk: usize) -> Result<(Vec<Piece>, bool)> {
        let mut pieces = Vec::new();
        let (mut from, mut spent) = (0, 0);
        loop {
            if self.skips_spaces {
                from = text.len() - text[from..].trim_start_matches(is_space).len();
            }
            if from >= text.len() {
                return Ok((pieces, true));
            }
            if pieces.len() >= n || spent >= chunk.saturating_mul(PATIENCE) {
                return Ok((pieces, false));
            }
            let limit = floor(text, from.saturating_add(chunk));
            let first = from + text[from..].chars().next().map_or(0, char::len_utf8);
            let gap = if limit == text.len() { Some(limit) } else { last_gap(text, first, limit) };
            let to = gap.unwrap_or(limit);
            spent += to - from;
            let found = self.pieces(text, from, to)?;
            if gap.is_some() {
                pieces.extend(found);
                from = to;
                continue;
            }
            let certain = |piece: &Piece| piece.start > from && piece.start + self.margin <= to;
            let again = word_starts(&found).rfind(|&i| certain(&found[i]));
            match again {
                Some(i) => {
                    from = found[i].start;
                    pieces.extend_from_slice(&found[..i]);
                }
                None => {
                    pieces.extend(found);
                    from = first_gap(text, to, text.len()).unwrap_or(text.len());
                }
            }
        }
    }

    /// The last `n` pieces of a text or somewhat more, in the order of the text.
    pub(super) fn tail(&self, text: &str, n: usize, chunk: usize) -> Result<Vec<Piece>> {
        let mut chunks: Vec<Vec<Piece>> = Vec::new();
        let (mut to, mut spent, mut n_found) = (text.len(), 0, 0);
        loop {
            if self.skips_spaces {
                to = text[..to].trim_end_matches(is_space).len();
            }
            if to == 0 || n_found >= n || spent >= chunk.saturating_mul(PATIENCE) {
                break;
            }
            let limit = ceil(text, to.saturating_sub(chunk));
            let gap = if limit == 0 { Some(0) } else { first_gap(text, limit, to) };
            let from = gap.unwrap_or(limit);
            spent += to - from;
            let mut found = self.pieces(text, from, to)?;
            if gap.is_some() {
                to = from;
            } else {
                let again = word_starts(&found).find(|&i| found[i].start >= from + self.margin);
                match again {
                    Some(i) => {
                        to = found[i].start;
                        found.drain(..i);
                    }
                    None => to = last_gap(text, 0, from).unwrap_or(0),
                }
            }
            n_found += found.len();
            chunks.push(found);
        }
        Ok(chunks.into_iter().rev().flatten().collect())
    }
}

/// Where the pieces of a new word begin.
fn word_starts(pieces: &[Piece]) -> impl DoubleEndedIterator<Item = usize> {
    (0..pieces.len()).filter(|&i| i == 0 || pieces[i].word != pieces[i - 1].word)
}

/// White space, but for the control characters among it that BERT deletes, joining what they stand between.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || (c.is_whitespace() && !c.is_control())
}

/// The last white space at `from` to `to`, both included, that a word follows.
pub(super) fn last_gap(text: &str, from: usize, to: usize) -> Option<usize> {
    let stop = to + text[to..].chars().next().map_or(0, char::len_utf8);
    let mut before_word = text[stop..].chars().next().is_some_and(|c| !is_space(c));
    for (i, c) in text.get(from..stop)?.char_indices().rev() {
        if is_space(c) && before_word {
            return Some(from + i);
        }
        before_word = !is_space(c);
    }
    None
}

/// The first white space at `from` or later, but before `to`, that a word follows.
fn first_gap(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut space = None;
    for (i, c) in text[from..].char_indices() {
        if !is_space(c) && space.is_some() {
            return space;
        }
        if from + i >= to {
            return None;
        }
        space = is_space(c).then_some(from + i);
    }
    None
}

/// The nearest boundary between characters at `at` or before.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// The nearest boundary between characters at `at` or after.
pub(super) fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_the_last_white_space_before_a_word() {
        let text = "ab  cd\u{3000}é ";
        assert_eq!(last_gap(text, 0, 3), Some(3));
        assert_eq!(last_gap(text, 0, 2), None);
        assert_eq!(last_gap(text, 0, 6), Some(6));
        assert_eq!(last_gap(text, 4, 5), None);
        assert_eq!(last_gap(text, 0, text.len()), Some(6));
        assert_eq!(first_gap(text, 0, 9), Some(3));
        assert_eq!(first_gap(text, 0, 3), None);
        assert_eq!(first_gap(text, 0, 4), Some(3));
        assert_eq!(first_gap(text, 4, text.len()), Some(6));
        assert_eq!(first_gap(text, 9, text.len()), None);
    }

    #[test]
    fn characters_are_not_cut() {
        let text = "aé€";
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 9].map(|at| floor(text, at)), [0, 1, 1, 3, 3, 3, 6, 6]);
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 9].map(|at| ceil(text, at)), [0, 1, 3, 3, 6, 6, 6, 6]);
    }
}
