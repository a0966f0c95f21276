//! Levels upon levels: for each, the parents of its nodes in the next one, from the labels up.

use super::CodingRule;
use super::compress::group;
use super::graph::{Graph, Partition};
use crate::{Cancel, Result};

/// Savings that differ by less are equal.
pub(super) const ROUNDING: f64 = 1e-12;

/// One node in each level.
pub(super) fn chain(n_labels: usize, height: usize) -> Vec<Vec<u32>> {
    let mut parents = vec![vec![0]; height];
    parents[0] = vec![0; n_labels];
    parents
}

/// Groups of groups, each level by merging what is left of the one below.
pub(super) fn level_by_level(graph: &Graph, height: usize, cancel: &Cancel) -> Result<Vec<Vec<u32>>> {
    let mut parents = Vec::with_capacity(height);
    let mut top = graph.clone();
    for _ in 1..height {
        let partition = group(&top, CodingRule::StopWhenPositive, cancel)?;
        top = top.contract(&partition);
        parents.push(partition.groups);
    }
    parents.push(vec![0; top.len()]);
    Ok(in_order(parents))
}

/// The tree of height 2, and from there one more level at a time: where it saves more entropy, for each node
/// concerned.
pub(super) fn reference(graph: &Graph, height: usize, cancel: &Cancel) -> Result<Vec<Vec<u32>>> {
    if height == 1 {
        return Ok(vec![vec![0; graph.len()]]);
    }
    let mut lowest = group(graph, CodingRule::Reference, cancel)?;
    let mut top = graph.contract(&lowest);
    // What is between the lowest and the highest groups, from below.
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    let (mut split, mut joined) = (None, None);
    for _ in 2..height {
        let (finer, above, saved_below) =
            split.take().map_or_else(|| split_lowest(graph, &lowest, cancel), Ok)?;
        let (coarser, saved_above) =
            joined.take().map_or_else(|| join_highest(&top, graph.volume(), cancel), Ok)?;
        match coarser {
            Some(partition) if saved_below + ROUNDING < saved_above => {
                top = top.contract(&partition);
                upper.push(partition.groups);
                split = Some((finer, above, saved_below));
            }
            coarser => {
                lower.push(above);
                lowest = finer;
                joined = Some((coarser, saved_above));
            }
        }
    }
    lower.push(lowest.groups);
    lower.reverse();
    lower.extend(upper);
    lower.push(vec![0; top.len()]);
    Ok(in_order(lower))
}

/// Splits every lowest group of three labels or more as if there were nothing else; the labels of others go single. Returns
/// the new groups, the old group of each, and what that saves per label.
fn split_lowest(graph: &Graph, lowest: &Partition, cancel: &Cancel) -> Result<(Partition, Vec<u32>, f64)> {
    let total = graph.volume();
    let mut groups = vec![0; graph.len()];
    let mut above = Vec::new();
    let mut saved = 0.0;
    for (old, part) in (0u32..).zip(graph.parts(lowest)) {
        let n = part.members.len();
        let partition = if n < 3 {
            Partition { groups: (0..n as u32).collect(), n_groups: n }
        } else {
            let partition = group(&part.graph.clone().alone(), CodingRule::Reference, cancel)?;
            saved += part.graph.saving(&partition, total);
            partition
        };
        for (&label, group) in part.members.iter().zip(&partition.groups) {
            groups[label as usize] = above.len() as u32 + group;
        }
        above.resize(above.len() + partition.n_groups, old);
    }
    let n_groups = above.len();
    Ok((Partition { groups, n_groups }, above, saved / graph.len() as f64))
}

/// Groups the nodes under the root, if there are three or more, and tells what that saves per node.
fn join_highest(top: &Graph, total: u64, cancel: &Cancel) -> Result<(Option<Partition>, f64)> {
    if top.len() < 3 {
        return Ok((None, 0.0));
    }
    let partition = group(top, CodingRule::Reference, cancel)?;
    let saved = top.saving(&partition, total) / top.len() as f64;
    Ok((Some(partition), saved))
}

/// Numbers the nodes of each level by their first label.
fn in_order(mut parents: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    for level in 0..parents.len().saturating_sub(1) {
        let (below, above) = parents.split_at_mut(level + 1);
        let mut place = vec![None; above[0].len()];
        let mut next = Vec::with_capacity(place.len());
        for node in &mut below[level] {
            let old = *node as usize;
            *node = *place[old].get_or_insert_with(|| {
                next.push(above[0][old]);
                next.len() as u32 - 1
            });
        }
        above[0] = next;
    }
    parents
}
