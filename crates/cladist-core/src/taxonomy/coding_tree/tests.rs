//! Trees worked out by hand, and the fast construction against the plain one.

use proptest::prelude::*;

use super::naive::{self, Labels};
use super::*;
use crate::taxonomy::strategies::{build, chain, dag};
use crate::taxonomy::{Builder, Origin};

const RULES: [CodingRule; 2] = [CodingRule::Reference, CodingRule::StopWhenPositive];

/// Labels named so that their order is that of the numbers; `above[n]` is the parent of label n + 1, if any.
fn forest(above: &[Option<usize>]) -> Taxonomy {
    let mut builder = Builder::new();
    let here = Origin::default();
    builder.label("000", &here);
    for (n, parent) in above.iter().enumerate() {
        let parent = parent.map(|parent| format!("{parent:03}"));
        builder.edge(parent.as_deref(), &format!("{:03}", n + 1), &here);
    }
    builder.build().unwrap()
}

fn star(leaves: usize) -> Taxonomy {
    forest(&vec![Some(0); leaves])
}

/// The labels under each node of each level.
fn sets(tree: &CodingTree) -> Vec<Vec<Labels>> {
    let mut levels = vec![(0..tree.n_nodes(0)).map(|label| Labels::from([label])).collect::<Vec<_>>()];
    for level in 0..tree.height() {
        let mut above = vec![Labels::new(); tree.n_nodes(level + 1)];
        for (set, &parent) in levels[level].iter().zip(tree.parents(level)) {
            above[parent as usize].extend(set);
        }
        levels.push(above);
    }
    levels
}

/// The groups of level 1, as lists of labels.
fn groups(tree: &CodingTree) -> Vec<Vec<usize>> {
    sets(tree)[1].iter().map(|set| set.iter().copied().collect()).collect()
}

fn assert_entropy(tree: &CodingTree, expected: f64) {
    let entropy = tree.structural_entropy();
    assert!((entropy - expected).abs() < 5e-7, "{entropy} instead of {expected}");
}

#[test]
fn a_path_of_four_is_two_pairs() {
    let path = chain(4);
    assert_entropy(&path.coding_tree(1, CodingRule::Reference, &Cancel::default()).unwrap(), 1.918_295_8);
    for rule in RULES {
        let tree = path.coding_tree(2, rule, &Cancel::default()).unwrap();
        assert_eq!(groups(&tree), [[0, 1], [2, 3]]);
        assert_entropy(&tree, 1.251_629_2);
    }
    let merges: Vec<_> = merge::merge(&Graph::of(&path), CodingRule::Reference, &Cancel::default()).unwrap();
    assert_eq!(merges.iter().map(|merge| merge.children).collect::<Vec<_>>(), [[0, 1], [2, 3], [4, 5]]);
    assert_eq!(
        merge::merge(&Graph::of(&path), CodingRule::StopWhenPositive, &Cancel::default()).unwrap().len(),
        2
    );
}

#[test]
fn a_forest_merges_its_smallest_tree_first() {
    // 0 over 1 and 2; 3 over 4. The labels are numbered by level: 0, 3, 1, 2, 4.
    let taxonomy = build(&[(None, "0"), (None, "3"), (Some("0"), "1"), (Some("0"), "2"), (Some("3"), "4")]);
    assert_entropy(&taxonomy.coding_tree(1, CodingRule::Reference, &Cancel::default()).unwrap(), 2.251_629_2);
    let tree = taxonomy.coding_tree(2, CodingRule::Reference, &Cancel::default()).unwrap();
    assert_eq!(groups(&tree), [vec![0, 2, 3], vec![1, 4]]);
    assert_entropy(&tree, 1.333_333_3);
    let merges = merge::merge(&Graph::of(&taxonomy), CodingRule::Reference, &Cancel::default()).unwrap();
    assert_eq!(merges.iter().map(|merge| merge.children).collect::<Vec<_>>(), [[1, 4], [0, 2], [3, 6]]);
}

#[test]
fn a_star_has_no_natural_groups_and_gets_some_by_the_order_of_labels() {
    let star = star(17);
    let reference = star.coding_tree(2, CodingRule::Reference, &Cancel::default()).unwrap();
    assert_entropy(&reference, 2.838_837);
    let mut sizes: Vec<usize> = groups(&reference).iter().map(Vec::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 1, 1, 1, 1, 1, 1, 1, 10]);
    assert_eq!(groups(&reference)[0], (0..10).collect::<Vec<_>>());
    let stop = star.coding_tree(2, CodingRule::StopWhenPositive, &Cancel::default()).unwrap();
    assert_entropy(&stop, 2.834_975);
    assert_eq!(stop.n_nodes(1), 10);
}

#[test]
fn one_or_two_labels_hang_at_the_end_of_a_chain() {
    for rule in RULES {
        for (taxonomy, entropy) in [(chain(1), 0.0), (chain(2), 1.0), (Taxonomy::flat(["a", "b"]), 0.0)] {
            let tree = taxonomy.coding_tree(3, rule, &Cancel::default()).unwrap();
            let sizes: Vec<usize> = (0..=3).map(|level| tree.n_nodes(level)).collect();
            assert_eq!(sizes, [taxonomy.n_labels(), 1, 1, 1]);
            assert_entropy(&tree, entropy);
        }
        assert_eq!(Taxonomy::flat([""; 0]).coding_tree(2, rule, &Cancel::default()).unwrap().n_nodes(0), 0);
    }
}

#[test]
fn labels_without_edges_go_up_alone() {
    let taxonomy = build(&[(None, "a"), (None, "b"), (None, "c"), (Some("c"), "d"), (Some("c"), "e")]);
    for rule in RULES {
        let tree = taxonomy.coding_tree(4, rule, &Cancel::default()).unwrap();
        let [a, b] =
            [0, 1].map(|label| sets(&tree)[3].iter().find(|set| set.contains(&label)).unwrap().len());
        assert_eq!((a, b, tree.height()), (1, 1, 4));
        let flat = Taxonomy::flat(["a", "b", "c"]).coding_tree(2, rule, &Cancel::default()).unwrap();
        assert_eq!((flat.n_nodes(1), flat.structural_entropy()), (3, 0.0));
    }
    assert_eq!(
        taxonomy.coding_tree(0, CodingRule::Reference, &Cancel::default()).unwrap(),
        taxonomy.coding_tree(1, CodingRule::Reference, &Cancel::default()).unwrap()
    );
}

#[test]
fn a_stored_tree_is_checked_when_it_comes_back() {
    let tree = star(6).coding_tree(3, CodingRule::Reference, &Cancel::default()).unwrap();
    let json = serde_json::to_string(&tree).unwrap();
    assert_eq!(serde_json::from_str::<CodingTree>(&json).unwrap(), tree);
    for broken in [r#"{"parents": [], "entropy": "0"}"#, r#"{"parents": [[0, 1], [0]], "entropy": "0"}"#] {
        let message = serde_json::from_str::<CodingTree>(broken).unwrap_err().to_string();
        assert!(message.contains("build it again"), "{message}");
    }
}

#[test]
fn deep_chains_and_wide_stars_take_no_time_and_no_stack() {
    for taxonomy in [chain(100_000), wide_star()] {
        for rule in RULES {
            let tree = taxonomy.coding_tree(3, rule, &Cancel::default()).unwrap();
            assert!(
                tree.structural_entropy()
                    < taxonomy.coding_tree(1, rule, &Cancel::default()).unwrap().structural_entropy()
            );
        }
    }
}

/// A label over 100,000 others.
fn wide_star() -> Taxonomy {
    let mut builder = Builder::new();
    for n in 0..100_000 {
        builder.edge(Some("0"), &format!("{n:06}x"), &Origin::default());
    }
    builder.build().unwrap()
}

/// Forests of up to 40 labels.
fn forests() -> impl Strategy<Value = Taxonomy> {
    let parent = (any::<prop::sample::Index>(), prop::bool::weighted(0.05));
    prop::collection::vec(parent, 0..40).prop_map(|parents| {
        let above = parents.iter().enumerate();
        forest(&above.map(|(n, (parent, root))| (!root).then(|| parent.index(n + 1))).collect::<Vec<_>>())
    })
}

fn check(taxonomy: &Taxonomy, height: usize, rule: CodingRule) -> Result<(), TestCaseError> {
    let tree = taxonomy.coding_tree(height, rule, &Cancel::default()).unwrap();
    prop_assert_eq!(tree.height(), height);
    let fast = sets(&tree);
    for level in &fast {
        let firsts: Vec<Option<&usize>> = level.iter().map(Labels::first).collect();
        prop_assert!(firsts.is_sorted(), "{:?}", level);
    }
    let mut naive = naive::levels(taxonomy, height, rule);
    for level in &mut naive {
        level.sort();
    }
    prop_assert_eq!(&fast, &naive);
    prop_assert!((tree.structural_entropy() - naive::entropy(taxonomy, &naive)).abs() < 1e-9);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn trees_of_forests_are_those_of_the_definition(taxonomy in forests(), height in 1usize..6) {
        for rule in RULES {
            check(&taxonomy, height, rule)?;
        }
    }

    #[test]
    fn trees_of_dags_are_those_of_the_definition(taxonomy in dag(), height in 1usize..6) {
        for rule in RULES {
            check(&taxonomy, height, rule)?;
        }
    }

    #[test]
    fn stopping_early_is_never_worse_than_no_groups(taxonomy in forests()) {
        let one = taxonomy.coding_tree(1, CodingRule::StopWhenPositive, &Cancel::default()).unwrap().structural_entropy();
        let two = taxonomy.coding_tree(2, CodingRule::StopWhenPositive, &Cancel::default()).unwrap().structural_entropy();
        prop_assert!(two <= one + 1e-9);
    }
}

#[test]
fn building_stops_when_it_is_asked_to() {
    let cancel = Cancel::default();
    cancel.cancel();
    let graph = Graph::of(&star(6));
    for rule in [CodingRule::Reference, CodingRule::StopWhenPositive] {
        assert!(matches!(star(6).coding_tree(2, rule, &cancel), Err(crate::Error::Cancelled)));
        assert!(merge::merge(&graph, rule, &cancel).is_err());
        assert!(CodingTrees::default().unless(&cancel).of(&star(6), 2, rule).is_err());
    }
}
