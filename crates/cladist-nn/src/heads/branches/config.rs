//! Settings.

use burn::module::Module;
use cladist_core::LabelCounts;
use cladist_core::taxonomy::{Branch, Branches};
use serde::{Deserialize, Serialize};

use super::{Branched, Part};
use crate::encoder::place;
use crate::error::{Error, Result};
use crate::heads::label_attention::select;
use crate::heads::settings::LARGEST;
use crate::heads::{AnyHead, AnyHeadConfig, HeadContext, Masking, Task};

/// What each branch has of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Nothing: one head for all labels.
    #[default]
    None,
    /// A head over all labels that answers for those of the branch. Where labels know nothing of those outside (as in `flat`,
    /// and in graphs of the small form on a tree split at the root) it differs from `projection` in what the losses count alone.
    Masking,
    /// A head over the labels of the branch and the edges between them.
    Projection,
}

/// The probability of a label that several branches have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// The highest.
    #[default]
    Max,
    /// The sum, 1 at most.
    Sum,
    /// The mean over the branches that have it.
    MeanOfOwners,
}

/// What the loss of a branch counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// `branches` with projection, `labels` with masking.
    #[default]
    Auto,
    /// Every branch the same, whatever its size.
    Branches,
    /// Every label the same, so that large branches count more.
    Labels,
}

/// Settings of branch-wise learning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BranchesConfig {
    /// What each branch has of its own: `none`, `masking` or `projection`.
    pub split: Split,
    /// Ids of the labels that branches begin at; those under the root if there are none.
    pub at: Vec<String>,
    /// The probability of a label that several branches have: `max`, `sum` or `mean-of-owners`.
    pub merge: Merge,
    /// What the loss of a branch counts: the same for all `branches`, or for all `labels`; `auto` is the first with
    /// projection and the second with masking.
    pub reduction: Reduction,
}

impl BranchesConfig {
    /// A head of this kind, or one for each branch.
    pub fn build(&self, head: &AnyHeadConfig, context: &HeadContext<'_>) -> Result<AnyHead> {
        let Self { split, at, merge, reduction } = self;
        if *split == Split::None {
            return head.build(context);
        }
        if context.task == Task::MultiClass {
            return Err(Error::Head {
                problem: "branches have losses of their own, so a document has labels in several".to_owned(),
                remedy: "use `task = \"multi-label\"` or `branches.split = \"none\"`",
            });
        }
        if context.shortlist.is_some() {
            return Err(Error::Head {
                problem: "a shortlist has groups of all labels, and branches have labels of their own"
                    .to_owned(),
                remedy: "leave `shortlist.group_size` at 0, or `branches.split` at `none`",
            });
        }
        let masking = head.masking();
        if *split == Split::Masking && masking == Masking::Never {
            return Err(Error::Head {
                problem: format!("`{}` cannot be masked to the labels of a branch", head.name()),
                remedy: "use `branches.split = \"projection\"`",
            });
        }
        let n_labels = context.taxonomy.n_labels();
        let by_label = match reduction {
            Reduction::Auto => *split == Split::Masking,
            Reduction::Branches => false,
            Reduction::Labels => true,
        };
        let branches = branches(context, at)?;
        let among = *split == Split::Masking && masking == Masking::Among;
        let mut head = head.clone();
        // The whole decides, so that splits of one taxonomy differ in nothing else.
        head.fit(n_labels);
        let head = &head;
        let mut heads = Vec::new();
        let mut parts = Vec::new();
        for (n, branch) in branches.all().iter().enumerate() {
            let context = HeadContext { seed: place(context.seed, n as u64), ..*context };
            let weight = if by_label { branch.labels.len() as f64 / n_labels as f64 } else { 1.0 };
            let (head, part) = if among {
                let context = HeadContext { only: Some(&branch.labels), ..context };
                let masked = head.build(&context)?;
                // Heads of all branches are about as large as the first.
                if n == 0 {
                    check_together(branches.all().len(), masked.num_params())?;
                }
                (masked, Part::masked(branch, weight))
            } else {
                project(head, &context, branch, weight)?
            };
            heads.push(head);
            parts.push(part);
        }
        Ok(AnyHead::Branches(Branched { heads, parts, merge: *merge, n_labels }))
    }
}

/// Refuses heads of so many parameters each that do not fit in memory together.
pub(super) fn check_together(n_heads: usize, parameters: usize) -> Result<()> {
    if n_heads.saturating_mul(parameters) <= LARGEST {
        return Ok(());
    }
    Err(Error::Head {
        problem: format!(
            "masked heads of {n_heads} branches with {parameters} parameters each have more than {LARGEST} together"
        ),
        remedy: "use `form = \"small\"` of the head, `branches.split = \"projection\"` or fewer branches by `branches.at`",
    })
}

fn branches(context: &HeadContext<'_>, at: &[String]) -> Result<Branches> {
    if at.is_empty() {
        return Ok(context.taxonomy.branches());
    }
    let label = |id: &String| {
        context.taxonomy.get(id).ok_or_else(|| Error::Head {
            problem: format!("`branches.at` names `{id}`, which is not a label"),
            remedy: "give ids of labels of the taxonomy",
        })
    };
    let tops = at.iter().map(label).collect::<Result<Vec<_>>>()?;
    Ok(context.taxonomy.branches_at(&tops))
}

/// The head of a branch, of the labels and edges inside it.
fn project(
    head: &AnyHeadConfig,
    context: &HeadContext<'_>,
    branch: &Branch,
    weight: f64,
) -> Result<(AnyHead, Part)> {
    let projection = context.taxonomy.project(&branch.labels);
    let counts = &context.label_counts.counts;
    let origin: Vec<u32> = projection.origin.iter().map(|label| label.index() as u32).collect();
    let label_counts = LabelCounts {
        n_documents: context.label_counts.n_documents,
        counts: origin.iter().map(|&label| counts.get(label as usize).copied().unwrap_or(0)).collect(),
    };
    let labels = context.labels.map(|vectors| select(vectors.clone(), Some(&origin)));
    let context = HeadContext {
        taxonomy: &projection.taxonomy,
        label_counts: &label_counts,
        labels: labels.as_ref(),
        ..*context
    };
    Ok((head.build(&context)?, Part::projected(projection, weight)))
}
