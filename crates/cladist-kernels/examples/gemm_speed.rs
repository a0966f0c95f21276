//! How close the matrix products come to what the machine's multiply-add units can do.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
use cladist_kernels::gemm::{Packed, Start, outer_product, product};
use std::time::Instant;

fn best(flops: usize, mut f: impl FnMut()) -> f64 {
    (0..10)
        .map(|_| {
            let t = Instant::now();
            f();
            flops as f64 / t.elapsed().as_secs_f64() / 1e9
        })
        .fold(0.0, f64::max)
}

fn main() {
    println!("{:?}", cladist_kernels::level());
    for (m, n, k) in [
        (2048, 1152, 384),
        (2048, 384, 384),
        (2048, 1536, 384),
        (2048, 384, 1536),
        (1024, 2304, 768),
        (1024, 3072, 768),
        (1024, 768, 3072),
    ] {
        let a: Vec<f32> = (0..m * k).map(|i| (i % 13) as f32 / 13.0).collect();
        let w: Vec<f32> = (0..n * k).map(|i| (i % 11) as f32 / 11.0).collect();
        let mut packed = Packed::default();
        let pack = best(n * k, || packed.pack_transposed_parallel(&w, k, n, k));
        let mut c = vec![0.0f32; m * n];
        let forward = best(2 * m * n * k, || product(&a, k, &packed, &mut c, Start::Zero));
        let mut back = Packed::default();
        back.pack_parallel(&w, n, k, k);
        let mut da = vec![0.0f32; m * k];
        let backward = best(2 * m * n * k, || product(&c, n, &back, &mut da, Start::Zero));
        let mut dw = vec![0.0f32; n * k];
        let outer = best(2 * m * n * k, || outer_product(&c, n, n, &a, k, k, m, &mut dw));
        println!(
            "{m}x{n}x{k}: x·Wᵀ {forward:.0}  dy·W {backward:.0}  dyᵀ·x {outer:.0} GFLOP/s, packing {pack:.2} Gvalues/s"
        );
    }
}
