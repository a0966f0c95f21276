//! Taxonomies for tests: small ones by hand, random ones by proptest.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Builder, Label, Origin, Taxonomy};

/// A taxonomy of edges; `None` is the root.
pub(super) fn build(edges: &[(Option<&str>, &str)]) -> Taxonomy {
    let mut builder = Builder::new();
    for &(parent, child) in edges {
        builder.edge(parent, child, &Origin::default());
    }
    builder.build().unwrap()
}

/// One label with two parents.
pub(super) fn diamond() -> Taxonomy {
    build(&[
        (None, "top"),
        (Some("top"), "left"),
        (Some("top"), "right"),
        (Some("left"), "bottom"),
        (Some("right"), "bottom"),
    ])
}

/// Labels in one line, named so that their ids sort in that order.
pub(super) fn chain(n: usize) -> Taxonomy {
    let mut builder = Builder::new();
    let here = Origin::default();
    builder.edge(None, "0000000", &here);
    for child in 1..n {
        builder.edge(Some(&format!("{:07}", child - 1)), &format!("{child:07}"), &here);
    }
    builder.build().unwrap()
}

/// Any edges between up to 12 labels, cycles and all.
pub(super) fn edges() -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec((0u8..12, 0u8..12), 0..24)
}

/// Text that every format can hold in a name.
pub(super) fn text() -> impl Strategy<Value = String> {
    "[a-zA-Zäß→#\"'\\\\<>&;.,% -]{0,8}[a-z0-9]"
}

/// A random DAG with ids that need care (quotes, spaces, markers, IRIs), some root edges beside parents, and
/// names, descriptions and alternatives here and there.
pub(super) fn dag() -> impl Strategy<Value = Taxonomy> {
    let id = prop_oneof![
        4 => text(),
        1 => "(root|Root|id|http://example\\.org/c#[0-9]|urn:cladist:label:[a-z%0-9]{1,4})"
    ];
    let label = (
        prop::option::of(text()),
        prop::option::of(text()),
        prop::collection::vec(text(), 0..3),
        any::<bool>(),
    );
    let labels = prop::collection::btree_map(id, label, 1..14);
    (labels, edges(), any::<u64>()).prop_map(|(labels, edges, shuffle)| {
        let mut builder = Builder::new();
        let here = Origin::default();
        // The order in which edges may go is unlike the order of ids.
        let order: BTreeMap<u64, &String> = labels
            .keys()
            .enumerate()
            .map(|(n, id)| ((n as u64 + 1).wrapping_mul(shuffle | 1).rotate_left(17), id))
            .collect();
        let order: Vec<&String> = order.into_values().collect();
        for (id, (name, description, alternatives, rooted)) in &labels {
            let mut alternatives = alternatives.clone();
            alternatives.sort();
            alternatives.dedup();
            alternatives.retain(|other| Some(other) != name.as_ref());
            let label =
                Label { id: id.clone(), name: name.clone(), description: description.clone(), alternatives };
            builder.declare(label, &here);
            if *rooted {
                builder.edge(None, id, &here);
            }
        }
        for (a, b) in edges {
            let (a, b) = (a.min(b) as usize, a.max(b) as usize);
            if a != b && b < order.len() {
                builder.edge(Some(order[a]), order[b], &here);
            }
        }
        builder.build().unwrap()
    })
}
