//! What a taxonomy looks like in numbers.

use serde::Serialize;

use super::Taxonomy;

/// Counts over a taxonomy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaxonomyStats {
    /// Labels; the root is not one.
    pub labels: usize,
    /// Edges between labels; those from the root do not count.
    pub edges: usize,
    /// Labels directly under the root.
    pub roots: usize,
    /// Labels of each level, from level 1.
    pub labels_per_level: Vec<usize>,
    /// Labels without children.
    pub leaves: usize,
    /// Labels with two parents or more; the root counts as one.
    pub multi_parent_labels: usize,
    /// The most children of one label.
    pub max_children: usize,
    /// The mean level of the labels.
    pub mean_depth: f64,
    /// Labels with a name.
    pub named: usize,
    /// Labels with a description.
    pub described: usize,
    /// Labels with other names.
    pub with_alternatives: usize,
}

impl Taxonomy {
    /// Counts labels, edges, levels, leaves, and how many labels have names and descriptions.
    #[must_use]
    pub fn stats(&self) -> TaxonomyStats {
        let count =
            |test: &dyn Fn(super::LabelId) -> bool| self.labels().filter(|&label| test(label)).count();
        let labels_per_level: Vec<usize> =
            (1..=self.n_levels()).map(|level| self.labels_at(level).len()).collect();
        let depths: f64 = self.labels().map(|label| self.level(label) as f64).sum();
        TaxonomyStats {
            labels: self.n_labels(),
            edges: self.n_edges(),
            roots: self.roots().len(),
            leaves: count(&|label| self.children(label).is_empty()),
            multi_parent_labels: count(&|label| {
                self.parents(label).len() + usize::from(self.is_root_child(label)) > 1
            }),
            max_children: self.labels().map(|label| self.children(label).len()).max().unwrap_or(0),
            mean_depth: if self.n_labels() == 0 { 0.0 } else { depths / self.n_labels() as f64 },
            named: count(&|label| self.label(label).name.is_some()),
            described: count(&|label| self.label(label).description.is_some()),
            with_alternatives: count(&|label| !self.label(label).alternatives.is_empty()),
            labels_per_level,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::taxonomy::strategies::diamond;
    use crate::taxonomy::{Builder, Label, Origin, Taxonomy};

    #[test]
    fn a_diamond_has_one_label_with_two_parents() {
        let stats = diamond().stats();
        assert_eq!((stats.labels, stats.edges, stats.roots, stats.leaves), (4, 4, 1, 1));
        assert_eq!(stats.labels_per_level, [1, 2, 1]);
        assert_eq!((stats.multi_parent_labels, stats.max_children), (1, 2));
        assert!((stats.mean_depth - 2.0).abs() < 1e-12);
    }

    #[test]
    fn names_and_descriptions_are_counted() {
        let mut builder = Builder::new();
        let label = Label { id: "a".into(), name: Some("A".into()), ..Label::default() };
        builder.declare(label, &Origin::default());
        builder.label("b", &Origin::default());
        let stats = builder.build().unwrap().stats();
        assert_eq!((stats.named, stats.described, stats.with_alternatives), (1, 0, 0));
    }

    #[test]
    fn nothing_has_mean_depth_zero() {
        assert_eq!(Taxonomy::flat(Vec::<String>::new()).stats().mean_depth, 0.0);
    }
}
