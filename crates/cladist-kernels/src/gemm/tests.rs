use super::*;

fn values(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + seed * 13) % 23) as f32 / 11.0 - 1.0).collect()
}

fn naive(a: &[f32], b: &[f32], m: usize, n: usize, k: usize) -> Vec<f32> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|d| a[i * k + d] * b[d * n + j]).sum();
        }
    }
    c
}

fn close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!((x - y).abs() <= 1e-3 * (1.0 + y.abs()), "{i}: {x} {y}");
    }
}

#[test]
fn products_equal_the_naive_ones_for_awkward_shapes() {
    for (m, n, k) in [(1, 1, 1), (3, 5, 7), (14, 32, 16), (61, 33, 400), (130, 70, 385), (57, 96, 31)] {
        let (a, b) = (values(m * k, 1), values(k * n, 2));
        let expected = naive(&a, &b, m, n, k);
        let mut packed = Packed::default();
        packed.pack(&b, k, n, n);
        let mut c = vec![9.0; m * n];
        product(&a, k, &packed, &mut c, Start::Zero);
        close(&c, &expected);

        let bias = values(n, 3);
        product(&a, k, &packed, &mut c, Start::Bias(&bias));
        let mut with_bias = expected.clone();
        for c in with_bias.chunks_mut(n) {
            c.iter_mut().zip(&bias).for_each(|(c, b)| *c += b);
        }
        close(&c, &with_bias);

        let transposed: Vec<f32> = (0..n * k).map(|i| b[(i % k) * n + i / k]).collect();
        packed.pack_transposed_parallel(&transposed, k, n, k);
        product(&a, k, &packed, &mut c, Start::Zero);
        product(&a, k, &packed, &mut c, Start::Output);
        close(&c, &expected.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    }
}

#[test]
fn weight_gradients_equal_the_naive_ones() {
    for (tokens, n, k) in [(1, 1, 1), (5, 3, 40), (300, 57, 33), (513, 20, 100)] {
        let (y, x) = (values(tokens * n, 1), values(tokens * k, 2));
        let transposed: Vec<f32> = (0..n * tokens).map(|i| y[(i % tokens) * n + i / tokens]).collect();
        let mut expected = naive(&transposed, &x, n, k, tokens);
        expected.iter_mut().for_each(|c| *c += 1.0);
        let mut c = vec![1.0; n * k];
        outer_product(&y, n, n, &x, k, k, tokens, &mut c);
        close(&c, &expected);
    }
}
