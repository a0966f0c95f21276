//! From pairs of clusters to one level of groups.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::CodingRule;
use super::graph::{Graph, Partition};
use super::merge::{Merge, merge};
use crate::{Cancel, Result};

/// The level of groups between the vertices and a node above all of them. Groups are numbered as they came to be;
/// vertices that stay alone follow, or with [`CodingRule::StopWhenPositive`] come first.
pub(super) fn group(graph: &Graph, rule: CodingRule, cancel: &Cancel) -> Result<Partition> {
    let merges = merge(graph, rule, cancel)?;
    let mut tops = match rule {
        CodingRule::Reference => Compression::new(graph, &merges).run(cancel)?,
        CodingRule::StopWhenPositive => survivors(graph.len(), &merges),
    };
    if rule == CodingRule::Reference {
        // A vertex alone gets a node of its own, after all others.
        let first = (graph.len() + merges.len()) as u32;
        tops.iter_mut().enumerate().filter(|(vertex, top)| *vertex == **top as usize).for_each(
            |(vertex, top)| {
                *top = first + vertex as u32;
            },
        );
    }
    let mut names = tops.clone();
    names.sort_unstable();
    names.dedup();
    let groups = tops.iter().map(|top| names.partition_point(|name| name < top) as u32).collect();
    Ok(Partition { groups, n_groups: names.len() })
}

/// The node at the top of each vertex's tree.
fn survivors(n: usize, merges: &[Merge]) -> Vec<u32> {
    let mut tops: Vec<u32> = (0..(n + merges.len()) as u32).collect();
    for (place, merge) in merges.iter().enumerate().rev() {
        for child in merge.children {
            tops[child as usize] = tops[n + place];
        }
    }
    tops.truncate(n);
    tops
}

/// Takes out nodes of binary trees, the cheapest first, until no vertex is more than two steps below the root.
///
/// What it costs to take out a node never falls: its own cut and its parent's volume only grow. So each node waits in
/// the heap with the cost it once had, and goes back if that has risen.
struct Compression<'m> {
    n: usize,
    merges: &'m [Merge],
    /// Where each node was at first; the root is its own parent.
    parents: Vec<u32>,
    /// By merge: itself, or where it went when it was taken out.
    replaced: Vec<u32>,
    cuts: Vec<u64>,
    /// By merge: the children that are no vertices.
    inner_children: Vec<u32>,
    root: u32,
    /// The volume of the root.
    total: u64,
}

impl<'m> Compression<'m> {
    fn new(graph: &Graph, merges: &'m [Merge]) -> Self {
        let n = graph.len();
        let n_nodes = n + merges.len();
        // All vertices in one tree: its top is the root. Otherwise the root is above the trees.
        let connected = !merges.is_empty() && merges.len() + 1 == n;
        let root = if connected { n_nodes - 1 } else { n_nodes };
        let mut parents = vec![root as u32; root + 1];
        let mut inner_children = vec![0; root + 1 - n];
        for (node, merge) in (n..).zip(merges) {
            for child in merge.children {
                parents[child as usize] = node as u32;
                inner_children[node - n] += u32::from(child as usize >= n);
            }
        }
        let mut cuts: Vec<u64> = merges.iter().map(|merge| merge.cut).collect();
        cuts.resize(root + 1 - n, 0);
        let replaced = (n as u32..=root as u32).collect();
        let (root, total) = (root as u32, graph.volume());
        Self { n, merges, parents, replaced, cuts, inner_children, root, total }
    }

    /// The node that stands where `node` was, shortening the way there.
    fn find(&mut self, mut node: u32) -> u32 {
        loop {
            let next = self.replaced[node as usize - self.n];
            if next == node {
                return node;
            }
            let after = self.replaced[next as usize - self.n];
            self.replaced[node as usize - self.n] = after;
            node = after;
        }
    }

    fn parent(&mut self, node: u32) -> u32 {
        self.find(self.parents[node as usize])
    }

    fn volume(&self, node: u32) -> u64 {
        if node == self.root { self.total } else { self.merges[node as usize - self.n].volume }
    }

    fn cost(&self, node: u32, parent: u32) -> f64 {
        let ratio = self.volume(parent) as f64 / self.volume(node) as f64;
        self.cuts[node as usize - self.n] as f64 * ratio.ln()
    }

    /// The group above each vertex; the vertex itself if that is the root.
    fn run(mut self, cancel: &Cancel) -> Result<Vec<u32>> {
        let mut heap = BinaryHeap::new();
        for node in self.n as u32..self.root {
            let parent = self.parent(node);
            heap.push(Reverse((Cost(self.cost(node, parent)), node)));
        }
        while let Some(Reverse((known, node))) = heap.pop() {
            cancel.check()?;
            let parent = self.parent(node);
            let place = node as usize - self.n;
            if parent == self.root && self.inner_children[place] == 0 {
                continue; // right between the root and vertices: it stays
            }
            let cost = Cost(self.cost(node, parent));
            if cost != known {
                heap.push(Reverse((cost, node)));
                continue;
            }
            let above = parent as usize - self.n;
            self.replaced[place] = parent;
            self.cuts[above] += self.cuts[place];
            self.inner_children[above] = self.inner_children[above] + self.inner_children[place] - 1;
        }
        let vertices = 0..self.n as u32;
        let group = |vertex| {
            let parent = self.parent(vertex);
            if parent == self.root { vertex } else { parent }
        };
        Ok(vertices.map(group).collect())
    }
}

/// A number with a total order.
#[derive(Debug, Clone, Copy)]
struct Cost(f64);

impl PartialEq for Cost {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Cost {}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cost {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
