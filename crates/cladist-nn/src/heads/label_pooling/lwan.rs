//! LWAN: label-wise attention with learnt queries, or with encoded label descriptions (Chalkidis et al. 2019).

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use super::LabelPooling;
use super::{Common, Projection, normal_matrix};
use crate::blocks::Linear;
use crate::descriptions::{DescriptionConfig, DescriptionVector, MAX_TOKENS};
use crate::error::Result;
use crate::heads::settings::check_rates;
use crate::heads::{BCE_EPOCHS, HeadConfig, HeadContext, Masking};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "label-wise attention with learnt queries or encoded label descriptions (LWAN)";

/// Settings of the LWAN head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LwanConfig {
    /// Whether an encoded description is both the query and the output weights of a label, so that unseen labels are scored too.
    pub descriptions: bool,
    /// Updates after which descriptions are encoded again, without gradients; 0 encodes them in every step, with gradients.
    pub refresh: u64,
    /// Put the names of ancestors before each description.
    pub path: bool,
    /// Tokens of a description at most.
    pub max_tokens: usize,
    /// The vector of a description: `cls` or `mean`.
    pub vector: DescriptionVector,
    /// Dropout on token states.
    pub dropout: f64,
    /// The loss of any number of labels: `bce`, `f-measure`, `macro-f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
    /// Epochs that `f-measure` and `macro-f-measure` learn as `bce` first, from when the encoder learns.
    pub bce_epochs: usize,
}

impl Default for LwanConfig {
    fn default() -> Self {
        Self {
            descriptions: false,
            refresh: 0,
            path: false,
            max_tokens: MAX_TOKENS,
            vector: DescriptionVector::default(),
            dropout: 0.1,
            loss: Loss::default(),
            bce_epochs: BCE_EPOCHS,
        }
    }
}

impl HeadConfig for LwanConfig {
    type Head = LabelPooling;

    fn describes(&self) -> Option<DescriptionConfig> {
        let Self { path, max_tokens, vector, .. } = *self;
        self.descriptions.then_some(DescriptionConfig { path, max_tokens, vector, at_start_only: false })
    }

    fn knows_new_labels(&self) -> bool {
        self.descriptions
    }

    fn masking(&self) -> Masking {
        Masking::Alone
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<LabelPooling> {
        let Self { descriptions, refresh, dropout, loss, bce_epochs, .. } = *self;
        check_rates(&[("lwan.dropout", dropout)])?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let random = &mut random;
        let (hidden, n_labels, device) = (context.hidden_size, context.taxonomy.n_labels(), context.device);
        // He's deviation, √(2/inputs).
        let deviation = (2.0 / hidden as f32).sqrt();
        let common = Common { refresh, ..Common::new(context, dropout, loss, bce_epochs) };
        let (projection, queries, outputs) = if descriptions {
            (Some(Projection::Biased(Linear::new(hidden, hidden, random, device))), None, None)
        } else {
            let queries = normal_matrix(hidden, n_labels, deviation, random, device);
            let outputs = Linear::normal(hidden, n_labels, deviation, random, device);
            (None, Some(queries), Some(outputs.with_bias(context.biases())))
        };
        Ok(LabelPooling { convolution: None, projection, queries, outputs, described: None, common })
    }
}
