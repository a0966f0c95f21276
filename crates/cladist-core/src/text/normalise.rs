//! Taking out of a text what a model need not see: numbers, punctuation, stop-words, case.
//!
//! This is the preprocessing of layer-guided classification: numeric tokens, punctuation and stop-words go before
//! the text is cut into word pieces. Everything is off by default, and then the text is not even copied.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::document::Document;

/// What to take out of each text. Normalising twice is the same as once.
///
/// ```
/// use cladist_core::text::normalise::Normalise;
/// let all = Normalise { lowercase: true, drop_numbers: true, drop_punctuation: true, drop_stopwords: true };
/// assert_eq!(all.apply("The 3.5% rise (in 2024) of bus-fares: don't panic!"), "rise bus-fares panic");
/// assert_eq!(Normalise::default().apply("As it is."), "As it is.");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Normalise {
    /// Lower-case every letter.
    pub lowercase: bool,
    /// Drop words made of digits and number signs, such as `1,000.50`, `12%` or `(1994)`.
    pub drop_numbers: bool,
    /// Replace punctuation and symbols by white space, but for apostrophes and hyphens between letters or digits and for
    /// points and commas between digits.
    pub drop_punctuation: bool,
    /// Drop common English function words.
    pub drop_stopwords: bool,
}

impl Normalise {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        *self == Self::default()
    }

    /// Normalises the text of a document; one of features is left alone.
    pub fn document(&self, document: &mut Document) {
        if !self.is_identity() && document.features.is_none() {
            document.text = self.apply(&document.text).into_owned();
        }
    }

    /// Documents with their texts normalised; the documents themselves if nothing is asked for. No text is copied
    /// before it is normalised.
    #[must_use]
    pub fn documents<'a>(&self, documents: &'a [Document]) -> Cow<'a, [Document]> {
        if self.is_identity() {
            return Cow::Borrowed(documents);
        }
        let of = |Document { id, text, labels, features }: &Document| Document {
            id: id.clone(),
            text: if features.is_none() { self.apply(text).into_owned() } else { text.clone() },
            labels: labels.clone(),
            features: features.clone(),
        };
        Cow::Owned(documents.iter().map(of).collect())
    }

    /// The text without what was to go. If words or punctuation went, white space becomes single spaces.
    #[must_use]
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Self { lowercase, drop_numbers, drop_punctuation, drop_stopwords } = *self;
        if self.is_identity() {
            return Cow::Borrowed(text);
        }
        let mut text = Cow::Borrowed(text);
        if lowercase {
            text = Cow::Owned(text.to_lowercase());
        }
        if drop_punctuation {
            text = Cow::Owned(without_punctuation(&text));
        }
        if drop_numbers || drop_punctuation || drop_stopwords {
            let mut kept = String::with_capacity(text.len());
            let goes =
                |word: &str| (drop_numbers && is_numeric(word)) || (drop_stopwords && is_stopword(word));
            for word in text.split_whitespace().filter(|word| !goes(word)) {
                if !kept.is_empty() {
                    kept.push(' ');
                }
                kept.push_str(word);
            }
            text = Cow::Owned(kept);
        }
        text
    }
}

fn without_punctuation(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let joins = match c {
            '\'' | '’' | '-' | '‐' | '‑' => before.is_alphanumeric() && after.is_alphanumeric(),
            '.' | ',' => before.is_numeric() && after.is_numeric(),
            _ => false,
        };
        kept.push(if is_punctuation(c) && !joins { ' ' } else { c });
        before = c;
    }
    kept
}

/// Punctuation and symbols of the blocks that texts use; combining marks and letters of any script stay.
fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    !c.is_alphanumeric()
        && matches!(c,
            '\u{a1}'..='\u{bf}' | '×' | '÷' // Latin-1
            | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' // general punctuation
            | '\u{20a0}'..='\u{20bf}' // currency
            | '\u{2100}'..='\u{2bff}' // letter-like symbols, arrows, mathematics, shapes
            | '\u{3001}'..='\u{3004}' | '\u{3008}'..='\u{3020}' | '\u{3030}' // CJK
            | '\u{fe30}'..='\u{fe6b}' | '\u{ff01}'..='\u{ff65}' | '\u{ffe0}'..='\u{ffee}' // full width
            | '\u{60c}' | '\u{61b}' | '\u{61f}' | '\u{66a}'..='\u{66d}' | '\u{6d4}' // Arabic
            | '\u{5be}' | '\u{5c0}' | '\u{5c3}' | '\u{5f3}' | '\u{5f4}' // Hebrew
            | '\u{964}' | '\u{965}' | '\u{37e}' | '\u{387}' | '\u{589}'
        )
}

fn bare(word: &str) -> &str {
    word.trim_matches(is_punctuation)
}

fn is_numeric(word: &str) -> bool {
    let word = bare(word);
    !word.is_empty() && word.chars().all(|c| c.is_numeric() || is_punctuation(c))
}

fn is_stopword(word: &str) -> bool {
    let word = bare(word);
    // No stop-word is longer, and most words need not be lower-cased to see that.
    const LONGEST: usize = 10;
    if word.is_empty() || word.len() > LONGEST + 2 {
        return false;
    }
    let word = word.to_lowercase().replace('’', "'");
    STOPWORDS.binary_search(&word.as_str()).is_ok()
}

/// English function words, sorted: articles, pronouns, prepositions, conjunctions, auxiliaries and their short forms.
#[rustfmt::skip]
static STOPWORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "although", "am", "among", "an",
    "and", "any", "are", "aren't", "as", "at", "be", "because", "been", "before", "being", "below",
    "between", "both", "but", "by", "can", "can't", "cannot", "could", "couldn't", "did", "didn't", "do",
    "does", "doesn't", "doing", "don't", "down", "during", "each", "either", "else", "ever", "every", "few",
    "for", "from", "further", "had", "hadn't", "has", "hasn't", "have", "haven't", "having", "he", "he'd",
    "he'll", "he's", "her", "here", "hers", "herself", "him", "himself", "his", "how", "however", "i",
    "i'd", "i'll", "i'm", "i've", "if", "in", "into", "is", "isn't", "it", "it's", "its", "itself", "just",
    "let's", "may", "me", "might", "more", "most", "must", "my", "myself", "neither", "no", "nor", "not",
    "of", "off", "on", "once", "only", "onto", "or", "other", "ought", "our", "ours", "ourselves", "out",
    "over", "own", "per", "quite", "rather", "same", "shall", "she", "she'd", "she'll", "she's", "should",
    "shouldn't", "since", "so", "some", "such", "than", "that", "that's", "the", "their", "theirs", "them",
    "themselves", "then", "there", "there's", "these", "they", "they'd", "they'll", "they're", "they've",
    "this", "those", "though", "through", "thus", "to", "too", "toward", "towards", "under", "until", "up",
    "upon", "us", "very", "via", "was", "wasn't", "we", "we'd", "we'll", "we're", "we've", "were",
    "weren't", "what", "when", "where", "whether", "which", "while", "who", "whom", "whose", "why", "will",
    "with", "within", "without", "won't", "would", "wouldn't", "yet", "you", "you'd", "you'll", "you're",
    "you've", "your", "yours", "yourself", "yourselves",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn options() -> impl Strategy<Value = Normalise> {
        prop::array::uniform4(any::<bool>()).prop_map(
            |[lowercase, drop_numbers, drop_punctuation, drop_stopwords]| Normalise {
                lowercase,
                drop_numbers,
                drop_punctuation,
                drop_stopwords,
            },
        )
    }

    #[test]
    fn the_stopwords_are_sorted_and_short() {
        assert!(STOPWORDS.is_sorted());
        assert!(STOPWORDS.iter().all(|word| word.len() <= 10));
        assert!(STOPWORDS.iter().all(|word| is_stopword(word)));
    }

    #[test]
    fn each_option_does_its_own_work() {
        let text = "The U.S. paid 1,000.50 € (10%) in 1994–96, Ärger’s no-go; 日本、東京。";
        let only = |set: fn(&mut Normalise)| {
            let mut options = Normalise::default();
            set(&mut options);
            options.apply(text).into_owned()
        };
        assert_eq!(
            only(|n| n.lowercase = true),
            "the u.s. paid 1,000.50 € (10%) in 1994–96, ärger’s no-go; 日本、東京。"
        );
        assert_eq!(only(|n| n.drop_numbers = true), "The U.S. paid € in Ärger’s no-go; 日本、東京。");
        assert_eq!(
            only(|n| n.drop_punctuation = true),
            "The U S paid 1,000.50 10 in 1994 96 Ärger’s no-go 日本 東京"
        );
        assert_eq!(
            only(|n| n.drop_stopwords = true),
            "U.S. paid 1,000.50 € (10%) 1994–96, Ärger’s no-go; 日本、東京。"
        );
    }

    #[test]
    fn a_stopword_goes_with_its_punctuation_and_in_any_case() {
        let options = Normalise { drop_stopwords: true, ..Normalise::default() };
        assert_eq!(options.apply("THE (and), they’re isn't bus"), "bus");
    }

    #[test]
    fn documents_are_copied_only_if_something_is_asked_for() {
        let documents = vec![Document::from_text("1", "The BUS")];
        assert!(
            matches!(Normalise::default().documents(&documents), Cow::Borrowed(same) if same == documents)
        );
        let lower = Normalise { lowercase: true, ..Normalise::default() };
        let expected = [Document::from_text("1", "the bus")];
        assert_eq!(*lower.documents(&documents), expected);
    }

    proptest! {
        #[test]
        fn normalising_twice_is_normalising_once(options in options(), text in ".{0,60}") {
            let once = options.apply(&text).into_owned();
            prop_assert_eq!(options.apply(&once).into_owned(), once);
        }

        #[test]
        fn normalising_words_twice_is_normalising_them_once(
            options in options(),
            text in "[a-cA-C0-9 .,'’\n%(İΣς-]{0,40}",
        ) {
            let once = options.apply(&text).into_owned();
            prop_assert_eq!(options.apply(&once).into_owned(), once);
        }

        #[test]
        fn nothing_asked_for_borrows(text in ".{0,30}") {
            prop_assert!(matches!(Normalise::default().apply(&text), Cow::Borrowed(same) if same == text));
        }
    }
}
