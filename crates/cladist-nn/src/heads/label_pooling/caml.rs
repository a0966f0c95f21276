//! CAML: label-wise attention over a convolution of the states (Mullenbach et al. 2018).
//!
//! With a weight for descriptions it is DR-CAML, which regularises the output weights of gold labels towards their encoded
//! descriptions. The paper encodes these with a network of their own; here the encoder of the documents does.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Common;
pub use super::LabelPooling;
use crate::blocks::{Convolution, Linear, Matrix};
use crate::descriptions::{DescriptionConfig, DescriptionVector, MAX_TOKENS};
use crate::error::Result;
use crate::heads::settings::{check_matrix, check_rates, check_weights, check_widths, setting};
use crate::heads::{BCE_EPOCHS, HeadConfig, HeadContext, Masking};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "label-wise attention over a convolution (CAML, DR-CAML)";

/// Settings of the CAML head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CamlConfig {
    /// Outputs of the convolution.
    pub filters: usize,
    /// Tokens that the convolution sees at once: an odd number.
    pub kernel: usize,
    /// Weight of the description regulariser of gold labels (DR-CAML); 0 encodes no descriptions.
    pub description_weight: f64,
    /// Tokens of a description at most.
    pub max_tokens: usize,
    /// Dropout on token states.
    pub dropout: f64,
    /// The loss of any number of labels: `bce`, `f-measure`, `macro-f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
    /// Epochs that `f-measure` and `macro-f-measure` learn as `bce` first, from when the encoder learns.
    pub bce_epochs: usize,
}

impl Default for CamlConfig {
    fn default() -> Self {
        Self {
            filters: 256,
            kernel: 9,
            description_weight: 0.0,
            max_tokens: MAX_TOKENS,
            dropout: 0.2,
            loss: Loss::default(),
            bce_epochs: BCE_EPOCHS,
        }
    }
}

impl HeadConfig for CamlConfig {
    type Head = LabelPooling;

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
        let Self { filters, kernel, description_weight, max_tokens: _, dropout, loss, bce_epochs } = *self;
        check_widths(&[("caml.filters", filters)])?;
        if kernel.is_multiple_of(2) || kernel > 99 {
            return Err(setting("caml.kernel", "an odd number up to 99", kernel));
        }
        check_matrix("caml.filters", filters, &[filters, kernel, context.hidden_size])?;
        check_weights(&[("caml.description_weight", description_weight)])?;
        check_rates(&[("caml.dropout", dropout)])?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let (hidden, n_labels, device) = (context.hidden_size, context.taxonomy.n_labels(), context.device);
        Ok(LabelPooling {
            convolution: Some(Convolution::new(hidden, filters, kernel, &mut random, device)),
            projection: None,
            queries: Some(Matrix::new(filters, n_labels, &mut random, device)),
            outputs: Some(context.outputs(filters, &mut random)),
            described: (description_weight > 0.0).then(|| Linear::new(hidden, filters, &mut random, device)),
            common: Common { description_weight, ..Common::new(context, dropout, loss, bce_epochs) },
        })
    }
}
