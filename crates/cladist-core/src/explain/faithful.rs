//! Whether explanations are true to the model: what becomes of a label's probability when the words that are said to
//! carry it are taken away, or left alone.
//!
//! *Comprehensiveness* is p(text) − p(text without the words), high if they mattered; *sufficiency* is
//! p(text) − p(the words alone), low if they are enough. Both are means over the shares of words in [`SHARES`], and both are
//! measured on as many random words, without which neither says anything.

use std::ops::Range;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::{Explanation, score_of};
use crate::classifier::{Classifier, Request};
use crate::document::Document;
use crate::error::Result;

/// Shares of a text's words that are taken, the most important first.
pub const SHARES: [f64; 4] = [0.05, 0.1, 0.2, 0.5];

/// Means over explanations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Faithfulness {
    /// Explanations that were looked at: those of texts with at least two words.
    pub n: usize,
    /// How much is lost without the words.
    pub comprehensiveness: f64,
    /// How much is lost with nothing but the words.
    pub sufficiency: f64,
    /// The same without random words.
    pub random_comprehensiveness: f64,
    /// The same with nothing but random words.
    pub random_sufficiency: f64,
}

impl Faithfulness {
    /// The mean of both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let n = self.n + other.n;
        let mean = |a: f64, b: f64| {
            if n == 0 { 0.0 } else { (a * self.n as f64 + b * other.n as f64) / n as f64 }
        };
        Self {
            n,
            comprehensiveness: mean(self.comprehensiveness, other.comprehensiveness),
            sufficiency: mean(self.sufficiency, other.sufficiency),
            random_comprehensiveness: mean(self.random_comprehensiveness, other.random_comprehensiveness),
            random_sufficiency: mean(self.random_sufficiency, other.random_sufficiency),
        }
    }
}

/// Checks the explanations of one document; sixteen scorings each.
pub fn check(
    classifier: &dyn Classifier,
    document: &Document,
    explanations: &[Explanation],
    seed: u64,
    request: &Request,
) -> Result<Faithfulness> {
    let all = Request { top_k: None, ..request.clone() };
    let mut sum = Faithfulness::default();
    for explanation in explanations {
        let parts: Vec<Range<usize>> = explanation.parts.iter().map(|(part, _)| part.clone()).collect();
        if parts.len() < 2 {
            continue;
        }
        let mut ranked: Vec<usize> = (0..parts.len()).collect();
        ranked.sort_by(|&a, &b| explanation.parts[b].1.total_cmp(&explanation.parts[a].1));
        let mut random: Vec<usize> = (0..parts.len()).collect();
        random.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let mut texts = Vec::new();
        for order in [&ranked, &random] {
            for share in SHARES {
                let n = ((share * parts.len() as f64).ceil() as usize).min(parts.len() - 1);
                let mut chosen = order[..n].to_vec();
                chosen.sort_unstable();
                texts.push(without(&document.text, &parts, &chosen));
                texts.push(alone(&document.text, &parts, &chosen));
            }
        }
        let documents: Vec<Document> =
            texts.into_iter().map(|text| Document { text, ..document.clone() }).collect();
        let scores = classifier.score(&documents, &all)?;
        // Of a way of ranking, 0 for what is lost without the words and 1 for what is lost with nothing else.
        let lost = |ranking: usize, which: usize| {
            let rows = (0..SHARES.len()).map(|n| 2 * (ranking * SHARES.len() + n) + which);
            let falls =
                rows.map(|row| f64::from(explanation.score - score_of(&scores, row, explanation.label)));
            falls.sum::<f64>() / SHARES.len() as f64
        };
        sum = sum.join(Faithfulness {
            n: 1,
            comprehensiveness: lost(0, 0),
            sufficiency: lost(0, 1),
            random_comprehensiveness: lost(1, 0),
            random_sufficiency: lost(1, 1),
        });
    }
    Ok(sum)
}

/// The text without parts, which are named by number, in order.
fn without(text: &str, parts: &[Range<usize>], chosen: &[usize]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for &n in chosen {
        out.push_str(&text[at..parts[n].start]);
        at = parts[n].end;
    }
    out.push_str(&text[at..]);
    out
}

/// Parts alone, with a space between.
fn alone(text: &str, parts: &[Range<usize>], chosen: &[usize]) -> String {
    chosen.iter().map(|&n| &text[parts[n].clone()]).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::Names;
    use super::super::words;
    use super::*;
    use crate::taxonomy::Taxonomy;

    #[test]
    fn the_words_that_carry_a_label_are_told_from_those_that_do_not() {
        let names = Names(Taxonomy::flat(["gold", "wheat"]));
        let text = "a gold b c d e f gold g h i j k l m n o p q r";
        let document = Document::from_text("d", text);
        let label = names.0.get("gold").unwrap();
        let explain = |good: bool| {
            let parts = words(text).into_iter().map(|word| {
                let is_name = &text[word.clone()] == "gold";
                (word, if is_name == good { 1.0 } else { 0.0 })
            });
            vec![Explanation { label, score: 0.2, parts: parts.collect() }]
        };
        let request = Request::default();
        let good = check(&names, &document, &explain(true), 1, &request).unwrap();
        // Of 20 words the first 1, 2, 4 and 10: without them .1, 0, 0, 0 are left; they alone give .1, .2, .2, .2.
        assert!((good.comprehensiveness - 0.175).abs() < 1e-6, "{good:?}");
        assert!((good.sufficiency - 0.025).abs() < 1e-6, "{good:?}");
        assert!(good.random_comprehensiveness < good.comprehensiveness);
        assert!(good.random_sufficiency > good.sufficiency);
        let bad = check(&names, &document, &explain(false), 1, &request).unwrap();
        assert!(bad.comprehensiveness.abs() < 1e-6 && (bad.sufficiency - 0.2).abs() < 1e-6, "{bad:?}");
        let both = good.join(bad);
        assert_eq!(both.n, 2);
        assert!((both.comprehensiveness - 0.0875).abs() < 1e-6);
        assert_eq!(check(&names, &Document::from_text("d", "gold"), &[], 1, &request).unwrap().n, 0);
    }
}
