//! `cladist explain`: which words a label rests on, for one model or two side by side.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::bail;
use cladist_core::bundle::write_atomically;
use cladist_core::explain::{Explanation, leave_one_out};
use cladist_core::readers::BadLines;
use cladist_core::{Document, LabelId, Request, Taxonomy};
use serde::Serialize;

use crate::args::{ExplainArgs, ExplainMethod};
use crate::error::ConfigError;
use crate::html;
use crate::inputs::Input;
use crate::model::{self, Model};
use crate::session::Session;

/// Words listed below a text.
const LISTED: usize = 8;

/// A document with what each model says of it.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// The document.
    pub id: String,
    /// Its text.
    pub text: String,
    /// One or two models.
    pub models: Vec<ByModel>,
}

/// What one model says.
#[derive(Debug, Serialize)]
pub struct ByModel {
    /// The model as it was named.
    pub run: String,
    /// The labels, the best first.
    pub labels: Vec<ByLabel>,
}

/// Why a label got its probability.
#[derive(Debug, Serialize)]
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
#[derive(Debug, Serialize)]
pub struct Word {
    /// As it stands in the text.
    pub text: String,
    /// The first character, counted from 0.
    pub start: usize,
    /// The character after the last.
    pub end: usize,
    /// By how much the probability falls without it.
    pub importance: f32,
}

/// Explains documents of files or of standard input.
pub fn run(args: &ExplainArgs, session: &Session) -> anyhow::Result<()> {
    let paths: Vec<&PathBuf> = [&args.run].into_iter().chain(&args.against).collect();
    let mut models = Vec::new();
    for path in &paths {
        let model = model::open(path, session)?.model;
        if model.training.features {
            bail!(ConfigError::Missing(format!(
                "`{}` was trained on features, which have no words",
                path.display()
            )));
        }
        let labels = labels(args, &model, path)?;
        models.push((path, model, labels));
    }
    let documents = documents(args)?;
    session.job().progress.stage("explain", (documents.len() * models.len()) as u64);
    let mut explained = Vec::new();
    for document in documents {
        let mut by_model = Vec::new();
        for (path, model, labels) in &models {
            let found = match args.method {
                ExplainMethod::LeaveOneOut => explain(model, &document, labels, args, session)?,
            };
            let labels =
                found.iter().map(|found| by_label(found, &document.text, model.taxonomy())).collect();
            by_model.push(ByModel { run: path.display().to_string(), labels });
            session.job().progress.advance(1);
        }
        explained.push(Explained { id: document.id, text: document.text, models: by_model });
    }
    session.bars.clear();
    if let Some(path) = &args.html {
        write_atomically(path, html::explain(&explained).as_bytes())?;
        session.output.note(format!("page: {}", path.display()));
    }
    if args.json {
        return session.output.json(&explained);
    }
    if args.html.is_none() {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        for document in &explained {
            print(document, colour, session)?;
        }
    }
    Ok(())
}

fn labels(args: &ExplainArgs, model: &Model, path: &Path) -> anyhow::Result<Vec<LabelId>> {
    args.labels
        .iter()
        .map(|id| {
            model.taxonomy().get(id).ok_or_else(|| {
                let text = format!("`{}` does not know the label `{id}`", path.display());
                ConfigError::Missing(text).into()
            })
        })
        .collect()
}

/// The first documents of the input.
fn documents(args: &ExplainArgs) -> anyhow::Result<Vec<Document>> {
    let stdin = [PathBuf::from("-")];
    let files = if args.files.is_empty() { &stdin[..] } else { &args.files[..] };
    let mut documents = Vec::new();
    for path in files {
        let mut input = Input::open(path, &args.input, false)?;
        while documents.len() < args.limit.get()
            && let Some(document) = input.next(&mut BadLines::Stop)?
        {
            documents.push(document);
        }
    }
    Ok(documents)
}

fn explain(
    model: &Model,
    document: &Document,
    labels: &[LabelId],
    args: &ExplainArgs,
    session: &Session,
) -> anyhow::Result<Vec<Explanation>> {
    let job = cladist_core::Job { cancel: session.cancel.clone(), ..cladist_core::Job::silent() };
    let request = Request { top_k: Some(args.top_k.get()), job, ..Request::default() };
    Ok(leave_one_out(&model.pipeline, document, labels, args.max_words.get(), &request)?)
}

fn by_label(found: &Explanation, text: &str, taxonomy: &Taxonomy) -> ByLabel {
    let (mut bytes, mut characters) = (0, 0);
    let words = found.parts.iter().map(|(range, importance)| {
        let length = |from: usize, to: usize| text[from..to].chars().count();
        let start = characters + length(bytes, range.start);
        let end = start + length(range.start, range.end);
        (bytes, characters) = (range.end, end);
        Word { text: text[range.clone()].to_owned(), start, end, importance: *importance }
    });
    ByLabel {
        words: words.collect(),
        id: taxonomy.id(found.label).to_owned(),
        name: taxonomy.name(found.label).to_owned(),
        score: found.score,
    }
}

fn print(document: &Explained, colour: bool, session: &Session) -> anyhow::Result<()> {
    for model in &document.models {
        if model.labels.is_empty() {
            session.output.line(format!("{} · {} · no label has a score", document.id, model.run))?;
        }
        for label in &model.labels {
            let ByLabel { id, name, score, words } = label;
            session.output.line(format!("{} · {} · {name} ({id}) {score:.3}", document.id, model.run))?;
            if colour {
                session.output.line(painted(&document.text, words))?;
            }
            let mut best: Vec<&Word> = words.iter().collect();
            best.sort_by(|a, b| b.importance.abs().total_cmp(&a.importance.abs()));
            best.retain(|word| word.importance != 0.0);
            let listed: Vec<String> = (best.iter().take(LISTED))
                .map(|word| format!("{} {:+.3}", word.text.replace(['\n', '\t'], " "), word.importance))
                .collect();
            let listed =
                if listed.is_empty() { "no word matters alone".to_owned() } else { listed.join(", ") };
            session.output.line(format!("    {listed}\n"))?;
        }
    }
    Ok(())
}

/// The text with words on green where they speak for the label and on red where they speak against it.
fn painted(text: &str, words: &[Word]) -> String {
    let most = words.iter().map(|word| word.importance.abs()).fold(0.0, f32::max);
    let mut out = String::new();
    let mut characters = text.chars();
    let mut at = 0;
    for word in words {
        out.extend(characters.by_ref().take(word.start - at));
        let inside: String = characters.by_ref().take(word.end - word.start).collect();
        at = word.end;
        let share = if most > 0.0 { word.importance / most } else { 0.0 };
        let code = match share {
            share if share > 0.5 => "30;42",
            share if share > 0.1 => "32",
            share if share < -0.5 => "30;41",
            share if share < -0.1 => "31",
            _ => "",
        };
        if code.is_empty() {
            out.push_str(&inside);
        } else {
            out.push_str(&format!("\u{1b}[{code}m{inside}\u{1b}[0m"));
        }
    }
    out.extend(characters);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn painted_text_is_the_text_with_colours() {
        let word = |text: &str, start: usize, importance| Word {
            text: text.to_owned(),
            start,
            end: start + text.chars().count(),
            importance,
        };
        let words = [word("Größe", 0, 0.02), word("gold", 7, 0.4), word("金", 12, -0.3)];
        let painted = painted("Größe, gold 金.", &words);
        assert_eq!(painted, "Größe, \u{1b}[30;42mgold\u{1b}[0m \u{1b}[30;41m金\u{1b}[0m.");
    }
}
