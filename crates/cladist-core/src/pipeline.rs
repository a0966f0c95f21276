//! A model with what goes before and after it: text normalisation, and calibration of its scores.

use std::borrow::Cow;
use std::sync::Arc;

use crate::calibrate::Calibration;
use crate::classifier::{Classifier, LabelSequence, Request};
use crate::document::Document;
use crate::error::Result;
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

    /// Scores before calibration.
    pub fn raw_scores(&self, documents: &[Document], request: &Request) -> Result<Scores> {
        self.model.score(&normalised(self.normalise, documents), request)
    }
}

/// Documents with normalised texts; the documents themselves if that changes none.
#[must_use]
pub fn normalised(normalise: Normalise, documents: &[Document]) -> Cow<'_, [Document]> {
    if normalise.is_identity() {
        return Cow::Borrowed(documents);
    }
    let of = |Document { id, text, labels, features }: &Document| Document {
        id: id.clone(),
        text: normalise.apply(text).into_owned(),
        labels: labels.clone(),
        features: features.clone(),
    };
    Cow::Owned(documents.iter().map(of).collect())
}

impl Classifier for Pipeline {
    fn taxonomy(&self) -> &Taxonomy {
        self.model.taxonomy()
    }

    fn score(&self, documents: &[Document], request: &Request) -> Result<Scores> {
        let raw = self.raw_scores(documents, request)?;
        Ok(self.calibration.apply(raw, self.taxonomy()))
    }

    fn sequences(
        &self,
        documents: &[Document],
        n_best: usize,
        request: &Request,
    ) -> Result<Option<Vec<Vec<LabelSequence>>>> {
        self.model.sequences(&normalised(self.normalise, documents), n_best, request)
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        self.model.label_vectors()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_copied_only_if_their_texts_change() {
        let documents = [Document { labels: vec!["a".into()], ..Document::from_text("1", "Some Text") }];
        assert!(matches!(normalised(Normalise::default(), &documents), Cow::Borrowed(_)));
        let lower = Normalise { lowercase: true, ..Normalise::default() };
        let expected = Document { text: "some text".into(), ..documents[0].clone() };
        assert_eq!(*normalised(lower, &documents), [expected]);
    }
}
