//! `cladist explain`: which words a label rests on, for one model or two side by side.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::bail;
use cladist_core::bundle::write_atomically;
use cladist_core::explain::{Explanation, Faithfulness, check, leave_one_out, scored};
use cladist_core::readers::BadLines;
use cladist_core::{Document, LabelId, Request, Taxonomy};
use cladist_nn::analysis::attribution::Gradients;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::args::{ExplainArgs, ExplainMethod};
use crate::error::ConfigError;
use crate::html;
use crate::inputs::Input;
use crate::model::{self, Model};
use crate::output::Table;
use crate::results::Measure;
pub use crate::results::{ByLabel, ByModel, Explained, Word};
use crate::session::Session;

/// Places between nothing and a document at which gradients are taken.
const PLACES: usize = 32;
/// Words listed below a text.
const LISTED: usize = 8;

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
    let mut faithful = vec![Faithfulness::default(); models.len()];
    for document in documents {
        let mut by_model = Vec::new();
        for ((path, model, labels), faithful) in models.iter().zip(&mut faithful) {
            let found = explain(model, path, &document, labels, args, session)?;
            let labels =
                found.iter().map(|found| by_label(found, &document.text, model.taxonomy())).collect();
            if args.check {
                let request = request(args, session);
                let one = check(&model.pipeline, &document, &found, explained.len() as u64, &request)?;
                *faithful = faithful.join(one);
            }
            by_model.push(ByModel { run: path.display().to_string(), labels });
            session.job().progress.advance(1);
        }
        explained.push(Explained { id: document.id, text: document.text, models: by_model });
    }
    session.bars.clear();
    if let Some(path) = &args.html {
        write_atomically(path, html::explain(&explained, measure(args.method))?.as_bytes())?;
        session.output.note(format!("page: {}", path.display()));
    }
    let faithful: Vec<Checked> = (paths.iter().zip(faithful))
        .map(|(path, faithfulness)| Checked { run: path.display().to_string(), faithfulness })
        .collect();
    if args.json {
        return if args.check {
            session.output.json(&json!({ "documents": explained, "faithfulness": faithful }))
        } else {
            session.output.json(&explained)
        };
    }
    if args.check {
        return print_check(&faithful, args, explained.len(), session);
    }
    if args.html.is_none() {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        for document in &explained {
            print(document, colour.then(|| measure(args.method)), session)?;
        }
    }
    Ok(())
}

/// What the importance of a method counts.
fn measure(method: ExplainMethod) -> Measure {
    match method {
        ExplainMethod::LeaveOneOut => Measure::Probability,
        ExplainMethod::Attention => Measure::Attention,
        ExplainMethod::GradientXInput | ExplainMethod::IntegratedGradients => Measure::Logit,
    }
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

fn request<'a>(args: &ExplainArgs, session: &Session) -> Request<'a> {
    let job = cladist_core::Job { cancel: session.cancel.clone(), ..cladist_core::Job::silent() };
    Request { top_k: Some(args.top_k.get()), job, ..Request::default() }
}

fn explain(
    model: &Model,
    path: &Path,
    document: &Document,
    labels: &[LabelId],
    args: &ExplainArgs,
    session: &Session,
) -> anyhow::Result<Vec<Explanation>> {
    let request = request(args, session);
    let how = match args.method {
        ExplainMethod::LeaveOneOut => {
            return Ok(leave_one_out(&model.pipeline, document, labels, args.max_words.get(), &request)?);
        }
        ExplainMethod::Attention => None,
        ExplainMethod::GradientXInput => Some(Gradients::AtDocument),
        ExplainMethod::IntegratedGradients => Some(Gradients::Integrated(PLACES)),
    };
    let Some(network) = &model.network else {
        bail!(ConfigError::Missing(format!(
            "`{}` is no network (`{}`) and does not show what it looks at\nhint: `--method leave-one-out` works with any model",
            path.display(),
            model.config.head()
        )));
    };
    if !model.pipeline.normalise.is_identity() {
        bail!(ConfigError::Missing(format!(
            "`{}` changes texts before it reads them (`data.normalise`), so its words are not those of the text\n\
             hint: `--method leave-one-out` works with any model",
            path.display()
        )));
    }
    session.cancel.check()?;
    let scored = scored(&model.pipeline, document, labels, &request)?;
    let labels: Vec<LabelId> = scored.iter().map(|(label, _)| *label).collect();
    let parts = match how {
        Some(how) => network.attribute(&document.text, &labels, how)?,
        None => network.attend(&document.text, &labels)?.ok_or_else(|| {
            ConfigError::Missing(format!(
                "labels of `{}` (`{}`) do not look at words each for itself\nhint: use `--method integrated-gradients` or `leave-one-out`",
                path.display(),
                model.config.head()
            ))
        })?,
    };
    let found = scored.into_iter().zip(parts);
    Ok(found.map(|((label, score), parts)| Explanation { label, score, parts }).collect())
}

/// How true a model's explanations are to it.
#[derive(Debug, Serialize)]
struct Checked {
    run: String,
    #[serde(flatten)]
    faithfulness: Faithfulness,
}

fn print_check(
    checked: &[Checked],
    args: &ExplainArgs,
    n_documents: usize,
    session: &Session,
) -> anyhow::Result<()> {
    let heads = [
        "model",
        "explanations",
        "lost without the words",
        "random words",
        "lost with them alone",
        "random words",
    ];
    let mut table = Table::new(1, heads);
    for Checked { run, faithfulness } in checked {
        let Faithfulness { n, comprehensiveness, sufficiency, random_comprehensiveness, random_sufficiency } =
            faithfulness;
        let figures = [comprehensiveness, random_comprehensiveness, sufficiency, random_sufficiency];
        table.row([run.clone(), n.to_string()].into_iter().chain(figures.map(|value| format!("{value:.4}"))));
    }
    let method =
        args.method.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    session.output.line(format!(
        "faithfulness of `{method}` on {n_documents} documents: probability lost, mean over 5, 10, 20 and 50% of the words\n\n{table}\n\n\
         lost without the words: comprehensiveness, the more the better; lost with them alone: sufficiency, the less the better"
    ))
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

/// Prints the words that matter most, below the text if it is to be coloured.
fn print(document: &Explained, colour: Option<Measure>, session: &Session) -> anyhow::Result<()> {
    for model in &document.models {
        if model.labels.is_empty() {
            session.output.line(format!("{} · {} · no label has a score", document.id, model.run))?;
        }
        for label in &model.labels {
            let ByLabel { id, name, score, words } = label;
            session.output.line(format!("{} · {} · {name} ({id}) {score:.3}", document.id, model.run))?;
            if let Some(measure) = colour {
                session.output.line(painted(&document.text, words, measure))?;
            }
            let listed: Vec<String> = (Word::strongest(words).into_iter().take(LISTED))
                .map(|word| format!("{} {}", word.text.replace(['\n', '\t'], " "), word.amount()))
                .collect();
            let listed =
                if listed.is_empty() { "no word matters alone".to_owned() } else { listed.join(", ") };
            session.output.line(format!("    {listed}\n"))?;
        }
    }
    Ok(())
}

/// The text with words on green where they speak for the label and on red where they speak against it.
fn painted(text: &str, words: &[Word], measure: Measure) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    let mut at = 0;
    for word in words {
        out.extend(characters.by_ref().take(word.start - at));
        let inside: String = characters.by_ref().take(word.end - word.start).collect();
        at = word.end;
        let code = match (measure.strength(word.importance), word.importance > 0.0) {
            (0, _) => "",
            (3, true) => "30;42",
            (3, false) => "30;41",
            (_, true) => "32",
            (_, false) => "31",
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
        let words = [word("Größe", 0, 0.004), word("gold", 7, 0.4), word("金", 12, -0.3)];
        let painted = painted("Größe, gold 金.", &words, Measure::Probability);
        assert_eq!(painted, "Größe, \u{1b}[30;42mgold\u{1b}[0m \u{1b}[30;41m金\u{1b}[0m.");
    }
}
