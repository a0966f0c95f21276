//! What changed between two versions of a vocabulary. Labels are the same if their ids are.

use serde::Serialize;

use super::{LabelId, Taxonomy};

/// A label that is in one version only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Its id.
    pub id: String,
    /// Its name, if it has one.
    pub name: Option<String>,
}

/// Something that two versions say differently of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed<T> {
    /// The label's id.
    pub id: String,
    /// As the old version has it.
    pub from: T,
    /// As the new version has it.
    pub to: T,
}

/// The differences between two taxonomies, each list in order of ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Labels of the new version only.
    pub added: Vec<Named>,
    /// Labels of the old version only.
    pub removed: Vec<Named>,
    /// Labels with another name.
    pub renamed: Vec<Changed<Option<String>>>,
    /// Labels with other parents, in order of ids; `None` is the root.
    pub moved: Vec<Changed<Vec<Option<String>>>>,
    /// Labels with another description.
    pub redescribed: Vec<Changed<Option<String>>>,
    /// Labels with other alternative names, whatever their order.
    pub alternatives: Vec<Changed<Vec<String>>>,
}

impl Diff {
    /// Compares two versions.
    #[must_use]
    pub fn between(old: &Taxonomy, new: &Taxonomy) -> Self {
        let mut diff = Self::default();
        for label in sorted(old) {
            let id = old.id(label);
            let Some(other) = new.get(id) else {
                diff.removed.push(named(old, label));
                continue;
            };
            let (from, to) = (old.label(label), new.label(other));
            note(&mut diff.renamed, id, from.name.clone(), to.name.clone());
            note(&mut diff.moved, id, parents(old, label), parents(new, other));
            note(&mut diff.redescribed, id, from.description.clone(), to.description.clone());
            let set = |names: &[String]| {
                let mut names = names.to_vec();
                names.sort_unstable();
                names.dedup();
                names
            };
            note(&mut diff.alternatives, id, set(&from.alternatives), set(&to.alternatives));
        }
        diff.added = sorted(new)
            .into_iter()
            .filter(|&label| old.get(new.id(label)).is_none())
            .map(|label| named(new, label))
            .collect();
        diff
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn sorted(taxonomy: &Taxonomy) -> Vec<LabelId> {
    let mut labels: Vec<LabelId> = taxonomy.labels().collect();
    labels.sort_by_key(|&label| taxonomy.id(label));
    labels
}

fn named(taxonomy: &Taxonomy, label: LabelId) -> Named {
    let label = taxonomy.label(label);
    Named { id: label.id.clone(), name: label.name.clone() }
}

fn parents(taxonomy: &Taxonomy, label: LabelId) -> Vec<Option<String>> {
    let root = taxonomy.is_root_child(label).then_some(None);
    let mut parents: Vec<Option<String>> = root
        .into_iter()
        .chain(taxonomy.parents(label).iter().map(|&parent| Some(taxonomy.id(parent).to_owned())))
        .collect();
    parents.sort_unstable();
    parents
}

fn note<T: PartialEq>(changes: &mut Vec<Changed<T>>, id: &str, from: T, to: T) {
    if from != to {
        changes.push(Changed { id: id.to_owned(), from, to });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::taxonomy::strategies::dag;
    use crate::taxonomy::{Builder, Label, Origin};

    fn version(labels: &[(&str, &str, &str)], edges: &[(Option<&str>, &str)]) -> Taxonomy {
        let mut builder = Builder::new();
        for (id, name, description) in labels {
            let label = Label {
                id: (*id).into(),
                name: Some((*name).into()),
                description: Some((*description).into()),
                ..Label::default()
            };
            builder.declare(label, &Origin::default());
        }
        for &(parent, child) in edges {
            builder.edge(parent, child, &Origin::default());
        }
        builder.build().unwrap()
    }

    #[test]
    fn every_kind_of_change_is_named() {
        let old = version(
            &[("a", "A", "x"), ("b", "B", "x"), ("c", "C", "x"), ("gone", "G", "x")],
            &[(Some("a"), "b")],
        );
        let new = version(
            &[("a", "A!", "x"), ("b", "B", "x"), ("c", "C", "y"), ("new", "N", "x")],
            &[(Some("c"), "b")],
        );
        let diff = Diff::between(&old, &new);
        assert_eq!(diff.added, [Named { id: "new".into(), name: Some("N".into()) }]);
        assert_eq!(diff.removed, [Named { id: "gone".into(), name: Some("G".into()) }]);
        assert_eq!(diff.renamed, [Changed { id: "a".into(), from: Some("A".into()), to: Some("A!".into()) }]);
        let moved = Changed { id: "b".into(), from: vec![Some("a".into())], to: vec![Some("c".into())] };
        assert_eq!(diff.moved, [moved]);
        assert_eq!(diff.redescribed[0].id, "c");
        assert!(!diff.is_empty());
    }

    #[test]
    fn moving_under_the_root_is_a_move() {
        let labels = [("a", "A", "x"), ("b", "B", "x")];
        let old = version(&labels, &[(Some("a"), "b")]);
        let new = version(&labels, &[(Some("a"), "b"), (None, "b")]);
        let moved = &Diff::between(&old, &new).moved;
        assert_eq!(moved[0].to, [None, Some("a".to_owned())]);
    }

    proptest! {
        #[test]
        fn a_taxonomy_does_not_differ_from_itself(taxonomy in dag()) {
            prop_assert!(Diff::between(&taxonomy, &taxonomy).is_empty());
        }

        #[test]
        fn an_empty_diff_means_the_same_taxonomy(a in dag(), b in dag()) {
            prop_assert_eq!(Diff::between(&a, &b).is_empty(), a == b);
        }
    }
}
