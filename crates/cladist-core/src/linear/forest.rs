//! Trained label trees in flat arrays, laid out for scoring: feature → (output, weight).

use super::solver::Classifier;
use crate::text::tfidf::SparseRow;

/// Label trees with their classifiers. Every tree's nodes stand together, parents before children.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Forest {
    pub(crate) n_features: usize,
    pub(crate) n_labels: usize,
    /// The first node of each tree.
    pub(crate) roots: Vec<u32>,
    /// For each node 1 if its outputs are labels, 0 if they are nodes.
    pub(crate) leaf: Vec<u32>,
    /// Where a node's outputs start in `targets` and `bias`; one entry more than nodes.
    pub(crate) node_outputs: Vec<u64>,
    /// A node or a label per output.
    pub(crate) targets: Vec<u32>,
    pub(crate) bias: Vec<f32>,
    /// Where a node's features start in `features`; one entry more than nodes.
    pub(crate) node_features: Vec<u64>,
    /// Features with weights in a node, ascending.
    pub(crate) features: Vec<u32>,
    /// Where a feature's weights start in `outputs` and `weights`; one entry more than features.
    pub(crate) feature_weights: Vec<u64>,
    /// Outputs counted within their node.
    pub(crate) outputs: Vec<u32>,
    pub(crate) weights: Vec<f32>,
    /// Derived: where to look for a feature.
    lookup: Lookup,
}

/// For each node a table from a feature's leading bits to the first place in `features` where it could be.
#[derive(Debug, Clone, Default, PartialEq)]
struct Lookup {
    starts: Vec<usize>,
    shifts: Vec<u32>,
    places: Vec<u32>,
}

impl Forest {
    pub(crate) fn new(n_features: usize, n_labels: usize) -> Self {
        Self {
            n_features,
            n_labels,
            roots: Vec::new(),
            leaf: Vec::new(),
            node_outputs: vec![0],
            targets: Vec::new(),
            bias: Vec::new(),
            node_features: vec![0],
            features: Vec::new(),
            feature_weights: vec![0],
            outputs: Vec::new(),
            weights: Vec::new(),
            lookup: Lookup::default(),
        }
    }

    pub(crate) fn n_nodes(&self) -> usize {
        self.leaf.len()
    }

    /// Appends a node; `classifiers` speak of columns that stand for `features`.
    pub(crate) fn push_node(
        &mut self,
        leaf: bool,
        targets: impl IntoIterator<Item = u32>,
        classifiers: &[Classifier],
        features: &[u32],
    ) {
        self.leaf.push(u32::from(leaf));
        self.targets.extend(targets);
        self.bias.extend(classifiers.iter().map(|classifier| classifier.bias));
        self.node_outputs.push(self.targets.len() as u64);

        // For each column how many weights it has, then where its next weight goes.
        let mut next = vec![0usize; features.len()];
        for &(column, _) in classifiers.iter().flat_map(|classifier| &classifier.weights) {
            next[column as usize] += 1;
        }
        let mut used: Vec<usize> = (0..features.len()).filter(|&column| next[column] > 0).collect();
        used.sort_unstable_by_key(|&column| features[column]);
        let mut end = self.outputs.len();
        for column in used {
            self.features.push(features[column]);
            (next[column], end) = (end, end + next[column]);
            self.feature_weights.push(end as u64);
        }
        self.node_features.push(self.features.len() as u64);
        self.outputs.resize(end, 0);
        self.weights.resize(end, 0.0);
        for (output, classifier) in (0..).zip(classifiers) {
            for &(column, weight) in &classifier.weights {
                let place = &mut next[column as usize];
                self.outputs[*place] = output;
                self.weights[*place] = weight;
                *place += 1;
            }
        }
    }

    /// Makes ready for scoring; nothing is to be changed afterwards.
    pub(crate) fn index(&mut self) {
        let mut lookup = Lookup { starts: vec![0], ..Lookup::default() };
        for node in 0..self.n_nodes() {
            let first = self.node_features[node];
            let features = &self.features[first as usize..self.node_features[node + 1] as usize];
            // About two features per entry.
            let mut shift = 0;
            while self.n_features >> shift > features.len() / 2 + 1 {
                shift += 1;
            }
            let mut place = 0;
            for bucket in 0..=(self.n_features >> shift) as u64 {
                while place < features.len() && u64::from(features[place]) < bucket << shift {
                    place += 1;
                }
                lookup.places.push(place as u32);
            }
            lookup.shifts.push(shift);
            lookup.starts.push(lookup.places.len());
        }
        self.lookup = lookup;
    }

    /// The outputs of a node: nodes or labels.
    pub(crate) fn targets_of(&self, node: usize) -> &[u32] {
        &self.targets[self.node_outputs[node] as usize..self.node_outputs[node + 1] as usize]
    }

    /// The weights of each label, if one node decides on all of them.
    pub(crate) fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        if self.n_nodes() != 1 || !self.is_leaf(0) {
            return None;
        }
        let mut vectors = vec![SparseRow::new(); self.n_labels];
        for (&feature, range) in self.features.iter().zip(self.feature_weights.windows(2)) {
            let weights = range[0] as usize..range[1] as usize;
            for (&output, &weight) in self.outputs[weights.clone()].iter().zip(&self.weights[weights]) {
                vectors[self.targets[output as usize] as usize].push((feature, weight));
            }
        }
        Some(vectors)
    }

    /// Whether a node's outputs are labels.
    pub(crate) fn is_leaf(&self, node: usize) -> bool {
        self.leaf[node] != 0
    }

    /// The raw scores s of a node's outputs for a row of features.
    pub(crate) fn raw_scores(&self, node: usize, row: &[(u32, f32)], scores: &mut Vec<f32>) {
        let outputs = self.node_outputs[node] as usize..self.node_outputs[node + 1] as usize;
        scores.clear();
        scores.extend_from_slice(&self.bias[outputs]);
        let start = self.node_features[node] as usize;
        let features = &self.features[start..self.node_features[node + 1] as usize];
        let places = &self.lookup.places[self.lookup.starts[node]..self.lookup.starts[node + 1]];
        let shift = self.lookup.shifts[node];
        for &(feature, value) in row {
            let Some(&place) = places.get((feature >> shift) as usize) else { continue };
            let mut place = place as usize;
            while place < features.len() && features[place] < feature {
                place += 1;
            }
            if features.get(place) != Some(&feature) {
                continue;
            }
            let weights = self.feature_weights[start + place] as usize
                ..self.feature_weights[start + place + 1] as usize;
            for (&output, &weight) in self.outputs[weights.clone()].iter().zip(&self.weights[weights]) {
                scores[output as usize] += weight * value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn labels_of_a_single_node_have_vectors() {
        let classifier = |weights: &[(u32, f32)]| Classifier { bias: 0.5, weights: weights.to_vec() };
        let classifiers = [classifier(&[(0, 1.0), (2, 2.0)]), classifier(&[(1, 3.0)])];
        let mut forest = Forest::new(9, 4);
        forest.push_node(true, [3, 1], &classifiers, &[7, 5, 2]);
        let vectors = vec![vec![], vec![(5, 3.0)], vec![], vec![(2, 2.0), (7, 1.0)]];
        assert_eq!(forest.label_vectors(), Some(vectors));
        forest.push_node(true, [0], &classifiers[..1], &[7, 5, 2]);
        assert_eq!(forest.label_vectors(), None);
    }

    proptest! {
        #[test]
        fn scores_are_dot_products(
            nodes in proptest::collection::vec(
                proptest::collection::vec(
                    (-2f32..2.0, proptest::collection::btree_map(0u32..40, -1f32..1.0, 0..20)), 0..5), 1..4),
            row in proptest::collection::btree_map(0u32..90, -1f32..1.0, 0..30),
        ) {
            let features: Vec<u32> = (0..40).map(|column| column * 2).collect();
            let mut forest = Forest::new(80, 99);
            forest.roots.push(0);
            for node in &nodes {
                let classifiers: Vec<Classifier> = node
                    .iter()
                    .map(|(bias, weights)| {
                        Classifier { bias: *bias, weights: weights.clone().into_iter().collect() }
                    })
                    .collect();
                forest.push_node(true, 0..node.len() as u32, &classifiers, &features);
            }
            forest.index();
            let row: Vec<(u32, f32)> = row.into_iter().collect();
            let mut scores = Vec::new();
            for (place, node) in nodes.iter().enumerate() {
                forest.raw_scores(place, &row, &mut scores);
                prop_assert_eq!(scores.len(), node.len());
                for ((bias, weights), score) in node.iter().zip(&scores) {
                    let expected = row.iter().fold(*bias, |sum, &(feature, value)| {
                        let weight = if feature % 2 == 0 { weights.get(&(feature / 2)) } else { None };
                        sum + weight.map_or(0.0, |weight| weight * value)
                    });
                    prop_assert!((expected - score).abs() < 1e-4, "{} {}", expected, score);
                }
            }
        }
    }
}
