//! Cutting text into terms: words and n-grams of words, and optionally n-grams of characters.
//!
//! A word is a maximal run of alphanumeric characters; an apostrophe between two of them belongs to it. Terms are
//! known by a 64-bit hash, so that looking one up allocates nothing; two terms with one hash would share a
//! feature, which for ten million terms happens with a probability of about one in a million.

use super::FeatureConfig;

/// Marks n-grams of characters in the vocabulary; no word contains it.
const CHARACTERS: char = '#';

/// The words of one text, in a buffer that is reused from text to text.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Words with one space before, between and after them: an n-gram of words is a slice of this, and so is an
    /// n-gram of characters that touches the edge of its word.
    buffer: String,
    spans: Vec<(usize, usize)>,
    hashes: Vec<u64>,
}

impl Words {
    /// Reads a text, at most `max_chars` characters of it.
    pub(super) fn read(&mut self, text: &str, config: &FeatureConfig) {
        self.buffer.clear();
        self.spans.clear();
        self.hashes.clear();
        self.buffer.push(' ');
        let mut start = 1;
        let mut characters = text.chars().take(config.max_chars).peekable();
        while let Some(character) = characters.next() {
            let inside = self.buffer.len() > start;
            if character.is_ascii_alphanumeric() {
                self.buffer.push(if config.lowercase { character.to_ascii_lowercase() } else { character });
            } else if character.is_alphanumeric() {
                if config.lowercase {
                    self.buffer.extend(character.to_lowercase());
                } else {
                    self.buffer.push(character);
                }
            } else if inside
                && matches!(character, '\'' | '’')
                && characters.peek().is_some_and(|next| next.is_alphanumeric())
            {
                self.buffer.push('\'');
            } else if inside {
                start = self.end_word(start);
            }
        }
        if self.buffer.len() > start {
            self.end_word(start);
        }
    }

    fn end_word(&mut self, start: usize) -> usize {
        let end = self.buffer.len();
        self.hashes.push(hash_bytes(&self.buffer.as_bytes()[start..end]));
        self.spans.push((start, end));
        self.buffer.push(' ');
        end + 1
    }

    /// Visits every term with its hash, words first.
    pub(super) fn for_each_term<'a>(&'a self, config: &FeatureConfig, mut visit: impl FnMut(u64, Term<'a>)) {
        let [shortest, longest] = config.word_ngrams;
        for first in 0..self.spans.len() {
            let mut hash = WORDS;
            for last in first..self.spans.len().min(first + longest) {
                hash = combine(hash, self.hashes[last]);
                if last + 1 - first >= shortest {
                    visit(hash, Term::Words(&self.buffer[self.spans[first].0..self.spans[last].1]));
                }
            }
        }
        let [shortest, longest] = config.char_ngrams;
        if longest == 0 {
            return;
        }
        let mut cuts = Vec::new();
        for &(start, end) in &self.spans {
            let padded = &self.buffer[start - 1..end + 1];
            cuts.clear();
            cuts.extend(padded.char_indices().map(|(at, _)| at));
            cuts.push(padded.len());
            for length in shortest..=longest {
                for cut in cuts.windows(length + 1) {
                    let gram = &padded[cut[0]..cut[length]];
                    visit(hash_characters(gram), Term::Characters(gram));
                }
            }
        }
    }
}

/// A term as found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term<'a> {
    Words(&'a str),
    Characters(&'a str),
}

impl Term<'_> {
    /// Whether the vocabulary writes it so.
    pub(super) fn is(self, written: &str) -> bool {
        match self {
            Self::Words(words) => words == written,
            Self::Characters(gram) => written.strip_prefix(CHARACTERS) == Some(gram),
        }
    }

    /// How the vocabulary writes it.
    pub(super) fn written(self) -> String {
        match self {
            Self::Words(words) => words.to_owned(),
            Self::Characters(gram) => format!("{CHARACTERS}{gram}"),
        }
    }
}

/// The hash of a term as the vocabulary writes it.
pub(super) fn hash_written(term: &str) -> u64 {
    match term.strip_prefix(CHARACTERS) {
        Some(gram) => hash_characters(gram),
        None => term.split(' ').fold(WORDS, |hash, word| combine(hash, hash_bytes(word.as_bytes()))),
    }
}

const WORDS: u64 = 0x51_7c_c1_b7_27_22_0a_95;
const GRAMS: u64 = 0xa0_76_1d_64_78_bd_64_2f;
const MULTIPLIER: u64 = 0x9e_37_79_b9_7f_4a_7c_15;

fn hash_characters(gram: &str) -> u64 {
    combine(GRAMS, hash_bytes(gram.as_bytes()))
}

fn combine(hash: u64, next: u64) -> u64 {
    let mixed = (hash.rotate_left(23) ^ next).wrapping_mul(MULTIPLIER);
    mixed ^ (mixed >> 32)
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut hash =
        chunks.iter().fold(bytes.len() as u64, |hash, &chunk| combine(hash, u64::from_le_bytes(chunk)));
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = combine(hash, u64::from_le_bytes(last));
    }
    combine(hash, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str, config: &FeatureConfig) -> Vec<String> {
        let mut words = Words::default();
        words.read(text, config);
        let mut terms = Vec::new();
        words.for_each_term(config, |hash, term| {
            let written = term.written();
            assert_eq!(hash, hash_written(&written), "{written}");
            terms.push(written);
        });
        terms
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_with_their_inner_apostrophes() {
        let config = FeatureConfig { word_ngrams: [1, 1], ..FeatureConfig::default() };
        assert_eq!(
            terms("  Don’t PANIC: 'ΑΘΗΝΑ' x2, l'été--42nd!", &config),
            ["don't", "panic", "αθηνα", "x2", "l'été", "42nd"]
        );
        assert_eq!(terms(" .,;'' ", &config), [] as [&str; 0]);
        let kept = FeatureConfig { lowercase: false, ..config };
        assert_eq!(terms("Don't", &kept), ["Don't"]);
    }

    #[test]
    fn n_grams_of_words_and_characters_are_written_apart() {
        let config = FeatureConfig { word_ngrams: [1, 2], char_ngrams: [2, 3], ..FeatureConfig::default() };
        assert_eq!(
            terms("to be", &config),
            ["to", "to be", "be", "# t", "#to", "#o ", "# to", "#to ", "# b", "#be", "#e ", "# be", "#be "]
        );
        let bigrams = FeatureConfig { word_ngrams: [2, 2], ..FeatureConfig::default() };
        assert_eq!(terms("a b c", &bigrams), ["a b", "b c"]);
    }

    #[test]
    fn only_the_start_of_a_huge_text_is_read() {
        let config = FeatureConfig { word_ngrams: [1, 1], max_chars: 5, ..FeatureConfig::default() };
        assert_eq!(terms("äb cdefgh", &config), ["äb", "cd"]);
    }

    #[test]
    fn order_matters_to_the_hash_of_a_bigram() {
        assert_ne!(hash_written("a b"), hash_written("b a"));
        assert_ne!(hash_written("ab"), hash_written("a b"));
        assert_ne!(hash_written("#ab"), hash_written("ab"));
    }
}
