//! Numbers for tests.

/// `n` numbers from −`scale` to `scale` that depend on the seed alone.
pub(crate) fn values(n: usize, seed: u64, scale: f32) -> Vec<f32> {
    let mut x = seed;
    (0..n)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (((x >> 40) as f32 / (1u64 << 23) as f32) - 1.0) * scale
        })
        .collect()
}
