//! Negative sampling: for each document a gold label, its parent, and two labels that the document does not have.

use cladist_core::{LabelId, LabelSet, Taxonomy};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::encoder::place;

/// The place of drawn labels in the seed of a step.
const DRAW: u64 = crate::seeds::COMPARED;

/// Labels drawn for a document.
#[derive(Debug, PartialEq)]
pub(super) struct Draw {
    pub(super) document: u32,
    pub(super) own: LabelId,
    pub(super) parent: LabelId,
    /// A sibling that the document does not have, or any label in its place; and any label that it does not have.
    pub(super) others: Option<[LabelId; 2]>,
}

/// Draws labels for every document that has some among those that count.
pub(super) fn draw(taxonomy: &Taxonomy, gold: &[LabelSet], only: Option<&[LabelId]>, seed: u64) -> Vec<Draw> {
    let counts = |label: &LabelId| only.is_none_or(|only| only.binary_search(label).is_ok());
    let pool: Vec<LabelId> = taxonomy.labels().filter(counts).collect();
    let mut random = ChaCha8Rng::seed_from_u64(place(seed, DRAW));
    let mut drawn = Vec::new();
    for (document, gold) in gold.iter().enumerate() {
        let own: Vec<LabelId> = gold.iter().copied().filter(counts).collect();
        let Some(&label) = own.choose(&mut random) else { continue };
        let parent = taxonomy.parents(label).iter().copied().find(counts).unwrap_or(label);
        let mut wrong = || {
            // Few labels are a document's: most draws are good.
            let mut lucky = (0..16).map(|_| pool[random.random_range(0..pool.len())]);
            let found = lucky.find(|other| !gold.contains(*other));
            found.or_else(|| pool.iter().copied().find(|other| !gold.contains(*other)))
        };
        let other = wrong();
        let fallback = wrong();
        let siblings: Vec<LabelId> = taxonomy
            .siblings(label)
            .iter()
            .copied()
            .filter(|other| counts(other) && !gold.contains(*other))
            .collect();
        let sibling = siblings.choose(&mut random).copied().or(fallback);
        let others = sibling.zip(other).map(|(sibling, other)| [sibling, other]);
        drawn.push(Draw { document: document as u32, own: label, parent, others });
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;

    #[test]
    fn drawn_labels_are_what_they_are_called() {
        let toy = Toy::new(Default::default());
        let taxonomy = &toy.taxonomy;
        for seed in 0..50 {
            let drawn = draw(taxonomy, &toy.gold, None, seed);
            assert_eq!(drawn.len(), toy.gold.len());
            assert_eq!(drawn, draw(taxonomy, &toy.gold, None, seed));
            for draw in &drawn {
                let gold = &toy.gold[draw.document as usize];
                assert!(gold.contains(draw.own));
                let above = taxonomy.parents(draw.own);
                assert!(above.contains(&draw.parent) || (above.is_empty() && draw.parent == draw.own));
                let [sibling, other] = draw.others.unwrap();
                assert!(!gold.contains(sibling) && !gold.contains(other));
                let siblings = taxonomy.siblings(draw.own);
                let has_wrong = siblings.iter().any(|sibling| !gold.contains(*sibling));
                assert!(!has_wrong || siblings.contains(sibling));
            }
        }
        // Where one label counts there is nothing else to draw.
        let only = [taxonomy.get("goods").unwrap()];
        let drawn = draw(taxonomy, &toy.gold, Some(&only), 1);
        assert!(!drawn.is_empty() && drawn.iter().all(|d| d.own == d.parent && d.others.is_none()));
    }
}
