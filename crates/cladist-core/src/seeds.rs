//! Seeds made of seeds.

/// A seed that depends on every part, so that each tree, node and group of classifiers has its own.
pub(crate) fn seed_of(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |seed, &part| {
        let mut mixed = (seed ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}
