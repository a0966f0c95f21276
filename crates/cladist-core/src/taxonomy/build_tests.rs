use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::taxonomy::strategies::{build, chain, dag, edges};

fn at(line: usize) -> Origin {
    Origin::new(&Arc::new(PathBuf::from("labels.tsv")), line)
}

fn of(edges: &[(&str, &str)]) -> Builder {
    let mut builder = Builder::new();
    for (n, (parent, child)) in edges.iter().enumerate() {
        builder.edge(Some(parent), child, &at(n + 1));
    }
    builder
}

fn cycles(problems: &Problems) -> Vec<String> {
    problems.0.iter().map(ToString::to_string).collect()
}

#[test]
fn a_cycle_is_reported_with_its_path_and_the_line_that_closes_it() {
    let problems = of(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]).build().unwrap_err();
    assert_eq!(cycles(&problems), ["labels.tsv:4: the labels form a cycle: b → c → d → b"]);
}

#[test]
fn a_label_that_is_its_own_parent_is_a_cycle() {
    let problems = of(&[("a", "a")]).build().unwrap_err();
    assert_eq!(cycles(&problems), ["labels.tsv:1: the labels form a cycle: a → a"]);
}

#[test]
fn a_cycle_below_another_cycle_is_reported_too() {
    let problems = of(&[("a", "b"), ("b", "a"), ("a", "c"), ("c", "d"), ("d", "c")]).build().unwrap_err();
    let expected = [
        "labels.tsv:2: the labels form a cycle: a → b → a",
        "labels.tsv:5: the labels form a cycle: c → d → c",
    ];
    assert_eq!(cycles(&problems), expected);
}

#[test]
fn a_knot_of_many_cycles_costs_linear_time() {
    let mut builder = Builder::new();
    let here = Origin::default();
    for n in 1..50_000 {
        builder.edge(Some(&(n - 1).to_string()), &n.to_string(), &here);
        builder.edge(Some(&n.to_string()), "0", &here);
    }
    let problems = builder.build().unwrap_err();
    assert_eq!(problems.0.len(), 1);
}

#[test]
fn breaking_a_cycle_drops_the_edge_that_leads_back_up() {
    let mut builder = of(&[("c", "b"), ("b", "c"), ("a", "b")]);
    builder.on_cycle(OnCycle::Break);
    let (taxonomy, broken) = builder.build_reporting().unwrap();
    assert_eq!(broken, [("c".to_owned(), "b".to_owned())]);
    assert_eq!(taxonomy, build(&[(None, "a"), (Some("a"), "b"), (Some("b"), "c")]));
}

#[test]
fn every_problem_is_found_in_one_pass_and_in_file_order() {
    let mut builder = Builder::new();
    builder.require_declared_parents();
    builder.declare(Label { id: "a".into(), ..Label::default() }, &at(1));
    builder.edge(Some("nobody"), "b", &at(4));
    builder.declare(Label { id: "a".into(), ..Label::default() }, &at(2));
    builder.edge(Some("b"), "b", &at(3));
    builder.label("", &at(5));
    builder.name("b", "B", &at(6));
    builder.name("b", "Bee", &at(7));
    let problems = builder.build().unwrap_err();
    let lines: Vec<usize> = problems.0.iter().map(|problem| problem.origin.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 7]);
    assert_eq!(problems.0[0].to_string(), "labels.tsv:2: duplicate id `a`, first declared at labels.tsv:1");
    assert_eq!(problems.0[2].to_string(), "labels.tsv:4: unknown parent `nobody` of `b`");
    assert_eq!(problems.0[4].to_string(), "labels.tsv:7: `b` is called `Bee` here and `B` before");
}

#[test]
fn describing_replaces_what_is_said_and_keeps_the_rest() {
    let mut builder = Builder::new();
    let known =
        Label { id: "a".into(), name: Some("A".into()), description: Some("d".into()), ..Label::default() };
    builder.declare(known, &at(1));
    assert!(builder.describe(Label { id: "a".into(), name: Some("B".into()), ..Label::default() }));
    assert!(!builder.describe(Label { id: "z".into(), ..Label::default() }));
    let known = builder.known("a").unwrap();
    assert_eq!((known.name.as_deref(), known.description.as_deref()), (Some("B"), Some("d")));
}

#[test]
fn the_same_edge_twice_is_one_edge() {
    assert_eq!(of(&[("a", "b"), ("a", "b")]).build().unwrap().n_edges(), 1);
}

#[test]
fn numbering_is_by_longest_path_and_levels_by_shortest() {
    let taxonomy = build(&[(None, "b"), (None, "z"), (Some("z"), "a"), (Some("a"), "c"), (Some("b"), "c")]);
    let ids: Vec<&str> = taxonomy.labels().map(|label| taxonomy.id(label)).collect();
    assert_eq!(ids, ["b", "z", "a", "c"]);
    assert_eq!(taxonomy.level(taxonomy.get("c").unwrap()), 2);
    assert_eq!(taxonomy.n_levels(), 2);
}

#[test]
fn a_chain_of_a_hundred_thousand_labels_has_as_many_levels() {
    let taxonomy = chain(100_000);
    assert_eq!((taxonomy.n_labels(), taxonomy.n_levels()), (100_000, 100_000));
}

#[test]
fn a_cycle_of_a_hundred_thousand_labels_is_found() {
    let mut builder = Builder::new();
    for n in 0..100_000 {
        builder.edge(Some(&n.to_string()), &((n + 1) % 100_000).to_string(), &at(n + 1));
    }
    let problems = builder.build().unwrap_err();
    assert!(
        matches!(&problems.0[..], [Problem { kind: ProblemKind::Cycle(path), .. }] if path.len() == 100_001)
    );
    assert!(problems.to_string().len() < 200);
}

#[test]
fn a_tree_of_a_million_labels_is_built() {
    let mut builder = Builder::new();
    let here = Origin::default();
    let mut child = String::new();
    let mut parent = String::new();
    for n in 1..=1_000_000u32 {
        use std::fmt::Write;
        child.clear();
        parent.clear();
        write!(child, "{n}").unwrap();
        write!(parent, "{}", n / 10).unwrap();
        builder.edge((n >= 10).then_some(parent.as_str()), &child, &here);
    }
    let taxonomy = builder.build().unwrap();
    assert_eq!((taxonomy.n_labels(), taxonomy.roots().len(), taxonomy.n_levels()), (1_000_000, 9, 7));
    assert_eq!(taxonomy.branches().all().iter().map(|branch| branch.labels.len()).sum::<usize>(), 1_000_000);
    assert_eq!(taxonomy.depth_first().len(), 1_000_000);
}

/// Peels off labels without a parent until none is left or none can go.
fn is_acyclic(edges: &[(u8, u8)]) -> bool {
    let mut left = edges.to_vec();
    loop {
        let before = left.len();
        let children: Vec<u8> = left.iter().map(|edge| edge.1).collect();
        left.retain(|edge| children.contains(&edge.0));
        if left.is_empty() {
            return true;
        }
        if left.len() == before {
            return false;
        }
    }
}

fn from_pairs(edges: &[(u8, u8)]) -> Builder {
    let mut builder = Builder::new();
    for (parent, child) in edges {
        builder.edge(Some(&parent.to_string()), &child.to_string(), &Origin::default());
    }
    builder
}

proptest! {
    #[test]
    fn the_builder_accepts_iff_acyclic(edges in edges()) {
        prop_assert_eq!(from_pairs(&edges).build().is_ok(), is_acyclic(&edges));
    }

    #[test]
    fn a_reported_cycle_is_one(edges in edges()) {
        if let Err(problems) = from_pairs(&edges).build() {
            for problem in problems.0 {
                let ProblemKind::Cycle(path) = problem.kind else { panic!("{problem}") };
                prop_assert_eq!(path.first(), path.last());
                for pair in path.windows(2) {
                    let pair = (pair[0].parse().unwrap(), pair[1].parse().unwrap());
                    prop_assert!(edges.contains(&pair));
                }
            }
        }
    }

    #[test]
    fn breaking_cycles_loses_only_edges_that_lie_on_one(edges in edges()) {
        let mut builder = from_pairs(&edges);
        builder.on_cycle(OnCycle::Break);
        let (taxonomy, broken) = builder.build_reporting().unwrap();
        let mut unique = edges.clone();
        unique.sort_unstable();
        unique.dedup();
        prop_assert_eq!(taxonomy.n_edges() + broken.len(), unique.len());
        for (parent, child) in &broken {
            let (parent, child) = (taxonomy.get(parent).unwrap(), taxonomy.get(child).unwrap());
            prop_assert!(taxonomy.close_downward(&[child]).contains(parent));
        }
        prop_assert_eq!(broken.is_empty(), is_acyclic(&edges));
    }

    #[test]
    fn numbering_is_topological_and_levels_are_shortest(taxonomy in dag()) {
        for label in taxonomy.labels() {
            prop_assert!(taxonomy.parents(label).iter().all(|&parent| parent < label));
            prop_assert!(taxonomy.children(label).iter().all(|&child| taxonomy.parents(child).contains(&label)));
            let above = taxonomy.parents(label).iter().map(|&parent| taxonomy.level(parent)).min();
            let level = if taxonomy.is_root_child(label) { 1 } else { above.unwrap_or(0) + 1 };
            prop_assert_eq!(taxonomy.level(label), level);
            prop_assert!(taxonomy.labels_at(level).contains(&label));
            prop_assert_eq!(taxonomy.get(taxonomy.id(label)), Some(label));
        }
    }
}
