//! Where a corpus is: the files of its splits and of its vocabulary.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::CorpusError;
use crate::error::{Error, Result};
use crate::readers::{FORMATS, list, uncompressed};

/// The part a document plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitName {
    /// Learnt from.
    Train,
    /// Used to choose: thresholds, calibration, when to stop.
    Dev,
    /// Used to measure, once.
    Test,
}

impl SplitName {
    /// All of them, in the usual order.
    pub const ALL: [Self; 3] = [Self::Train, Self::Dev, Self::Test];

    fn from_stem(stem: &str) -> Option<Self> {
        match stem.to_ascii_lowercase().as_str() {
            "train" => Some(Self::Train),
            "dev" | "validation" | "valid" | "val" => Some(Self::Dev),
            "test" => Some(Self::Test),
            _ => None,
        }
    }
}

impl fmt::Display for SplitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Train => "train",
            Self::Dev => "dev",
            Self::Test => "test",
        })
    }
}

impl FromStr for SplitName {
    type Err = CorpusError;
    fn from_str(name: &str) -> Result<Self, CorpusError> {
        Self::from_stem(name).ok_or_else(|| CorpusError::UnknownSplit(name.to_owned()))
    }
}

/// The files of a corpus. A split may be several files, or a folder in a folder format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CorpusSource {
    /// Files of the train split.
    pub train: Vec<PathBuf>,
    /// Files of the dev split.
    pub dev: Vec<PathBuf>,
    /// Files of the test split.
    pub test: Vec<PathBuf>,
    /// The hierarchy, in any format of [`crate::taxonomy::io`].
    pub taxonomy: Option<PathBuf>,
    /// Label names and descriptions; without a taxonomy, the list of labels.
    pub names: Option<PathBuf>,
    /// How to read these two.
    pub vocabulary: crate::taxonomy::io::ReadOptions,
}

/// Endings of hierarchy files, the likeliest first.
const TAXONOMY_ENDINGS: [&str; 8] = ["json", "tsv", "taxonomy", "ttl", "rdf", "xml", "nt", "txt"];

impl CorpusSource {
    /// Finds the files of a corpus folder.
    ///
    /// Splits are `train`, `dev` (or `validation`, `valid`, `val`) and `test` with an ending of a known format,
    /// `.gz` and `.zst` allowed, or folders of these names. The hierarchy is `hierarchy.*` or `taxonomy.*`, or else
    /// the one `*.taxonomy` or `*.ttl`; names are in `labels.tsv`.
    pub fn folder(folder: &Path) -> Result<Self> {
        let mut source = Self::default();
        let mut others = Vec::new();
        for path in list(folder)? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let is_folder = path.is_dir();
            let (stem, ending) = uncompressed(name).split_once('.').unwrap_or((uncompressed(name), ""));
            let readable = match (is_folder, ending) {
                (true, "") => true,
                // A folder that is called like a file is opened like one and refused there, not passed over.
                (_, ending) => {
                    let ending = ending.to_ascii_lowercase();
                    FORMATS.iter().any(|info| info.endings.contains(&ending.as_str()))
                }
            };
            match SplitName::from_stem(stem) {
                Some(split) if readable => {
                    let files = source.files_mut(split);
                    if let Some(first) = files.first() {
                        return Err(CorpusError::TwoFiles {
                            what: split.to_string(),
                            first: first.clone(),
                            second: path,
                        }
                        .into());
                    }
                    files.push(path);
                }
                _ => others.push((uncompressed(name).to_owned(), path)),
            }
        }
        if SplitName::ALL.iter().all(|&split| source.files(split).is_empty()) {
            return Err(CorpusError::NoSplit(folder.to_owned()).into());
        }
        source.names = find(&others, |name| name == "labels.tsv")?;
        for stem in ["hierarchy", "taxonomy"] {
            for ending in TAXONOMY_ENDINGS {
                if source.taxonomy.is_none() {
                    source.taxonomy = find(&others, |name| name == format!("{stem}.{ending}"))?;
                }
            }
        }
        for ending in [".taxonomy", ".ttl", ".rdf"] {
            if source.taxonomy.is_none() {
                source.taxonomy = find(&others, |name| name.ends_with(ending))?;
            }
        }
        Ok(source)
    }

    /// The files of a split; none if the corpus has no such split.
    #[must_use]
    pub fn files(&self, split: SplitName) -> &[PathBuf] {
        match split {
            SplitName::Train => &self.train,
            SplitName::Dev => &self.dev,
            SplitName::Test => &self.test,
        }
    }

    fn files_mut(&mut self, split: SplitName) -> &mut Vec<PathBuf> {
        match split {
            SplitName::Train => &mut self.train,
            SplitName::Dev => &mut self.dev,
            SplitName::Test => &mut self.test,
        }
    }

    /// The same corpus with these splits only.
    #[must_use]
    pub fn only(mut self, splits: &[SplitName]) -> Self {
        for split in SplitName::ALL.into_iter().filter(|split| !splits.contains(split)) {
            self.files_mut(split).clear();
        }
        self
    }

    /// An error if a run could not write down where its corpus is.
    pub(super) fn require_utf8(&self) -> Result<()> {
        let Self { train, dev, test, taxonomy, names, vocabulary } = self;
        let mut paths =
            train.iter().chain(dev).chain(test).chain(taxonomy).chain(names).chain(&vocabulary.names);
        match paths.find(|path| path.to_str().is_none()) {
            Some(path) => Err(CorpusError::PathNotUtf8(path.clone()).into()),
            None => Ok(()),
        }
    }

    /// An error if the split has no files.
    pub(super) fn require(&self, split: SplitName) -> Result<()> {
        if self.files(split).is_empty() {
            Err(Error::Corpus(CorpusError::MissingSplit(split)))
        } else {
            Ok(())
        }
    }
}

/// The one file whose name fits.
fn find(files: &[(String, PathBuf)], fits: impl Fn(&str) -> bool) -> Result<Option<PathBuf>> {
    let mut fitting = files.iter().filter(|(name, _)| fits(name)).map(|(_, path)| path);
    match (fitting.next(), fitting.next()) {
        (Some(first), Some(second)) => {
            let (first, second) = (first.clone(), second.clone());
            Err(CorpusError::TwoFiles { what: "taxonomy".to_owned(), first, second }.into())
        }
        (found, _) => Ok(found.cloned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> (tempfile::TempDir, Result<CorpusSource>) {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            if name.ends_with('/') {
                std::fs::create_dir(path).unwrap();
            } else {
                std::fs::write(path, "").unwrap();
            }
        }
        let source = CorpusSource::folder(folder.path());
        (folder, source)
    }

    fn name(path: &Path) -> &str {
        path.file_name().unwrap().to_str().unwrap()
    }

    #[test]
    fn splits_and_vocabulary_are_found_by_name() {
        let (_folder, source) = folder(&[
            "META.json",
            "valid.csv.gz",
            "train.jsonl.zst",
            "test/",
            "labels.tsv",
            "hierarchy.tsv",
            "directory_hierarchy.tsv",
            "train.md",
        ]);
        let source = source.unwrap();
        assert_eq!(name(&source.train[0]), "train.jsonl.zst");
        assert_eq!(name(&source.dev[0]), "valid.csv.gz");
        assert_eq!(name(&source.test[0]), "test");
        assert_eq!(name(&source.taxonomy.unwrap()), "hierarchy.tsv");
        assert_eq!(name(&source.names.unwrap()), "labels.tsv");
    }

    #[test]
    fn a_lone_taxonomy_file_is_taken_by_its_ending() {
        let (_folder, source) = folder(&["train.json", "wos.taxonomy"]);
        assert_eq!(name(&source.unwrap().taxonomy.unwrap()), "wos.taxonomy");
        let (_folder, source) = folder(&["train.json", "a.taxonomy", "b.taxonomy"]);
        assert!(source.unwrap_err().to_string().contains("two files for taxonomy"));
    }

    #[test]
    fn two_files_for_a_split_and_no_split_are_errors() {
        let (_folder, source) = folder(&["dev.jsonl", "val.jsonl"]);
        assert!(source.unwrap_err().to_string().contains("two files for dev"));
        let (_folder, source) = folder(&["labels.tsv"]);
        assert!(source.unwrap_err().to_string().contains("no train, dev or test file"));
    }
}
