//! Text before a model sees it: normalisation and TF-IDF features.

pub mod normalise;
pub mod tfidf;
