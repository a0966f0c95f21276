//! How a label's documents divide among its children.

use super::LabelCounts;
use super::{LabelId, LabelSet, Taxonomy};

/// For each edge, the share of the child among the children of its parent: documents with both labels, over the same
/// count of all children. 0 where no child was seen with the parent.
///
/// One number per edge, in the order of [`Taxonomy::edges`].
#[derive(Debug, Clone, PartialEq)]
pub struct Priors(Vec<f64>);

impl Priors {
    /// Counts training documents. A pair counts where gold has both, so gold sets should hold their ancestors.
    #[must_use]
    pub fn of(taxonomy: &Taxonomy, gold: &[LabelSet]) -> Self {
        let mut counts = vec![0u64; taxonomy.n_edges()];
        for labels in gold {
            for &child in labels {
                for &parent in taxonomy.parents(child).iter().filter(|&&parent| labels.contains(parent)) {
                    if let Some(edge) = taxonomy.children.position(parent, child) {
                        counts[edge] += 1;
                    }
                }
            }
        }
        Self::shares(taxonomy, &counts)
    }

    /// The same from counts of labels alone. Where gold sets hold their ancestors, a document with the child has both.
    #[must_use]
    pub fn of_counts(taxonomy: &Taxonomy, counts: &LabelCounts) -> Self {
        let of = |child: LabelId| u64::from(counts.counts.get(child.index()).copied().unwrap_or(0));
        let counts: Vec<u64> = taxonomy.edges().map(|(_, child)| of(child)).collect();
        Self::shares(taxonomy, &counts)
    }

    /// From documents of each edge.
    fn shares(taxonomy: &Taxonomy, counts: &[u64]) -> Self {
        let mut priors = vec![0.0; counts.len()];
        for span in taxonomy.children.starts.windows(2) {
            let children = span[0]..span[1];
            let total: u64 = counts[children.clone()].iter().sum();
            for edge in children.filter(|_| total > 0) {
                priors[edge] = counts[edge] as f64 / total as f64;
            }
        }
        Self(priors)
    }

    /// One per edge, in the order of [`Taxonomy::edges`].
    #[must_use]
    pub fn by_edge(&self) -> &[f64] {
        &self.0
    }

    /// Those of a label's children, in their order.
    #[must_use]
    pub fn of_children(&self, taxonomy: &Taxonomy, parent: LabelId) -> &[f64] {
        let starts = &taxonomy.children.starts;
        &self.0[starts[parent.index()]..starts[parent.index() + 1]]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::taxonomy::strategies::{build, dag};

    #[test]
    fn children_share_what_was_seen_of_them() {
        let taxonomy = build(&[(None, "a"), (Some("a"), "b"), (Some("a"), "c"), (Some("c"), "d")]);
        let set = |ids: &[&str]| ids.iter().map(|id| taxonomy.get(id).unwrap()).collect::<LabelSet>();
        let mut gold = vec![set(&["a", "b"]); 6];
        gold.extend(vec![set(&["a", "c"]); 2]);
        // Neither a parent alone nor a child without it counts.
        gold.extend([set(&["a"]), set(&["b"]), set(&["d"])]);
        let priors = Priors::of(&taxonomy, &gold);
        assert_eq!(priors.of_children(&taxonomy, taxonomy.get("a").unwrap()), [0.75, 0.25]);
        assert_eq!(priors.by_edge(), [0.75, 0.25, 0.0]);
    }

    proptest! {
        #[test]
        fn priors_of_a_parent_add_up_to_one_or_none(
            taxonomy in dag(),
            picks in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..5), 0..8),
        ) {
            let gold: Vec<LabelSet> = picks.iter()
                .map(|set| set.iter().filter_map(|pick| taxonomy.at(pick.index(taxonomy.n_labels()))).collect())
                .collect();
            let priors = Priors::of(&taxonomy, &gold);
            let closed: Vec<LabelSet> = gold.iter().map(|set| taxonomy.close_upward(set)).collect();
            let counts = LabelCounts::of(&closed, taxonomy.n_labels());
            prop_assert_eq!(Priors::of_counts(&taxonomy, &counts), Priors::of(&taxonomy, &closed));
            prop_assert_eq!(priors.by_edge().len(), taxonomy.edges().count());
            for (&prior, (parent, child)) in priors.by_edge().iter().zip(taxonomy.edges()) {
                let both = |child: LabelId| gold.iter().filter(|set| set.contains(parent) && set.contains(child)).count();
                let all: usize = taxonomy.children(parent).iter().map(|&child| both(child)).sum();
                prop_assert!((prior * all as f64 - both(child) as f64).abs() < 1e-9);
                let sum: f64 = priors.of_children(&taxonomy, parent).iter().sum();
                prop_assert!((sum - 1.0).abs() < 1e-9 || (sum == 0.0 && all == 0));
            }
        }
    }
}
