//! LightXML (Jiang et al. 2021): concatenated `[CLS]` of several layers, and label clusters matched before labels are ranked.
//!
//! f = drop(`[CLS]` of the last five layers), the last one first. Without a shortlist, z = W·f + b for every label.
//! With one, groups have g = W₀·f + b₀ and labels r = E·(W₁·f + b₁) + b; a shortlist (see [`crate::shortlist`]) is made of
//! the groups, and p = σ(r)·σ(g). The loss is the sum of both cross-entropies.
//!
//! Deviations: labels have a bias beside their embedding; the labels of a step are shared by its documents instead of
//! being chosen for each; dropout is on whenever something is learnt, where the original leaves it off after an
//! evaluation until the epoch ends.

use std::ops::RangeInclusive;

use burn::module::Module;
use burn::tensor::Tensor;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::document::LayerVector;
use super::per_label::by_outputs;
use super::settings::{check_rates, check_width_or_none, setting};
use super::{DROPOUT, Head, HeadConfig, HeadContext, HeadInput, Labelwise, Masking, Pool};
use crate::blocks::{Linear, dropout};
use crate::encoder::{LayerSet, place};
use crate::error::{Error, Result};
use crate::heads::{Outputs, Vectors};
use crate::losses::Loss;

/// One line of help.
pub const ABOUT: &str = "concatenated [CLS] of the last five layers, with a shortlist (LightXML)";

/// The width of labels' embeddings where there is a shortlist and nothing else is said.
const BOTTLENECK: usize = 400;

/// Settings of the head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LightXmlConfig {
    /// The document vector of each layer: `cls`, `mean`, or `auto` as the encoder was pretrained.
    pub pool: Pool,
    /// The last layers whose `[CLS]` is concatenated; all if the encoder has fewer.
    pub layers: usize,
    /// Dropout on the document vector.
    pub dropout: f64,
    /// Width of label embeddings; 0 puts the output layer on the document vector itself. Preset: 400 with a shortlist of labels, else 0.
    pub bottleneck: Option<usize>,
    /// The loss: `bce`, `f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or `coherent`.
    pub loss: Loss,
}

impl Default for LightXmlConfig {
    fn default() -> Self {
        Self { pool: Pool::default(), layers: 5, dropout: 0.5, bottleneck: None, loss: Loss::default() }
    }
}

/// The head.
#[derive(Module, Debug)]
pub struct LightXml {
    bottleneck: Option<Linear>,
    output: Outputs,
    #[module(skip)]
    labelwise: Labelwise,
    /// The lowest and the highest layer.
    #[module(skip)]
    layers: (usize, usize),
    #[module(skip)]
    vector: LayerVector,
    #[module(skip)]
    dropout: f64,
}

impl HeadConfig for LightXmlConfig {
    type Head = LightXml;

    fn masking(&self) -> Masking {
        Masking::Alone
    }

    fn pool(&self) -> Option<Pool> {
        Some(self.pool)
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        Some(&mut self.pool)
    }

    fn build(&self, context: &HeadContext<'_>) -> Result<LightXml> {
        let Self { pool, layers, dropout, bottleneck, loss } = *self;
        if layers == 0 {
            return Err(setting("light-xml.layers", "at least 1", layers));
        }
        check_rates(&[("light-xml.dropout", dropout)])?;
        check_width_or_none("light-xml.bottleneck", bottleneck.unwrap_or_default())?;
        if context.n_layers == 0 {
            return Err(Error::Head {
                problem: "word vectors have no context, so `[CLS]` is the same for every document".to_owned(),
                remedy: "use `flat` with `flat.pool = \"mean\"` on word vectors",
            });
        }
        let last = context.n_layers;
        let first = (last + 1).saturating_sub(layers).max(1);
        let width = (last + 1 - first) * context.hidden_size;
        let mut random = ChaCha8Rng::seed_from_u64(context.seed);
        let has_rows = context.shortlist.map(|shortlist| !shortlist.config.match_only);
        let fine = bottleneck.unwrap_or(if has_rows == Some(true) { BOTTLENECK } else { 0 });
        if has_rows == Some(false) && fine > 0 {
            return Err(setting("light-xml.bottleneck", "0 with `shortlist.match_only`", fine));
        }
        let bottleneck = (fine > 0).then(|| Linear::new(width, fine, &mut random, context.device));
        Ok(LightXml {
            bottleneck,
            output: Outputs::new(width, if fine > 0 { fine } else { width }, loss, context, &mut random)?,
            labelwise: Labelwise::new(context, loss),
            layers: (first, last),
            vector: pool.at_any_layer("light-xml.pool", context)?,
            dropout,
        })
    }
}

impl LightXml {
    fn vectors(&self, input: &HeadInput<'_>, seed: Option<u64>) -> Vectors {
        let (first, last) = self.layers;
        let states = (first..=last).rev().map(|layer| self.vector.of(input.documents, layer)).collect();
        let vector = dropout(Tensor::cat(states, 1), self.dropout, seed.map(|seed| place(seed, DROPOUT)));
        match &self.bottleneck {
            Some(bottleneck) => Vectors { fine: bottleneck.forward(vector.clone()), coarse: vector },
            None => Vectors::same(vector),
        }
    }
}

impl Head for LightXml {
    by_outputs!();

    fn layers(&self, _levels: Option<&RangeInclusive<usize>>) -> LayerSet {
        let (first, last) = self.layers;
        self.vector.layers((first..=last).collect())
    }
}
