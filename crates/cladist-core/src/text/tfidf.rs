//! TF-IDF features: sparse, L2-normalised rows of n-gram weights.
//!
//! The weight of term t in a document is tf·idf with tf = 1 + ln(count) (or the count) and
//! idf = 1 + ln((1 + N)/(1 + df)) (or 1 + ln(N/df)), for N training documents of which df contain t.

mod store;
mod terms;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::error::{Error, Result};
use crate::job::Job;
use terms::{Words, hash_written};

/// Features and their weights, ascending by feature.
pub type SparseRow = Vec<(u32, f32)>;

/// How text becomes features: the `[features]` section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeatureConfig {
    /// Shortest and longest n-gram of words; `[0, 0]` for none.
    pub word_ngrams: [usize; 2],
    /// Shortest and longest n-gram of characters within a word, its edges counting as a space; `[0, 0]` for none.
    pub char_ngrams: [usize; 2],
    /// Whether case is ignored.
    pub lowercase: bool,
    /// Whether a term's frequency counts as 1 + ln(count).
    pub sublinear_tf: bool,
    /// Whether document frequencies count one document more that contains every term.
    pub smooth_idf: bool,
    /// Whether rows are scaled to length 1; also for corpora that come as features.
    pub l2_normalise: bool,
    /// Terms in fewer training documents are ignored.
    pub min_df: usize,
    /// Terms in more than this fraction of the training documents are ignored.
    pub max_df: f64,
    /// At most this many terms, those in the most documents.
    pub max_features: usize,
    /// Only this many characters of a document are read.
    pub max_chars: usize,
}

impl Default for FeatureConfig {
    fn default() -> Self {
        Self {
            word_ngrams: [1, 2],
            char_ngrams: [0, 0],
            lowercase: true,
            sublinear_tf: true,
            smooth_idf: true,
            l2_normalise: true,
            min_df: 2,
            max_df: 1.0,
            max_features: 500_000,
            max_chars: 100_000,
        }
    }
}

impl FeatureConfig {
    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        for (key, [shortest, longest]) in
            [("features.word_ngrams", self.word_ngrams), ("features.char_ngrams", self.char_ngrams)]
        {
            let off = shortest == 0 && longest == 0;
            if !off && (shortest == 0 || shortest > longest || longest > 10) {
                let value = format!("[{shortest}, {longest}]");
                return Err(Error::setting(
                    key,
                    "two numbers from 1 to 10, the smaller first, or [0, 0]",
                    value,
                ));
            }
        }
        if self.word_ngrams[1] == 0 && self.char_ngrams[1] == 0 {
            let expected = "on, unless `features.char_ngrams` is";
            return Err(Error::setting("features.word_ngrams", expected, "[0, 0]"));
        }
        if self.min_df == 0 {
            return Err(Error::setting("features.min_df", "at least 1", self.min_df));
        }
        if !(self.max_df > 0.0 && self.max_df <= 1.0) {
            return Err(Error::setting("features.max_df", "a fraction above 0, at most 1", self.max_df));
        }
        if self.max_features == 0 || self.max_features > u32::MAX as usize {
            return Err(Error::setting("features.max_features", "1 to 4294967295", self.max_features));
        }
        if self.max_chars == 0 {
            return Err(Error::setting("features.max_chars", "at least 1", self.max_chars));
        }
        Ok(())
    }
}

/// Hashes of terms are good hashes already.
#[derive(Debug, Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type ByHash<T> = HashMap<u64, T, BuildHasherDefault<Identity>>;

/// What the features are.
#[derive(Debug, Clone, PartialEq)]
enum Vocabulary {
    /// Terms, ascending, with their inverse document frequencies.
    Terms { terms: Vec<String>, idf: Vec<f32>, index: ByHash<u32> },
    /// A corpus that came as features: their numbers in the corpus, ascending.
    Numbers(Vec<u32>),
}

/// Turns documents into sparse rows, with a vocabulary learnt from training documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectorizer {
    config: FeatureConfig,
    vocabulary: Vocabulary,
}

/// Documents per unit of parallel work: large enough that their maps are worth merging.
const CHUNK: usize = 512;

impl Vectorizer {
    /// Learns the vocabulary. If any document comes as features, all are taken as features and text is ignored.
    /// The result does not depend on the number of threads.
    pub fn fit(config: &FeatureConfig, documents: &[Document], job: &Job) -> Result<Self> {
        config.validate()?;
        let vocabulary = if documents.iter().any(|document| document.features.is_some()) {
            let mut numbers: Vec<u32> =
                documents.iter().filter_map(|d| d.features.as_ref()).flatten().map(|&(n, _)| n).collect();
            numbers.par_sort_unstable();
            numbers.dedup();
            Vocabulary::Numbers(numbers)
        } else {
            job.progress.stage("count terms", 2 * documents.len() as u64);
            let frequencies = document_frequencies(config, documents, job)?;
            let written = written_terms(config, documents, &frequencies, job)?;
            let mut chosen: Vec<(u32, String)> =
                written.into_iter().map(|(hash, term)| (frequencies[&hash], term)).collect();
            chosen.par_sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            chosen.truncate(config.max_features);
            chosen.par_sort_unstable_by(|a, b| a.1.cmp(&b.1));
            let one = f64::from(u8::from(config.smooth_idf));
            let n = documents.len() as f64 + one;
            let idf = chosen.iter().map(|&(df, _)| (1.0 + (n / (f64::from(df) + one)).ln()) as f32).collect();
            Vocabulary::of_terms(chosen.into_iter().map(|(_, term)| term).collect(), idf)
        };
        Ok(Self { config: config.clone(), vocabulary })
    }

    /// How this vectorizer was made.
    #[must_use]
    pub fn config(&self) -> &FeatureConfig {
        &self.config
    }

    /// The number of features: rows hold smaller indices only.
    #[must_use]
    pub fn n_features(&self) -> usize {
        match &self.vocabulary {
            Vocabulary::Terms { terms, .. } => terms.len(),
            Vocabulary::Numbers(numbers) => numbers.len(),
        }
    }

    /// What a feature stands for: a term, or its number in the corpus.
    #[must_use]
    pub fn feature_name(&self, feature: u32) -> Option<String> {
        match &self.vocabulary {
            Vocabulary::Terms { terms, .. } => terms.get(feature as usize).cloned(),
            Vocabulary::Numbers(numbers) => numbers.get(feature as usize).map(u32::to_string),
        }
    }

    /// The features of one document; empty if it has none that the vocabulary knows.
    #[must_use]
    pub fn transform(&self, document: &Document) -> SparseRow {
        self.transform_with(document, &mut Scratch::default())
    }

    /// The features of many documents, in parallel, in their order.
    pub fn transform_all(&self, documents: &[Document], job: &Job) -> Result<Vec<SparseRow>> {
        job.progress.stage("compute features", documents.len() as u64);
        documents
            .par_iter()
            .with_min_len(16)
            .map_init(Scratch::default, |scratch, document| {
                job.cancel.check()?;
                let row = self.transform_with(document, scratch);
                job.progress.advance(1);
                Ok(row)
            })
            .collect()
    }

    fn transform_with(&self, document: &Document, scratch: &mut Scratch) -> SparseRow {
        let mut row = match (&self.vocabulary, &document.features) {
            (Vocabulary::Terms { idf, index, .. }, None) => {
                scratch.words.read(&document.text, &self.config);
                scratch.found.clear();
                let found = &mut scratch.found;
                scratch.words.for_each_term(&self.config, |hash, _| found.extend(index.get(&hash).copied()));
                found.sort_unstable();
                found
                    .chunk_by(|a, b| a == b)
                    .map(|same| {
                        let count = same.len() as f32;
                        let tf = if self.config.sublinear_tf { 1.0 + count.ln() } else { count };
                        (same[0], tf * idf[same[0] as usize])
                    })
                    .collect()
            }
            (Vocabulary::Numbers(numbers), Some(features)) => known_features(features, numbers),
            (Vocabulary::Terms { .. }, Some(_)) | (Vocabulary::Numbers(_), None) => Vec::new(),
        };
        if self.config.l2_normalise {
            normalise(&mut row);
        }
        row
    }
}

/// Buffers that one thread reuses from document to document.
#[derive(Debug, Default)]
struct Scratch {
    words: Words,
    found: Vec<u32>,
}

impl Vocabulary {
    fn of_terms(terms: Vec<String>, idf: Vec<f32>) -> Self {
        let index = terms.iter().zip(0..).map(|(term, feature)| (hash_written(term), feature)).collect();
        Self::Terms { terms, idf, index }
    }
}

/// In how many documents each term occurs, of those that occur often enough.
fn document_frequencies(config: &FeatureConfig, documents: &[Document], job: &Job) -> Result<ByHash<u32>> {
    let mut frequencies = documents
        .par_chunks(CHUNK)
        .try_fold(
            || (ByHash::<u32>::default(), Words::default(), Vec::new()),
            |(mut counts, mut words, mut seen), chunk| {
                for document in chunk {
                    job.cancel.check()?;
                    words.read(&document.text, config);
                    seen.clear();
                    words.for_each_term(config, |hash, _| seen.push(hash));
                    seen.sort_unstable();
                    seen.dedup();
                    for &hash in &seen {
                        *counts.entry(hash).or_insert(0) += 1;
                    }
                }
                job.progress.advance(chunk.len() as u64);
                Ok((counts, words, seen))
            },
        )
        .map(|folded: Result<_>| folded.map(|(counts, ..)| counts))
        .try_reduce(ByHash::default, |a, b| {
            let (mut into, from) = if a.len() < b.len() { (b, a) } else { (a, b) };
            for (hash, count) in from {
                *into.entry(hash).or_insert(0) += count;
            }
            Ok(into)
        })?;
    let most = (config.max_df * documents.len() as f64).floor() as usize;
    frequencies.retain(|_, count| (config.min_df..=most).contains(&(*count as usize)));
    Ok(frequencies)
}

/// The terms behind hashes; of two terms with one hash, the smaller.
fn written_terms(
    config: &FeatureConfig,
    documents: &[Document],
    wanted: &ByHash<u32>,
    job: &Job,
) -> Result<ByHash<String>> {
    documents
        .par_chunks(CHUNK)
        .try_fold(
            || (ByHash::<String>::default(), Words::default()),
            |(mut written, mut words), chunk| {
                for document in chunk {
                    job.cancel.check()?;
                    words.read(&document.text, config);
                    words.for_each_term(config, |hash, term| {
                        if wanted.contains_key(&hash) {
                            match written.entry(hash) {
                                Entry::Vacant(entry) => _ = entry.insert(term.written()),
                                Entry::Occupied(entry) if term.is(entry.get()) => {}
                                Entry::Occupied(mut entry) => keep_smaller(entry.get_mut(), term.written()),
                            }
                        }
                    });
                }
                job.progress.advance(chunk.len() as u64);
                Ok((written, words))
            },
        )
        .map(|folded: Result<_>| folded.map(|(written, _)| written))
        .try_reduce(ByHash::default, |a, b| {
            let (mut into, from) = if a.len() < b.len() { (b, a) } else { (a, b) };
            for (hash, term) in from {
                match into.entry(hash) {
                    Entry::Vacant(entry) => _ = entry.insert(term),
                    Entry::Occupied(mut entry) => keep_smaller(entry.get_mut(), term),
                }
            }
            Ok(into)
        })
}

fn keep_smaller(kept: &mut String, term: String) {
    if term < *kept {
        *kept = term;
    }
}

/// Keeps finite, non-zero features that training saw, ascending and without repetition.
fn known_features(features: &[(u32, f32)], numbers: &[u32]) -> SparseRow {
    let mut row: SparseRow = features
        .iter()
        .filter(|(_, value)| value.is_finite() && *value != 0.0)
        .filter_map(|&(number, value)| Some((numbers.binary_search(&number).ok()? as u32, value)))
        .collect();
    row.sort_by_key(|&(feature, _)| feature);
    row.dedup_by_key(|&mut (feature, _)| feature);
    row
}

fn normalise(row: &mut SparseRow) {
    let squares: f64 = row.iter().map(|&(_, value)| f64::from(value).powi(2)).sum();
    if squares > 0.0 {
        let scale = squares.sqrt().recip();
        for (_, value) in row {
            *value = (f64::from(*value) * scale) as f32;
        }
    }
}

#[cfg(test)]
mod tests;
