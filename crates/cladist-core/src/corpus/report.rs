//! What reading a corpus came to, in numbers.

use std::fmt;

use serde::Serialize;

use super::{LeakReport, MissingAncestors, SplitName, UnknownReport, VocabularyReport};
use crate::readers::{Format, Tally};

/// Everything that was counted while a corpus was read. Policies decide what happens to these documents and labels;
/// the numbers are there either way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DataReport {
    /// The taxonomy in use.
    pub vocabulary: VocabularyReport,
    /// The splits, train first.
    pub splits: Vec<SplitReport>,
    /// Gold labels that the vocabulary did not have.
    pub unknown_labels: UnknownReport,
    /// Ancestors that the gold does not name.
    pub missing_ancestors: MissingAncestors,
    /// Labels named twice by one document.
    pub repeated_labels: usize,
    /// Gold labels of dropped levels, counted each time.
    pub truncated_gold: usize,
    /// Labels that no training document has, nor any of their descendants; `None` without a train split.
    pub labels_without_documents: Option<usize>,
    /// Labels held out of training.
    pub held_out_labels: usize,
    /// Gold labels that left with either, counted each time.
    pub dropped_gold: usize,
    /// Texts in two splits.
    pub leaks: LeakReport,
}

/// What reading one split came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SplitReport {
    /// The split.
    pub name: SplitName,
    /// Its files.
    pub files: Vec<String>,
    /// The format of the first.
    pub format: Option<Format>,
    /// Whether its documents came from memory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_memory: bool,
    /// The fields or columns that make the text, in the order in which they are joined; none in formats without names
    /// for them.
    pub text_fields: Vec<String>,
    /// What the readers met.
    pub tally: Tally,
    /// Documents without text or features.
    pub empty_documents: usize,
    /// Documents without labels.
    pub unlabelled_documents: usize,
    /// Documents whose id was there before.
    pub duplicate_ids: usize,
    /// The first such id.
    pub duplicate_id: Option<RepeatedId>,
    /// Documents that a policy dropped for one of these three.
    pub dropped: usize,
    /// Documents that went to dev.
    pub held_out: usize,
    /// Documents in the split when all is done.
    pub documents: usize,
}

/// An id that was there before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepeatedId {
    /// The id.
    pub id: String,
    /// File and line of the document that has it again.
    pub place: String,
    /// File and line of the first document that has it.
    pub first: String,
}

impl SplitReport {
    pub(super) fn new(name: SplitName) -> Self {
        Self {
            name,
            files: Vec::new(),
            format: None,
            in_memory: false,
            text_fields: Vec::new(),
            tally: Tally::default(),
            empty_documents: 0,
            unlabelled_documents: 0,
            duplicate_ids: 0,
            duplicate_id: None,
            dropped: 0,
            held_out: 0,
            documents: 0,
        }
    }
}

impl DataReport {
    /// The report of a split.
    #[must_use]
    pub fn split(&self, name: SplitName) -> Option<&SplitReport> {
        self.splits.iter().find(|split| split.name == name)
    }
}

/// `1 label`, `2 labels`.
pub(super) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Writes ` n what,` for numbers that are not 0.
struct Notes<'a>(&'a [(usize, &'a str)]);

impl fmt::Display for Notes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (n, what) in self.0.iter().filter(|(n, _)| *n > 0) {
            write!(f, "{}{n} {what}", if first { "; " } else { ", " })?;
            first = false;
        }
        Ok(())
    }
}

impl fmt::Display for SplitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, counted(self.documents, "document"))?;
        match self.format {
            Some(format) => write!(f, ", {format}")?,
            None if self.in_memory => write!(f, ", in memory")?,
            None => write!(f, ", held out of train")?,
        }
        if !self.text_fields.is_empty() {
            write!(f, ", text from `{}`", self.text_fields.join("`, `"))?;
        }
        let notes = [
            (self.tally.rejected, "rejected"),
            (self.tally.dropped, "left out on request"),
            (self.held_out, "held out for dev"),
            (self.empty_documents, "empty"),
            (self.unlabelled_documents, "without labels"),
            (self.duplicate_ids, "with an id that was there before"),
            (self.dropped, "of these dropped"),
        ];
        write!(f, "{}", Notes(&notes))
    }
}

impl fmt::Display for DataReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VocabularyReport { path, labels, levels, warnings, .. } = &self.vocabulary;
        write!(f, "taxonomy: {} on {}", counted(*labels, "label"), counted(*levels, "level"))?;
        match path {
            Some(path) => write!(f, ", {path}")?,
            None => write!(f, ", the labels of the documents")?,
        }
        for warning in warnings {
            write!(f, "\n  {warning}")?;
        }
        for split in &self.splits {
            write!(f, "\n{split}")?;
        }
        let UnknownReport { labels, documents, .. } = self.unknown_labels;
        if labels > 0 {
            write!(f, "\nunknown labels: {labels} in {}", counted(documents, "document"))?;
        }
        let MissingAncestors { documents, labels, added } = self.missing_ancestors;
        if labels > 0 {
            let what = if added { "added" } else { "`data.ancestors = \"add\"` adds them" };
            write!(f, "\nmissing ancestors: {labels} in {}; {what}", counted(documents, "document"))?;
        }
        if self.truncated_gold > 0 {
            write!(f, "\ngold labels of dropped levels: {}", self.truncated_gold)?;
        }
        if self.repeated_labels > 0 {
            write!(f, "\nlabels named twice by a document: {}", self.repeated_labels)?;
        }
        if let Some(n @ 1..) = self.labels_without_documents {
            write!(f, "\nlabels without training documents: {n}")?;
        }
        if self.held_out_labels > 0 {
            write!(f, "\nlabels held out of training: {}", self.held_out_labels)?;
        }
        if self.dropped_gold > 0 {
            write!(f, "\ngold labels dropped with them: {}", self.dropped_gold)?;
        }
        if self.leaks.total() > 0 {
            let LeakReport { train_in_dev, train_in_test, dev_in_test, dropped, .. } = self.leaks;
            let notes = [
                (train_in_test, "of train in test"),
                (train_in_dev, "of train in dev"),
                (dev_in_test, "of dev in test"),
                (dropped, "dropped from train"),
            ];
            write!(f, "\nleaks{}", Notes(&notes).to_string().replacen("; ", ": ", 1))?;
        }
        Ok(())
    }
}
