//! LAAT: label-wise attention through a hidden layer (Vu et al. 2020).

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use super::LabelPooling;
use super::{Common, Projection, normal_matrix};
use crate::blocks::Linear;
use crate::error::Result;
use crate::heads::settings::{check_rates, check_widths};
use crate::heads::{BCE_EPOCHS, HeadConfig, HeadContext, Masking};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "label-wise attention through a hidden layer (LAAT)";

/// The deviation of new parameters.
const DEVIATION: f32 = 0.03;

/// Settings of the LAAT head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaatConfig {
    /// Width of the hidden layer.
    pub width: usize,
    /// Dropout on token states.
    pub dropout: f64,
    /// The loss of any number of labels: `bce`, `f-measure`, `macro-f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
    /// `coherent`.
    pub loss: Loss,
    /// Epochs that `f-measure` and `macro-f-measure` learn as `bce` first, from when the encoder learns.
    pub bce_epochs: usize,
}

impl Default for LaatConfig {
    fn default() -> Self {
        Self { width: 512, dropout: 0.3, loss: Loss::default(), bce_epochs: BCE_EPOCHS }
    }
}

impl HeadConfig for LaatConfig {
    type Head = LabelPooling;

    fn masking(&self) -> Masking {
        Masking::Alone
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<LabelPooling> {
        let Self { width, dropout, loss, bce_epochs } = *self;
        check_widths(&[("laat.width", width)])?;
        check_rates(&[("laat.dropout", dropout)])?;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let (hidden, n_labels, device) = (context.hidden_size, context.taxonomy.n_labels(), context.device);
        let projection = normal_matrix(hidden, width, DEVIATION, &mut random, device);
        Ok(LabelPooling {
            convolution: None,
            projection: Some(Projection::Plain(projection)),
            queries: Some(normal_matrix(width, n_labels, DEVIATION, &mut random, device)),
            outputs: Some(
                Linear::normal(hidden, n_labels, DEVIATION, &mut random, device).with_bias(context.biases()),
            ),
            described: None,
            common: Common::new(context, dropout, loss, bce_epochs),
        })
    }
}
