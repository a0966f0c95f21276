//! A taxonomy with more labels.

use super::{Builder, Origin, Taxonomy};
use crate::error::Result;

impl Taxonomy {
    /// This taxonomy and those labels of `other` that it does not have, under the parents that they have there. What is
    /// known of a label that both have stays as it is here.
    pub fn extended(&self, other: &Self) -> Result<Self> {
        let here = Origin::default();
        let mut builder = Builder::new();
        for (taxonomy, is_new) in [(self, false), (other, true)] {
            let labels =
                || taxonomy.labels().filter(|label| !is_new || self.get(taxonomy.id(*label)).is_none());
            for label in labels() {
                builder.declare(taxonomy.label(label).clone(), &here);
            }
            for label in labels() {
                for &parent in taxonomy.parents(label) {
                    builder.edge(Some(taxonomy.id(parent)), taxonomy.id(label), &here);
                }
                if taxonomy.is_root_child(label) {
                    builder.edge(None, taxonomy.id(label), &here);
                }
            }
        }
        Ok(builder.build()?)
    }

    /// This taxonomy without some of its labels, of which none has a child that stays.
    #[must_use]
    pub fn without(&self, gone: &super::LabelSet) -> Self {
        self.select(|label| !gone.contains(label), |label| self.is_root_child(label)).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taxonomy::LabelSet;

    #[test]
    fn new_labels_come_under_their_parents_and_the_rest_stays() {
        let here = Origin::default();
        let mut builder = Builder::new();
        builder.edge(None, "b", &here);
        builder.edge(Some("b"), "a", &here);
        builder.edge(None, "a", &here);
        builder.name("a", "An A", &here);
        let before = builder.build().unwrap();
        let mut builder = Builder::new();
        builder.edge(None, "b", &here);
        builder.edge(Some("b"), "d", &here);
        builder.edge(None, "c", &here);
        builder.edge(None, "a", &here);
        builder.name("a", "Another name", &here);
        let other = builder.build().unwrap();
        let after = before.extended(&other).unwrap();
        let ids: Vec<&str> = after.labels().map(|label| after.id(label)).collect();
        assert_eq!(after.n_labels(), 4, "{ids:?}");
        let a = after.get("a").unwrap();
        assert_eq!((after.name(a), after.level(a), after.parents(a).len()), ("An A", 1, 1));
        assert_eq!(after.level(after.get("c").unwrap()), 1);
        let d = after.get("d").unwrap();
        assert_eq!(after.parents(d), [after.get("b").unwrap()]);
        assert_eq!(before.extended(&before).unwrap(), before);
        let new: LabelSet = ["c", "d"].iter().filter_map(|id| after.get(id)).collect();
        assert_eq!(after.without(&new), before);
    }
}
