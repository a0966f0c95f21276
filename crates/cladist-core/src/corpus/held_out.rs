//! Labels held out of training, to see what a model makes of labels that it has not met.

use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

use super::{Documents, SplitName};
use crate::document::Document;
use crate::taxonomy::{LabelSet, Taxonomy};

/// A share of the labels at the bottom that training documents have, at least one if the share is above 0: by seed.
pub(super) fn choose(taxonomy: &Taxonomy, train: &[Document], share: f64, seed: u64) -> LabelSet {
    let used: LabelSet = (train.iter().flat_map(|document| &document.labels))
        .filter_map(|label| taxonomy.get(label))
        .filter(|&label| taxonomy.children(label).is_empty())
        .collect();
    if used.is_empty() || share <= 0.0 {
        return LabelSet::default();
    }
    let n = ((used.len() as f64 * share).round() as usize).clamp(1, used.len());
    let chosen = index::sample(&mut ChaCha8Rng::seed_from_u64(seed), used.len(), n);
    let labels: Vec<_> = used.iter().copied().collect();
    chosen.iter().map(|place| labels[place]).collect()
}

/// Takes documents out of train and dev that have no other labels than these. Returns how many.
pub(super) fn drop_documents(splits: &mut [Documents], taxonomy: &Taxonomy, gone: &LabelSet) -> usize {
    let mut dropped = 0;
    for (_, documents) in splits.iter_mut().filter(|(name, _)| *name != SplitName::Test) {
        let before = documents.len();
        documents.retain(|document| {
            let is_gone = |label: &String| taxonomy.get(label).is_some_and(|label| gone.contains(label));
            document.labels.is_empty() || !document.labels.iter().all(is_gone)
        });
        dropped += before - documents.len();
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_held_out_by_seed_with_the_documents_that_have_no_others() {
        let taxonomy = Taxonomy::flat(["a", "b", "c", "d", "unused"]);
        let document = |labels: &[&str]| Document {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            ..Document::default()
        };
        let train = vec![document(&["a"]), document(&["b", "c"]), document(&["d"]), document(&[])];
        let gone = choose(&taxonomy, &train, 0.5, 7);
        assert_eq!(gone.len(), 2);
        assert_eq!(gone, choose(&taxonomy, &train, 0.5, 7));
        assert!(!gone.contains(taxonomy.get("unused").unwrap()));
        assert!((0..20).any(|seed| choose(&taxonomy, &train, 0.5, seed) != gone));
        assert_eq!(choose(&taxonomy, &train, 0.01, 7).len(), 1);
        assert!(choose(&taxonomy, &train, 0.0, 7).is_empty());
        let gone: LabelSet = ["a", "b"].iter().filter_map(|id| taxonomy.get(id)).collect();
        let mut splits = [(SplitName::Train, train.clone()), (SplitName::Test, train)];
        assert_eq!(drop_documents(&mut splits, &taxonomy, &gone), 1);
        assert_eq!((splits[0].1.len(), splits[1].1.len()), (3, 4));
    }
}
