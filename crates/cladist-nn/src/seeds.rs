//! Seeds of everything random, all derived from the one seed of a run.
//!
//! A seed has streams, and what draws from one stream cannot disturb what draws from another. The run's seed has streams for
//! new parameters and for every batch of every update; the seed of a batch has streams for the places of the network that
//! draw. This is the table of both. Orders of documents ([`crate::tokens::shuffled`]) and new encoders draw from the run's seed
//! itself: the first order and the first weights come from the same numbers, which no loss can tell.

/// The seed of a stream of another seed (the finaliser of SplitMix64).
pub(crate) fn derive(seed: u64, stream: u64) -> u64 {
    let mut h = seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

/// The seed of a batch: the `n`th of update `update`, which is counted from 1. There is room for 16 million updates before they
/// meet the other streams of a run.
pub(crate) fn of_batch(run: u64, update: u64, n: u64) -> u64 {
    derive(run, (update << UPDATE_BITS) + n)
}

/// The seed of a rank's part of a batch, so that ranks do not drop the same neurons. The first has the batch's own.
pub(crate) fn of_rank(batch: u64, rank: usize) -> u64 {
    if rank == 0 { batch } else { derive(batch, RANKS + rank as u64) }
}

/// Batches of an update have so many bits of a stream's number.
const UPDATE_BITS: u32 = 16;

/// Constants by name, each the first of so many streams; and, to check them, a table.
macro_rules! streams {
    ($($(#[$doc:meta])* $scope:ident $name:ident = $first:expr, $n:expr;)+) => {
        $($(#[$doc])* pub(crate) const $name: u64 = $first;)+

        #[cfg(test)]
        const STREAMS: &[(Scope, &str, u64, u64)] =
            &[$((Scope::$scope, stringify!($name), $first, $n),)+];
    };
}

streams! {
    /// Parameters of a new head.
    Run HEAD = 1 << 40, 1;
    /// Rows of a new table of labels.
    Run ROWS = 1 << 41, 1;
    /// The count network: its parameters, and the order of documents in each epoch.
    Run COUNTS = 1 << 50, 1 << 16;
    /// The ranker.
    Run RANKER = 1 << 51, 1;

    /// Dropouts of a head, by site. Below are those of the encoder.
    Batch DROPOUT = 1 << 32, 1 << 24;
    /// Parts of a batch on several processes.
    Batch RANKS = 1 << 47, 1 << 20;
    /// The encoder's dropouts while it reads descriptions of labels.
    Batch DESCRIPTIONS = 1 << 48, 1;
    /// Labels at random in a shortlist.
    Batch SHORTLIST = 1 << 49, 1;
    /// Labels at random whose descriptions are encoded (`label-attention`).
    Batch LABEL_SAMPLE = 1 << 49, 1;
    /// The order of gold labels, and walks that are drawn (`hilap`).
    Batch WALKS = 1 << 50, 2;
    /// Seeds of the heads of branches, each like that of a batch.
    Batch BRANCHES = 1 << 51, 1 << 32;
    /// Labels that a document is compared with (`hi-match`).
    Batch COMPARED = 1 << 52, 1;
}

/// Whose streams they are.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Run,
    Batch,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Two that never meet: `label-attention` cannot have a shortlist.
    const NEVER_TOGETHER: [[&str; 2]; 1] = [["SHORTLIST", "LABEL_SAMPLE"]];

    #[test]
    fn streams_of_one_seed_are_apart() {
        let encoder = (Scope::Batch, "encoder", 0, 1 << 32);
        let updates = (Scope::Run, "updates", 1 << UPDATE_BITS, (1 << 40) - (1 << UPDATE_BITS));
        let all: Vec<_> = STREAMS.iter().copied().chain([encoder, updates]).collect();
        for (at, &(scope, name, first, n)) in all.iter().enumerate() {
            assert!(n > 0, "{name}");
            for &(other_scope, other, other_first, other_n) in &all[..at] {
                let meet = first < other_first + other_n && other_first < first + n;
                let never = NEVER_TOGETHER.iter().any(|pair| pair.contains(&name) && pair.contains(&other));
                assert!(scope != other_scope || !meet || never, "{name} and {other}");
            }
        }
    }

    #[test]
    fn batches_ranks_and_streams_have_seeds_of_their_own() {
        let mut seeds = BTreeSet::new();
        for update in 1..50 {
            for n in 0..4 {
                for rank in 0..3 {
                    assert!(seeds.insert(of_rank(of_batch(42, update, n), rank)));
                }
            }
        }
        assert!(
            STREAMS.iter().filter(|stream| stream.0 == Scope::Run).all(|s| seeds.insert(derive(42, s.2)))
        );
        // What runs that were made with it depend on.
        assert_eq!(derive(42, HEAD), 0x1b1e_55fc_d398_a2b9);
    }
}
