//! The page of explanations: texts with their words on the colour of what they say for a label.

use askama::Template;

use super::{PageError, render};
use crate::results::{ByLabel, Explained, Measure, Word};

/// Words listed below a text.
const LISTED: usize = 8;

#[derive(Template)]
#[template(path = "explain.html", whitespace = "minimize")]
struct Page<'a> {
    measure: Measure,
    /// Strengths of colours with what they stand for.
    legend: Vec<(usize, String)>,
    documents: Vec<Document<'a>>,
}

struct Document<'a> {
    id: &'a str,
    models: Vec<Model<'a>>,
}

struct Model<'a> {
    run: &'a str,
    labels: Vec<Label<'a>>,
}

struct Label<'a> {
    id: &'a str,
    name: &'a str,
    score: String,
    parts: Vec<Part>,
    /// The text after the last word.
    rest: String,
    strongest: String,
}

/// A word with the text before it.
struct Part {
    before: String,
    word: String,
    class: String,
    amount: String,
}

/// The page of explanations, on the scale of what the method measures.
pub fn explain(documents: &[Explained], measure: Measure) -> Result<String, PageError> {
    let documents = documents.iter().map(|document| Document {
        id: &document.id,
        models: (document.models.iter())
            .map(|model| Model {
                run: &model.run,
                labels: model.labels.iter().map(|found| label(found, &document.text, measure)).collect(),
            })
            .collect(),
    });
    render(&Page { measure, legend: legend(measure), documents: documents.collect() })
}

fn legend(measure: Measure) -> Vec<(usize, String)> {
    let [pale, middle, strong] = measure.steps();
    let ranges =
        [format!("{pale} to {middle}"), format!("{middle} to {strong}"), format!("{strong} or more")];
    ranges.into_iter().enumerate().map(|(n, range)| (n + 1, range)).collect()
}

fn label<'a>(label: &'a ByLabel, text: &str, measure: Measure) -> Label<'a> {
    let ByLabel { id, name, score, words } = label;
    let mut characters = text.chars();
    let mut at = 0;
    let mut parts = Vec::new();
    for word in words {
        let before: String = characters.by_ref().take(word.start.saturating_sub(at)).collect();
        let inside: String = characters.by_ref().take(word.end - word.start).collect();
        at = word.end;
        let class = match measure.strength(word.importance) {
            0 => String::new(),
            strength if word.importance > 0.0 => format!("for-{strength}"),
            strength => format!("against-{strength}"),
        };
        parts.push(Part { before, word: inside, class, amount: word.amount() });
    }
    let strongest: Vec<String> = (Word::strongest(words).into_iter().take(LISTED))
        .map(|word| format!("{} {}", word.text.replace(['\n', '\t'], " "), word.amount()))
        .collect();
    Label {
        id,
        name,
        score: format!("{score:.3}"),
        parts,
        rest: characters.collect(),
        strongest: if strongest.is_empty() {
            "no word matters alone".to_owned()
        } else {
            strongest.join(", ")
        },
    }
}
