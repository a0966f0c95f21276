//! Settings.

use serde::{Deserialize, Serialize};

use super::diversity::Pairs;
use super::name::{At, ExpertName, Kind};
use crate::error::{Error, Result};
use crate::heads::settings::{check_hidden, check_rates, check_weights, setting};
use crate::heads::{Pool, Task};

/// What the loss of an expert is taken of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpertLoss {
    /// The logits of each expert.
    #[default]
    Individual,
    /// The mean logit of all experts.
    Collaborative,
}

/// Settings of the experts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpertsConfig {
    /// The document vector of `D-` experts and of groups: `cls`, `mean`, or `auto` as the encoder was pretrained.
    pub pool: Pool,
    /// The experts: `D-` and layers (`D-last`, `D-12+1`) read the document vector, `A-` and a layer (`A-1`, `A-mid`) all tokens.
    pub experts: Vec<ExpertName>,
    /// Losses of experts: `individual`, or `collaborative` of their mean logit.
    pub loss: ExpertLoss,
    /// Weight of the diversity loss on tail labels; 0 leaves it out.
    pub diversity: f64,
    /// Epochs before the diversity loss; half of all, rounded up, if not given.
    pub diversity_after: Option<usize>,
    /// Weakens the diversity loss of a label where it would outweigh the experts' own; as published if `false`.
    pub diversity_cap: bool,
    /// The pairs of experts in the diversity loss: `all`, or the `first` with each of the others.
    pub pairs: Pairs,
    /// The mean of the KL divergence in both directions.
    pub symmetric: bool,
    /// Hidden layers of the network that all labels of an attention expert share.
    pub hidden: Vec<usize>,
    /// Hidden layers of a document expert.
    pub document_hidden: Vec<usize>,
    /// Dropout on document vectors.
    pub dropout: f64,
}

impl Default for ExpertsConfig {
    fn default() -> Self {
        let expert = |kind, at| ExpertName { kind, layers: vec![at] };
        Self {
            pool: Pool::default(),
            experts: vec![
                expert(Kind::Document, At::Last),
                expert(Kind::Attention, At::Number(1)),
                expert(Kind::Attention, At::Mid),
            ],
            loss: ExpertLoss::default(),
            diversity: 0.01,
            diversity_after: None,
            diversity_cap: true,
            pairs: Pairs::default(),
            symmetric: false,
            hidden: vec![256],
            document_hidden: Vec::new(),
            dropout: 0.5,
        }
    }
}

impl ExpertsConfig {
    /// Refuses what makes no sense, by key.
    pub(super) fn check(&self, task: Task) -> Result<()> {
        let list = || self.experts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if self.experts.is_empty()
            || self.experts.iter().enumerate().any(|(n, name)| self.experts[..n].contains(name))
        {
            return Err(setting("experts.experts", "at least one, and none twice", list()));
        }
        check_hidden(&[
            ("experts.hidden", &self.hidden[..]),
            ("experts.document_hidden", &self.document_hidden[..]),
        ])?;
        check_weights(&[("experts.diversity", self.diversity)])?;
        check_rates(&[("experts.dropout", self.dropout)])?;
        if task == Task::MultiClass {
            return Err(Error::Head {
                problem: "experts have independent probabilities for labels, so a document has several"
                    .to_owned(),
                remedy: "use `task = \"multi-label\"`",
            });
        }
        Ok(())
    }
}
