//! Splitting a taxonomy into the parts below chosen labels.

use super::{Builder, Closure, LabelId, LabelSet, Origin, Taxonomy};

/// A part of a taxonomy: some labels and the edges between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The label above all others; none for what is left over.
    pub top: Option<LabelId>,
    /// The labels, ascending.
    pub labels: LabelSet,
    /// Edges between them, parent first, ascending.
    pub edges: Vec<(LabelId, LabelId)>,
}

/// Branches of a taxonomy. In a DAG they may overlap, as they do if one top is below another.
#[derive(Debug, Clone)]
pub struct Branches {
    branches: Vec<Branch>,
    /// The branches of each label, in two flat arrays.
    starts: Vec<usize>,
    owners: Vec<usize>,
}

impl Branches {
    fn new(n_labels: usize, branches: Vec<Branch>) -> Self {
        let mut starts = vec![0; n_labels + 1];
        for label in branches.iter().flat_map(|branch| &branch.labels) {
            starts[label.index() + 1] += 1;
        }
        for n in 0..n_labels {
            starts[n + 1] += starts[n];
        }
        let mut next = starts.clone();
        let mut owners = vec![0; starts[n_labels]];
        for (n, branch) in branches.iter().enumerate() {
            for label in &branch.labels {
                owners[next[label.index()]] = n;
                next[label.index()] += 1;
            }
        }
        Self { branches, starts, owners }
    }

    /// The branches, by position.
    #[must_use]
    pub fn all(&self) -> &[Branch] {
        &self.branches
    }

    /// The positions of the branches that hold a label, ascending.
    #[must_use]
    pub fn owners(&self, label: LabelId) -> &[usize] {
        &self.owners[self.starts[label.index()]..self.starts[label.index() + 1]]
    }

    /// Whether a label is in two branches.
    #[must_use]
    pub fn overlap(&self) -> bool {
        self.starts.windows(2).any(|pair| pair[1] > pair[0] + 1)
    }
}

impl Taxonomy {
    /// One branch per label under the root: itself and everything below. Together they are all labels.
    #[must_use]
    pub fn branches(&self) -> Branches {
        self.branches_at(self.roots())
    }

    /// One branch per given label: itself and everything below. Labels in none of them make one more branch, the last.
    #[must_use]
    pub fn branches_at(&self, tops: &[LabelId]) -> Branches {
        let mut closure = Closure::new(self);
        let mut left = vec![true; self.n_labels()];
        let tops: LabelSet = tops.iter().copied().collect();
        let mut branches = Vec::with_capacity(tops.len() + 1);
        let mut inside = vec![usize::MAX; self.n_labels()];
        for &top in &tops {
            let labels = closure.downward(&[top]);
            labels.iter().for_each(|label| left[label.index()] = false);
            branches.push(self.branch(Some(top), labels, branches.len(), &mut inside));
        }
        let rest: LabelSet = self.labels().filter(|label| left[label.index()]).collect();
        if !rest.is_empty() {
            branches.push(self.branch(None, rest, branches.len(), &mut inside));
        }
        Branches::new(self.n_labels(), branches)
    }

    /// `inside` is scratch space: the last branch that a label was in.
    fn branch(&self, top: Option<LabelId>, labels: LabelSet, n: usize, inside: &mut [usize]) -> Branch {
        labels.iter().for_each(|label| inside[label.index()] = n);
        let edges = labels.iter().flat_map(|&parent| {
            let children = self.children(parent).iter().filter(|child| inside[child.index()] == n);
            children.map(move |&child| (parent, child))
        });
        let edges = edges.collect();
        Branch { top, labels, edges }
    }
}

/// A part of a taxonomy as a taxonomy of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// The part.
    pub taxonomy: Taxonomy,
    /// For each label of the part, by [`LabelId::index`], the label of the whole.
    pub origin: Vec<LabelId>,
}

impl Projection {
    /// The labels of a set that are in the part, as labels of the part.
    #[must_use]
    pub fn project(&self, whole: &Taxonomy, labels: &[LabelId]) -> LabelSet {
        labels.iter().filter_map(|&label| self.taxonomy.get(whole.id(label))).collect()
    }
}

impl Taxonomy {
    /// Some labels with the edges between them. What hangs under the root still does, and so does what loses its
    /// parents.
    ///
    /// The order of labels can differ from that in the whole: it is by the longest path in the part.
    #[must_use]
    pub fn project(&self, labels: &LabelSet) -> Projection {
        let here = Origin::default();
        let mut builder = Builder::new();
        for &label in labels {
            builder.declare(self.label(label).clone(), &here);
            if self.is_root_child(label) {
                builder.edge(None, self.id(label), &here);
            }
            for &parent in self.parents(label).iter().filter(|&&parent| labels.contains(parent)) {
                builder.edge(Some(self.id(parent)), self.id(label), &here);
            }
        }
        let taxonomy = builder.build_acyclic();
        let mut origin: Vec<LabelId> = labels.to_vec();
        origin.sort_by_cached_key(|&label| taxonomy.get(self.id(label)));
        Projection { taxonomy, origin }
    }

    /// The label at the top of each label's branch, one for each: with several parents that of the first. Where one label
    /// stands above all others, branches begin below it.
    #[must_use]
    pub fn tops(&self) -> Vec<LabelId> {
        let mut starts = self.roots();
        while let [only] = starts
            && !self.children(*only).is_empty()
        {
            starts = self.children(*only);
        }
        let mut tops: Vec<LabelId> = Vec::with_capacity(self.n_labels());
        for label in self.labels() {
            let above = self.parents(label).first().map(|parent| tops[parent.index()]);
            tops.push(above.filter(|_| starts.binary_search(&label).is_err()).unwrap_or(label));
        }
        tops
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::taxonomy::strategies::{build, dag};

    fn ids<'a>(taxonomy: &'a Taxonomy, set: &LabelSet) -> Vec<&'a str> {
        set.iter().map(|&label| taxonomy.id(label)).collect()
    }

    fn overlapping() -> Taxonomy {
        build(&[(None, "a"), (None, "b"), (Some("a"), "c"), (Some("b"), "c"), (Some("b"), "d")])
    }

    #[test]
    fn a_label_below_two_roots_is_in_both_branches() {
        let taxonomy = overlapping();
        let branches = taxonomy.branches();
        let labels: Vec<_> = branches.all().iter().map(|branch| ids(&taxonomy, &branch.labels)).collect();
        assert_eq!(labels, [vec!["a", "c"], vec!["b", "c", "d"]]);
        assert_eq!(branches.all().iter().map(|branch| branch.edges.len()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(branches.owners(taxonomy.get("c").unwrap()), [0, 1]);
        assert_eq!(branches.owners(taxonomy.get("d").unwrap()), [1]);
        assert!(branches.overlap());
    }

    #[test]
    fn labels_above_the_chosen_ones_make_a_branch_of_their_own() {
        let taxonomy = overlapping();
        let branches = taxonomy.branches_at(&[taxonomy.get("d").unwrap(); 2]);
        let [lower, rest] = branches.all() else { panic!("{branches:?}") };
        assert_eq!((ids(&taxonomy, &lower.labels), lower.top.is_some()), (vec!["d"], true));
        assert_eq!((ids(&taxonomy, &rest.labels), rest.top), (vec!["a", "b", "c"], None));
        assert_eq!(rest.edges.len(), 2);
        assert!(!branches.overlap());
    }

    #[test]
    fn a_projection_knows_where_its_labels_come_from() {
        // In the whole `x` follows `y`, because of the long way through `a`; in the branch of `b` it comes first.
        let whole = build(&[
            (None, "a"),
            (None, "b"),
            (Some("a"), "a1"),
            (Some("a1"), "a2"),
            (Some("a2"), "x"),
            (Some("b"), "x"),
            (Some("b"), "m"),
            (Some("m"), "y"),
        ]);
        assert!(whole.get("x") > whole.get("y"));
        let branches = whole.branches();
        let part = whole.project(&branches.all()[1].labels);
        let origin: Vec<&str> = part.origin.iter().map(|&label| whole.id(label)).collect();
        let own: Vec<&str> = part.taxonomy.labels().map(|label| part.taxonomy.id(label)).collect();
        assert_eq!(own, ["b", "m", "x", "y"]);
        assert_eq!(origin, own);
        let gold = whole.close_upward(&[whole.get("x").unwrap()]);
        assert_eq!(ids(&part.taxonomy, &part.project(&whole, &gold)), ["b", "x"]);
    }

    #[test]
    fn every_label_has_one_top_below_what_all_share() {
        let tops = |edges: &[(Option<&str>, &str)]| -> Vec<String> {
            let taxonomy = build(edges);
            let name = |(label, top)| format!("{}<{}", taxonomy.id(top), taxonomy.id(label));
            taxonomy.labels().zip(taxonomy.tops()).map(name).collect()
        };
        let two = [(None, "a"), (None, "b"), (Some("a"), "c"), (Some("b"), "c"), (Some("c"), "d")];
        assert_eq!(tops(&two), ["a<a", "b<b", "a<c", "a<d"]);
        let one = [(None, "r"), (Some("r"), "a"), (Some("r"), "b"), (Some("b"), "c")];
        assert_eq!(tops(&one), ["r<r", "a<a", "b<b", "b<c"]);
        assert_eq!(tops(&[(None, "a"), (Some("a"), "b")]), ["a<a", "b<b"]);
        assert!(tops(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn the_branches_cover_all_labels_wherever_they_begin(
            taxonomy in dag(),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let tops: Vec<_> = picks.iter().filter_map(|pick| taxonomy.at(pick.index(taxonomy.n_labels()))).collect();
            for branches in [taxonomy.branches(), taxonomy.branches_at(&tops)] {
                let covered: LabelSet = branches.all().iter().flat_map(|branch| &branch.labels).copied().collect();
                prop_assert_eq!(covered.len(), taxonomy.n_labels());
                for label in taxonomy.labels() {
                    let holders: Vec<usize> = (0..branches.all().len())
                        .filter(|&n| branches.all()[n].labels.contains(label)).collect();
                    prop_assert_eq!(branches.owners(label), holders);
                }
            }
        }

        #[test]
        fn projections_of_branches_keep_exactly_the_edges_inside(taxonomy in dag()) {
            for branch in taxonomy.branches().all() {
                let part = taxonomy.project(&branch.labels);
                let mut edges: Vec<_> = part.taxonomy.edges()
                    .map(|(parent, child)| (part.origin[parent.index()], part.origin[child.index()])).collect();
                edges.sort_unstable();
                prop_assert_eq!(&edges, &branch.edges);
                for (label, &origin) in part.taxonomy.labels().zip(&part.origin) {
                    prop_assert_eq!(part.taxonomy.id(label), taxonomy.id(origin));
                }
                prop_assert_eq!(part.project(&taxonomy, &branch.labels).len(), branch.labels.len());
            }
        }
    }
}
