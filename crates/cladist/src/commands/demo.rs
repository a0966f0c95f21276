//! `cladist demo`: the whole job on a corpus that comes with the program.

use std::path::Path;

use cladist_core::{Classifier, Document, Request};

use crate::args::{BadLineArgs, CorpusArgs, DecodeArgs, DemoArgs, EvaluateArgs, NeuralArgs, TrainArgs};
use crate::commands::{evaluate, train};
use crate::decode::decoder;
use crate::demo;
use crate::heads::{self, Family};
use crate::model;
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
    let train_args = TrainArgs {
        corpus: CorpusArgs { corpus: Some(corpus.clone()), ..CorpusArgs::default() },
        bad_lines: BadLineArgs::default(),
        head: Some(args.head.clone()),
        out: Some(args.out.clone()),
        config: None,
        set,
        fit_thresholds: None,
        dev: None,
        seed: Some(args.seed),
        seeds: None,
        neural: NeuralArgs { encoder, ..NeuralArgs::default() },
        members: Vec::new(),
        overwrite: true,
        resume: false,
        print_config: false,
        json: false,
    };
    train::run(&train_args, session)?;
    let evaluate_args = EvaluateArgs {
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
    };
    session.output.line("")?;
    evaluate::run(&evaluate_args, session)?;

    let run = model::open(&args.out, session)?;
    let documents: Vec<Document> = demo::EXAMPLES
        .iter()
        .enumerate()
        .map(|(n, text)| Document::from_text(format!("example-{}", n + 1), *text))
        .collect();
    let scores = run.model.pipeline.score(&documents, &Request::default())?;
    let decoder =
        decoder(&run.model, &DecodeArgs { top_k: Some(4), ..DecodeArgs::default() }, true, session)?;
    session.output.line("\nNew tickets and their four best labels:")?;
    let taxonomy = run.model.taxonomy();
    for (document, row) in documents.iter().zip(decoder.answer(&scores).rows()) {
        session.output.line(format!("\n  “{}”", document.text.replace('\n', " ")))?;
        for &(label, score) in row {
            session.output.line(format!(
                "    {score:.2}  level {}  {}",
                taxonomy.level(label),
                taxonomy.name(label)
            ))?;
        }
    }
    session.output.line(format!(
        "\nThe run is in {run}, the corpus in {corpus}. Try:\n  cladist train --corpus {corpus} --set data.ancestors=add --head bonsai --out runs/bonsai\n  echo \"the scooter would not unlock\" | cladist predict {run}\n  cladist taxonomy show {corpus}",
        run = args.out.display(),
        corpus = corpus.display(),
    ))
}

fn corpus_name(out: &Path) -> String {
    let name = out.file_name().map_or_else(|| "demo".into(), |name| name.to_string_lossy());
    format!("{name}-corpus")
}
