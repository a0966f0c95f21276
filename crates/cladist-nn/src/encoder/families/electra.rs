//! ELECTRA (Clark et al. 2020): BERT on embeddings that may be narrower than its states.

use super::super::EncoderConfig;
use super::super::description::{EmbeddingSpec, Projection};
use super::super::fields::{Fields, most};
use super::{Family, Row, bert};

pub(super) const PROJECTION: &[Row] = &[
    ("embeddings.projection_weight", &["embeddings_project.weight"]),
    ("embeddings.projection_bias", &["embeddings_project.bias"]),
];

pub(super) fn describe(fields: &Fields<'_>) -> Result<EncoderConfig, String> {
    let config = bert::describe(fields)?;
    let width = fields.size_or("embedding_size", 128, most::WIDTH)?;
    let projection = if width == config.hidden_size { Projection::None } else { Projection::AfterNorm };
    let embeddings = EmbeddingSpec { width, projection, ..config.embeddings };
    Ok(EncoderConfig { family: Family::Electra, embeddings, ..config })
}
