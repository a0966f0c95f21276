//! `cladist explain`: which words a label rests on, for one model or two side by side.

use std::io::IsTerminal;
use std::path::PathBuf;

use cladist::html;
use cladist::results::{ByLabel, ByModel, Explained, Measure, Word};
use cladist::{ExplainMethod, ExplainOptions, Model};
use cladist_core::Progress;
use cladist_core::bundle::write_atomically;
use cladist_core::explain::Faithfulness;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::args::{BadLineArgs, ExplainArgs, ExplainMethod as MethodArg};
use crate::flags::documents;
use crate::output::Table;
use crate::session::Session;

/// Words listed below a text.
const LISTED: usize = 8;

/// Explains documents of files or of standard input.
pub fn run(args: &ExplainArgs, session: &Session) -> anyhow::Result<()> {
    let paths: Vec<&PathBuf> = [&args.run].into_iter().chain(&args.against).collect();
    let options = ExplainOptions {
        method: match args.method {
            MethodArg::LeaveOneOut => ExplainMethod::LeaveOneOut,
            MethodArg::Attention => ExplainMethod::Attention,
            MethodArg::GradientXInput => ExplainMethod::GradientXInput,
            MethodArg::IntegratedGradients => ExplainMethod::IntegratedGradients,
        },
        labels: args.labels.clone(),
        top_k: args.top_k.get(),
        max_words: args.max_words.get(),
        work: session.work(),
    };
    let mut models = Vec::new();
    for path in &paths {
        let model = Model::open(path, &session.open())?;
        model.check_explain(&options)?;
        models.push(model);
    }
    // Both models are asked about the same texts: those that the first one reads.
    let stream = documents(&args.files, &models[0], &args.input, &BadLineArgs::default(), session)?;
    let documents = stream.take(args.limit.get()).collect::<cladist::Result<Vec<_>>>()?;
    session.view.stage("explain", (documents.len() * models.len()) as u64);
    let mut explained = Vec::new();
    let mut faithful = vec![Faithfulness::default(); models.len()];
    for document in documents {
        let mut by_model = Vec::new();
        for (model, faithful) in models.iter().zip(&mut faithful) {
            let labels = if args.check {
                let (labels, one) = model.explain_and_check(&document, &options, explained.len() as u64)?;
                *faithful = faithful.join(one);
                labels
            } else {
                model.explain(&document, &options)?
            };
            by_model.push(ByModel { run: model.path().display().to_string(), labels });
            session.view.advance(1);
        }
        explained.push(Explained { id: document.id, text: document.text, models: by_model });
    }
    session.view.clear();
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
fn measure(method: MethodArg) -> Measure {
    match method {
        MethodArg::LeaveOneOut => Measure::Probability,
        MethodArg::Attention => Measure::Attention,
        MethodArg::GradientXInput | MethodArg::IntegratedGradients => Measure::Logit,
    }
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
