//! The same trees by definition: sets of labels, every pair looked at, everything counted anew each time.

use std::collections::BTreeSet;

use super::CodingRule;
use super::levels::ROUNDING;
use crate::taxonomy::Taxonomy;

pub(super) type Labels = BTreeSet<usize>;

/// Labels and whether two of them are adjacent.
#[derive(Clone)]
struct Graph {
    labels: Labels,
    adjacent: Vec<Vec<bool>>,
}

impl Graph {
    fn new(taxonomy: &Taxonomy) -> Self {
        let n = taxonomy.n_labels();
        let mut adjacent = vec![vec![false; n]; n];
        for label in taxonomy.labels() {
            for parent in taxonomy.parents(label) {
                adjacent[label.index()][parent.index()] = true;
                adjacent[parent.index()][label.index()] = true;
            }
        }
        Self { labels: (0..n).collect(), adjacent }
    }

    fn between(&self, some: &Labels, others: &Labels) -> f64 {
        let adjacent = |&a: &usize| others.iter().filter(|&&b| self.adjacent[a][b]).count();
        some.iter().map(adjacent).sum::<usize>() as f64
    }

    fn volume(&self, set: &Labels) -> f64 {
        self.between(set, &self.labels)
    }

    fn cut(&self, set: &Labels) -> f64 {
        self.between(set, &self.labels.difference(set).copied().collect())
    }

    fn change(&self, inside: [f64; 2], pair: [&Labels; 2]) -> f64 {
        let log = |x: f64| x.ln() / 2f64.ln();
        let [a, b] = pair.map(|set| self.volume(set));
        let total = self.volume(&self.labels);
        let cut = self.between(pair[0], pair[1]);
        (inside[0] * log((a + b) / a) + inside[1] * log((a + b) / b) - 2.0 * cut * log(total / (a + b)))
            / total
    }
}

struct Node {
    labels: Labels,
    children: Vec<usize>,
    parent: Option<usize>,
}

/// Nodes by number; those without parent and children that are no vertex are gone.
struct Tree<'g> {
    graph: &'g Graph,
    n: usize,
    nodes: Vec<Node>,
}

impl Tree<'_> {
    fn height(&self, node: usize) -> usize {
        self.nodes[node].children.iter().map(|&child| self.height(child) + 1).max().unwrap_or(0)
    }

    fn depth(&self, node: usize) -> usize {
        self.nodes[node].parent.map_or(0, |parent| self.depth(parent) + 1)
    }

    fn tops(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&node| self.nodes[node].parent.is_none()).collect()
    }

    fn add(&mut self, children: Vec<usize>) -> usize {
        let labels = children.iter().flat_map(|&child| self.nodes[child].labels.clone()).collect();
        let node = self.nodes.len();
        for &child in &children {
            self.nodes[child].parent = Some(node);
        }
        self.nodes.push(Node { labels, children, parent: None });
        node
    }

    fn inside(&self, node: usize, rule: CodingRule) -> f64 {
        let set = &self.nodes[node].labels;
        let before = match rule {
            CodingRule::Reference => self.graph.volume(set),
            CodingRule::StopWhenPositive => {
                let vertices = self.nodes[..self.n].iter().filter(|vertex| vertex.labels.is_subset(set));
                vertices.map(|vertex| self.graph.cut(&vertex.labels)).sum()
            }
        };
        before - self.graph.cut(set)
    }

    fn merge(&mut self, rule: CodingRule) {
        loop {
            let tops = self.tops();
            let mut best: Option<(f64, usize, usize)> = None;
            for (n, &low) in tops.iter().enumerate() {
                for &high in &tops[n + 1..] {
                    let pair = [&self.nodes[low].labels, &self.nodes[high].labels];
                    if self.graph.between(pair[0], pair[1]) > 0.0 {
                        let inside = [self.inside(low, rule), self.inside(high, rule)];
                        let change = self.graph.change(inside, pair);
                        if best.is_none_or(|best| (change, low, high) < best) {
                            best = Some((change, low, high));
                        }
                    }
                }
            }
            match best {
                Some((change, low, high)) if rule == CodingRule::Reference || change < 0.0 => {
                    self.add(vec![low, high]);
                }
                _ => return,
            }
        }
    }

    /// Weight between the children of a node.
    fn child_cut(&self, node: usize) -> f64 {
        let labels = |child: &usize| &self.nodes[*child].labels;
        let children = &self.nodes[node].children;
        let pairs = children.iter().flat_map(|a| children.iter().filter(move |b| a < b).map(move |b| (a, b)));
        pairs.map(|(a, b)| self.graph.between(labels(a), labels(b))).sum()
    }

    fn compress(&mut self, root: usize) {
        loop {
            let mut best: Option<(f64, usize)> = None;
            for node in self.n..self.nodes.len() {
                let Some(parent) = self.nodes[node].parent else { continue };
                if self.depth(node) + self.height(node) > 2 {
                    let [own, above] = [node, parent].map(|node| self.graph.volume(&self.nodes[node].labels));
                    let cost = self.child_cut(node) * (above / own).ln();
                    if best.is_none_or(|best| (cost, node) < best) {
                        best = Some((cost, node));
                    }
                }
            }
            let Some((_, node)) = best else { break };
            let parent = self.nodes[node].parent.take().unwrap();
            let children = std::mem::take(&mut self.nodes[node].children);
            for &child in &children {
                self.nodes[child].parent = Some(parent);
            }
            self.nodes[parent].children.retain(|&child| child != node);
            self.nodes[parent].children.extend(children);
        }
        assert!(self.height(root) <= 2);
    }
}

/// The groups of vertices, in the order of their numbers.
fn group(graph: &Graph, vertices: &[Labels], rule: CodingRule) -> Vec<Labels> {
    let node = |labels: &Labels| Node { labels: labels.clone(), children: Vec::new(), parent: None };
    let mut tree = Tree { graph, n: vertices.len(), nodes: vertices.iter().map(node).collect() };
    tree.merge(rule);
    let mut tops = tree.tops();
    if rule == CodingRule::Reference {
        let root = if let [root] = tops[..] { root } else { tree.add(tops) };
        tree.compress(root);
        tops = tree.nodes[root].children.clone();
        tops.sort_by_key(|&node| (node < vertices.len(), node));
    }
    tops.into_iter().map(|node| tree.nodes[node].labels.clone()).collect()
}

/// `−Σ cut/V · log2(vol / vol above)` over sets in a tree of sets.
pub(super) fn entropy(taxonomy: &Taxonomy, levels: &[Vec<Labels>]) -> f64 {
    let graph = Graph::new(taxonomy);
    entropy_of(&graph, levels)
}

fn entropy_of(graph: &Graph, levels: &[Vec<Labels>]) -> f64 {
    let mut sum = 0.0;
    for pair in levels.windows(2) {
        for set in &pair[0] {
            let above = pair[1].iter().find(|above| set.is_subset(above)).unwrap();
            if graph.cut(set) > 0.0 {
                let share = graph.cut(set) / graph.volume(&graph.labels);
                sum -= share * (graph.volume(set) / graph.volume(above)).log2();
            }
        }
    }
    sum
}

/// Every level as sets of labels, from single labels to all of them.
pub(super) fn levels(taxonomy: &Taxonomy, height: usize, rule: CodingRule) -> Vec<Vec<Labels>> {
    let graph = Graph::new(taxonomy);
    let singles: Vec<Labels> = graph.labels.iter().map(|&label| Labels::from([label])).collect();
    let root = vec![graph.labels.clone()];
    let mut levels = vec![singles, root.clone()];
    if graph.labels.len() <= 2 {
        levels.extend(vec![root.clone(); height - 1]);
        return levels;
    }
    while levels.len() <= height {
        let last = levels.len() - 1;
        let above = group(&graph, &levels[last - 1], rule);
        let mut joined = levels.clone();
        joined.insert(last, above);
        if rule == CodingRule::StopWhenPositive || last == 1 {
            levels = joined;
            continue;
        }
        let mut split = levels.clone();
        let parts = levels[1].iter().flat_map(|set| -> Vec<Labels> {
            let singles: Vec<Labels> = set.iter().map(|&label| Labels::from([label])).collect();
            if set.len() < 3 {
                return singles;
            }
            group(&Graph { labels: set.clone(), ..graph.clone() }, &singles, rule)
        });
        split.insert(1, parts.collect());
        let now = entropy_of(&graph, &levels);
        let saved = |other: &[Vec<Labels>], n: usize| (now - entropy_of(&graph, other)) / n as f64;
        let n_top = levels[last - 1].len();
        let join = n_top >= 3 && saved(&split, graph.labels.len()) + ROUNDING < saved(&joined, n_top);
        levels = if join { joined } else { split };
    }
    levels
}
