//! Learning word pieces from texts.
//!
//! Byte-pair encoding (Sennrich, Haddow and Birch, 2016) over the words of the corpus with their counts: symbols
//! begin as single characters, marked `##` inside words, and the pair that is most often side by side is joined
//! until the vocabulary is full. Equal counts are decided by the order in which symbols came to be, which itself is
//! fixed, so the result depends on the texts alone. (The trainer of the `tokenizers` crate numbers symbols in the
//! order of a hash table.)

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use cladist_core::{Cancel, Error as CoreError};
use rayon::prelude::*;
use serde_json::Value;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
};

use super::cut::{floor, last_gap};
use super::files::{Bert, Names, word_level, word_piece};
use crate::error::{Error, Result};

const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
/// Longer words become the unknown token.
const MAX_CHARACTERS: usize = 100;
/// Texts are read in parts of so many bytes: alignments take many times the memory of a text.
const PART: usize = 1 << 16;

/// Learns a vocabulary and gives a `tokenizer.json` that uses it.
pub(super) fn learn(
    texts: &[&str],
    vocab_size: usize,
    min_frequency: usize,
    names: &Names,
    cancel: &Cancel,
) -> Result<Value> {
    if !(16..=1_000_000).contains(&vocab_size) {
        return Err(CoreError::setting("vocab_size", "16 to 1000000", vocab_size).into());
    }
    let words = count_words(texts, cancel)?;
    let room = vocab_size - SPECIAL.len();
    let tokens = merge(&words, room, min_frequency.max(1) as u64, cancel)?;
    let special = SPECIAL.into_iter().map(str::to_owned);
    Ok(word_piece(special.chain(tokens).zip(0u32..).collect(), &Bert::default(), names))
}

/// A `tokenizer.json` of whole words: the most frequent, each at least `min_frequency` times in the texts.
pub(super) fn words(
    texts: &[&str],
    n_words: usize,
    min_frequency: usize,
    names: &Names,
    cancel: &Cancel,
) -> Result<Value> {
    let counts = count_words(texts, cancel)?;
    let mut words: Vec<(String, u64)> =
        counts.into_iter().filter(|(_, count)| *count >= min_frequency as u64).collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    words.truncate(n_words);
    let special = SPECIAL.into_iter().map(str::to_owned);
    let all = special.chain(words.into_iter().map(|(word, _)| word));
    Ok(word_level(&all.zip(0u32..).collect(), names))
}

fn count_words(texts: &[&str], cancel: &Cancel) -> Result<BTreeMap<String, u64>> {
    let counts = |text: &&str| -> Result<HashMap<String, u64>> {
        let mut counts = HashMap::new();
        let mut rest: &str = text;
        while !rest.is_empty() {
            cancel.check()?;
            let limit = floor(rest, PART);
            let gap = if limit < rest.len() { last_gap(rest, 0, limit).filter(|&at| at > 0) } else { None };
            let (part, after) = rest.split_at(gap.unwrap_or(limit));
            count_part(part, &mut counts).map_err(|error| Error::Tokenizer { problem: error.to_string() })?;
            rest = after;
        }
        Ok(counts)
    };
    let add = |mut all: HashMap<String, u64>, more: HashMap<String, u64>| {
        for (word, count) in more {
            *all.entry(word).or_default() += count;
        }
        Ok(all)
    };
    // Sums of whole numbers: in whatever order they are taken, they come out the same.
    let all = texts.par_iter().map(counts).try_reduce(HashMap::new, add)?;
    Ok(all.into_iter().collect())
}

fn count_part(part: &str, counts: &mut HashMap<String, u64>) -> tokenizers::Result<()> {
    let mut normalized = NormalizedString::from(part);
    BertNormalizer::default().normalize(&mut normalized)?;
    let mut words = PreTokenizedString::from(normalized);
    BertPreTokenizer.pre_tokenize(&mut words)?;
    for (word, _, _) in words.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
        if !word.is_empty() && word.chars().count() <= MAX_CHARACTERS {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    Ok(())
}

/// At most `room` tokens: the most frequent characters, in the order of Unicode, then joined pieces.
///
/// Characters take half of the room at most; words with others are left out.
fn merge(
    words: &BTreeMap<String, u64>,
    room: usize,
    min_frequency: u64,
    cancel: &Cancel,
) -> Result<Vec<String>> {
    let mut frequency: BTreeMap<String, u64> = BTreeMap::new();
    for (word, count) in words {
        for symbol in symbols(word) {
            *frequency.entry(symbol).or_default() += count;
        }
    }
    let mut alphabet: Vec<(String, u64)> = frequency.into_iter().collect();
    alphabet.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    alphabet.truncate(room / 2);
    let mut tokens: Vec<String> = alphabet.into_iter().map(|(symbol, _)| symbol).collect();
    tokens.sort_unstable();
    let mut ids: BTreeMap<String, u32> = tokens.iter().cloned().zip(0..).collect();

    let spelled = |(word, count): (&String, &u64)| {
        let spelling: Option<Vec<u32>> = symbols(word).map(|symbol| ids.get(&symbol).copied()).collect();
        Some((spelling?, *count))
    };
    let mut pairs = Pairs::new(words.iter().filter_map(spelled).collect());
    while tokens.len() < room
        && let Some((left, right)) = pairs.most_frequent(min_frequency)
    {
        cancel.check()?;
        let end = &tokens[right as usize];
        let joined = format!("{}{}", tokens[left as usize], end.strip_prefix("##").unwrap_or(end));
        // The same piece can come about in two ways.
        let id = *ids.entry(joined).or_insert_with_key(|joined| {
            tokens.push(joined.clone());
            tokens.len() as u32 - 1
        });
        pairs.join((left, right), id);
    }
    Ok(tokens)
}

fn symbols(word: &str) -> impl Iterator<Item = String> {
    word.chars().enumerate().map(|(i, c)| if i == 0 { c.to_string() } else { format!("##{c}") })
}

type Pair = (u32, u32);

/// How often symbols stand side by side.
struct Pairs {
    words: Vec<(Vec<u32>, u64)>,
    counts: HashMap<Pair, u64>,
    /// Words that have, or once had, the pair.
    places: HashMap<Pair, BTreeSet<usize>>,
    /// Counts that were true once; a pair whose count has grown is here again with the new one.
    queue: BinaryHeap<(u64, Reverse<Pair>)>,
}

impl Pairs {
    fn new(words: Vec<(Vec<u32>, u64)>) -> Self {
        let mut pairs =
            Self { words, counts: HashMap::new(), places: HashMap::new(), queue: BinaryHeap::new() };
        for i in 0..pairs.words.len() {
            pairs.add(i);
        }
        pairs.queue = pairs.counts.iter().map(|(&pair, &count)| (count, Reverse(pair))).collect();
        pairs
    }

    fn add(&mut self, word: usize) {
        let (symbols, count) = &self.words[word];
        for pair in symbols.windows(2).map(|pair| (pair[0], pair[1])) {
            *self.counts.entry(pair).or_default() += count;
            self.places.entry(pair).or_default().insert(word);
        }
    }

    fn most_frequent(&mut self, at_least: u64) -> Option<Pair> {
        while let Some((count, Reverse(pair))) = self.queue.pop() {
            let now = self.counts.get(&pair).copied().unwrap_or(0);
            if now == count && count >= at_least {
                return Some(pair);
            }
            if now < count && now >= at_least {
                self.queue.push((now, Reverse(pair)));
            }
        }
        None
    }

    fn join(&mut self, joined: Pair, id: u32) {
        let mut changed = BTreeSet::new();
        for word in self.places.remove(&joined).unwrap_or_default() {
            let (symbols, count) = &mut self.words[word];
            for pair in symbols.windows(2).map(|pair| (pair[0], pair[1])) {
                if let Some(all) = self.counts.get_mut(&pair) {
                    *all -= *count;
                }
            }
            let mut kept = 0;
            let mut i = 0;
            while i < symbols.len() {
                let here = symbols.get(i + 1).is_some_and(|&next| (symbols[i], next) == joined);
                symbols[kept] = if here { id } else { symbols[i] };
                kept += 1;
                i += if here { 2 } else { 1 };
            }
            symbols.truncate(kept);
            changed.extend(symbols.windows(2).map(|pair| (pair[0], pair[1])));
            self.add(word);
        }
        for pair in changed {
            let count = self.counts.get(&pair).copied().unwrap_or(0);
            self.queue.push((count, Reverse(pair)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|&(word, count)| (word.to_owned(), count)).collect()
    }

    #[test]
    fn the_most_frequent_pairs_are_joined_first() {
        let words = words(&[("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)]);
        let tokens = merge(&words, 40, 1, &Cancel::default()).unwrap();
        let joined: Vec<&str> =
            tokens.iter().skip_while(|token| *token != "##es").map(String::as_str).collect();
        // ##e ##s and ##s ##t are both there 9 times: ##e comes first. Then ##es ##t 9, ##o ##w and l ##o 7.
        assert_eq!(joined[..4], ["##es", "##est", "##ow", "low"]);
        assert!(tokens.iter().any(|token| token == "newest"), "{tokens:?}");
    }

    #[test]
    fn rare_pairs_are_not_joined() {
        let words = words(&[("ab", 3), ("cd", 2)]);
        assert_eq!(merge(&words, 20, 3, &Cancel::default()).unwrap(), ["##b", "##d", "a", "c", "ab"]);
    }

    #[test]
    fn repeated_characters_are_joined_from_the_left() {
        let tokens = merge(&words(&[("aaaa", 4)]), 5, 1, &Cancel::default()).unwrap();
        assert_eq!(tokens, ["##a", "a", "##aa", "aaa", "aaaa"]);
    }

    #[test]
    fn characters_leave_room_for_pieces() {
        let text: String = ('a'..='z').chain('а'..='я').collect();
        let tokens = merge(&words(&[(&text, 1), ("ab", 9)]), 10, 1, &Cancel::default()).unwrap();
        assert_eq!(tokens.len(), 6, "{tokens:?}");
        assert!(tokens.contains(&"ab".to_owned()), "{tokens:?}");
    }

    #[test]
    fn a_tiny_vocabulary_is_refused() {
        let error = learn(&["a"], 3, 1, &Names::new(&[]), &Cancel::default()).unwrap_err();
        assert_eq!(error.to_string(), "`vocab_size` must be 16 to 1000000: 3");
    }

    #[test]
    fn words_are_numbered_by_how_frequent_they_are() {
        let json = super::words(&["b a, b c", "a B d d d [CLS]"], 3, 2, &Names::new(&[]), &Cancel::default())
            .unwrap();
        let vocabulary = json["model"]["vocab"].as_object().unwrap();
        let at = |word: &str| vocabulary.get(word).and_then(Value::as_u64);
        assert_eq!((at("b"), at("d"), at("a"), at("c")), (Some(5), Some(6), Some(7), None));
    }

    #[test]
    fn long_texts_are_counted_in_parts() {
        let text = "ab cd ".repeat(30_000);
        assert_eq!(
            count_words(&[&text, "AB"], &Cancel::default()).unwrap(),
            words(&[("ab", 30_001), ("cd", 30_000)])
        );
    }

    #[test]
    fn learning_stops_when_it_is_asked_to() {
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(merge(&words(&[("low", 5)]), 40, 1, &cancel).is_err());
        let names = Names::new(&[]);
        for error in [learn(&["low"], 40, 1, &names, &cancel), super::words(&["low"], 3, 1, &names, &cancel)]
        {
            assert!(matches!(error, Err(Error::Core(CoreError::Cancelled))));
        }
    }
}
