//! Tokenising, truncation, windows and batches.
//!
//! A [`Tokenizer`] turns each text into one [`Sequence`] of token ids, or into several overlapping windows, as
//! [`TokensConfig`] has it. Sequences are packed into a [`TokenBatch`] without padding. Which documents share a
//! batch is planned from their lengths alone: [`by_documents`], [`by_tokens`] for training, [`sorted_by_tokens`]
//! for scoring.

mod batch;
mod config;
mod cut;
mod files;
mod packing;
mod plan;
mod tokenizer;
mod vocabulary;
mod windows;

pub use batch::{Sequence, TokenBatch};
pub use config::{Pool, TokensConfig, Truncate};
pub use packing::Packing;
pub use plan::{batch_rng, by_documents, by_tokens, shuffled, sorted_by_tokens};
pub use tokenizer::{Special, Tokenizer};

pub(crate) use windows::{Windows, numbered};

/// Tokens of a batch when nothing is learnt: enough to keep all cores busy, little enough for the caches.
pub(crate) const BUDGET: usize = 4096;
/// Documents whose tokens are in memory at once when nothing is learnt.
pub(crate) const CHUNK: usize = 2048;

#[cfg(test)]
mod tests;
