//! Which documents share a batch: pure functions over lengths.

use std::cmp::Reverse;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// The numbers 0 to n − 1 in an order that depends on seed and epoch alone, so that a later run can take up any
/// epoch.
#[must_use]
pub fn shuffled(n: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut stream(seed, epoch.wrapping_mul(2)));
    order
}

/// The randomness for [`by_tokens`] in an epoch, apart from that of [`shuffled`].
#[must_use]
pub fn batch_rng(seed: u64, epoch: u64) -> ChaCha8Rng {
    stream(seed, epoch.wrapping_mul(2).wrapping_add(1))
}

fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// Batches of `batch_size` documents in the order given; the last may be smaller. A size of 0 counts as 1.
#[must_use]
pub fn by_documents(order: &[usize], batch_size: usize) -> Vec<Vec<usize>> {
    order.chunks(batch_size.max(1)).map(<[usize]>::to_vec).collect()
}

/// Batches for training, of documents of about the same length and `budget` tokens at most.
///
/// Documents are taken in the order given. Each `window` of them is sorted by length (equal ones stay in order) and
/// cut into batches; then the batches of the window are shuffled, lest training goes from short to long. A document
/// above the budget is a batch of its own. `lengths` is indexed by document; a document it does not have counts as
/// empty. A window of 0 counts as 1.
#[must_use]
pub fn by_tokens(
    lengths: &[usize],
    order: &[usize],
    budget: usize,
    window: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<usize>> {
    let mut batches = Vec::new();
    for documents in order.chunks(window.max(1)) {
        let mut documents = documents.to_vec();
        documents.sort_by_key(|&document| length(lengths, document));
        let mut of_window = fill(lengths, &documents, budget);
        of_window.shuffle(rng);
        batches.append(&mut of_window);
    }
    batches
}

/// Batches for scoring, of `budget` tokens at most: all documents, longest first, equal ones in order. A document
/// above the budget is a batch of its own.
///
/// The longest batch comes first, so a lack of memory shows at the start.
#[must_use]
pub fn sorted_by_tokens(lengths: &[usize], budget: usize) -> Vec<Vec<usize>> {
    let mut documents: Vec<usize> = (0..lengths.len()).collect();
    documents.sort_by_key(|&document| Reverse(length(lengths, document)));
    fill(lengths, &documents, budget)
}

fn length(lengths: &[usize], document: usize) -> usize {
    lengths.get(document).copied().unwrap_or(0)
}

fn fill(lengths: &[usize], documents: &[usize], budget: usize) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut n_tokens = 0usize;
    for &document in documents {
        let length = length(lengths, document);
        n_tokens = n_tokens.saturating_add(length);
        match batches.last_mut() {
            Some(batch) if n_tokens <= budget => batch.push(document),
            _ => {
                batches.push(vec![document]);
                n_tokens = length;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn total(lengths: &[usize], batch: &[usize]) -> usize {
        batch.iter().map(|&document| lengths[document]).sum()
    }

    #[test]
    fn an_order_depends_on_seed_and_epoch_alone() {
        assert_eq!(shuffled(50, 3, 4), shuffled(50, 3, 4));
        assert_ne!(shuffled(50, 3, 4), shuffled(50, 3, 5));
        assert_ne!(shuffled(50, 3, 4), shuffled(50, 4, 4));
        let mut sorted = shuffled(50, 3, 4);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..50));
        assert!(shuffled(0, 1, 1).is_empty());
    }

    #[test]
    fn documents_of_one_length_share_batches() {
        let lengths = [9, 2, 9, 2, 9, 2];
        let mut batches = by_tokens(&lengths, &[0, 1, 2, 3, 4, 5], 18, 6, &mut batch_rng(1, 0));
        batches.sort();
        assert_eq!(batches, [vec![1, 3, 5, 0], vec![2, 4]]);
    }

    #[test]
    fn batches_of_a_window_are_shuffled() {
        let lengths: Vec<usize> = (1..=64).collect();
        let order: Vec<usize> = (0..64).collect();
        let batches = by_tokens(&lengths, &order, 1, 64, &mut batch_rng(1, 0));
        assert!(!batches.is_sorted(), "from short to long");
        assert_eq!(batches, by_tokens(&lengths, &order, 1, 64, &mut batch_rng(1, 0)));
        assert_ne!(batches, by_tokens(&lengths, &order, 1, 64, &mut batch_rng(1, 1)));
    }

    #[test]
    fn scoring_begins_with_the_longest() {
        assert_eq!(sorted_by_tokens(&[3, 7, 3, 20, 1], 10), [vec![3], vec![1, 0], vec![2, 4]]);
    }

    #[test]
    fn batches_by_documents_keep_the_order() {
        assert_eq!(by_documents(&[4, 2, 0, 1, 3], 2), [vec![4, 2], vec![0, 1], vec![3]]);
        assert_eq!(by_documents(&[1, 0], 0), [vec![1], vec![0]]);
    }

    proptest! {
        #[test]
        fn every_document_is_in_one_batch_and_no_shared_batch_is_above_budget(
            lengths in prop::collection::vec(0usize..40, 0..60),
            budget in 0usize..100,
            window in 0usize..30,
            seed in any::<u64>(),
        ) {
            let order = shuffled(lengths.len(), seed, 0);
            let mut rng = batch_rng(seed, 0);
            for batches in [
                by_tokens(&lengths, &order, budget, window, &mut rng),
                sorted_by_tokens(&lengths, budget),
            ] {
                for batch in &batches {
                    prop_assert!(!batch.is_empty());
                    prop_assert!(batch.len() == 1 || total(&lengths, batch) <= budget);
                }
                let mut all = batches.concat();
                all.sort_unstable();
                prop_assert!(all.into_iter().eq(0..lengths.len()));
            }
        }

        #[test]
        fn no_document_leaves_its_window(
            lengths in prop::collection::vec(1usize..40, 1..60),
            window in 1usize..20,
        ) {
            let order = shuffled(lengths.len(), 5, 1);
            let planned = by_tokens(&lengths, &order, 50, window, &mut batch_rng(5, 1)).concat();
            for (planned, given) in planned.chunks(window).zip(order.chunks(window)) {
                let (mut planned, mut given) = (planned.to_vec(), given.to_vec());
                planned.sort_unstable();
                given.sort_unstable();
                prop_assert_eq!(planned, given);
            }
        }
    }
}
