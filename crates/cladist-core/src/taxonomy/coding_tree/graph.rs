//! Undirected graphs of labels, or of groups of labels.

use super::super::Taxonomy;

/// A weight between two vertices, the lower one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) low: u32,
    pub(super) high: u32,
    pub(super) weight: u64,
}

/// Vertices and the weights between them; each pair occurs once.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    /// The degrees of the labels in a vertex, added up.
    pub(super) volumes: Vec<u64>,
    /// The weight of the edges that leave it.
    pub(super) cuts: Vec<u64>,
    pub(super) edges: Vec<Edge>,
}

/// Vertices in groups that are numbered from 0.
#[derive(Debug, Clone)]
pub(super) struct Partition {
    pub(super) groups: Vec<u32>,
    pub(super) n_groups: usize,
}

/// A group of vertices: which they are, and the edges among them.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    pub(super) members: Vec<u32>,
    /// Volumes and cuts are those of the whole graph.
    pub(super) graph: Graph,
}

impl Graph {
    /// Labels and the edges between them, whatever their direction; the root is no vertex.
    pub(super) fn of(taxonomy: &Taxonomy) -> Self {
        let edges = taxonomy.edges().map(|(parent, child)| {
            // A parent comes before its children.
            Edge { low: parent.index() as u32, high: child.index() as u32, weight: 1 }
        });
        let volumes = vec![0; taxonomy.n_labels()];
        Self { volumes, cuts: Vec::new(), edges: edges.collect() }.alone()
    }

    pub(super) fn len(&self) -> usize {
        self.volumes.len()
    }

    /// The volume of all vertices.
    pub(super) fn volume(&self) -> u64 {
        self.volumes.iter().sum()
    }

    /// The same edges as a graph of its own: nothing leaves it.
    pub(super) fn alone(self) -> Self {
        let mut degrees = vec![0; self.len()];
        for edge in &self.edges {
            degrees[edge.low as usize] += edge.weight;
            degrees[edge.high as usize] += edge.weight;
        }
        Self { volumes: degrees.clone(), cuts: degrees, edges: self.edges }
    }

    /// One vertex per group.
    pub(super) fn contract(&self, partition: &Partition) -> Self {
        let mut volumes = vec![0; partition.n_groups];
        let mut cuts = vec![0; partition.n_groups];
        for (&group, (volume, cut)) in partition.groups.iter().zip(self.volumes.iter().zip(&self.cuts)) {
            volumes[group as usize] += volume;
            cuts[group as usize] += cut;
        }
        let mut edges = Vec::new();
        for &Edge { low, high, weight } in &self.edges {
            let (a, b) = (partition.groups[low as usize], partition.groups[high as usize]);
            if a == b {
                cuts[a as usize] -= 2 * weight;
            } else {
                edges.push(Edge { low: a.min(b), high: a.max(b), weight });
            }
        }
        edges.sort_unstable();
        edges.dedup_by(|next, kept| {
            let same = (next.low, next.high) == (kept.low, kept.high);
            if same {
                kept.weight += next.weight;
            }
            same
        });
        Self { volumes, cuts, edges }
    }

    /// Every group for itself, its members in ascending order.
    pub(super) fn parts(&self, partition: &Partition) -> Vec<Part> {
        let mut parts = vec![Part::default(); partition.n_groups];
        let mut place = Vec::with_capacity(self.len());
        for (vertex, &group) in partition.groups.iter().enumerate() {
            let Part { members, graph } = &mut parts[group as usize];
            place.push(members.len() as u32);
            members.push(vertex as u32);
            graph.volumes.push(self.volumes[vertex]);
            graph.cuts.push(self.cuts[vertex]);
        }
        for &Edge { low, high, weight } in &self.edges {
            let group = partition.groups[low as usize];
            if group == partition.groups[high as usize] {
                let edge = Edge { low: place[low as usize], high: place[high as usize], weight };
                parts[group as usize].graph.edges.push(edge);
            }
        }
        parts
    }

    /// The entropy of vertices right under nodes of the given volumes, in a graph of volume `total`.
    pub(super) fn entropy_below(&self, above: impl Fn(usize) -> u64, total: u64) -> f64 {
        let terms = self.volumes.iter().zip(&self.cuts).enumerate().map(|(vertex, (&volume, &cut))| {
            // A vertex without a way out costs nothing; a label without edges has no volume either.
            if cut == 0 {
                return 0.0;
            }
            -(cut as f64 / total as f64) * (volume as f64 / above(vertex) as f64).log2()
        });
        terms.sum()
    }

    /// How much entropy a level of groups saves between the vertices and a node that holds all of them.
    pub(super) fn saving(&self, partition: &Partition, total: u64) -> f64 {
        let whole = self.volume();
        let groups = self.contract(partition);
        let before = self.entropy_below(|_| whole, total);
        let below = self.entropy_below(|vertex| groups.volumes[partition.groups[vertex] as usize], total);
        before - (groups.entropy_below(|_| whole, total) + below)
    }
}
