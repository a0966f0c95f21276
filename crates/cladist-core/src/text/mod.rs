//! Text before it becomes features or tokens.

pub mod normalise;
