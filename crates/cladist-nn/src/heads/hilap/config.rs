//! Settings.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::heads::settings::{check_rates, check_weights, check_widths, setting};
use crate::heads::{Pool, Task};

/// Settings of the head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HilapConfig {
    /// The document vector: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Units of the policy's hidden layer.
    pub hidden: usize,
    /// Width of a label's embedding.
    pub width: usize,
    /// Labels of a walk at most.
    pub max_labels: usize,
    /// Epochs of supervised learning alone; half of all, rounded up, if not given.
    pub reinforce_after: Option<usize>,
    /// Weight of the policy gradient; 0 samples no walks.
    pub reinforce: f64,
    /// Discount factor of rewards.
    pub discount: f64,
    /// Weight of the entropy bonus while walks are sampled; less by a tenth with every epoch.
    pub entropy: f64,
    /// Dropout on the document vector.
    pub dropout: f64,
}

impl Default for HilapConfig {
    fn default() -> Self {
        Self {
            pool: Pool::default(),
            hidden: 500,
            width: 50,
            max_labels: 30,
            reinforce_after: None,
            reinforce: 1.0,
            discount: 0.9,
            entropy: 2.0,
            dropout: 0.1,
        }
    }
}

impl HilapConfig {
    /// Refuses what makes no sense, by key.
    pub(super) fn check(&self, task: Task) -> Result<()> {
        check_widths(&[("hilap.hidden", self.hidden), ("hilap.width", self.width)])?;
        if self.max_labels == 0 {
            return Err(setting("hilap.max_labels", "at least 1", self.max_labels));
        }
        check_weights(&[("hilap.reinforce", self.reinforce), ("hilap.entropy", self.entropy)])?;
        if !(0.0..=1.0).contains(&self.discount) {
            return Err(setting("hilap.discount", "0 to 1", self.discount));
        }
        check_rates(&[("hilap.dropout", self.dropout)])?;
        if task == Task::MultiClass {
            return Err(Error::Head {
                problem: "`hilap` assigns labels of every level, so a document has several".to_owned(),
                remedy: "use `task = \"multi-label\"`",
            });
        }
        Ok(())
    }
}
