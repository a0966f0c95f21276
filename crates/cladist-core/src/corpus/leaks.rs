//! Texts that are in two splits: what a model has seen in training should not measure it.

use std::collections::HashMap;

use serde::Serialize;

use super::SplitName;
use crate::document::Document;

/// How many leaks a report lists.
const SHOWN: usize = 20;

/// Texts shared by splits. A document counts once, against the first split that has its text: test, then dev.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LeakReport {
    /// Train documents whose text is in dev.
    pub train_in_dev: usize,
    /// Train documents whose text is in test.
    pub train_in_test: usize,
    /// Dev documents whose text is in test.
    pub dev_in_test: usize,
    /// Some of them.
    pub examples: Vec<Leak>,
    /// Train documents that were dropped for it.
    pub dropped: usize,
}

/// One text in two splits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leak {
    /// The split that should not know it.
    pub split: SplitName,
    /// The document there.
    pub id: String,
    /// The split it is from.
    pub other_split: SplitName,
    /// The document there.
    pub other_id: String,
}

impl LeakReport {
    /// Leaks in all.
    #[must_use]
    pub fn total(&self) -> usize {
        self.train_in_dev + self.train_in_test + self.dev_in_test
    }

    /// Adds what a later look found.
    pub(super) fn merge(&mut self, other: Self) {
        self.train_in_dev += other.train_in_dev;
        self.train_in_test += other.train_in_test;
        self.dev_in_test += other.dev_in_test;
        self.dropped += other.dropped;
        self.examples.extend(other.examples);
        self.examples.truncate(SHOWN);
    }
}

/// Finds leaks by a 64-bit hash per text. Splits must come in the order test, dev, train; train is not remembered.
#[derive(Debug, Default)]
pub(super) struct LeakFinder {
    seen: HashMap<u64, (SplitName, Box<str>)>,
    pub(super) report: LeakReport,
}

impl LeakFinder {
    /// The order in which splits must be shown.
    pub(super) const ORDER: [SplitName; 3] = [SplitName::Test, SplitName::Dev, SplitName::Train];

    /// Looks at one document; true if its text is in a split shown before.
    pub(super) fn is_leak(&mut self, split: SplitName, document: &Document) -> bool {
        if document.is_empty() {
            return false;
        }
        let fingerprint = fingerprint(document);
        let Some((other_split, other_id)) = self.seen.get(&fingerprint) else {
            if split != SplitName::Train {
                self.seen.insert(fingerprint, (split, document.id.as_str().into()));
            }
            return false;
        };
        let counter = match (split, other_split) {
            (SplitName::Train, SplitName::Dev) => &mut self.report.train_in_dev,
            (SplitName::Train, SplitName::Test) => &mut self.report.train_in_test,
            (SplitName::Dev, SplitName::Test) => &mut self.report.dev_in_test,
            _ => return false,
        };
        *counter += 1;
        if self.report.examples.len() < SHOWN {
            self.report.examples.push(Leak {
                split,
                id: document.id.clone(),
                other_split: *other_split,
                other_id: other_id.to_string(),
            });
        }
        true
    }
}

/// A hash of the text with white space folded, or of the features.
fn fingerprint(document: &Document) -> u64 {
    let mut hasher = blake3::Hasher::new();
    match &document.features {
        Some(features) => {
            for (index, value) in features {
                hasher.update(&index.to_le_bytes());
                hasher.update(&value.to_le_bytes());
            }
        }
        None => {
            // One call per text: words are too short to hash one by one.
            let mut folded = String::with_capacity(document.text.len());
            for word in document.text.split_whitespace() {
                folded.push_str(word);
                folded.push(' ');
            }
            hasher.update(folded.as_bytes());
        }
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_two_splits_is_a_leak_whatever_its_white_space() {
        let mut finder = LeakFinder::default();
        let mut look = |split, id: &str, text: &str| finder.is_leak(split, &Document::from_text(id, text));
        assert!(!look(SplitName::Test, "t1", "a late bus"));
        assert!(!look(SplitName::Test, "t2", "  "));
        assert!(look(SplitName::Dev, "d1", " a  late\nbus "));
        assert!(!look(SplitName::Dev, "d2", "a late tram"));
        assert!(look(SplitName::Train, "r1", "a late bus"));
        assert!(look(SplitName::Train, "r2", "a late tram"));
        assert!(!look(SplitName::Train, "r3", ""));
        assert!(!look(SplitName::Train, "r4", "alate bus"));
        let report = finder.report;
        assert_eq!((report.dev_in_test, report.train_in_test, report.train_in_dev), (1, 1, 1));
        assert_eq!((report.examples[2].id.as_str(), report.examples[2].other_id.as_str()), ("r2", "d2"));
    }
}
