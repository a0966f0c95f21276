//! What a classifier looks at, by taking it away: the importance of a word is how much a label's probability falls when
//! the word is left out. It needs nothing of the classifier but its scores, and costs one scoring per word.

mod faithful;

use std::ops::Range;

use crate::classifier::{Classifier, Request};
use crate::document::Document;
use crate::error::Result;
use crate::scores::Scores;
use crate::taxonomy::LabelId;

pub use faithful::{Faithfulness, SHARES, check};

/// Texts scored at once.
const BATCH: usize = 256;

/// Why a label got its probability.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The label.
    pub label: LabelId,
    /// Its probability.
    pub score: f32,
    /// Parts of the text, by bytes, in order, each with its importance; with [`leave_one_out`] that is p(text) − p(text
    /// without the part).
    pub parts: Vec<(Range<usize>, f32)>,
}

/// Words of a text, by bytes: runs of letters, digits and marks within words.
#[must_use]
pub fn words(text: &str) -> Vec<Range<usize>> {
    let inner = |c: char| c.is_alphanumeric() || c == '_' || c == '\'' || c == '’';
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (inner(c), start) {
            (true, None) if c.is_alphanumeric() => start = Some(at),
            (false, Some(first)) => {
                words.push(first..at);
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// At most `most` parts of a text: its words, or as many words together as it takes.
#[must_use]
pub fn parts(text: &str, most: usize) -> Vec<Range<usize>> {
    let words = words(text);
    let together = words.len().div_ceil(most.max(1)).max(1);
    words.chunks(together).map(|words| words[0].start..words[words.len() - 1].end).collect()
}

/// What a document is explained with: the labels asked for, or the `top_k` best of the request (3 if it has none), each
/// with its probability.
pub fn scored(
    classifier: &dyn Classifier,
    document: &Document,
    labels: &[LabelId],
    request: &Request,
) -> Result<Vec<(LabelId, f32)>> {
    let all = Request { top_k: None, ..request.clone() };
    let whole = classifier.score(std::slice::from_ref(document), &all)?;
    Ok(if labels.is_empty() {
        whole.row(0).iter().take(request.top_k.unwrap_or(3)).copied().collect()
    } else {
        labels.iter().map(|&label| (label, score_of(&whole, 0, label))).collect()
    })
}

/// Leaves each part of a document out in turn; scores the document as often as it has parts, and once whole.
///
/// Without `labels`, the `top_k` best of the request (3 if it has none) are explained.
pub fn leave_one_out(
    classifier: &dyn Classifier,
    document: &Document,
    labels: &[LabelId],
    most_parts: usize,
    request: &Request,
) -> Result<Vec<Explanation>> {
    let all = Request { top_k: None, ..request.clone() };
    let parts = parts(&document.text, most_parts);
    let mut explanations: Vec<Explanation> = scored(classifier, document, labels, request)?
        .into_iter()
        .map(|(label, score)| Explanation { label, score, parts: Vec::new() })
        .collect();
    for batch in parts.chunks(BATCH) {
        let without = |part: &Range<usize>| Document {
            text: format!("{}{}", &document.text[..part.start], &document.text[part.end..]),
            ..document.clone()
        };
        let documents: Vec<Document> = batch.iter().map(without).collect();
        let scores = classifier.score(&documents, &all)?;
        for explanation in &mut explanations {
            let fall = |n: usize| explanation.score - score_of(&scores, n, explanation.label);
            let falls: Vec<f32> = (0..batch.len()).map(fall).collect();
            explanation.parts.extend(batch.iter().cloned().zip(falls));
        }
    }
    Ok(explanations)
}

fn score_of(scores: &Scores, row: usize, label: LabelId) -> f32 {
    scores.row(row).iter().find(|(other, _)| *other == label).map_or(0.0, |(_, score)| *score)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::taxonomy::Taxonomy;

    /// p(label) = 0.1 for each time its name is in the text.
    pub(crate) struct Names(pub(crate) Taxonomy);

    impl Classifier for Names {
        fn taxonomy(&self) -> &Taxonomy {
            &self.0
        }

        fn score(&self, documents: &[Document], request: &Request) -> Result<Scores> {
            assert!(request.top_k.is_none());
            let row = |document: &Document| {
                let count = |label| document.text.matches(self.0.id(label)).count() as f32 / 10.0;
                self.0.labels().map(|label| (label, count(label))).collect()
            };
            Ok(Scores::from_rows(documents.iter().map(row)))
        }
    }

    /// A label, its score, and parts of the text with their importance.
    type Found = (String, f32, Vec<(String, f32)>);

    fn explain(text: &str, labels: &[&str], most: usize) -> Vec<Found> {
        let names = Names(Taxonomy::flat(["gold", "wheat"]));
        let labels: Vec<LabelId> = labels.iter().map(|id| names.0.get(id).unwrap()).collect();
        let document = Document::from_text("d", text);
        let request = Request { top_k: Some(1), ..Request::default() };
        let found = leave_one_out(&names, &document, &labels, most, &request).unwrap();
        let part = |(range, fall): (Range<usize>, f32)| (text[range].to_owned(), fall);
        found
            .into_iter()
            .map(|e| (names.0.id(e.label).to_owned(), e.score, e.parts.into_iter().map(part).collect()))
            .collect()
    }

    #[test]
    fn what_is_left_out_is_missed() {
        let found = explain("Größe: gold, and gold's wheat 金", &[], 100);
        assert_eq!(found.len(), 1);
        let (label, score, parts) = &found[0];
        assert_eq!((label.as_str(), *score), ("gold", 0.2));
        let texts: Vec<&str> = parts.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["Größe", "gold", "and", "gold's", "wheat", "金"]);
        let falls: Vec<bool> = parts.iter().map(|(_, fall)| (fall - 0.1).abs() < 1e-6).collect();
        assert_eq!(falls, [false, true, false, true, false, false]);
    }

    #[test]
    fn labels_can_be_chosen_and_the_cost_is_bounded() {
        let found = explain("gold wheat gold wheat wheat", &["wheat", "gold"], 2);
        assert_eq!(found.iter().map(|(label, ..)| label.as_str()).collect::<Vec<_>>(), ["wheat", "gold"]);
        let parts: Vec<&str> = found[0].2.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(parts, ["gold wheat gold", "wheat wheat"]);
        assert!((found[0].2[1].1 - 0.2).abs() < 1e-6, "{found:?}");
        assert!(explain("", &["gold"], 9)[0].2.is_empty());
    }

    #[test]
    fn a_long_text_goes_in_batches() {
        let text = "wheat ".repeat(600) + "gold";
        let found = explain(&text, &["gold"], 1000);
        assert_eq!(found[0].2.len(), 601);
        assert!((found[0].2[600].1 - 0.1).abs() < 1e-6);
    }
}
