//! A document as readers produce it: text (or sparse features) and gold labels by name.

/// One document. Labels are the ids as written in the corpus; a [`crate::Taxonomy`] turns them into a
/// [`crate::LabelSet`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Unique within its split.
    pub id: String,
    /// The text; empty for a feature corpus.
    pub text: String,
    /// Gold label ids, in file order.
    pub labels: Vec<String>,
    /// Sparse features in ascending index order, for corpora that come without text.
    pub features: Option<Vec<(u32, f32)>>,
}

impl Document {
    /// A document made of text alone, as `predict` sees it.
    pub fn from_text(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into(), ..Self::default() }
    }

    /// Whether there is nothing to classify: no feature, and no character but white space.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.features {
            Some(features) => features.is_empty(),
            None => self.text.trim().is_empty(),
        }
    }
}
