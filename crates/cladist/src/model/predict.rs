//! Labels for documents.

use std::ops::RangeInclusive;

use cladist_core::classifier::LabelSequence;
use cladist_core::decode::Decoder;
use cladist_core::{Classifier, Document, Request};
use serde::{Deserialize, Serialize};

use super::{DecodeOptions, Model};
use crate::error::{Error, Result};
use crate::observe::Work;

/// How documents are labelled. The default answers as the model was trained to.
#[derive(Debug, Clone, Default)]
pub struct PredictOptions<'a> {
    /// How scores become label sets. `top_k` alone asks for the best labels whatever their probability.
    pub decode: DecodeOptions,
    /// Only labels of these levels, from 1 and not empty; a layer-guided model runs no layer in vain.
    pub levels: Option<RangeInclusive<usize>>,
    /// Add this many of the likeliest sequences of labels, 1 to 100, of a model that emits labels in sequence.
    pub sequences: Option<usize>,
    /// Who watches, and when to stop.
    pub work: Work<'a>,
}

impl PredictOptions<'_> {
    /// The most sequences of a document that can be asked for.
    pub const MAX_SEQUENCES: usize = 100;

    /// The `k` best labels of each document.
    #[must_use]
    pub fn top_k(k: usize) -> Self {
        Self { decode: DecodeOptions { top_k: Some(k), ..DecodeOptions::default() }, ..Self::default() }
    }
}

/// The labels of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The document.
    pub id: String,
    /// Its labels, the most probable first.
    pub labels: Vec<PredictedLabel>,
    /// Sequences of labels, the likeliest first, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequences: Option<Vec<PredictedSequence>>,
}

/// A label of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictedLabel {
    /// The label.
    pub id: String,
    /// Its name, or its id if it has none.
    pub name: String,
    /// Its probability.
    pub score: f32,
    /// Its level in the taxonomy, from 1.
    pub level: usize,
}

/// Labels in the order in which a model emits them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictedSequence {
    /// Ids of the labels.
    pub labels: Vec<String>,
    /// ln P of the whole sequence, its end included.
    pub log_probability: f64,
}

impl Model {
    /// The labels of each document, in the order given. A document gets the same labels alone and among others.
    pub fn predict(&self, documents: &[Document], options: &PredictOptions<'_>) -> Result<Vec<Prediction>> {
        let decoder = self.prepare(options)?;
        let job = options.work.job();
        job.progress.stage("predict", documents.len() as u64);
        let request = Request { levels: options.levels.clone(), job, ..Request::default() };
        self.label(documents, &decoder, options.sequences, &request)
    }

    /// Checks options before the first document.
    pub(super) fn prepare(&self, options: &PredictOptions<'_>) -> Result<Decoder<'_>> {
        let n_levels = self.taxonomy().n_levels();
        if let Some(levels) =
            options.levels.as_ref().filter(|levels| levels.is_empty() || *levels.start() == 0)
        {
            let problem = format!("must be levels from 1 on, the lower one first: {levels:?}");
            return Err(Error::setting("levels", problem));
        }
        let most = PredictOptions::MAX_SEQUENCES;
        if let Some(n) = options.sequences.filter(|n| !(1..=most).contains(n)) {
            return Err(Error::setting("sequences", format!("must be 1 to {most}: {n}")));
        }
        if let Some(levels) = options.levels.as_ref().filter(|levels| *levels.start() > n_levels) {
            return Err(Error::NoSuchLevel { first: *levels.start(), n_levels });
        }
        self.decoder(&options.decode)
    }

    /// Refuses features where the model reads text, and text where it reads features.
    pub(crate) fn check_kind(&self, documents: &[Document]) -> Result<()> {
        let reads_features = self.trained_on().features;
        if documents.iter().all(|document| document.features.is_some() == reads_features) {
            return Ok(());
        }
        let (reads, given) = if reads_features { ("features", "text") } else { ("text", "features") };
        let model = format!("`{}`", self.path().display());
        Err(Error::Documents { model, reads, given })
    }

    pub(super) fn label(
        &self,
        documents: &[Document],
        decoder: &Decoder<'_>,
        sequences: Option<usize>,
        request: &Request<'_>,
    ) -> Result<Vec<Prediction>> {
        self.check_kind(documents)?;
        let pipeline = self.pipeline();
        let answers = self.threads.run(|| {
            let scores = pipeline.score(documents, request)?;
            Ok::<_, Error>(decoder.answer(&decoder.prepare(scores)))
        })?;
        let emitted = match sequences {
            None => None,
            Some(n) => {
                let quiet = Request {
                    job: cladist_core::Job {
                        cancel: request.job.cancel.clone(),
                        ..cladist_core::Job::silent()
                    },
                    ..request.clone()
                };
                let found = self.threads.run(|| pipeline.sequences(documents, n, &quiet))?;
                Some(found.ok_or(Error::Unsupported {
                    head: self.config().head(),
                    problem: "emits no sequences of labels",
                })?)
            }
        };
        let mut emitted = emitted.map(Vec::into_iter);
        let predictions = documents.iter().zip(answers.rows()).map(|(document, row)| Prediction {
            id: document.id.clone(),
            labels: row.iter().map(|&(label, score)| self.predicted(label, score)).collect(),
            sequences: emitted
                .as_mut()
                .map(|rows| rows.next().unwrap_or_default().iter().map(|one| self.sequence(one)).collect()),
        });
        Ok(predictions.collect())
    }

    fn predicted(&self, label: cladist_core::LabelId, score: f32) -> PredictedLabel {
        let taxonomy = self.taxonomy();
        PredictedLabel {
            id: taxonomy.id(label).to_owned(),
            name: taxonomy.name(label).to_owned(),
            score,
            level: taxonomy.level(label),
        }
    }

    fn sequence(&self, sequence: &LabelSequence) -> PredictedSequence {
        let taxonomy = self.taxonomy();
        PredictedSequence {
            labels: sequence.labels.iter().map(|&label| taxonomy.id(label).to_owned()).collect(),
            log_probability: sequence.log_probability,
        }
    }
}
