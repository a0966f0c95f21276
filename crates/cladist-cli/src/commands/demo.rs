//! `cladist demo`: the whole job on a corpus that comes with the program.

use std::path::Path;

use cladist::config::Layers;
use cladist::corpus::CorpusSource;
use cladist::heads::{self, Family};
use cladist::{Document, Model, PredictOptions, Training, demo};

use crate::args::{BadLineArgs, CorpusArgs, DecodeArgs, DemoArgs, EvaluateArgs};
use crate::commands::evaluate;
use crate::session::Session;

/// Settings with which a new encoder learns the demo corpus in about a minute.
const DEMO_NEURAL: [&str; 4] = [
    "train.epochs=12",
    "train.learning_rate=1e-3",
    "train.output.learning_rate=2e-3",
    "tokens.max_tokens=64",
];

/// Trains, evaluates and predicts.
pub fn run(args: &DemoArgs, session: &Session) -> anyhow::Result<()> {
    if let Some(folder) = &args.corpus_only {
        demo::write_folder(folder, args.seed)?;
        return session.output.line(format!("wrote the demo corpus to {}", folder.display()));
    }
    let corpus = std::path::absolute(&args.out)?.with_file_name(corpus_name(&args.out));
    demo::write_folder(&corpus, args.seed)?;
    session
        .output
        .line("Support tickets of a city mobility service, labelled from a DAG of three levels.\n")?;
    Training::new(settings(args)?.resolve()?)
        .corpus(CorpusSource::folder(&corpus)?)
        .out(&args.out)
        .observe(&session.view)
        .cancel(session.cancel.clone())
        .overwrite(true)
        .device(&session.device)
        .run()?;
    session.view.clear();
    session.output.line("")?;
    evaluate::run(&on_test(args), session)?;

    let model = Model::open(&args.out, &session.open())?;
    let document = |(n, text): (usize, &&str)| Document::from_text(format!("example-{}", n + 1), *text);
    let documents: Vec<Document> = demo::EXAMPLES.iter().enumerate().map(document).collect();
    session.output.line("\nNew tickets and their four best labels:")?;
    for (document, prediction) in documents.iter().zip(model.predict(&documents, &PredictOptions::top_k(4))?)
    {
        session.output.line(format!("\n  “{}”", document.text.replace('\n', " ")))?;
        for label in &prediction.labels {
            session.output.line(format!("    {:.2}  level {}  {}", label.score, label.level, label.name))?;
        }
    }
    session.output.line(format!(
        "\nThe run is in {run}, the corpus in {corpus}. Try:\n  cladist train --corpus {corpus} --set data.ancestors=add --head bonsai --out runs/bonsai\n  echo \"the scooter would not unlock\" | cladist predict {run}\n  cladist taxonomy show {corpus}",
        run = args.out.display(),
        corpus = corpus.display(),
    ))
}

fn settings(args: &DemoArgs) -> anyhow::Result<Layers> {
    let neural = matches!(heads::find(&args.head)?.family, Family::Neural(_));
    let encoder = args.encoder.clone().or_else(|| neural.then(|| "scratch:mini".to_owned()));
    let mut set = vec!["data.ancestors=add".to_owned()];
    if neural && args.encoder.is_none() {
        // A new encoder has everything to learn: higher rates and more passes than a pretrained one.
        set.extend(DEMO_NEURAL.map(str::to_owned));
        if args.head == "flat" {
            // Words count before their order does: the mean of tokens learns from the first step on.
            set.push("flat.pool=mean".to_owned());
        }
    }
    let mut layers = Layers { set, ..Layers::of_head(&args.head) };
    let seed = i64::try_from(args.seed)?;
    layers.over.set("train.seed", seed)?;
    layers.over.set("data.seed", seed)?;
    if let Some(encoder) = encoder {
        layers.over.set("encoder", encoder)?;
    }
    Ok(layers)
}

fn on_test(args: &DemoArgs) -> EvaluateArgs {
    EvaluateArgs {
        set: Vec::new(),
        run: args.out.clone(),
        corpus: CorpusArgs::default(),
        bad_lines: BadLineArgs::default(),
        split: "test".to_owned(),
        decode: DecodeArgs::default(),
        macro_over: None,
        propensity: None,
        bootstrap: None,
        per_label: None,
        json: false,
    }
}

fn corpus_name(out: &Path) -> String {
    let name = out.file_name().map_or_else(|| "demo".into(), |name| name.to_string_lossy());
    format!("{name}-corpus")
}
