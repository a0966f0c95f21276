//! `cladist data`: look at, check, split and convert corpora.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use cladist_core::bundle::DraftFile;
use cladist_core::corpus::{self, CorpusStats, Quantiles, SplitName};
use cladist_core::readers::{FORMATS, Format, ReadOptions, Reader, Shape, WriteOptions, Writer};
use cladist_core::text::normalise::Normalise;
use cladist_core::{Document, Error};
use serde_json::json;

use crate::args::{DataCheckArgs, DataCommand, DataConvertArgs, DataSplitArgs, DataStatsArgs, JsonArgs};
use crate::corpora::{Rejects, data_config, source, with_bad_lines};
use crate::error::ConfigError;
use crate::output::Table;
use crate::session::Session;

/// Runs a `data` command.
pub fn run(command: &DataCommand, session: &Session) -> anyhow::Result<()> {
    match command {
        DataCommand::Stats(args) => stats(args, session),
        DataCommand::Check(args) => check(args, session),
        DataCommand::Split(args) => split(args, session),
        DataCommand::Convert(args) => convert(args, session),
        DataCommand::Formats(args) => formats(args, session),
    }
}

fn format(name: &str) -> anyhow::Result<Format> {
    name.parse().map_err(|_| {
        let known = FORMATS.iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
        ConfigError::UnknownChoice { what: "corpus format", name: name.to_owned(), known }.into()
    })
}

fn stats(args: &DataStatsArgs, session: &Session) -> anyhow::Result<()> {
    let source = source(&args.corpus, None)?;
    let config = data_config(&args.corpus)?;
    let mut rejects = Rejects::new(&args.bad_lines.path());
    let stats = with_bad_lines(args.bad_lines.skip_bad, &mut rejects, |bad| {
        corpus::stats(&source, &config, args.top, bad, &session.job())
    })?;
    session.bars.clear();
    rejects.tell(session);
    if args.json { session.output.json(&stats) } else { print_stats(&stats, session) }
}

fn print_stats(stats: &CorpusStats, session: &Session) -> anyhow::Result<()> {
    let mut table = Table::new(
        1,
        [
            "split",
            "documents",
            "empty",
            "unlabelled",
            "labels",
            "once",
            "few",
            "medium",
            "many",
            "labels/doc",
            "words",
        ],
    );
    for (name, split) in &stats.splits {
        table.row([
            name.to_string(),
            split.documents.to_string(),
            split.empty_documents.to_string(),
            split.unlabelled_documents.to_string(),
            split.labels_used.to_string(),
            split.singletons.to_string(),
            split.shots.few.to_string(),
            split.shots.medium.to_string(),
            split.shots.many.to_string(),
            format!("{:.2}", split.labels_per_document.mean),
            format!("{:.1}", split.words.mean),
        ]);
    }
    session.output.line(&table)?;
    let mut table = Table::new(2, ["split", "quantity", "min", "5%", "25%", "50%", "75%", "95%", "max"]);
    for (name, split) in &stats.splits {
        let quantities = [
            ("words", Some(split.words)),
            ("characters", Some(split.characters)),
            ("labels", Some(split.labels_per_document)),
            ("features", split.features),
        ];
        for (what, quantiles) in quantities {
            let Some(Quantiles { mean: _, min, p05, p25, p50, p75, p95, max }) = quantiles else { continue };
            let mut row = vec![name.to_string(), what.to_owned()];
            row.extend([min, p05, p25, p50, p75, p95, max].map(|value| value.to_string()));
            table.row(row);
        }
    }
    session.output.line(format!("\n{table}"))?;
    if let Some((name, split)) = stats.splits.iter().next() {
        if split.levels.len() > 1 {
            let mut table = Table::new(1, ["level", "labels", "used", "documents", "share"]);
            for level in &split.levels {
                table.row([
                    level.level.to_string(),
                    level.labels.to_string(),
                    level.labels_used.to_string(),
                    level.documents.to_string(),
                    format!("{:.3}", level.share),
                ]);
            }
            session.output.line(format!("\n{name} by level\n{table}"))?;
        }
        let mut table = Table::new(2, ["label", "name", "documents"]);
        for label in &split.top_labels {
            table.row([
                label.id.clone(),
                label.name.clone().unwrap_or_default(),
                label.documents.to_string(),
            ]);
        }
        session.output.line(format!("\nmost frequent in {name}\n{table}"))?;
        let mut table = Table::new(2, ["label", "and label", "documents"]);
        for pair in &split.top_pairs {
            table.row([pair.labels.0.clone(), pair.labels.1.clone(), pair.documents.to_string()]);
        }
        if !table.is_empty() {
            session.output.line(format!("\nmost often together in {name}\n{table}"))?;
        }
    }
    let leaks = &stats.leaks;
    if leaks.total() > 0 {
        session.output.line(format!(
            "\nleaks: {} texts of train are in test, {} of train in dev, {} of dev in test",
            leaks.train_in_test, leaks.train_in_dev, leaks.dev_in_test
        ))?;
    }
    Ok(())
}

fn check(args: &DataCheckArgs, session: &Session) -> anyhow::Result<()> {
    let report = corpus::check(&source(&args.corpus, None)?, &data_config(&args.corpus)?, &session.job())?;
    session.bars.clear();
    if args.json {
        session.output.json(&report)?;
    } else {
        session.output.line(&report)?;
    }
    if report.is_fatal() {
        bail!(ConfigError::Unclean);
    }
    if !args.json {
        session.output.line(if report.is_clean() { "ok" } else { "ok, with remarks" })?;
    }
    Ok(())
}

fn split(args: &DataSplitArgs, session: &Session) -> anyhow::Result<()> {
    if !(args.dev >= 0.0 && args.test >= 0.0 && args.dev + args.test < 1.0) {
        bail!(ConfigError::Missing(format!(
            "`--dev {}` and `--test {}` must leave something to train on",
            args.dev, args.test
        )));
    }
    let format = args.corpus_format.as_deref().map(format).transpose()?;
    let mut reader = Reader::open(&args.input, format, &args.fields.read_options())?;
    let mut documents = Vec::new();
    while let Some(document) = reader.next_document(&mut cladist_core::readers::BadLines::Stop)? {
        session.cancel.check()?;
        documents.push(document);
    }
    let gold = label_numbers(&documents);
    let stratified = !args.random;
    let (rest, test) = corpus::split(&gold, args.test, args.seed, stratified);
    let rest_gold: Vec<Vec<usize>> = rest.iter().map(|&n| gold[n].clone()).collect();
    let share = if args.test < 1.0 { args.dev / (1.0 - args.test) } else { 0.0 };
    let (train, dev) = corpus::split(&rest_gold, share, args.seed, stratified);
    let parts: [(SplitName, Vec<usize>); 3] = [
        (SplitName::Train, train.iter().map(|&n| rest[n]).collect()),
        (SplitName::Dev, dev.iter().map(|&n| rest[n]).collect()),
        (SplitName::Test, test),
    ];
    std::fs::create_dir_all(&args.out).map_err(Error::io("create", &args.out))?;
    let targets: Vec<(SplitName, PathBuf, &Vec<usize>)> = parts
        .iter()
        .filter(|(_, part)| !part.is_empty())
        .map(|(name, part)| (*name, args.out.join(format!("{name}.jsonl")), part))
        .collect();
    if let Some((_, path, _)) = targets.iter().find(|(_, path, _)| path.exists() && !args.overwrite) {
        bail!(ConfigError::Exists(path.clone()));
    }
    for (name, path, part) in targets {
        let mut writer = Writer::new(Format::Jsonl, Vec::new(), &path, &WriteOptions::default())?;
        for &n in part {
            writer.write(&documents[n])?;
        }
        cladist_core::bundle::write_atomically(&path, &writer.finish()?)?;
        session.output.line(format!("{name}: {} documents in {}", part.len(), path.display()))?;
    }
    Ok(())
}

/// Labels as numbers, for splitting: which is which does not matter.
fn label_numbers(documents: &[Document]) -> Vec<Vec<usize>> {
    let mut numbers = std::collections::HashMap::new();
    documents
        .iter()
        .map(|document| {
            let mut labels: Vec<usize> = document
                .labels
                .iter()
                .map(|label| {
                    let next = numbers.len();
                    *numbers.entry(label.as_str()).or_insert(next)
                })
                .collect();
            labels.sort_unstable();
            labels.dedup();
            labels
        })
        .collect()
}

fn convert(args: &DataConvertArgs, session: &Session) -> anyhow::Result<()> {
    let from = args.from.as_deref().map(format).transpose()?;
    let to = format(&args.to)?;
    let normalise = Normalise {
        lowercase: args.lowercase,
        drop_numbers: args.drop_numbers,
        drop_punctuation: args.drop_punctuation,
        drop_stopwords: args.drop_stopwords,
    };
    let options = args.fields.read_options();
    let mut rejects = Rejects::new(&args.bad_lines.path());
    // The header of an xmc file counts the documents, so they are read twice.
    let mut shape = Shape::default();
    if to == Format::Xmc {
        each(args, from, &options, &mut Rejects::new(&args.bad_lines.path()), session, |document| {
            shape.add(&document);
            Ok(())
        })?;
    }
    let write_options =
        WriteOptions { shape: Some(shape), replace_spaces: args.replace_spaces, ..WriteOptions::default() };
    let written = if args.output == Path::new("-") {
        write(
            args,
            from,
            to,
            &options,
            &write_options,
            normalise,
            &mut rejects,
            session,
            BufWriter::new(io::stdout().lock()),
        )
        .map(|(tally, _)| tally)
    } else {
        let draft = DraftFile::create(&args.output)?;
        write(args, from, to, &options, &write_options, normalise, &mut rejects, session, draft)
            .and_then(|(tally, draft)| Ok(draft.commit().map(|()| tally)?))
    };
    session.bars.clear();
    let tally = written?;
    rejects.tell(session);
    session.output.note(format!(
        "{} read = {} written + {} rejected + {} left out",
        tally.read, tally.kept, tally.rejected, tally.dropped
    ));
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "one call, two kinds of output")]
fn write<W: Write>(
    args: &DataConvertArgs,
    from: Option<Format>,
    to: Format,
    options: &ReadOptions,
    write_options: &WriteOptions,
    normalise: Normalise,
    rejects: &mut Rejects,
    session: &Session,
    sink: W,
) -> anyhow::Result<(cladist_core::readers::Tally, W)> {
    let mut writer = Writer::new(to, sink, &args.output, write_options)?;
    let tally = each(args, from, options, rejects, session, |mut document| {
        if !normalise.is_identity() {
            document.text = normalise.apply(&document.text).into_owned();
        }
        writer.write(&document)
    })?;
    Ok((tally, writer.finish()?))
}

fn each(
    args: &DataConvertArgs,
    from: Option<Format>,
    options: &ReadOptions,
    rejects: &mut Rejects,
    session: &Session,
    mut take: impl FnMut(Document) -> cladist_core::Result<()>,
) -> anyhow::Result<cladist_core::readers::Tally> {
    let job = session.job();
    job.progress.stage("convert", 0);
    let mut reader = Reader::open(&args.input, from, options)?;
    with_bad_lines(args.bad_lines.skip_bad, rejects, |bad| {
        while let Some(document) = reader.next_document(bad)? {
            job.cancel.check()?;
            job.progress.advance(1);
            take(document)?;
        }
        Ok(())
    })
    .with_context(|| format!("cannot convert `{}`", args.input.display()))?;
    Ok(reader.tally())
}

fn formats(args: &JsonArgs, session: &Session) -> anyhow::Result<()> {
    if args.json {
        let rows: Vec<_> = FORMATS
            .iter()
            .map(|i| json!({"name": i.name, "endings": i.endings, "folder": i.is_folder(), "writable": i.is_writable(), "description": i.description}))
            .collect();
        return session.output.json(&rows);
    }
    let mut table = Table::new(4, ["format", "files", "can", "what it is"]);
    for info in &FORMATS {
        let files = if info.is_folder() { "a folder".to_owned() } else { info.endings.join(" ") };
        table.row([
            info.name,
            &files,
            if info.is_writable() { "read, write" } else { "read" },
            info.description,
        ]);
    }
    session.output.line(table)
}
