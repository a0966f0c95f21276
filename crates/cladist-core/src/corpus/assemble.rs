//! Splits as they are read, or taken from memory: leaks between them, and dev held out of train.

use super::gold::LabelOrigins;
use super::leaks::LeakFinder;
use super::{
    CorpusError, CorpusSource, DataConfig, DataReport, Documents, DuplicatesAcrossSplits, SplitName,
    SplitReport, each_document, split,
};
use crate::error::Result;
use crate::job::{Cancel, Job};
use crate::readers::BadLines;

/// Reads the splits, finds leaks and holds out dev; train first.
pub(super) fn assemble(
    source: &CorpusSource,
    config: &DataConfig,
    bad_lines: &mut BadLines<'_>,
    job: &Job<'_>,
    report: &mut DataReport,
    origins: &mut LabelOrigins,
) -> Result<Vec<Documents>> {
    let mut splits: Vec<Documents> = Vec::new();
    for name in SplitName::ALL {
        if source.files(name).is_empty() {
            continue;
        }
        let mut documents = Vec::new();
        let split = each_document(source, name, config, bad_lines, job, |document, origin| {
            origins.see(&document, origin);
            documents.push(document);
            Ok(())
        })?;
        report.splits.push(split);
        splits.push((name, documents));
    }
    arrange(splits, config, report, &job.cancel)
}

/// Finds leaks and holds out dev.
pub(super) fn arrange(
    mut splits: Vec<Documents>,
    config: &DataConfig,
    report: &mut DataReport,
    cancel: &Cancel,
) -> Result<Vec<Documents>> {
    find_leaks(&mut splits, config, report, cancel)?;
    if config.dev > 0.0 && has(&splits, SplitName::Train) && !has(&splits, SplitName::Dev) {
        hold_out(&mut splits, config, report, cancel)?;
        // Train and the new dev may share texts; what they share with test was counted before.
        let (mut sides, rest): (Vec<_>, Vec<_>) =
            splits.into_iter().partition(|(name, _)| *name != SplitName::Test);
        find_leaks(&mut sides, config, report, cancel)?;
        splits = sides;
        splits.extend(rest);
    }
    for (name, documents) in &splits {
        if let Some(split) = report.splits.iter_mut().find(|split| split.name == *name) {
            split.documents = documents.len();
        }
        if documents.is_empty() && *name == SplitName::Train {
            return Err(CorpusError::EmptySplit(*name).into());
        }
    }
    Ok(splits)
}

fn has(splits: &[Documents], name: SplitName) -> bool {
    splits.iter().any(|(found, _)| *found == name)
}

pub(super) fn find_leaks(
    splits: &mut [Documents],
    config: &DataConfig,
    report: &mut DataReport,
    cancel: &Cancel,
) -> Result<()> {
    let mut finder = LeakFinder::default();
    let drops = config.duplicates_across_splits == DuplicatesAcrossSplits::DropFromTrain;
    for name in LeakFinder::ORDER {
        let Some((_, documents)) = splits.iter_mut().find(|(found, _)| *found == name) else { continue };
        let before = documents.len();
        documents.retain(|document| {
            // Once stopping is asked for, nothing more is looked at.
            if cancel.is_cancelled() {
                return true;
            }
            let leaks = finder.is_leak(name, document);
            !(leaks && drops && name == SplitName::Train)
        });
        cancel.check()?;
        finder.report.dropped += before - documents.len();
    }
    report.leaks.merge(finder.report);
    Ok(())
}

/// Moves a share of train to a dev split of its own.
pub(super) fn hold_out(
    splits: &mut Vec<Documents>,
    config: &DataConfig,
    report: &mut DataReport,
    cancel: &Cancel,
) -> Result<()> {
    let Some(position) = splits.iter().position(|(name, _)| *name == SplitName::Train) else { return Ok(()) };
    let documents = std::mem::take(&mut splits[position].1);
    let labels: Vec<Vec<&str>> =
        documents.iter().map(|document| document.labels.iter().map(String::as_str).collect()).collect();
    let (_, held_out) = split(&labels, config.dev, config.seed, config.stratified, cancel)?;
    let mut is_held_out = vec![false; documents.len()];
    for document in held_out {
        is_held_out[document] = true;
    }
    let (mut train, mut dev) = (Vec::new(), Vec::new());
    for (document, held_out) in documents.into_iter().zip(is_held_out) {
        if held_out { dev.push(document) } else { train.push(document) }
    }
    if let Some(split) = report.splits.iter_mut().find(|split| split.name == SplitName::Train) {
        split.held_out = dev.len();
    }
    report.splits.insert(position + 1, SplitReport::new(SplitName::Dev));
    splits[position].1 = train;
    splits.insert(position + 1, (SplitName::Dev, dev));
    Ok(())
}
