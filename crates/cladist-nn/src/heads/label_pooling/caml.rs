//! CAML: label-wise pooling of a convolution over the states (Mullenbach et al. 2018).
//!
//! With a weight for descriptions it is DR-CAML, in which outputs of gold labels are drawn to what their descriptions
//! say. The paper reads these with a network of their own; here the encoder of the documents does.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Common;
pub use super::LabelPooling;
use crate::blocks::{Convolution, Linear, Matrix};
use crate::descriptions::{DescriptionConfig, DescriptionVector};
use crate::error::Result;
use crate::heads::{HeadConfig, HeadContext, Masking, setting};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "labels weigh the words after a convolution, each for itself (CAML)";

/// Settings of the CAML head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CamlConfig {
    /// Outputs of the convolution.
    pub filters: usize,
    /// Tokens that the convolution sees at once: an odd number.
    pub kernel: usize,
    /// What it costs that the output of a gold label is not what its description says; 0 reads no descriptions.
    pub description_weight: f64,
    /// Tokens of a description at most.
    pub max_tokens: usize,
    /// Dropout on token states.
    pub dropout: f64,
    /// What is minimised with any number of labels: `bce`, `f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
}

impl Default for CamlConfig {
    fn default() -> Self {
        Self {
            filters: 256,
            kernel: 9,
            description_weight: 0.0,
            max_tokens: 32,
            dropout: 0.2,
            loss: Loss::default(),
        }
    }
}

impl HeadConfig for CamlConfig {
    type Head = LabelPooling;

    fn pooled(&self) -> bool {
        false
    }

    fn describes(&self) -> Option<DescriptionConfig> {
        (self.description_weight > 0.0).then_some(DescriptionConfig {
            path: false,
            max_tokens: self.max_tokens,
            vector: DescriptionVector::Cls,
            at_start_only: false,
        })
    }

    fn masking(&self) -> Masking {
        Masking::Alone
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<LabelPooling> {
        let Self { filters, kernel, description_weight, max_tokens: _, dropout, loss } = *self;
        if filters == 0 {
            return Err(setting("caml.filters", "at least 1", filters));
        }
        if kernel.is_multiple_of(2) || kernel > 99 {
            return Err(setting("caml.kernel", "an odd number up to 99", kernel));
        }
        if !(description_weight >= 0.0 && description_weight.is_finite()) {
            return Err(setting("caml.description_weight", "at least 0", description_weight));
        }
        if !(0.0..1.0).contains(&dropout) {
            return Err(setting("caml.dropout", "at least 0 and below 1", dropout));
        }
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let (hidden, n_labels, device) = (context.hidden_size, context.taxonomy.n_labels(), context.device);
        Ok(LabelPooling {
            convolution: Some(Convolution::new(hidden, filters, kernel, &mut random, device)),
            projection: None,
            queries: Some(Matrix::new(filters, n_labels, &mut random, device)),
            outputs: Some(context.outputs(filters, &mut random)),
            described: (description_weight > 0.0).then(|| Linear::new(hidden, filters, &mut random, device)),
            common: Common { description_weight, ..Common::new(context, dropout, loss) },
        })
    }
}
