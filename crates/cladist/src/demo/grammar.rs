//! The grammar of the demo tickets: what people complain about, what they put around it, and how placeholders
//! are filled.
//!
//! The files under `assets/demo` hold one sentence per line in `[sections]`; `# ` starts a comment. `{a|b}` is a
//! choice, `{slot}` a value from `slots.txt`; both nest. The files are part of the program, so reading them
//! cannot fail at run time: the tests of this module refuse a file with a mistake in it.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

const COMPLAINTS: [&str; 6] = [
    include_str!("../../assets/demo/complaints/bikes.txt"),
    include_str!("../../assets/demo/complaints/transit.txt"),
    include_str!("../../assets/demo/complaints/cars.txt"),
    include_str!("../../assets/demo/complaints/money.txt"),
    include_str!("../../assets/demo/complaints/digital.txt"),
    include_str!("../../assets/demo/complaints/people.txt"),
];
const PHRASES: &str = include_str!("../../assets/demo/phrases.txt");
const SLOTS: &str = include_str!("../../assets/demo/slots.txt");

/// Every n-th sentence on a matter is kept out of the training split, so that dev and test also ask for what was
/// never read word for word.
const HELD_OUT: usize = 4;

/// What can be said about one label.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) label: &'static str,
    /// How often the label is the reason for a ticket, relative to the others.
    pub(super) frequency: u32,
    /// Labels that people tend to mention in the same ticket.
    pub(super) companions: Vec<&'static str>,
    /// Sentences that state the matter.
    pub(super) matters: Vec<&'static str>,
    /// Sentences that make sense only after one of `matters`.
    pub(super) details: Vec<&'static str>,
}

impl Topic {
    /// A sentence that states the matter; the held-out ones only if `all`.
    pub(super) fn matter(&self, all: bool, rng: &mut ChaCha8Rng) -> &'static str {
        loop {
            let n = rng.random_range(0..self.matters.len());
            if all || n % HELD_OUT != HELD_OUT - 1 {
                return self.matters[n];
            }
        }
    }
}

/// All topics, phrases and slots.
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) topics: Vec<Topic>,
    phrases: BTreeMap<&'static str, Vec<&'static str>>,
    slots: BTreeMap<&'static str, Vec<&'static str>>,
}

impl Grammar {
    /// Reads the embedded files.
    pub(super) fn embedded() -> Self {
        let topics = COMPLAINTS.into_iter().flat_map(sections).map(topic).collect();
        let plain = |text| sections(text).map(|section| (section.name, section.lines)).collect();
        Self { topics, phrases: plain(PHRASES), slots: plain(SLOTS) }
    }

    /// A phrase for a part of a ticket, or nothing if the part does not exist for that tone.
    pub(super) fn phrase(&self, part: &str, rng: &mut ChaCha8Rng) -> Option<&'static str> {
        self.phrases.get(part)?.choose(rng).copied()
    }

    /// Replaces choices and slots, innermost first. A slot already in `filled` keeps its value, so that a ticket
    /// speaks of one bike, one stop and one time.
    pub(super) fn fill(
        &self,
        sentence: &str,
        filled: &mut BTreeMap<String, String>,
        rng: &mut ChaCha8Rng,
    ) -> String {
        let mut text = sentence.to_owned();
        while let Some(close) = text.find('}') {
            let Some(open) = text[..close].rfind('{') else { break };
            let inside = text[open + 1..close].to_owned();
            let value = if inside.contains('|') {
                let choices: Vec<&str> = inside.split('|').collect();
                choices[rng.random_range(0..choices.len())].to_owned()
            } else if let Some(value) = filled.get(&inside) {
                value.clone()
            } else {
                let pool = inside.split('.').next().unwrap_or_default();
                // The way from a stop to the same stop is not worth a ticket.
                let fresh = |value: &&&str| filled.get(pool).is_none_or(|first| first != **value);
                let values: Vec<&str> =
                    self.slots.get(pool).into_iter().flatten().filter(fresh).copied().collect();
                let value = values.choose(rng).copied().unwrap_or_default().chars();
                let value: String = value.map(|c| if c == '#' { digit(rng) } else { c }).collect();
                // A value with slots of its own is final only once those are filled.
                if !value.contains('{') {
                    filled.insert(inside, value.clone());
                }
                value
            };
            text.replace_range(open..=close, &value);
        }
        text
    }
}

fn digit(rng: &mut ChaCha8Rng) -> char {
    char::from(b'0' + rng.random_range(0..10u8))
}

struct Section {
    name: &'static str,
    /// What follows the name on its line.
    note: &'static str,
    lines: Vec<&'static str>,
}

fn sections(text: &'static str) -> impl Iterator<Item = Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        if let Some((name, note)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            sections.push(Section { name, note: note.trim(), lines: Vec::new() });
        } else if let Some(section) = sections.last_mut() {
            section.lines.push(line);
        }
    }
    sections.into_iter()
}

fn topic(section: Section) -> Topic {
    let (frequency, companions) = section.note.split_once('+').unwrap_or((section.note, ""));
    let (details, matters): (Vec<_>, Vec<_>) =
        section.lines.into_iter().partition(|line| line.starts_with("+ "));
    Topic {
        label: section.name,
        frequency: frequency.trim().parse().unwrap_or_default(),
        companions: companions.split_whitespace().collect(),
        matters,
        details: details.into_iter().map(|line| line.trim_start_matches("+ ")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;

    fn every_line() -> impl Iterator<Item = &'static str> {
        COMPLAINTS.into_iter().chain([PHRASES, SLOTS]).flat_map(str::lines)
    }

    #[test]
    fn every_line_belongs_to_a_section_and_no_section_comes_twice() {
        let mut names = BTreeSet::new();
        for text in COMPLAINTS.into_iter().chain([PHRASES, SLOTS]) {
            let first = text.lines().find(|line| !line.is_empty() && !line.starts_with("# ")).unwrap();
            assert!(first.starts_with('['), "`{first}` stands before any section");
            for section in sections(text) {
                assert!(names.insert(section.name), "`{}` comes twice", section.name);
                assert!(section.lines.len() >= 3, "`{}` is nearly empty", section.name);
            }
        }
    }

    #[test]
    fn every_frequency_is_a_positive_number_and_every_topic_has_a_readable_header() {
        for topic in Grammar::embedded().topics {
            assert!(topic.frequency > 0, "`{}` has no frequency", topic.label);
            assert!(!topic.companions.is_empty(), "`{}` has no companions", topic.label);
        }
    }

    #[test]
    fn every_placeholder_exists_and_every_brace_is_closed() {
        let grammar = Grammar::embedded();
        for line in every_line().filter(|line| !line.starts_with("# ")) {
            let mut text = line.to_owned();
            while let Some(close) = text.find('}') {
                let open = text[..close].rfind('{').unwrap_or_else(|| panic!("`{line}` closes too often"));
                let inside = &text[open + 1..close];
                if !inside.contains('|') && !inside.is_empty() {
                    let (pool, number) = inside.split_once('.').unwrap_or((inside, "2"));
                    assert!(
                        grammar.slots.contains_key(pool),
                        "`{line}` asks for the unknown slot `{inside}`"
                    );
                    assert_eq!(number, "2", "`{line}` numbers a slot in an unknown way");
                }
                text.replace_range(open..=close, "");
            }
            assert!(!text.contains('{'), "`{line}` leaves a brace open");
        }
    }

    #[test]
    fn no_line_is_longer_than_a_tweet_or_holds_a_control_character() {
        for line in every_line() {
            assert!(line.chars().count() <= 280, "{line}");
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }

    #[test]
    fn no_sentence_is_written_twice() {
        let mut seen = BTreeSet::new();
        for topic in Grammar::embedded().topics {
            for line in topic.matters {
                assert!(seen.insert(line), "`{line}` comes twice");
            }
        }
    }

    #[test]
    fn a_slot_keeps_its_value_within_a_ticket_and_a_numbered_one_has_its_own() {
        let grammar = Grammar::embedded();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut filled = BTreeMap::new();
        let first = grammar.fill("{stop} {bike}", &mut filled, &mut rng);
        assert_eq!(grammar.fill("{stop} {bike}", &mut filled, &mut rng), first);
        assert!(!first.contains(['{', '}', '#']), "{first}");
        for _ in 0..100 {
            filled.remove("stop.2");
            assert_ne!(grammar.fill("{stop.2}", &mut filled, &mut rng), filled["stop"]);
        }
        assert_eq!(filled.len(), 3);
    }

    #[test]
    fn choices_nest() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let grammar = Grammar::embedded();
        let texts: BTreeSet<String> =
            (0..50).map(|_| grammar.fill("x {a|b {c|d}}", &mut BTreeMap::new(), &mut rng)).collect();
        assert_eq!(texts.into_iter().collect::<Vec<_>>(), ["x a", "x b c", "x b d"]);
    }

    #[test]
    fn held_out_sentences_appear_only_on_request() {
        let grammar = Grammar::embedded();
        let topic = &grammar.topics[0];
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let kept: BTreeSet<_> = (0..500).map(|_| topic.matter(false, &mut rng)).collect();
        let all: BTreeSet<_> = (0..500).map(|_| topic.matter(true, &mut rng)).collect();
        assert_eq!(all.len(), topic.matters.len());
        assert_eq!(kept.len(), topic.matters.len() - topic.matters.len() / HELD_OUT);
        assert!(kept.is_subset(&all));
    }
}
