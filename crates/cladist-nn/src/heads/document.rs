//! The document vector, for heads without token-level attention.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::HeadContext;
use super::settings::setting;
use crate::encoder::{Encoded, LayerSet, Pooling};
use crate::error::{Error, Result};

/// The document vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// As the encoder was pretrained: what its folder says, else `[CLS]`. Settled before training; a bundle without the
    /// setting is older than it and reads `[CLS]`.
    #[default]
    Auto,
    /// `[CLS]`.
    Cls,
    /// The encoder's pooler on `[CLS]`, which not every encoder has learnt to use.
    Pooled,
    /// The mean of all tokens.
    Mean,
}

impl Pool {
    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cls => "cls",
            Self::Pooled => "pooled",
            Self::Mean => "mean",
        }
    }

    /// What is read: as the encoder was pretrained if nothing else is said.
    pub(crate) fn settle(&mut self, pretrained: Pooling) {
        if *self == Self::Auto {
            *self = match pretrained {
                Pooling::Cls => Self::Cls,
                Pooling::Mean => Self::Mean,
            };
        }
    }

    /// What an encoder that was trained with it has learnt to be read by.
    pub(crate) fn pretrained(self) -> Option<Pooling> {
        match self {
            Self::Cls => Some(Pooling::Cls),
            Self::Mean => Some(Pooling::Mean),
            Self::Auto | Self::Pooled => None,
        }
    }

    /// Where the vector of the last layer is found with this encoder.
    pub(crate) fn at(self, context: &HeadContext<'_>) -> Result<DocumentVector> {
        let pool = match self {
            Self::Auto if context.n_layers == 0 => Self::Mean,
            Self::Auto => Self::Cls,
            said => said,
        };
        if context.n_layers == 0 && pool != Self::Mean {
            return Err(Error::Head {
                problem: "word vectors have no context, so `[CLS]` is the same for every document".to_owned(),
                remedy: "use `pool = \"mean\"` in the head's section on word vectors",
            });
        }
        Ok(DocumentVector { pool, layer: context.n_layers })
    }

    /// The same for a head that reads vectors of several layers. The pooler is made for the last one.
    pub(crate) fn at_any_layer(self, key: &'static str, context: &HeadContext<'_>) -> Result<LayerVector> {
        let DocumentVector { pool, .. } = self.at(context)?;
        if pool == Self::Pooled {
            let expected = "`auto`, `cls` or `mean`: the pooler is for the last layer";
            return Err(setting(key, expected, "pooled"));
        }
        Ok(LayerVector(pool))
    }
}

/// The vector of any layer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LayerVector(Pool);

impl LayerVector {
    /// `[documents, hidden]`
    pub(crate) fn of(self, documents: &Encoded, layer: usize) -> Tensor<2> {
        DocumentVector { pool: self.0, layer }.of(documents)
    }

    /// What the encoder must keep of these layers.
    pub(crate) fn layers(self, layers: LayerSet) -> LayerSet {
        match self.0 {
            Pool::Mean => layers.means(),
            Pool::Auto | Pool::Cls | Pool::Pooled => layers.first_tokens(),
        }
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
            Pool::Auto | Pool::Cls => documents.cls(self.layer),
            Pool::Mean => documents.mean(self.layer),
        }
    }

    /// What the encoder must keep.
    pub(crate) fn layers(self) -> LayerSet {
        LayerVector(self.pool).layers([self.layer].into_iter().collect())
    }
}
