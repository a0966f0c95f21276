//! One ticket: somebody with a mood, one to four matters, and what people write around them.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use super::grammar::{Grammar, Topic};
use super::noise;

/// Labels nobody writes about in anger.
const FRIENDLY: [&str; 2] = ["praise", "suggestion"];

/// The mood of a writer: it decides phrases, length and typing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Polite,
    Angry,
    Confused,
    Chatty,
    Plain,
}

impl Tone {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        match rng.random_range(0..100) {
            0..24 => Self::Polite,
            24..46 => Self::Angry,
            46..60 => Self::Confused,
            60..76 => Self::Chatty,
            _ => Self::Plain,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Polite => "polite",
            Self::Angry => "angry",
            Self::Confused => "confused",
            Self::Chatty => "chatty",
            Self::Plain => "plain",
        }
    }

    /// How much the writer likes to say beyond the matter, from 0 to 1.
    const fn wordiness(self) -> f64 {
        match self {
            Self::Polite => 0.6,
            Self::Angry | Self::Confused => 0.5,
            Self::Chatty => 0.85,
            Self::Plain => 0.15,
        }
    }
}

/// How many matters a ticket has: usually one or two. A writer who is vague about the first rarely has a second.
pub(super) fn n_matters(vague: bool, rng: &mut ChaCha8Rng) -> usize {
    match (rng.random_range(0..100), vague) {
        (0..75, true) | (0..44, false) => 1,
        (75.., true) | (44..80, false) => 2,
        (80..95, false) => 3,
        _ => 4,
    }
}

/// Writes a ticket on `topics`, the first being the reason for writing. `all` admits held-out sentences.
pub(super) fn write(grammar: &Grammar, topics: &[&Topic], all: bool, rng: &mut ChaCha8Rng) -> String {
    let mut tone = Tone::draw(rng);
    if topics.iter().any(|topic| FRIENDLY.contains(&topic.label)) && tone == Tone::Angry {
        tone = Tone::Chatty;
    }
    let mut draft = Draft { grammar, tone, filled: BTreeMap::new(), text: String::new() };
    let long = topics.len() > 2 || rng.random_bool(tone.wordiness() / 2.0);

    if rng.random_bool(0.2 + tone.wordiness() * 0.7) {
        draft.toned("opener", rng);
        if long && tone == Tone::Polite {
            draft.paragraph();
        }
    }
    if rng.random_bool(tone.wordiness() * 0.45) {
        draft.part("context", rng);
    }
    let story = long && rng.random_bool(tone.wordiness() * 0.8);
    let afterwards = rng.random_bool(0.5);
    if story && !afterwards {
        draft.part("story", rng);
        draft.paragraph();
    }
    for (n, topic) in topics.iter().enumerate() {
        if n > 0 {
            if long && rng.random_bool(0.4) {
                draft.paragraph();
            }
            if rng.random_bool(0.75) {
                draft.part("transition", rng);
            }
        }
        draft.state(topic.matter(all, rng), rng);
        let chatter = tone.wordiness() * if n == 0 { 0.9 } else { 0.4 };
        if rng.random_bool(chatter) {
            let n_details = if long && n == 0 { 2 } else { 1 };
            for detail in topic.details.sample(rng, n_details) {
                draft.say(detail, rng);
            }
        }
        if rng.random_bool(tone.wordiness() * 0.2) {
            draft.toned("emoji", rng);
        }
        if n == 0 && rng.random_bool(0.05 + tone.wordiness() * 0.25) {
            draft.part("misleading", rng);
        }
    }
    if story && afterwards {
        draft.paragraph();
        draft.part("aftermath", rng);
    }
    if rng.random_bool(tone.wordiness() * 0.3) {
        draft.part("context", rng);
    }
    if rng.random_bool(0.25) {
        draft.part("question", rng);
    }
    if rng.random_bool(0.15 + tone.wordiness() * 0.5) {
        if long {
            draft.paragraph();
        }
        draft.toned("closing", rng);
        if tone != Tone::Plain && rng.random_bool(0.5) {
            draft.sign(rng);
        }
    }
    noise::retype(draft.text.trim(), tone, rng)
}

struct Draft<'g> {
    grammar: &'g Grammar,
    tone: Tone,
    /// Slots and their values in this ticket.
    filled: BTreeMap<String, String>,
    text: String,
}

impl Draft<'_> {
    fn paragraph(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str("\n\n");
        }
    }

    fn toned(&mut self, part: &str, rng: &mut ChaCha8Rng) {
        self.part(&format!("{part}.{}", self.tone.name()), rng);
    }

    fn part(&mut self, part: &str, rng: &mut ChaCha8Rng) {
        if let Some(phrase) = self.grammar.phrase(part, rng) {
            self.say(phrase, rng);
        }
    }

    /// Says a complete sentence. Who is not in a hurry also writes it like one.
    fn state(&mut self, sentence: &str, rng: &mut ChaCha8Rng) {
        let hurried = self.tone == Tone::Plain;
        if hurried || sentence.starts_with('{') {
            self.say(sentence, rng);
        } else {
            self.say(&upper_first(sentence), rng);
        }
        if !hurried && self.text.ends_with(char::is_alphanumeric) {
            self.text.push('.');
        }
    }

    fn say(&mut self, sentence: &str, rng: &mut ChaCha8Rng) {
        let written = sentence;
        let sentence = self.grammar.fill(sentence, &mut self.filled, rng);
        // "Also, the bus": after a comma or a bare word the sentence goes on.
        let goes_on = self.text.ends_with(|c: char| c == ',' || c.is_lowercase()) && self.text.len() > 2;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push(' ');
        }
        // A slot brings the case its value has within a sentence: `the 14`, but `Town Hall`.
        let with_slot =
            written.starts_with('{') && !written.split('}').next().unwrap_or_default().contains('|');
        match (goes_on, with_slot) {
            (true, false) => self.text.push_str(&lower_first(&sentence)),
            (false, true) => self.text.push_str(&upper_first(&sentence)),
            _ => self.text.push_str(&sentence),
        }
    }

    fn sign(&mut self, rng: &mut ChaCha8Rng) {
        let name = self.grammar.fill("{name}", &mut self.filled, rng);
        let separator = if self.text.ends_with(['.', '!', '?']) { "\n" } else { ",\n" };
        self.text.push_str(separator);
        self.text.push_str(&name);
    }
}

/// Lower-cases the first letter unless the word is more than a capitalised beginning (`I`, `QR`).
fn lower_first(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || (first, second) == ('A', ' ') => {
            first.to_lowercase().chain(sentence.chars().skip(1)).collect()
        }
        _ => sentence.to_owned(),
    }
}

fn upper_first(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_sentence_goes_on_in_lower_case_but_names_and_i_stay() {
        assert_eq!(lower_first("The bus"), "the bus");
        assert_eq!(lower_first("I wait"), "I wait");
        assert_eq!(lower_first("A man"), "a man");
        assert_eq!(lower_first("QR code"), "QR code");
        assert_eq!(lower_first(""), "");
        assert_eq!(upper_first("the 14"), "The 14");
        assert_eq!(upper_first(""), "");
    }

    #[test]
    fn a_vague_writer_has_at_most_two_matters() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        assert!((0..500).all(|_| n_matters(true, &mut rng) <= 2));
        let counts: Vec<usize> = (0..500).map(|_| n_matters(false, &mut rng)).collect();
        for n in 1..=4 {
            assert!(counts.contains(&n));
        }
        assert!(counts.iter().all(|n| (1..=4).contains(n)));
    }

    #[test]
    fn every_tone_has_its_own_phrases() {
        let grammar = Grammar::embedded();
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for tone in [Tone::Polite, Tone::Angry, Tone::Confused, Tone::Chatty, Tone::Plain] {
            for part in ["opener", "closing"] {
                assert!(grammar.phrase(&format!("{part}.{}", tone.name()), &mut rng).is_some());
            }
        }
        for part in ["context", "story", "aftermath", "transition", "misleading", "question"] {
            assert!(grammar.phrase(part, &mut rng).is_some(), "{part}");
        }
    }
}
