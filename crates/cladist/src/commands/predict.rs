//! `cladist predict`: label documents as they stream by, in the order they come.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use cladist_core::readers::{BadKind, BadLine, BadLines, Format, ReadOptions, Reader};
use cladist_core::{Classifier, Document, Error, Job, Request, Scores, Taxonomy, files};
use serde::Serialize;

use crate::args::{InputFormat, PredictArgs, PredictFormat};
use crate::corpora::{Rejects, with_bad_lines};
use crate::decode::decoder;
use crate::model;
use crate::session::Session;

/// Documents scored at once: enough to keep every core busy, few enough to keep memory flat.
const BATCH: usize = 256;

/// Labels the documents of files or of standard input.
pub fn run(args: &PredictArgs, session: &Session) -> anyhow::Result<()> {
    let run = model::open(&args.run)?;
    let taxonomy = run.model.taxonomy();
    let decoder = decoder(&run.model, &args.decode, true)?;
    let mut out: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(File::create(path).map_err(Error::io("write", path))?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::new(&mut out);
    let job = session.job();
    job.progress.stage("predict", 0);

    let mut label = |documents: &mut Vec<Document>| -> anyhow::Result<()> {
        let request =
            Request { job: Job { cancel: job.cancel.clone(), ..Job::silent() }, ..Request::default() };
        let scores = run.model.pipeline.score(documents, &request)?;
        let answers = decoder.answer(&decoder.prepare(scores));
        write_rows(&mut out, args.format, documents, &answers, taxonomy)?;
        job.progress.advance(documents.len() as u64);
        documents.clear();
        Ok(())
    };
    let mut rejects = Rejects::new(Path::new("rejects.jsonl"));
    let inputs: Vec<&Path> = if args.files.is_empty() {
        vec![Path::new("-")]
    } else {
        args.files.iter().map(AsRef::as_ref).collect()
    };
    for path in inputs {
        let mut input = Input::open(path, args)?;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let next = with_bad_lines(args.skip_bad, &mut rejects, |bad: &mut BadLines<'_>| {
                session.cancel.check()?;
                input.next(bad)
            });
            match next {
                Ok(Some(document)) => batch.push(document),
                Ok(None) => break,
                Err(error) => {
                    // What came before the bad line is answered: nothing that was read is lost.
                    label(&mut batch)?;
                    return Err(error.into());
                }
            }
            if batch.len() == BATCH {
                label(&mut batch)?;
            }
        }
        label(&mut batch)?;
    }
    if !rejects.is_empty() {
        session.output.warn(format!("{} lines were rejected, see rejects.jsonl", rejects.len()));
    }
    Ok(())
}

/// Documents of one file or stream.
enum Input {
    /// A document of its own, taken once.
    Whole(Option<Document>),
    /// Records of a format.
    Records(Reader),
    /// Lines of `id TAB text`.
    Pairs(Reader),
}

impl Input {
    fn open(path: &Path, args: &PredictArgs) -> anyhow::Result<Self> {
        let stdin = path == Path::new("-");
        let mut stream: Box<dyn BufRead + Send> = if stdin {
            files::decompress(io::stdin()).context("cannot read standard input")?
        } else {
            files::open(path)?
        };
        let format = match args.input_format {
            Some(format) => format,
            None => sniff(path, stream.fill_buf().map_err(Error::io("read", path))?),
        };
        if format == InputFormat::Document {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).map_err(Error::io("read", path))?;
            let text = String::from_utf8(bytes).map_err(|error| {
                let content = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let path = Arc::new(path.to_owned());
                Error::from(BadLine { path, line: 0, column: None, kind: BadKind::InvalidUtf8, content })
            })?;
            return Ok(Self::Whole(Some(Document::from_text(path.display().to_string(), text))));
        }
        let options = ReadOptions { text_field: args.text_field.clone(), ..ReadOptions::default() };
        let kind = if format == InputFormat::Jsonl { Format::Jsonl } else { Format::Text };
        let reader = Reader::stream(path, stream, Some(kind), &options)?;
        Ok(if format == InputFormat::Tsv { Self::Pairs(reader) } else { Self::Records(reader) })
    }

    fn next(&mut self, bad_lines: &mut BadLines<'_>) -> cladist_core::Result<Option<Document>> {
        match self {
            Self::Whole(document) => Ok(document.take()),
            Self::Records(reader) => reader.next_document(bad_lines),
            Self::Pairs(reader) => Ok(reader.next_document(bad_lines)?.map(|mut document| {
                if let Some((id, text)) = document.text.split_once('\t') {
                    (document.id, document.text) = (id.to_owned(), text.to_owned());
                }
                document
            })),
        }
    }
}

/// By the ending, and where that says nothing by the first character.
fn sniff(path: &Path, start: &[u8]) -> InputFormat {
    let name = path.to_string_lossy().to_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    if name.ends_with(".jsonl") || name.ends_with(".ndjson") || name.ends_with(".json") {
        return InputFormat::Jsonl;
    }
    if name.ends_with(".tsv") {
        return InputFormat::Tsv;
    }
    let first =
        start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') { InputFormat::Jsonl } else { InputFormat::Text }
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    labels: Vec<Answer<'a>>,
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
    taxonomy: &Taxonomy,
) -> anyhow::Result<()> {
    let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    for (document, row) in documents.iter().zip(answers.rows()) {
        let labels = row.iter().map(|&(label, score)| Answer {
            id: taxonomy.id(label),
            name: taxonomy.name(label),
            score,
            level: taxonomy.level(label),
        });
        match format {
            PredictFormat::Jsonl => {
                serde_json::to_writer(&mut *out, &Line { id: &document.id, labels: labels.collect() })
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
