//! From text to features.

pub mod tfidf;
