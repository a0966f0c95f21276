//! What hurried thumbs do to a text: slips, shortcuts, missing capitals and shouting.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::ticket::Tone;

const ROWS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];

const SHORTCUTS: [(&str, &str); 16] = [
    ("please", "pls"),
    ("thanks", "thx"),
    ("because", "cos"),
    ("you", "u"),
    ("your", "ur"),
    ("minutes", "mins"),
    ("about", "abt"),
    ("with", "w/"),
    ("without", "w/o"),
    ("people", "ppl"),
    ("before", "b4"),
    ("yesterday", "yday"),
    ("station", "stn"),
    ("number", "nr"),
    ("tomorrow", "tmrw"),
    ("and", "&"),
];

/// How a tone treats its keyboard; all chances per ticket unless said otherwise.
struct Habits {
    /// Chance of a slip per word, in tickets that have slips at all.
    slip: f64,
    lowercase: f64,
    shortcuts: f64,
    no_apostrophes: f64,
    shout: f64,
    no_last_stop: f64,
}

impl Habits {
    const fn of(tone: Tone) -> Self {
        let (slip, lowercase, shortcuts, no_apostrophes, shout, no_last_stop) = match tone {
            Tone::Polite => (0.01, 0.0, 0.0, 0.02, 0.0, 0.1),
            Tone::Angry => (0.04, 0.1, 0.1, 0.25, 0.3, 0.2),
            Tone::Confused => (0.05, 0.1, 0.05, 0.2, 0.03, 0.3),
            Tone::Chatty => (0.03, 0.1, 0.25, 0.2, 0.05, 0.3),
            Tone::Plain => (0.05, 0.4, 0.4, 0.4, 0.0, 0.6),
        };
        Self { slip, lowercase, shortcuts, no_apostrophes, shout, no_last_stop }
    }
}

/// Writes `text` again the way somebody of that tone would have typed it.
pub(super) fn retype(text: &str, tone: Tone, rng: &mut ChaCha8Rng) -> String {
    let habits = Habits::of(tone);
    let mut text = text.to_owned();
    if rng.random_bool(habits.shout) {
        text = shout(&text, rng);
    }
    if rng.random_bool(habits.shortcuts) {
        text = map_words(&text, |word| {
            let short = SHORTCUTS.iter().find(|(long, _)| *long == word)?.1;
            rng.random_bool(0.8).then(|| short.to_owned())
        });
    }
    if rng.random_bool(0.5) {
        text = map_words(&text, |word| (rng.random_bool(habits.slip)).then(|| slip(word, rng)));
    }
    if rng.random_bool(habits.no_apostrophes) {
        text = text.replace('\'', "");
    }
    if rng.random_bool(habits.lowercase) {
        text = text.to_lowercase();
    }
    if rng.random_bool(habits.no_last_stop) && text.ends_with('.') {
        text.pop();
    }
    text
}

/// Applies `change` to every run of letters.
fn map_words(text: &str, mut change: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = rest.starts_with(char::is_alphabetic);
        let end = rest.find(|c: char| c.is_alphabetic() != is_word).unwrap_or(rest.len());
        let (run, tail) = rest.split_at(end);
        match is_word.then(|| change(run)).flatten() {
            Some(changed) => out.push_str(&changed),
            None => out.push_str(run),
        }
        rest = tail;
    }
    out
}

/// Swaps two letters, drops one, doubles one, or hits the key beside it. The first letter and short words stay.
fn slip(word: &str, rng: &mut ChaCha8Rng) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    if letters.len() < 4 {
        return word.to_owned();
    }
    let at = rng.random_range(1..letters.len() - 1);
    match rng.random_range(0..4u8) {
        0 => letters.swap(at, at + 1),
        1 => drop(letters.remove(at)),
        2 => letters.insert(at, letters[at]),
        _ => letters[at] = beside(letters[at], rng),
    }
    letters.into_iter().collect()
}

fn beside(letter: char, rng: &mut ChaCha8Rng) -> char {
    for row in ROWS {
        if let Some(at) = row.find(letter) {
            let keys = row.as_bytes();
            let left = rng.random_bool(0.5) && at > 0 || at + 1 == keys.len();
            return char::from(keys[if left { at - 1 } else { at + 1 }]);
        }
    }
    letter
}

/// Puts one sentence into capitals, or turns full stops into exclamation marks.
fn shout(text: &str, rng: &mut ChaCha8Rng) -> String {
    if rng.random_bool(0.5) {
        return text.replace(". ", "! ").replace('?', "??");
    }
    let mut sentences: Vec<String> = text.split_inclusive(['.', '!', '?']).map(str::to_owned).collect();
    let chosen = rng.random_range(0..sentences.len().max(1));
    if let Some(sentence) = sentences.get_mut(chosen) {
        *sentence = sentence.to_uppercase();
    }
    sentences.concat()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_slip_changes_a_word_by_one_key() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut changed = 0;
        for _ in 0..200 {
            let typed = slip("station", &mut rng);
            assert!(typed.starts_with('s'));
            assert!((6..=8).contains(&typed.len()), "{typed}");
            changed += usize::from(typed != "station");
        }
        assert!(changed > 180, "{changed}");
        assert_eq!(slip("bus", &mut rng), "bus");
    }

    #[test]
    fn numbers_punctuation_and_other_scripts_survive_the_word_mapping() {
        let text = "Line 14, €4.80 — 🙈 größer?\n\nend.";
        assert_eq!(map_words(text, |_| None), text);
        assert_eq!(map_words(text, |_| Some("x".into())), "x 14, €4.80 — 🙈 x?\n\nx.");
    }

    #[test]
    fn every_tone_types_in_its_own_way() {
        let text = "I don't know why. Please call because it is late.";
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut lower = |tone| (0..200).filter(|_| retype(text, tone, &mut rng).starts_with("i ")).count();
        assert_eq!(lower(Tone::Polite), 0);
        assert!(lower(Tone::Plain) > 40);
        let shouted =
            (0..200).filter(|_| retype(text, Tone::Angry, &mut rng).contains("PLEASE CALL")).count();
        assert!(shouted > 0);
    }

    #[test]
    fn the_last_key_of_a_row_has_only_one_neighbour() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for _ in 0..20 {
            assert_eq!(beside('p', &mut rng), 'o');
            assert_eq!(beside('q', &mut rng), 'w');
            assert_eq!(beside('é', &mut rng), 'é');
        }
    }
}
