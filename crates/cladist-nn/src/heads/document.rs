//! The document vector, for heads without token-level attention.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::HeadContext;
use crate::encoder::{Encoded, LayerSet};
use crate::error::{Error, Result};

/// The document vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// `[CLS]` of the last layer.
    #[default]
    Cls,
    /// The encoder's pooler on `[CLS]`, which not every encoder has learnt to use.
    Pooled,
    /// The mean of all tokens of the last layer.
    Mean,
}

impl Pool {
    /// Where the vector is found with this encoder.
    pub(crate) fn at(self, context: &HeadContext<'_>) -> Result<DocumentVector> {
        if context.n_layers == 0 && self != Self::Mean {
            return Err(Error::Head {
                problem: "word vectors have no context, so `[CLS]` is the same for every document".to_owned(),
                remedy: "use `pool = \"mean\"` in the head's section on word vectors",
            });
        }
        Ok(DocumentVector { pool: self, layer: context.n_layers })
    }
}

/// Which vector of which layer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DocumentVector {
    pool: Pool,
    layer: usize,
}

impl DocumentVector {
    /// `[documents, hidden]`
    pub(crate) fn of(self, documents: &Encoded) -> Tensor<2> {
        match self.pool {
            Pool::Pooled => documents.pooled().unwrap_or_else(|| documents.cls(self.layer)),
            Pool::Cls => documents.cls(self.layer),
            Pool::Mean => documents.mean(self.layer),
        }
    }

    /// What the encoder must keep.
    pub(crate) fn layers(self) -> LayerSet {
        let layers: LayerSet = [self.layer].into_iter().collect();
        match self.pool {
            Pool::Mean => layers,
            Pool::Cls | Pool::Pooled => layers.first_tokens(),
        }
    }
}
