//! Whole corpora: splits, their gold sets, the vocabulary they share, and the policies for what is not as it
//! should be.
//!
//! [`load`] reads a corpus for training, [`load_split`] one split for a taxonomy that is given (that of a trained
//! model); both count in a [`DataReport`] what they met. [`check`] and [`stats()`] stream, so that a corpus need not
//! fit into memory to be looked at.

mod check;
mod config;
mod error;
mod gold;
mod held_out;
mod leaks;
mod pairs;
mod read;
mod report;
mod source;
mod split;
mod stats;
mod truncate;
mod vocabulary;

#[cfg(test)]
mod odd_corpora;
#[cfg(test)]
mod tests;

pub use check::{CheckReport, check};
pub use config::{
    Ancestors, DataConfig, DuplicateIds, DuplicatesAcrossSplits, KeepOrDrop, LabelsWithoutDocuments,
    UnknownLabels,
};
pub use error::CorpusError;
pub use gold::{MissingAncestors, UnknownLabel, UnknownReport};
pub use leaks::{Leak, LeakReport};
pub use pairs::PairFrequency;
pub use read::each_document;
pub use report::{DataReport, RepeatedId, SplitReport};
pub use source::{CorpusSource, SplitName};
pub use split::split;
pub use stats::{CorpusStats, LabelFrequency, LevelStats, Quantiles, ShotCounts, Stats, StatsBuilder, stats};
pub use vocabulary::VocabularyReport;

use crate::document::Document;
use crate::error::{Error, Result};
use crate::job::{Cancel, Job};
use crate::readers::BadLines;
use crate::taxonomy::{Closure, LabelSet, Taxonomy};
use gold::{Gold, LabelOrigins};
use leaks::LeakFinder;
use truncate::Cut;

/// Documents with their gold sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// The part they play.
    pub name: SplitName,
    /// The documents, in file order.
    pub documents: Vec<Document>,
    /// The gold set of each.
    pub gold: Vec<LabelSet>,
}

/// A corpus in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Corpus {
    /// The labels.
    pub taxonomy: Taxonomy,
    /// Documents to learn from.
    pub train: Option<Split>,
    /// Documents to choose by; from the corpus, or held out of train.
    pub dev: Option<Split>,
    /// Documents to measure with.
    pub test: Option<Split>,
}

impl Corpus {
    /// A split, if the corpus has it.
    #[must_use]
    pub fn split(&self, name: SplitName) -> Option<&Split> {
        match name {
            SplitName::Train => self.train.as_ref(),
            SplitName::Dev => self.dev.as_ref(),
            SplitName::Test => self.test.as_ref(),
        }
    }
}

/// Reads every split that the source has, and its vocabulary; without one, the labels of the documents make it.
///
/// With `dev` set, and no dev split, that share of train is held out. Which documents are held out depends on the
/// files, the seed and the policies on documents, not on the taxonomy.
pub fn load(
    source: &CorpusSource,
    config: &DataConfig,
    bad_lines: &mut BadLines<'_>,
    job: &Job<'_>,
) -> Result<(Corpus, DataReport)> {
    config.validate()?;
    source.require_utf8()?;
    let mut report = DataReport::default();
    let mut origins = LabelOrigins::default();
    let vocabulary = vocabulary::read(source, config, &mut report.vocabulary, job)?;
    let mut splits = assemble(source, config, bad_lines, job, &mut report, &mut origins)?;
    let mut taxonomy = match vocabulary {
        Some(taxonomy) => taxonomy,
        None => vocabulary::of_documents(splits.iter().flat_map(|(_, documents)| documents)),
    };
    if config.truncates() {
        let cut = Cut::new(taxonomy, config)?;
        let documents = splits.iter_mut().flat_map(|(_, documents)| documents);
        report.truncated_gold = documents.map(|document| cut.apply(document)).sum();
        taxonomy = cut.into_taxonomy();
    }
    let documents = || splits.iter().flat_map(|(_, documents)| documents);
    let extended = {
        let mut gold = Gold::new(&taxonomy, Ancestors::Keep);
        for document in documents() {
            gold.of(document);
        }
        report.unknown_labels = gold.unknown(&origins);
        match config.unknown_labels {
            UnknownLabels::Error => report.unknown_labels.refuse().map(|()| None)?,
            UnknownLabels::Drop => None,
            UnknownLabels::Add => Some(taxonomy.extended(&Taxonomy::flat(gold.unknown_labels()))?),
        }
    };
    taxonomy = extended.unwrap_or(taxonomy);
    if let Some((_, train)) = splits.iter().find(|(name, _)| *name == SplitName::Train) {
        require_labels(train)?;
        let used = used_labels(&taxonomy, train);
        report.labels_without_documents = Some(taxonomy.n_labels() - used.len());
        if config.labels_without_documents == LabelsWithoutDocuments::Drop && used.len() < taxonomy.n_labels()
        {
            taxonomy = taxonomy.restrict(&used);
        }
        let gone = held_out::choose(&taxonomy, train, config.hold_out_labels, config.seed);
        if !gone.is_empty() {
            report.held_out_labels = gone.len();
            held_out::drop_documents(&mut splits, &taxonomy, &gone);
            taxonomy = taxonomy.without(&gone);
        }
    }
    report.vocabulary.count(&taxonomy);

    let mut gold = Gold::new(&taxonomy, config.ancestors);
    let splits: Vec<Split> = splits.into_iter().map(|split| with_gold(split, &mut gold)).collect();
    report.missing_ancestors = gold.missing;
    report.repeated_labels = gold.repeated;
    let known_before =
        if config.unknown_labels == UnknownLabels::Drop { report.unknown_labels.occurrences } else { 0 };
    report.dropped_gold = gold.occurrences() - known_before;

    let mut corpus = Corpus { taxonomy, train: None, dev: None, test: None };
    for split in splits {
        match split.name {
            SplitName::Train => corpus.train = Some(split),
            SplitName::Dev => corpus.dev = Some(split),
            SplitName::Test => corpus.test = Some(split),
        }
    }
    Ok((corpus, report))
}

/// Reads one split for a taxonomy that stays as it is, so that labels cannot be added: `unknown_labels = "add"` is
/// `drop` here. So is `error` where labels were held out or those without documents dropped, because then gold labels
/// may well be missing.
///
/// A dev split that training held out of train is held out in the same way again.
pub fn load_split(
    source: &CorpusSource,
    name: SplitName,
    taxonomy: &Taxonomy,
    config: &DataConfig,
    bad_lines: &mut BadLines<'_>,
    job: &Job<'_>,
) -> Result<(Split, DataReport)> {
    config.validate()?;
    let mut report = DataReport::default();
    report.vocabulary.count(taxonomy);
    let holds_out = source.dev.is_empty() && config.dev > 0.0 && name != SplitName::Test;
    let drops_leaks =
        name == SplitName::Train && config.duplicates_across_splits == DuplicatesAcrossSplits::DropFromTrain;
    let mut origins = LabelOrigins::default();
    let splits = if holds_out || drops_leaks {
        assemble(source, config, bad_lines, job, &mut report, &mut origins)?
    } else {
        assemble(&source.clone().only(&[name]), config, bad_lines, job, &mut report, &mut origins)?
    };
    let split = splits.into_iter().find(|(found, _)| *found == name);
    let mut split = split.ok_or(Error::Corpus(CorpusError::MissingSplit(name)))?;
    report.splits.retain(|split| split.name == name);
    if let Some(cut) = Cut::of_source(source, config, job)? {
        report.truncated_gold = split.1.iter_mut().map(|document| cut.apply(document)).sum();
    }

    let mut gold = Gold::new(taxonomy, config.ancestors);
    let split = with_gold(split, &mut gold);
    report.unknown_labels = gold.unknown(&origins);
    report.missing_ancestors = gold.missing;
    report.repeated_labels = gold.repeated;
    if config.unknown_labels == UnknownLabels::Error
        && config.labels_without_documents == LabelsWithoutDocuments::Keep
        && config.hold_out_labels == 0.0
    {
        report.unknown_labels.refuse()?;
    }
    Ok((split, report))
}

type Documents = (SplitName, Vec<Document>);

/// Reads the splits, finds leaks and holds out dev; train first.
fn assemble(
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
    find_leaks(&mut splits, config, report, &job.cancel)?;
    if config.dev > 0.0 && source.dev.is_empty() && !source.train.is_empty() {
        hold_out(&mut splits, config, report, &job.cancel)?;
        // Train and the new dev may share texts; what they share with test was counted before.
        let (mut sides, rest): (Vec<_>, Vec<_>) =
            splits.into_iter().partition(|(name, _)| *name != SplitName::Test);
        find_leaks(&mut sides, config, report, &job.cancel)?;
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

fn find_leaks(
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
fn hold_out(
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

fn require_labels(train: &[Document]) -> Result<()> {
    if train.iter().all(|document| document.labels.is_empty()) {
        return Err(CorpusError::NoLabels { split: SplitName::Train, documents: train.len() }.into());
    }
    Ok(())
}

/// The labels of documents and their ancestors.
fn used_labels(taxonomy: &Taxonomy, documents: &[Document]) -> LabelSet {
    let named: LabelSet =
        documents.iter().flat_map(|d| d.labels.iter().filter_map(|l| taxonomy.get(l))).collect();
    Closure::new(taxonomy).upward(&named)
}

fn with_gold((name, documents): Documents, gold: &mut Gold<'_>) -> Split {
    let gold = documents.iter().map(|document| gold.of(document)).collect();
    Split { name, documents, gold }
}
