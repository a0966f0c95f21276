//! Settings, and the clusters that they cut labels into.

use cladist_core::{LabelCounts, LabelId};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::heads::levels::LevelColumns;
use crate::heads::settings::{check_rates, check_width_or_none, setting};
use crate::heads::{Pool, Task};

/// Settings of the head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AplcConfig {
    /// The document vector: `cls`, `pooled` or `mean`.
    pub pool: Pool,
    /// Numbers of labels before each tail cluster, the most frequent first; half of them if there is none.
    pub cuts: Vec<usize>,
    /// By how much each tail cluster is narrower than the one before.
    pub divisor: usize,
    /// Width of the layer on the document vector; 0 is the encoder's.
    pub hidden: usize,
    /// Dropout on the document vector.
    pub dropout: f64,
}

impl Default for AplcConfig {
    fn default() -> Self {
        Self { pool: Pool::default(), cuts: Vec::new(), divisor: 2, hidden: 0, dropout: 0.1 }
    }
}

impl AplcConfig {
    /// Where labels are cut, if all is well.
    pub(super) fn checked_cuts(&self, n_labels: usize, task: Task) -> Result<Vec<usize>> {
        let Self { pool: _, cuts, divisor, hidden, dropout } = self;
        check_width_or_none("aplc.hidden", *hidden)?;
        if *divisor == 0 {
            return Err(setting("aplc.divisor", "at least 1", divisor));
        }
        check_rates(&[("aplc.dropout", *dropout)])?;
        if task == Task::MultiClass {
            return Err(Error::Head {
                problem: "`aplc` has an independent probability for every label, so a document has several"
                    .to_owned(),
                remedy: "use `task = \"multi-label\"`",
            });
        }
        if cuts.is_empty() {
            return Ok(if n_labels > 1 { vec![n_labels / 2] } else { Vec::new() });
        }
        let rising = cuts.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising || cuts.iter().any(|cut| !(1..n_labels).contains(cut)) {
            let expected = "rising numbers above 0 and below the number of labels";
            return Err(setting("aplc.cuts", expected, format!("{cuts:?}")));
        }
        Ok(cuts.clone())
    }
}

/// The labels of the head and of each tail.
#[derive(Debug, Clone)]
pub(super) struct Clusters {
    pub(super) labels: Vec<Vec<LabelId>>,
    pub(super) columns: LevelColumns,
}

impl Clusters {
    pub(super) fn new(labels: impl Iterator<Item = LabelId>, counts: &LabelCounts, cuts: &[usize]) -> Self {
        let mut labels: Vec<LabelId> = labels.collect();
        let n_labels = labels.len();
        // Equals stay in the order of their numbers.
        labels.sort_by_key(|label| std::cmp::Reverse(counts.counts.get(label.index()).copied()));
        let mut clusters = Vec::with_capacity(cuts.len() + 1);
        for &cut in cuts.iter().rev() {
            clusters.push(labels.split_off(cut));
        }
        clusters.push(labels);
        clusters.reverse();
        Self { columns: LevelColumns::new(&clusters, n_labels), labels: clusters }
    }
}
