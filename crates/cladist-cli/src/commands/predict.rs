//! `cladist predict`: label documents as they stream by, in the order they come.

use std::io::{self, Write};
use std::sync::atomic::Ordering;

use anyhow::Context;
use cladist::model::Batch;
use cladist::{Model, PredictOptions};
use cladist_core::bundle::DraftFile;

use crate::args::{PredictArgs, PredictFormat};
use crate::decode;
use crate::error::Usage;
use crate::flags::documents;
use crate::output::stdout;
use crate::session::Session;

/// Labels the documents of files or of standard input.
pub fn run(args: &PredictArgs, session: &Session) -> anyhow::Result<()> {
    if args.sequences.is_some() && args.format != PredictFormat::Jsonl {
        return Err(Usage::Needs { flag: "--sequences", needs: "--format jsonl" }.into());
    }
    let model = Model::open(&args.run, &session.open())?;
    let Some(path) = &args.output else {
        let mut out = io::BufWriter::new(stdout()?);
        return label_all(&model, args, session, &mut out);
    };
    let mut draft = DraftFile::create(path)?;
    label_all(&model, args, session, &mut draft)?;
    draft.commit()?;
    Ok(())
}

fn label_all(
    model: &Model,
    args: &PredictArgs,
    session: &Session,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let stream = documents(&args.files, model, &args.input, &args.bad_lines, session)?;
    let rejected = stream.rejected();
    let options = PredictOptions {
        decode: decode::options(model, &args.decode, session),
        levels: args.levels.clone(),
        sequences: args.sequences,
        work: session.work(),
    };
    let stream = stream.map(|document| document.map_err(anyhow::Error::from));
    model.predict_stream(stream, &options, |batch| {
        write_rows(out, args.format, &batch).context("cannot write predictions")
    })?;
    session.view.clear();
    let n = rejected.load(Ordering::Relaxed);
    if n > 0 {
        let path = args.bad_lines.rejects.as_deref().unwrap_or(cladist::folders::REJECTS.as_ref());
        session.output.warn(format!("rejected lines: {n}, see {}", path.display()));
    }
    out.flush().context("cannot write predictions")
}

fn write_rows(out: &mut impl Write, format: PredictFormat, batch: &Batch) -> io::Result<()> {
    let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    for prediction in &batch.predictions {
        match format {
            PredictFormat::Jsonl => {
                serde_json::to_writer(&mut *out, prediction)?;
                writeln!(out)?;
            }
            PredictFormat::Tsv => {
                for label in &prediction.labels {
                    let (document, id, name) = (plain(&prediction.id), plain(&label.id), plain(&label.name));
                    writeln!(out, "{document}\t{id}\t{name}\t{}\t{}", label.score, label.level)?;
                }
            }
        }
    }
    out.flush()
}
