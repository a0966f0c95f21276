//! `cladist data split`: one file into train, dev and test.

use std::path::PathBuf;

use cladist_core::corpus::{self, SplitName};
use cladist_core::readers::{BadLines, Format, Reader, WriteOptions, Writer};
use cladist_core::{Document, Error, bundle};

use crate::args::DataSplitArgs;
use crate::error::Usage;
use crate::flags::format;
use crate::session::Session;

/// Splits one file into train, dev and test.
pub(super) fn run(args: &DataSplitArgs, session: &Session) -> anyhow::Result<()> {
    if !(args.dev >= 0.0 && args.test >= 0.0 && args.dev + args.test < 1.0) {
        return Err(Usage::Value {
            flag: "--dev` and `--test",
            expected: "shares that leave something to train on",
            value: format!("{} and {}", args.dev, args.test),
        }
        .into());
    }
    let format = args.corpus_format.as_deref().map(format).transpose()?;
    let mut reader = Reader::open(&args.input, format, &args.fields.read_options(&session.cancel))?;
    let mut documents = Vec::new();
    while let Some(document) = reader.next_document(&mut BadLines::Stop)? {
        session.cancel.check()?;
        documents.push(document);
    }
    let gold = label_numbers(&documents);
    let stratified = !args.random;
    let (rest, test) = corpus::split(&gold, args.test, args.seed, stratified, &session.cancel)?;
    let rest_gold: Vec<Vec<usize>> = rest.iter().map(|&n| gold[n].clone()).collect();
    let share = if args.test < 1.0 { args.dev / (1.0 - args.test) } else { 0.0 };
    let (train, dev) = corpus::split(&rest_gold, share, args.seed, stratified, &session.cancel)?;
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
        return Err(Usage::Exists(path.clone()).into());
    }
    for (name, path, part) in targets {
        let mut writer = Writer::new(Format::Jsonl, Vec::new(), &path, &WriteOptions::default())?;
        for &n in part {
            writer.write(&documents[n])?;
        }
        bundle::write_atomically(&path, &writer.finish()?)?;
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
