//! What a corpus looks like, in numbers, from one pass over its documents.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::leaks::LeakFinder;
use super::pairs::{PairFrequency, Pairs};
use super::{CorpusSource, DataConfig, LeakReport, SplitName, VocabularyReport, each_document, vocabulary};
use crate::document::Document;
use crate::error::Result;
use crate::job::Job;
use crate::readers::BadLines;
use crate::taxonomy::Taxonomy;

/// Labels with up to this many documents are few-shot.
const FEW: u32 = 20;
/// Labels with more documents than [`FEW`] and up to this many are medium-shot; the others are many-shot.
const MEDIUM: u32 = 100;

/// How a quantity is distributed: nearest-rank quantiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The arithmetic mean.
    pub mean: f64,
    /// The smallest value.
    pub min: u32,
    /// A twentieth of the values is this or less.
    pub p05: u32,
    /// The lower quartile.
    pub p25: u32,
    /// The median.
    pub p50: u32,
    /// The upper quartile.
    pub p75: u32,
    /// All but a twentieth of the values are this or less.
    pub p95: u32,
    /// The largest value.
    pub max: u32,
}

impl Quantiles {
    /// Of some values; all zero if there are none.
    #[must_use]
    pub fn of(mut values: Vec<u32>) -> Self {
        values.sort_unstable();
        let n = values.len();
        if n == 0 {
            return Self::default();
        }
        let rank = |share: f64| values[((share * n as f64).ceil() as usize).clamp(1, n) - 1];
        let sum: u64 = values.iter().map(|&value| u64::from(value)).sum();
        Self {
            mean: sum as f64 / n as f64,
            min: values[0],
            p05: rank(0.05),
            p25: rank(0.25),
            p50: rank(0.5),
            p75: rank(0.75),
            p95: rank(0.95),
            max: values[n - 1],
        }
    }
}

/// Labels by how many documents they have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ShotCounts {
    /// In the taxonomy, and of no document.
    pub unseen: usize,
    /// 1 to 20 documents.
    pub few: usize,
    /// 21 to 100 documents.
    pub medium: usize,
    /// More.
    pub many: usize,
}

/// A label and its documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabelFrequency {
    /// The label.
    pub id: String,
    /// Its name, if the taxonomy has one.
    pub name: Option<String>,
    /// How many documents have it.
    pub documents: u32,
}

/// One level of the taxonomy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelStats {
    /// From 1.
    pub level: usize,
    /// Labels of the level.
    pub labels: usize,
    /// Those that documents have.
    pub labels_used: usize,
    /// Documents with a label of the level.
    pub documents: usize,
    /// Their share of all documents.
    pub share: f64,
}

/// What some documents look like.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Documents.
    pub documents: usize,
    /// Those without text or features.
    pub empty_documents: usize,
    /// Those without labels.
    pub unlabelled_documents: usize,
    /// Different labels.
    pub labels_used: usize,
    /// Those of them that the taxonomy does not have.
    pub unknown_labels: usize,
    /// Labels of a single document.
    pub singletons: usize,
    /// Labels by number of documents.
    pub shots: ShotCounts,
    /// Different labels of a document.
    pub labels_per_document: Quantiles,
    /// Words, separated by white space.
    pub words: Quantiles,
    /// Unicode characters.
    pub characters: Quantiles,
    /// Features, in a feature corpus.
    pub features: Option<Quantiles>,
    /// The most frequent labels.
    pub top_labels: Vec<LabelFrequency>,
    /// The pairs of labels that most often go together.
    pub top_pairs: Vec<PairFrequency>,
    /// Whether there were too many pairs to count exactly, so that counts may be too low.
    pub pairs_approximate: bool,
    /// Level by level, if there is a taxonomy.
    pub levels: Vec<LevelStats>,
}

/// Collects [`Stats`] document by document. Memory grows with labels and documents, not with text.
pub struct StatsBuilder<'a> {
    taxonomy: Option<&'a Taxonomy>,
    index: HashMap<String, u32>,
    names: Vec<String>,
    counts: Vec<u32>,
    labels_per_document: Vec<u32>,
    words: Vec<u32>,
    characters: Vec<u32>,
    features: Vec<u32>,
    pairs: Pairs,
    level_documents: Vec<usize>,
    stats: Stats,
}

impl<'a> StatsBuilder<'a> {
    /// Without documents. The taxonomy adds levels and names.
    #[must_use]
    pub fn new(taxonomy: Option<&'a Taxonomy>) -> Self {
        Self {
            taxonomy,
            index: HashMap::new(),
            names: Vec::new(),
            counts: Vec::new(),
            labels_per_document: Vec::new(),
            words: Vec::new(),
            characters: Vec::new(),
            features: Vec::new(),
            pairs: Pairs::default(),
            level_documents: vec![0; taxonomy.map_or(0, Taxonomy::n_levels)],
            stats: Stats::default(),
        }
    }

    /// Looks at one document.
    pub fn add(&mut self, document: &Document) {
        self.stats.documents += 1;
        self.stats.empty_documents += usize::from(document.is_empty());
        self.stats.unlabelled_documents += usize::from(document.labels.is_empty());
        match &document.features {
            Some(features) => self.features.push(features.len() as u32),
            None => {
                self.words.push(document.text.split_whitespace().count() as u32);
                self.characters.push(document.text.chars().count() as u32);
            }
        }
        let mut labels: Vec<u32> = document.labels.iter().map(|label| self.label(label)).collect();
        labels.sort_unstable();
        labels.dedup();
        self.labels_per_document.push(labels.len() as u32);
        for (n, &a) in labels.iter().enumerate() {
            self.counts[a as usize] += 1;
            for &b in &labels[n + 1..] {
                self.pairs.add(a, b);
            }
        }
        if let Some(taxonomy) = self.taxonomy {
            let mut levels: Vec<usize> =
                document.labels.iter().filter_map(|id| Some(taxonomy.level(taxonomy.get(id)?))).collect();
            levels.sort_unstable();
            levels.dedup();
            for level in levels {
                self.level_documents[level - 1] += 1;
            }
        }
    }

    fn label(&mut self, id: &str) -> u32 {
        if let Some(&label) = self.index.get(id) {
            return label;
        }
        let label = self.names.len() as u32;
        self.index.insert(id.to_owned(), label);
        self.names.push(id.to_owned());
        self.counts.push(0);
        label
    }

    /// The numbers, with `top` labels and pairs.
    #[must_use]
    pub fn finish(self, top: usize) -> Stats {
        let known = |id: &str| self.taxonomy.and_then(|taxonomy| taxonomy.get(id));
        let mut shots = ShotCounts::default();
        for &count in &self.counts {
            let class = if count <= FEW {
                &mut shots.few
            } else if count <= MEDIUM {
                &mut shots.medium
            } else {
                &mut shots.many
            };
            *class += 1;
        }
        let unknown_labels = match self.taxonomy {
            Some(_) => self.names.iter().filter(|id| known(id).is_none()).count(),
            None => 0,
        };
        if let Some(taxonomy) = self.taxonomy {
            shots.unseen = taxonomy.n_labels() - (self.names.len() - unknown_labels);
        }
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by(|&a, &b| {
            self.counts[b].cmp(&self.counts[a]).then_with(|| self.names[a].cmp(&self.names[b]))
        });
        let named = |id: &String| {
            let label = known(id).zip(self.taxonomy);
            label.and_then(|(label, taxonomy)| taxonomy.label(label).name.clone())
        };
        let top_labels = order.iter().take(top).map(|&label| LabelFrequency {
            id: self.names[label].clone(),
            name: named(&self.names[label]),
            documents: self.counts[label],
        });
        let levels = self.level_documents.iter().enumerate().map(|(n, &documents)| {
            let labels = self.taxonomy.map_or(&[][..], |taxonomy| taxonomy.labels_at(n + 1));
            let used = |id: &str| self.index.contains_key(id);
            LevelStats {
                level: n + 1,
                labels: labels.len(),
                labels_used: labels.iter().filter(|&&l| self.taxonomy.is_some_and(|t| used(t.id(l)))).count(),
                documents,
                share: documents as f64 / self.stats.documents.max(1) as f64,
            }
        });
        Stats {
            labels_used: self.names.len(),
            unknown_labels,
            singletons: self.counts.iter().filter(|&&count| count == 1).count(),
            shots,
            top_labels: top_labels.collect(),
            top_pairs: self.pairs.top(top, &self.names),
            pairs_approximate: self.pairs.approximate,
            levels: levels.collect(),
            labels_per_document: Quantiles::of(self.labels_per_document),
            words: Quantiles::of(self.words),
            characters: Quantiles::of(self.characters),
            features: (!self.features.is_empty()).then(|| Quantiles::of(self.features)),
            ..self.stats
        }
    }
}

/// What a corpus looks like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CorpusStats {
    /// The taxonomy, if the corpus has one.
    pub vocabulary: Option<VocabularyReport>,
    /// Split by split.
    pub splits: BTreeMap<SplitName, Stats>,
    /// Texts in two splits.
    pub leaks: LeakReport,
}

/// Looks at a corpus in one pass, with `top` labels and pairs for each split.
pub fn stats(
    source: &CorpusSource,
    config: &DataConfig,
    top: usize,
    bad_lines: &mut BadLines<'_>,
    job: &Job<'_>,
) -> Result<CorpusStats> {
    config.validate()?;
    let mut report = VocabularyReport::default();
    let taxonomy = vocabulary::read(source, config, &mut report, job)?;
    let mut splits = BTreeMap::new();
    let mut leaks = LeakFinder::default();
    for name in LeakFinder::ORDER {
        if source.files(name).is_empty() {
            continue;
        }
        let mut builder = StatsBuilder::new(taxonomy.as_ref());
        each_document(source, name, config, bad_lines, job, |document, _| {
            leaks.is_leak(name, &document);
            builder.add(&document);
            Ok(())
        })?;
        splits.insert(name, builder.finish(top));
    }
    Ok(CorpusStats { vocabulary: taxonomy.map(|_| report), splits, leaks: leaks.report })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taxonomy::{Builder, Origin};

    fn document(id: &str, text: &str, labels: &[&str]) -> Document {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        Document { labels, ..Document::from_text(id, text) }
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let quantiles = Quantiles::of((1..=100).rev().collect());
        assert_eq!((quantiles.p05, quantiles.p50, quantiles.p95, quantiles.mean), (5, 50, 95, 50.5));
        assert_eq!(Quantiles::of(vec![7]).p95, 7);
        assert_eq!(Quantiles::of(vec![]), Quantiles::default());
    }

    #[test]
    fn a_small_corpus_is_counted_by_hand() {
        let here = Origin::default();
        let mut builder = Builder::new();
        builder.edge(None, "a", &here);
        builder.edge(Some("a"), "b", &here);
        builder.edge(Some("a"), "c", &here);
        builder.name("b", "Bee", &here);
        let taxonomy = builder.build().unwrap();
        let mut stats = StatsBuilder::new(Some(&taxonomy));
        stats.add(&document("1", "two words", &["a", "b", "b"]));
        stats.add(&document("2", "", &["b", "a", "x"]));
        stats.add(&document("3", "drei Wörter da", &[]));
        let stats = stats.finish(2);
        assert_eq!((stats.documents, stats.empty_documents, stats.unlabelled_documents), (3, 1, 1));
        assert_eq!((stats.labels_used, stats.unknown_labels, stats.singletons), (3, 1, 1));
        assert_eq!(stats.shots, ShotCounts { unseen: 1, few: 3, medium: 0, many: 0 });
        assert_eq!((stats.words.max, stats.characters.max, stats.labels_per_document.max), (3, 14, 3));
        assert_eq!(stats.top_labels[1].name.as_deref(), Some("Bee"));
        assert_eq!(stats.top_pairs[0].labels, ("a".to_owned(), "b".to_owned()));
        assert_eq!(stats.top_pairs[0].documents, 2);
        let levels: Vec<_> = stats.levels.iter().map(|l| (l.labels, l.labels_used, l.documents)).collect();
        assert_eq!(levels, [(1, 1, 2), (2, 1, 2)]);
    }
}
