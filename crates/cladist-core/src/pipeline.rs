//! A model with what goes before and after it: text normalisation, and calibration of its scores.

use std::sync::Arc;

use crate::calibrate::Calibration;
use crate::classifier::{Classifier, LabelSequence, Request};
use crate::document::Document;
use crate::error::Result;
use crate::mixed::MemberScores;
use crate::scores::Scores;
use crate::taxonomy::Taxonomy;
use crate::text::normalise::Normalise;
use crate::text::tfidf::SparseRow;

/// What a bundle holds and every command runs: normalise, score, calibrate.
pub struct Pipeline {
    /// Applied to texts first; the same as in training.
    pub normalise: Normalise,
    /// The model, shared: it may be large.
    pub model: Arc<dyn Classifier>,
    /// Applied to its scores.
    pub calibration: Calibration,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("normalise", &self.normalise)
            .field("calibration", &self.calibration)
            .finish_non_exhaustive()
    }
}

impl Pipeline {
    /// A model as it is.
    #[must_use]
    pub fn new(model: Arc<dyn Classifier>, normalise: Normalise) -> Self {
        Self { normalise, model, calibration: Calibration::default() }
    }

    /// As a member of an ensemble.
    #[must_use]
    pub fn member(&self, scores: MemberScores) -> Self {
        let calibration = match scores {
            MemberScores::Calibrated => self.calibration.clone(),
            MemberScores::Raw => Calibration::default(),
        };
        Self { calibration, ..Self::new(Arc::clone(&self.model), self.normalise) }
    }
}

impl Classifier for Pipeline {
    fn taxonomy(&self) -> &Taxonomy {
        self.model.taxonomy()
    }

    fn score(&self, documents: &[Document], request: &Request) -> Result<Scores> {
        let raw = self.model.score(&self.normalise.documents(documents), request)?;
        Ok(self.calibration.apply(raw, self.taxonomy()))
    }

    fn sequences(
        &self,
        documents: &[Document],
        n_best: usize,
        request: &Request,
    ) -> Result<Option<Vec<Vec<LabelSequence>>>> {
        self.model.sequences(&self.normalise.documents(documents), n_best, request)
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        self.model.label_vectors()
    }
}
