//! RoBERTa (Liu et al. 2019), XLM-R and CamemBERT: BERT whose positions start after the padding id.

use super::super::EncoderConfig;
use super::super::description::{EmbeddingSpec, Positions};
use super::super::fields::{Fields, most};
use super::{Family, bert};

pub(super) fn describe(fields: &Fields<'_>) -> Result<EncoderConfig, String> {
    let padding = fields.size_or("pad_token_id", 1, most::VOCABULARY)?;
    let config = bert::describe(fields)?;
    let embeddings = starting_at(padding + 1, config.embeddings);
    Ok(EncoderConfig { family: Family::Roberta, embeddings, ..config })
}

/// The same embeddings whose first token is at another position.
pub(super) fn starting_at(first: usize, embeddings: EmbeddingSpec) -> EmbeddingSpec {
    match embeddings.positions {
        Positions::Learned { rows, .. } => {
            EmbeddingSpec { positions: Positions::Learned { rows, first }, ..embeddings }
        }
        Positions::None { .. } => embeddings,
    }
}
