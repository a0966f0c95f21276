//! The page of explanations: texts with their words on the colour of what they say for a label.

use std::fmt::Write;

use super::{STYLE, escape};
use crate::results::{ByLabel, Explained};

/// The page.
#[must_use]
pub fn explain(documents: &[Explained]) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>Explanations</title><style>{STYLE} .columns > section {{ flex: 1 1 24rem; }} .text {{ white-space: pre-wrap; }} \
         span[title] {{ border-radius: .2rem; }}</style><h1>Explanations</h1><p class=soft>Green: the word speaks for the label; red: \
         against it. The stronger the colour, the more it matters, as the method measures it.</p>"
    );
    for document in documents {
        let _ = write!(page, "<h2>{}</h2><div class=columns>", escape(&document.id));
        for model in &document.models {
            let _ = write!(page, "<section><p class=soft>{}</p>", escape(&model.run));
            model.labels.iter().for_each(|label| one(&mut page, &document.text, label));
            page.push_str("</section>");
        }
        page.push_str("</div>");
    }
    page.push_str("</html>\n");
    page
}

fn one(page: &mut String, text: &str, label: &ByLabel) {
    let ByLabel { id, name, score, words } = label;
    let _ = write!(
        page,
        "<p><b>{}</b> <span class=soft>{}</span> {score:.3}</p><p class=text>",
        escape(name),
        escape(id)
    );
    let most = words.iter().map(|word| word.importance.abs()).fold(0.0, f32::max);
    let mut characters = text.chars();
    let mut at = 0;
    for word in words {
        let before: String = characters.by_ref().take(word.start - at).collect();
        let inside: String = characters.by_ref().take(word.end - word.start).collect();
        at = word.end;
        let share = if most > 0.0 { word.importance.abs() / most } else { 0.0 };
        let colour = if word.importance > 0.0 { "60, 160, 80" } else { "210, 70, 60" };
        let _ = write!(
            page,
            "{}<span title='{:+.4}' style='background: rgba({colour}, {:.2})'>{}</span>",
            escape(&before),
            word.importance,
            share * 0.8,
            escape(&inside)
        );
    }
    let _ = write!(page, "{}</p>", escape(&characters.collect::<String>()));
}
