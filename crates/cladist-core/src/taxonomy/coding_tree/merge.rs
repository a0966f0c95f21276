//! Clusters that merge pairwise, each time the pair that lowers the entropy most.
//!
//! When a cluster grows, its merits with all its neighbours change, and it may have very many: a star of n labels
//! would cost n². So each pair belongs to the end with more neighbours, its *owner*, which keeps partners by *kind*:
//! partners of equal volume, inside and weight are equally good, and only the first of them has to wait in the heap. A
//! growing cluster then offers one pair for each kind, and tells the few clusters that own it.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Bound;

use super::CodingRule;
use super::graph::Graph;
use crate::{Cancel, Result};

/// A node of a binary tree. The vertices are the nodes 0 to n − 1; merges follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Merge {
    pub(super) children: [u32; 2],
    /// The weight between the children.
    pub(super) cut: u64,
    pub(super) volume: u64,
}

/// Everything about a partner that decides how good a merge with it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    volume: u64,
    inside: u64,
    weight: u64,
}

/// A pair of living nodes in the heap: the least change of entropy comes first, then the lower nodes.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    change: f64,
    low: u32,
    high: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_change = other.change.total_cmp(&self.change);
        by_change.then_with(|| (other.low, other.high).cmp(&(self.low, self.high)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// No slot: the node is part of another.
const GONE: u32 = u32::MAX;

/// A living cluster. It keeps its slot when it swallows another, and gets a new node.
#[derive(Debug, Clone, Default)]
struct Cluster {
    node: u32,
    volume: u64,
    /// How far the children's cuts exceed the cluster's own: twice the weight that merges have closed in.
    inside: u64,
    /// Partners whose pair is ours.
    owned: BTreeSet<(Kind, u32)>,
    /// Slots whose pair with us is theirs, and the weight.
    owners: Vec<(u32, u64)>,
}

impl Cluster {
    fn degree(&self) -> usize {
        self.owned.len() + self.owners.len()
    }

    fn kind(&self, weight: u64) -> Kind {
        Kind { volume: self.volume, inside: self.inside, weight }
    }

    /// Forgets an owner and tells the weight.
    fn disown(&mut self, owner: u32) -> Option<u64> {
        let place = self.owners.iter().position(|&(slot, _)| slot == owner)?;
        Some(self.owners.swap_remove(place).1)
    }
}

struct Merger {
    total: f64,
    clusters: Vec<Cluster>,
    /// The slot of each node.
    slots: Vec<u32>,
    heap: BinaryHeap<Candidate>,
}

/// Merges until no two clusters are adjacent, or with [`CodingRule::StopWhenPositive`] until no merge lowers the entropy.
pub(super) fn merge(graph: &Graph, rule: CodingRule, cancel: &Cancel) -> Result<Vec<Merge>> {
    let mut merger = Merger::new(graph, rule);
    let mut merges = Vec::new();
    while let Some(Candidate { change, low, high }) = merger.heap.pop() {
        cancel.check()?;
        let (a, b) = (merger.slots[low as usize], merger.slots[high as usize]);
        if a == GONE || b == GONE {
            continue;
        }
        if rule == CodingRule::StopWhenPositive && change >= 0.0 {
            break;
        }
        let (cut, volume) = merger.join(a, b);
        merges.push(Merge { children: [low, high], cut, volume });
    }
    Ok(merges)
}

impl Merger {
    fn new(graph: &Graph, rule: CodingRule) -> Self {
        let cluster = |(node, (&volume, &cut)): (usize, (&u64, &u64))| {
            // The published routine counts a group's inner edges again when groups are grouped.
            let inside = if rule == CodingRule::Reference { volume - cut } else { 0 };
            Cluster { node: node as u32, volume, inside, ..Cluster::default() }
        };
        let clusters = graph.volumes.iter().zip(&graph.cuts).enumerate().map(cluster).collect();
        let slots = (0..graph.len() as u32).collect();
        let mut merger = Self { total: graph.volume() as f64, clusters, slots, heap: BinaryHeap::new() };
        let mut degrees = vec![0u32; graph.len()];
        for edge in &graph.edges {
            degrees[edge.low as usize] += 1;
            degrees[edge.high as usize] += 1;
        }
        for edge in &graph.edges {
            let low_owns = degrees[edge.low as usize] >= degrees[edge.high as usize];
            let (owner, other) = if low_owns { (edge.low, edge.high) } else { (edge.high, edge.low) };
            merger.own(owner, other, edge.weight);
        }
        for slot in 0..graph.len() as u32 {
            merger.offer(slot);
        }
        merger
    }

    fn at(&self, slot: u32) -> &Cluster {
        &self.clusters[slot as usize]
    }

    fn at_mut(&mut self, slot: u32) -> &mut Cluster {
        &mut self.clusters[slot as usize]
    }

    /// How the entropy changes if a cluster merges with a partner of a kind.
    fn change(&self, cluster: &Cluster, partner: Kind) -> f64 {
        let (a, b) = (cluster.volume as f64, partner.volume as f64);
        let both = a + b;
        // Not `log2`: the last bit decides ties, and this is how the published routine computes it.
        let log = |x: f64| x.ln() / std::f64::consts::LN_2;
        let change = cluster.inside as f64 * log(both / a) + partner.inside as f64 * log(both / b)
            - 2.0 * partner.weight as f64 * log(self.total / both);
        // Adding zero makes one of the two zeros of floating point.
        change / self.total + 0.0
    }

    fn push(&mut self, owner: u32, (kind, node): (Kind, u32)) {
        let cluster = self.at(owner);
        let change = self.change(cluster, kind);
        let (low, high) = (node.min(cluster.node), node.max(cluster.node));
        self.heap.push(Candidate { change, low, high });
    }

    /// Makes a pair `owner`'s.
    fn own(&mut self, owner: u32, other: u32, weight: u64) {
        let partner = (self.at(other).kind(weight), self.at(other).node);
        self.at_mut(owner).owned.insert(partner);
        self.at_mut(other).owners.push((owner, weight));
    }

    /// Offers the first partner of each kind.
    fn offer(&mut self, slot: u32) {
        let mut next = self.at(slot).owned.first().copied();
        while let Some(partner) = next {
            self.push(slot, partner);
            let later = (Bound::Excluded((partner.0, GONE)), Bound::Unbounded);
            next = self.at(slot).owned.range(later).next().copied();
        }
    }

    /// Takes a cluster out of its owners' sets; where it was the first of its kind, the next one is offered.
    fn hide(&mut self, slot: u32) {
        let owners = std::mem::take(&mut self.at_mut(slot).owners);
        for &(owner, weight) in &owners {
            let (kind, node) = (self.at(slot).kind(weight), self.at(slot).node);
            self.at_mut(owner).owned.remove(&(kind, node));
            let first = self.at(owner).owned.range((kind, 0)..=(kind, GONE)).next().copied();
            if let Some(first) = first.filter(|first| first.1 > node) {
                self.push(owner, first);
            }
        }
        self.at_mut(slot).owners = owners;
    }

    /// Puts a cluster back into its owners' sets, but for those that now have fewer neighbours: they become ours.
    fn show(&mut self, slot: u32) {
        let degree = self.at(slot).degree();
        for (owner, weight) in std::mem::take(&mut self.at_mut(slot).owners) {
            if degree > self.at(owner).degree() {
                self.own(slot, owner, weight);
            } else {
                self.own(owner, slot, weight);
                self.push(owner, (self.at(slot).kind(weight), self.at(slot).node));
            }
        }
    }

    /// Parts two clusters and tells the weight between them.
    fn part(&mut self, a: u32, b: u32) -> u64 {
        for (owner, other) in [(a, b), (b, a)] {
            if let Some(weight) = self.at_mut(other).disown(owner) {
                let partner = (self.at(other).kind(weight), self.at(other).node);
                self.at_mut(owner).owned.remove(&partner);
                return weight;
            }
        }
        0
    }

    /// Adds weight between a hidden cluster and another one.
    fn connect(&mut self, hidden: u32, other: u32, weight: u64) {
        if let Some(pair) = self.at_mut(hidden).owners.iter_mut().find(|pair| pair.0 == other) {
            pair.1 += weight;
            return;
        }
        let before = self.part(hidden, other);
        if before > 0 || self.at(hidden).degree() >= self.at(other).degree() {
            self.own(hidden, other, before + weight);
        } else {
            self.at_mut(hidden).owners.push((other, weight));
        }
    }

    /// Makes one cluster of two, and tells the weight between them and their volume.
    fn join(&mut self, a: u32, b: u32) -> (u64, u64) {
        let cut = self.part(a, b);
        let a_first = self.at(a).degree() >= self.at(b).degree();
        let (large, small) = if a_first { (a, b) } else { (b, a) };
        self.hide(large);
        self.hide(small);
        let gone = std::mem::take(self.at_mut(small));
        let mut moved = gone.owners;
        for (kind, node) in gone.owned {
            let other = self.slots[node as usize];
            self.at_mut(other).disown(small);
            moved.push((other, kind.weight));
        }

        let node = self.slots.len() as u32;
        self.slots.push(large);
        self.slots[gone.node as usize] = GONE;
        let cluster = &mut self.clusters[large as usize];
        self.slots[cluster.node as usize] = GONE;
        cluster.node = node;
        cluster.volume += gone.volume;
        cluster.inside += gone.inside + 2 * cut;
        let volume = cluster.volume;

        for (other, weight) in moved {
            self.connect(large, other, weight);
        }
        self.show(large);
        self.offer(large);
        (cut, volume)
    }
}
