//! Shortlists: a head with an output per label learns and scores only some of them at a time (Jiang et al. 2021, LightXML).
//!
//! Labels of similar documents are in groups ([`Partition`]). A matcher, linear from the document vector, scores groups;
//! only labels of the best ones are scored, and
//! ```text
//! p(label) = σ(w·x + b) · σ(group)
//! ```
//! A training step learns from the labels of its documents, those of the groups that the matcher takes for the best (the
//! hardest to tell apart) and some at random. Their rows of weights live in a [`Table`] outside the network's parameters,
//! so that neither gradients nor the optimiser touch any other row. What a step costs depends on the number of groups and
//! on how many labels are looked at, not on how many there are. Labels that fit one group need no matcher: all are looked
//! at, and a head is as it is without a shortlist.
//!
//! A matcher may also learn alone (`match_only`, as in X-Transformer), by the squared hinge: labels then have no rows, and a
//! linear ranker ([`crate::ranker`]) tells those of a group apart.

mod learner;
mod table;

use cladist_core::label_tree::{Partition, PartitionConfig};
use cladist_core::{Error as CoreError, Job, LabelCounts};
use serde::{Deserialize, Serialize};

pub use table::{Rows, Table};

pub(crate) use learner::{RowLearner, RowSum};
pub(crate) use table::ROWS;

use crate::error::Result;
use crate::examples::Examples;

/// The `[shortlist]` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShortlistConfig {
    /// Labels of a group at most; 0 has no shortlist.
    pub group_size: usize,
    /// The best groups whose labels are looked at for a document.
    pub top_groups: usize,
    /// Labels at random that a training step looks at beside.
    pub random: usize,
    /// Labels of a training step at most, or as many as its documents have if these are more.
    pub size: usize,
    /// Whether groups alone are learnt, and labels left to a ranker.
    pub match_only: bool,
}

impl Default for ShortlistConfig {
    fn default() -> Self {
        Self { group_size: 0, top_groups: 10, random: 256, size: 8192, match_only: false }
    }
}

impl ShortlistConfig {
    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        let Self { group_size: _, top_groups, random: _, size, match_only } = *self;
        if match_only && !self.is_on() {
            let expected = "false without `shortlist.group_size`";
            return Err(CoreError::setting("shortlist.match_only", expected, match_only).into());
        }
        for (key, value) in [("shortlist.top_groups", top_groups), ("shortlist.size", size)] {
            if value == 0 {
                return Err(CoreError::setting(key, "at least 1", value).into());
            }
        }
        Ok(())
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.group_size > 0
    }

    /// Groups of the labels of training documents, if a shortlist is wanted.
    pub(crate) fn group(
        &self,
        examples: &Examples<'_>,
        n_labels: usize,
        seed: u64,
        job: &Job<'_>,
    ) -> Result<Option<Shortlist>> {
        self.validate()?;
        if !self.is_on() {
            return Ok(None);
        }
        let config = PartitionConfig { leaf: self.group_size, seed };
        let Examples { documents, gold } = *examples;
        let partition = Partition::of_documents(documents, gold, n_labels, &config, job)?;
        Ok(Some(Shortlist { partition, config: *self }))
    }
}

/// Groups of labels, and how many of them are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortlist {
    /// The groups.
    pub partition: Partition,
    /// The settings.
    pub config: ShortlistConfig,
}

impl Shortlist {
    /// The share of training documents with a label of a group, at most ½: the sum of what its labels have.
    pub(crate) fn group_share(&self, group: usize, counts: &LabelCounts) -> f64 {
        let labels = self.partition.labels(group).iter();
        let with: f64 = labels.map(|&label| of_label(label, counts) + 0.5).sum();
        (with / (counts.n_documents as f64 + 1.0)).clamp(1e-9, 0.5)
    }

    /// The initial bias of each row: the log-odds of its label among documents of its group. What a group lacks is in the
    /// probability of the group already, by which that of the label is multiplied.
    pub(crate) fn row_biases(&self, counts: &LabelCounts) -> Vec<f32> {
        let n_groups = self.partition.n_groups();
        let all = counts.n_documents as f64;
        let of_group = |group: usize| if n_groups > 1 { all * self.group_share(group, counts) } else { all };
        let documents: Vec<f64> = (0..n_groups).map(of_group).collect();
        let of_row = |row: usize| {
            let with = of_label(self.partition.label(row), counts);
            let without = (documents[self.partition.group_of(row as u32) as usize] - with).max(0.0);
            ((with + 0.5) / (without + 0.5)).ln() as f32
        };
        (0..self.partition.n_rows()).map(of_row).collect()
    }
}

fn of_label(label: u32, counts: &LabelCounts) -> f64 {
    f64::from(counts.counts.get(label as usize).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests;
