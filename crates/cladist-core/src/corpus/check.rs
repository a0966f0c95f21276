//! Everything that is wrong with a corpus, in one report.

use std::fmt;

use serde::Serialize;

use super::gold::{Gold, LabelOrigins};
use super::leaks::LeakFinder;
use super::report::counted;
use super::{
    Ancestors, CorpusSource, DataConfig, DataReport, DuplicateIds, KeepOrDrop, RepeatedId, SplitName,
    UnknownLabel, each_document, vocabulary,
};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::readers::{BadLines, Reject};
use crate::taxonomy::{Closure, LabelSet};

/// How many bad lines are listed.
const SHOWN: usize = 20;
/// How much of a bad line is shown.
const CONTENT: usize = 200;

/// What is wrong with a corpus.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// What keeps the taxonomy from being built; its labels are not checked then.
    pub taxonomy_problems: Vec<String>,
    /// Files that cannot be read to their end.
    pub unreadable: Vec<String>,
    /// The first bad lines; all are counted in the tallies of `data`.
    pub bad_lines: Vec<Reject>,
    /// The counts of everything else.
    pub data: DataReport,
}

impl CheckReport {
    /// Whether [`super::load`] would stop, with the default policies.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        !self.problems().is_empty()
    }

    /// What [`super::load`] would stop at, each in a few words.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let sum = |count: fn(&super::SplitReport) -> usize| self.data.splits.iter().map(count).sum::<usize>();
        let counts = [
            (self.taxonomy_problems.len(), "taxonomy problem"),
            (self.unreadable.len(), "unreadable file"),
            (sum(|split| split.tally.rejected), "bad line"),
            (sum(|split| split.duplicate_ids), "repeated id"),
            (self.data.unknown_labels.labels, "unknown label"),
        ];
        let found = counts.into_iter().filter(|(n, _)| *n > 0);
        let mut problems: Vec<String> = found.map(|(n, what)| counted(n, what)).collect();
        let train = self.data.split(SplitName::Train);
        if train.is_some_and(|train| train.unlabelled_documents == train.documents) {
            problems.push("no training document has a label".to_owned());
        }
        problems
    }

    /// Whether there is nothing to look at: no problem, no leak, no empty or unlabelled document.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let odd = |s: &super::SplitReport| s.empty_documents > 0 || s.unlabelled_documents > 0;
        !self.is_fatal() && self.data.leaks.total() == 0 && !self.data.splits.iter().any(odd)
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.taxonomy_problems.iter().chain(&self.unreadable) {
            writeln!(f, "{problem}")?;
        }
        for bad in &self.bad_lines {
            write!(f, "{}:{}", bad.path, bad.line)?;
            if let Some(column) = bad.column {
                write!(f, ":{column}")?;
            }
            writeln!(f, ": {}", bad.reason)?;
        }
        let rejected: usize = self.data.splits.iter().map(|split| split.tally.rejected).sum();
        if rejected > self.bad_lines.len() {
            writeln!(f, "… and {} more bad lines", rejected - self.bad_lines.len())?;
        }
        write!(f, "{}", self.data)?;
        for split in &self.data.splits {
            if let Some(RepeatedId { id, place, first }) = &split.duplicate_id {
                write!(f, "\n  id `{id}` at {place} was there before, at {first}")?;
            }
        }
        for UnknownLabel { id, documents, first } in &self.data.unknown_labels.examples {
            write!(f, "\n  unknown label `{id}` in {}", counted(*documents, "document"))?;
            if let Some(first) = first {
                write!(f, ", first at {first}")?;
            }
        }
        for leak in &self.data.leaks.examples {
            let super::Leak { split, id, other_split, other_id } = leak;
            write!(f, "\n  {split} `{id}` has the text of {other_split} `{other_id}`")?;
        }
        Ok(())
    }
}

/// Looks for everything that can be wrong with a corpus, without stopping at the first and without keeping documents.
/// Policies do not count: every document is looked at.
pub fn check(source: &CorpusSource, config: &DataConfig, job: &Job<'_>) -> Result<CheckReport> {
    config.validate()?;
    source.require_utf8()?;
    let mut report = CheckReport::default();
    let taxonomy = match vocabulary::read(source, config, &mut report.data.vocabulary, job) {
        Ok(taxonomy) => taxonomy,
        Err(Error::Taxonomy(problems)) => {
            report.taxonomy_problems = problems.0.iter().map(ToString::to_string).collect();
            None
        }
        Err(other) => return Err(other),
    };
    let config = DataConfig {
        empty_documents: KeepOrDrop::Keep,
        unlabelled_documents: KeepOrDrop::Keep,
        duplicate_ids: DuplicateIds::Rename,
        ..config.clone()
    };
    let mut gold = taxonomy.as_ref().map(|taxonomy| Gold::new(taxonomy, Ancestors::Keep));
    let mut trained = taxonomy.as_ref().map(|taxonomy| vec![false; taxonomy.n_labels()]);
    let mut leaks = LeakFinder::default();
    let mut origins = LabelOrigins::default();
    let mut flat = std::collections::BTreeSet::new();
    for name in LeakFinder::ORDER {
        if source.files(name).is_empty() {
            continue;
        }
        let listed = &mut report.bad_lines;
        let mut list = |bad: crate::readers::BadLine| {
            if listed.len() < SHOWN {
                let mut reject = Reject::from(&bad);
                if let Some((end, _)) = reject.content.char_indices().nth(CONTENT) {
                    reject.content.truncate(end);
                }
                listed.push(reject);
            }
            Ok(())
        };
        let split =
            each_document(source, name, &config, &mut BadLines::Skip(&mut list), job, |document, origin| {
                origins.see(&document, origin);
                leaks.is_leak(name, &document);
                match &mut gold {
                    Some(gold) => {
                        let labels = gold.of(&document);
                        if let (SplitName::Train, Some(trained)) = (name, &mut trained) {
                            for label in &labels {
                                trained[label.index()] = true;
                            }
                        }
                    }
                    None => flat.extend(document.labels),
                }
                Ok(())
            });
        match split {
            Ok(split) => report.data.splits.push(split),
            Err(error @ (Error::Io { .. } | Error::BadLine(_))) => report.unreadable.push(error.to_string()),
            Err(other) => return Err(other),
        }
    }
    report.data.splits.sort_by_key(|split| split.name);
    report.data.leaks = leaks.report;
    if let Some(gold) = gold {
        report.data.unknown_labels = gold.unknown(&origins);
        report.data.missing_ancestors = gold.missing;
        report.data.repeated_labels = gold.repeated;
    } else if report.taxonomy_problems.is_empty() {
        report.data.vocabulary.labels = flat.len();
        report.data.vocabulary.levels = usize::from(!flat.is_empty());
    }
    if let (Some(taxonomy), Some(trained), false) = (&taxonomy, trained, source.train.is_empty()) {
        let named: LabelSet = taxonomy.labels().filter(|label| trained[label.index()]).collect();
        let used = Closure::new(taxonomy).upward(&named);
        report.data.labels_without_documents = Some(taxonomy.n_labels() - used.len());
    }
    Ok(report)
}
