//! `cladist predict`: label documents as they stream by, in the order they come.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use cladist_core::bundle::DraftFile;
use cladist_core::classifier::LabelSequence;
use cladist_core::{Cancel, Classifier, Document, Job, Request, Scores, Taxonomy};
use serde::Serialize;

use crate::args::{PredictArgs, PredictFormat};
use crate::corpora::{Rejects, with_bad_lines};
use crate::decode::decoder;
use crate::error::ConfigError;
use crate::inputs::Input;
use crate::model::{self, Model};
use crate::session::Session;

/// Documents scored at once: enough to keep every core busy, few enough to keep memory flat.
const BATCH: usize = 256;

/// How long a batch waits for more documents: people who type or pipe slowly want their answers.
const PATIENCE: Duration = Duration::from_millis(50);

/// Labels the documents of files or of standard input.
pub fn run(args: &PredictArgs, session: &Session) -> anyhow::Result<()> {
    let run = model::open(&args.run, session)?;
    let Some(path) = &args.output else {
        let mut out = io::BufWriter::new(io::stdout().lock());
        return label_all(&run.model, args, session, &mut out);
    };
    let mut draft = DraftFile::create(path)?;
    label_all(&run.model, args, session, &mut draft)?;
    draft.commit()?;
    Ok(())
}

fn label_all(
    model: &Model,
    args: &PredictArgs,
    session: &Session,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let decoder = decoder(model, &args.decode, true, session)?;
    let job = session.job();
    job.progress.stage("predict", 0);
    let (sender, documents) = sync_channel(2 * BATCH);
    let source =
        Source { args: args.clone(), features: model.training.features, cancel: session.cancel.clone() };
    // Reading goes on while documents are scored; the thread ends with the input or when nobody listens any more.
    let reading = std::thread::spawn(move || source.send_all(&sender));
    if let Some(levels) = &args.levels {
        let n_levels = model.taxonomy().n_levels();
        if *levels.start() > n_levels {
            bail!(ConfigError::Missing(format!(
                "`--levels` begins at {} but the taxonomy has {n_levels} levels",
                levels.start()
            )));
        }
    }
    if args.sequences.is_some() && args.format != PredictFormat::Jsonl {
        bail!(ConfigError::Missing("`--sequences` needs `--format jsonl`".to_owned()));
    }
    let request = Request {
        levels: args.levels.clone(),
        job: Job { cancel: job.cancel.clone(), ..Job::silent() },
        ..Request::default()
    };
    while let Some(batch) = next_batch(&documents, &session.cancel)? {
        if model.training.features && batch.iter().any(|document| document.features.is_none()) {
            bail!(ConfigError::Missing("the model was trained on features, and this is text\nhint: give xmc or libsvm files, see `--input-format`".to_owned()));
        }
        if !model.training.features && batch.iter().any(|document| document.features.is_some()) {
            bail!(ConfigError::Missing("the model was trained on text, and these are features".to_owned()));
        }
        let scores = model.pipeline.score(&batch, &request)?;
        let answers = decoder.answer(&decoder.prepare(scores));
        let sequences = match args.sequences {
            None => None,
            Some(n) => Some(model.pipeline.sequences(&batch, n, &request)?.ok_or_else(|| {
                ConfigError::Missing(
                    "`--sequences` needs a model that emits labels in sequence\nhint: train one with `--head label-sequence`"
                        .to_owned(),
                )
            })?),
        };
        write_rows(out, args.format, &batch, &answers, sequences.as_deref(), model.taxonomy())?;
        job.progress.advance(batch.len() as u64);
    }
    match reading.join() {
        Ok(outcome) => outcome?.tell(session),
        Err(_) => bail!("reading stopped without a reason"),
    }
    Ok(())
}

/// A full batch, or what came until the input paused; `None` at the end.
fn next_batch(
    documents: &Receiver<Document>,
    cancel: &Cancel,
) -> cladist_core::Result<Option<Vec<Document>>> {
    let first = loop {
        match documents.recv_timeout(PATIENCE) {
            Ok(document) => break document,
            Err(RecvTimeoutError::Timeout) => cancel.check()?,
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    };
    let mut batch = vec![first];
    let deadline = Instant::now() + PATIENCE;
    while batch.len() < BATCH {
        match documents.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(document) => batch.push(document),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(Some(batch))
}

/// What the reading thread needs.
struct Source {
    args: PredictArgs,
    features: bool,
    cancel: Cancel,
}

impl Source {
    /// Sends every document, in order; returns what was rejected.
    fn send_all(&self, sender: &SyncSender<Document>) -> anyhow::Result<Rejects> {
        let mut rejects = Rejects::new(&self.args.rejects);
        let stdin = [PathBuf::from("-")];
        let files = if self.args.files.is_empty() { &stdin[..] } else { &self.args.files[..] };
        for path in files {
            let mut input = Input::open(path, &self.args.input, self.features)?;
            loop {
                self.cancel.check()?;
                let next = with_bad_lines(self.args.skip_bad, &mut rejects, |bad| input.next(bad))?;
                let Some(document) = next else { break };
                if sender.send(document).is_err() {
                    // Scoring failed, and says why.
                    return Ok(rejects);
                }
            }
        }
        Ok(rejects)
    }
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    labels: Vec<Answer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequences: Option<Vec<Emitted<'a>>>,
}

#[derive(Serialize)]
struct Emitted<'a> {
    labels: Vec<&'a str>,
    log_probability: f64,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    name: &'a str,
    score: f32,
    level: usize,
}

fn write_rows(
    out: &mut impl Write,
    format: PredictFormat,
    documents: &[Document],
    answers: &Scores,
    sequences: Option<&[Vec<LabelSequence>]>,
    taxonomy: &Taxonomy,
) -> anyhow::Result<()> {
    let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let emitted = |sequence: &LabelSequence| Emitted {
        labels: sequence.labels.iter().map(|&label| taxonomy.id(label)).collect(),
        log_probability: sequence.log_probability,
    };
    for (n, (document, row)) in documents.iter().zip(answers.rows()).enumerate() {
        let labels = row.iter().map(|&(label, score)| Answer {
            id: taxonomy.id(label),
            name: taxonomy.name(label),
            score,
            level: taxonomy.level(label),
        });
        match format {
            PredictFormat::Jsonl => {
                let sequences = sequences.map(|sequences| sequences[n].iter().map(emitted).collect());
                let line = Line { id: &document.id, labels: labels.collect(), sequences };
                serde_json::to_writer(&mut *out, &line)
                    .map_err(io::Error::from)
                    .and_then(|()| writeln!(out))
                    .context("cannot write predictions")?;
            }
            PredictFormat::Tsv => {
                for Answer { id, name, score, level } in labels {
                    writeln!(
                        out,
                        "{}\t{}\t{}\t{score}\t{level}",
                        plain(&document.id),
                        plain(id),
                        plain(name)
                    )
                    .context("cannot write predictions")?;
                }
            }
        }
    }
    out.flush().context("cannot write predictions")
}
