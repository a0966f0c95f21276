//! Which words a label rests on.

use cladist_core::Taxonomy;
use cladist_core::explain::Explanation;
use serde::Serialize;

/// A document with what each model says of it.
#[derive(Debug, Clone, Serialize)]
pub struct Explained {
    /// The document.
    pub id: String,
    /// Its text.
    pub text: String,
    /// One or two models.
    pub models: Vec<ByModel>,
}

/// What one model says.
#[derive(Debug, Clone, Serialize)]
pub struct ByModel {
    /// The model as it was named.
    pub run: String,
    /// The labels, the best first.
    pub labels: Vec<ByLabel>,
}

/// Why a label got its probability.
#[derive(Debug, Clone, Serialize)]
pub struct ByLabel {
    /// The label.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its probability.
    pub score: f32,
    /// The words, in the order of the text.
    pub words: Vec<Word>,
}

/// A word, or several together.
#[derive(Debug, Clone, Serialize)]
pub struct Word {
    /// As it stands in the text.
    pub text: String,
    /// The first character, counted from 0.
    pub start: usize,
    /// The character after the last.
    pub end: usize,
    /// By how much the probability falls without it, or what it adds to the logit, as the method has it.
    pub importance: f32,
}

impl ByLabel {
    /// An explanation with places counted in characters.
    #[must_use]
    pub fn new(found: &Explanation, text: &str, taxonomy: &Taxonomy) -> Self {
        let (mut bytes, mut characters) = (0, 0);
        let words = found.parts.iter().map(|(range, importance)| {
            let length = |from: usize, to: usize| text[from..to].chars().count();
            let start = characters + length(bytes, range.start);
            let end = start + length(range.start, range.end);
            (bytes, characters) = (range.end, end);
            Word { text: text[range.clone()].to_owned(), start, end, importance: *importance }
        });
        Self {
            words: words.collect(),
            id: taxonomy.id(found.label).to_owned(),
            name: taxonomy.name(found.label).to_owned(),
            score: found.score,
        }
    }
}

/// What importance counts, and with it the scale of its colours. The scale is fixed: the same colour says the same in
/// every document, for every label and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// By how much the probability falls without the words.
    Probability,
    /// What the words add to the logit.
    Logit,
    /// The share of the label's attention that the words get.
    Attention,
}

impl Measure {
    /// In words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Probability => "by how much the label's probability falls without the word",
            Self::Logit => "what the word adds to the label's logit",
            Self::Attention => "the word's share of the label's attention",
        }
    }

    /// Where colours begin and where they grow stronger. A probability changes by at most a quarter of the change of its
    /// logit, so the steps of logits are four times as wide.
    #[must_use]
    pub fn steps(self) -> [f32; 3] {
        match self {
            Self::Probability | Self::Attention => [0.01, 0.05, 0.2],
            Self::Logit => [0.04, 0.2, 0.8],
        }
    }

    /// How strong the colour of a word is, from 0 (none) to 3.
    #[must_use]
    pub fn strength(self, importance: f32) -> usize {
        self.steps().iter().filter(|step| importance.abs() >= **step).count()
    }
}

impl Word {
    /// The importance as people write it: three decimals, or a power of ten where they would show nothing.
    #[must_use]
    pub fn amount(&self) -> String {
        match self.importance {
            0.0 => "0".to_owned(),
            small if small.abs() < 5e-4 => format!("{small:+.0e}"),
            value => format!("{value:+.3}"),
        }
    }

    /// The words that matter, those that matter most first.
    #[must_use]
    pub fn strongest(words: &[Self]) -> Vec<&Self> {
        let mut best: Vec<&Self> = words.iter().filter(|word| word.importance != 0.0).collect();
        best.sort_by(|a, b| b.importance.abs().total_cmp(&a.importance.abs()));
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_importance_is_pale_and_keeps_its_digits() {
        let strengths = [0.0, 0.004, -0.01, 0.1, -0.9].map(|value| Measure::Probability.strength(value));
        assert_eq!(strengths, [0, 0, 1, 2, 3]);
        assert_eq!(Measure::Logit.strength(0.1), 1);
        let word = |importance| Word { text: String::new(), start: 0, end: 0, importance };
        let amounts = [0.0, 0.004, -0.0006, 0.000_03, -0.5].map(|importance| word(importance).amount());
        assert_eq!(amounts, ["0", "+0.004", "-0.001", "+3e-5", "-0.500"]);
        let words = [0.1, 0.0, -0.3].map(word);
        let strongest: Vec<f32> = Word::strongest(&words).iter().map(|word| word.importance).collect();
        assert_eq!(strongest, [-0.3, 0.1]);
    }
}
