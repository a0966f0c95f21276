//! `cladist data convert`: documents in another format.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use cladist::BadLinePolicy;
use cladist_core::Document;
use cladist_core::bundle::DraftFile;
use cladist_core::readers::{
    FORMATS, Format, FormatInfo, ReadOptions, Reader, Shape, Tally, WriteOptions, Writer,
};
use cladist_core::text::normalise::Normalise;

use crate::args::DataConvertArgs;
use crate::error::Usage;
use crate::flags::format;
use crate::output::stdout;
use crate::session::Session;

/// Writes the documents of a file or folder in another format.
pub(super) fn run(args: &DataConvertArgs, session: &Session) -> anyhow::Result<()> {
    let job = Conversion {
        args,
        from: args.from.as_deref().map(format).transpose()?,
        to: target(args)?,
        options: args.fields.read_options(&session.cancel),
        normalise: Normalise {
            lowercase: args.lowercase,
            drop_numbers: args.drop_numbers,
            drop_punctuation: args.drop_punctuation,
            drop_stopwords: args.drop_stopwords,
        },
        session,
    };
    // The header of an xmc file counts the documents, so they are read twice.
    let mut shape = Shape::default();
    if job.to == Format::Xmc {
        let policy = if args.bad_lines.skip_bad { BadLinePolicy::PassOver } else { BadLinePolicy::Stop };
        job.each(&policy, |document| {
            shape.add(&document);
            Ok(())
        })?;
    }
    let tally = if args.output == Path::new("-") {
        job.write(shape, BufWriter::new(stdout()?))?.0
    } else {
        let is_taken = args.output.is_file() && !args.overwrite;
        if is_taken {
            return Err(Usage::Exists(args.output.clone()).into());
        }
        let (tally, draft) = job.write(shape, DraftFile::create(&args.output)?)?;
        draft.commit()?;
        tally
    };
    session.view.clear();
    session.output.note(format!(
        "{} read = {} written + {} rejected + {} left out",
        tally.read, tally.kept, tally.rejected, tally.dropped
    ));
    Ok(())
}

/// The format to write: as asked, or by the ending of the file, or JSON lines.
fn target(args: &DataConvertArgs) -> anyhow::Result<Format> {
    if let Some(name) = &args.to {
        return format(name);
    }
    let name = args.output.to_string_lossy().to_lowercase();
    let Some((_, ending)) = name.rsplit_once('.') else { return Ok(Format::Jsonl) };
    let writes = |info: &&FormatInfo| info.is_writable() && info.endings.contains(&ending);
    match FORMATS.iter().find(writes) {
        Some(info) => format(info.name),
        None if ["json", "txt", "out"].contains(&ending) => Ok(Format::Jsonl),
        None => Err(Usage::OtherFormat {
            path: args.output.clone(),
            format: "a format that can be written".to_owned(),
        }
        .into()),
    }
}

struct Conversion<'a> {
    args: &'a DataConvertArgs,
    from: Option<Format>,
    to: Format,
    options: ReadOptions,
    normalise: Normalise,
    session: &'a Session,
}

impl Conversion<'_> {
    fn write<W: Write>(&self, shape: Shape, sink: W) -> anyhow::Result<(Tally, W)> {
        let replace_spaces = self.args.replace_spaces;
        let options = WriteOptions { shape: Some(shape), replace_spaces, ..WriteOptions::default() };
        let mut writer = Writer::new(self.to, sink, &self.args.output, &options)?;
        let tally = self.each(&self.args.bad_lines.policy(), |mut document| {
            if !self.normalise.is_identity() {
                document.text = self.normalise.apply(&document.text).into_owned();
            }
            writer.write(&document)
        })?;
        Ok((tally, writer.finish()?))
    }

    fn each(
        &self,
        bad_lines: &BadLinePolicy,
        mut take: impl FnMut(Document) -> cladist_core::Result<()>,
    ) -> anyhow::Result<Tally> {
        let work = self.session.work();
        let job = work.job();
        job.progress.stage("convert", 0);
        let mut reader = Reader::open(&self.args.input, self.from, &self.options)?;
        bad_lines
            .apply(&work, |bad| {
                while let Some(document) = reader.next_document(bad)? {
                    job.cancel.check()?;
                    job.progress.advance(1);
                    take(document)?;
                }
                Ok(())
            })
            .with_context(|| format!("cannot convert `{}`", self.args.input.display()))?;
        Ok(reader.tally())
    }
}
