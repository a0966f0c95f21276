//! Tokenising, truncation, windows and batches.
