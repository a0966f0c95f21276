//! Nearest neighbours by direction, and whether they are siblings.

use rayon::prelude::*;
use serde::Serialize;

use super::Gram;
use crate::taxonomy::{LabelId, LabelSet, Taxonomy};

/// The nearest of the other vectors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nearest {
    /// Its number.
    pub other: usize,
    /// The cosine of the angle between both.
    pub cosine: f64,
}

/// The nearest of the others for each vector; of several, the first. `None` for a vector without others.
///
/// The products must be those of directions.
#[must_use]
pub fn nearest(directions: &Gram) -> Vec<Option<Nearest>> {
    (0..directions.n()).into_par_iter().map(|i| nearest_of(directions, i, |_| true)).collect()
}

fn nearest_of(directions: &Gram, i: usize, allowed: impl Fn(usize) -> bool) -> Option<Nearest> {
    let others = directions.row(i).iter().copied().enumerate().filter(|(j, _)| *j != i && allowed(*j));
    others.fold(None, |best: Option<Nearest>, (other, cosine)| match best {
        Some(best) if best.cosine >= cosine => Some(best),
        _ => Some(Nearest { other, cosine }),
    })
}

/// Whether labels lie nearer to their siblings than to other labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Siblings {
    /// Labels that were looked at: with a sibling and another label at their level.
    pub n_labels: usize,
    /// Of these, the share whose nearest label at their level is a sibling.
    pub share: f64,
    /// The share to be expected if the nearest was any label of their level.
    pub chance: f64,
}

/// How often the nearest label at a label's level has a parent with it in common; vector i is that of `labels[i]`.
///
/// Labels of other levels do not take part: a parent goes along with its child in documents, and would be nearest for that.
/// The root is no parent here. `None` if there is no label with both siblings and others at its level.
#[must_use]
pub fn siblings(directions: &Gram, labels: &[LabelId], taxonomy: &Taxonomy) -> Option<Siblings> {
    let found: Vec<(bool, f64)> = (labels.par_iter().enumerate())
        .filter_map(|(i, &label)| {
            let related: LabelSet = taxonomy
                .parents(label)
                .iter()
                .flat_map(|&parent| taxonomy.children(parent))
                .copied()
                .collect();
            let beside = |j: usize| j != i && taxonomy.level(labels[j]) == taxonomy.level(label);
            let n_beside = (0..labels.len()).filter(|&j| beside(j)).count();
            let n_siblings = (0..labels.len()).filter(|&j| beside(j) && related.contains(labels[j])).count();
            if n_siblings == 0 || n_siblings == n_beside {
                return None;
            }
            let nearest = nearest_of(directions, i, beside)?;
            Some((related.contains(labels[nearest.other]), n_siblings as f64 / n_beside as f64))
        })
        .collect();
    let n = found.len() as f64;
    (!found.is_empty()).then(|| Siblings {
        n_labels: found.len(),
        share: found.iter().filter(|(is_sibling, _)| *is_sibling).count() as f64 / n,
        chance: found.iter().map(|(_, chance)| chance).sum::<f64>() / n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taxonomy::{Builder, Origin};

    fn build(edges: &[(Option<&str>, &str)]) -> Taxonomy {
        let mut builder = Builder::new();
        edges.iter().for_each(|(parent, child)| builder.edge(*parent, child, &Origin::default()));
        builder.build().unwrap()
    }

    #[test]
    fn siblings_are_counted_among_labels_of_their_level() {
        let taxonomy = build(&[
            (None, "a"),
            (None, "b"),
            (Some("a"), "a1"),
            (Some("a"), "a2"),
            (Some("b"), "b1"),
            (Some("b"), "b2"),
            (Some("b"), "b3"),
        ]);
        let labels: Vec<LabelId> = taxonomy.labels().collect();
        // b3 lies with the labels of a; a1 is nearest to its parent, which does not count.
        let angles = [0.0f32, 90.0, 1.0, 10.0, 80.0, 84.0, 12.0];
        let vectors: Vec<Vec<(u32, f32)>> = (angles.iter())
            .map(|angle| vec![(0, 3.0 * angle.to_radians().cos()), (1, 3.0 * angle.to_radians().sin())])
            .collect();
        let directions = Gram::of_directions(&vectors);
        let found = siblings(&directions, &labels, &taxonomy).unwrap();
        // Nearest: a1 → a2, a2 → b3, b1 ↔ b2, b3 → a2; one sibling in four for a, two in four for b.
        assert_eq!(found.n_labels, 5);
        assert!((found.share - 0.6).abs() < 1e-12, "{found:?}");
        assert!((found.chance - (2.0 * 0.25 + 3.0 * 0.5) / 5.0).abs() < 1e-12, "{found:?}");
        let all = nearest(&directions);
        assert_eq!(all[2].map(|nearest| nearest.other), Some(0));
        assert!((all[2].unwrap().cosine - 1f64.to_radians().cos()).abs() < 1e-6);
    }

    #[test]
    fn without_a_choice_there_is_no_answer() {
        let directions = |n: usize| Gram::of_directions(&vec![vec![(0, 1.0)]; n]);
        let flat = Taxonomy::flat(["a", "b", "c"]);
        let labels: Vec<LabelId> = flat.labels().collect();
        assert_eq!(siblings(&directions(3), &labels, &flat), None);
        // All labels of the second level have one parent.
        let one = build(&[(None, "a"), (Some("a"), "b"), (Some("a"), "c")]);
        let labels: Vec<LabelId> = one.labels().collect();
        assert_eq!(siblings(&directions(3), &labels, &one), None);
        assert_eq!(nearest(&directions(1)), [None]);
        assert_eq!(siblings(&directions(0), &[], &one), None);
    }
}
