use super::*;

const HEADS: Heads = Heads { hidden: 24, n_heads: 3 };
const OFFSETS: [usize; 4] = [0, 5, 5, 75];

pub(super) fn values(n: usize, seed: u64) -> Vec<f32> {
    let mut x = seed;
    (0..n)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((x >> 40) as f32 / (1u64 << 23) as f32) - 1.0
        })
        .collect()
}

fn naive(qkv: &[f32], dropout: Dropout) -> Vec<f64> {
    let (hidden, width) = (HEADS.hidden, HEADS.hidden / HEADS.n_heads);
    let mut out = vec![0.0; OFFSETS[3] * hidden];
    for sequence in OFFSETS.windows(2) {
        let range = sequence[0]..sequence[1];
        for head in 0..HEADS.n_heads {
            for i in range.clone() {
                let at = |t: usize, part: usize, c: usize| {
                    f64::from(qkv[t * 3 * hidden + part * hidden + head * width + c])
                };
                let scores: Vec<f64> = range
                    .clone()
                    .map(|j| {
                        (0..width).map(|c| at(i, 0, c) * at(j, 1, c)).sum::<f64>() / (width as f64).sqrt()
                    })
                    .collect();
                let sum: f64 = scores.iter().map(|s| s.exp()).sum();
                let mut factors = vec![1.0; range.len()];
                if dropout.is_active() {
                    dropout.factors(((head as u64) << 40) | i as u64, &mut factors);
                }
                for c in 0..width {
                    out[i * hidden + head * width + c] = range
                        .clone()
                        .enumerate()
                        .map(|(n, j)| scores[n].exp() / sum * f64::from(factors[n]) * at(j, 2, c))
                        .sum();
                }
            }
        }
    }
    out
}

#[test]
fn forward_equals_the_formula() {
    let sequences = Sequences::new(&OFFSETS);
    let qkv = values(75 * 72, 1);
    for dropout in [Dropout::NONE, Dropout { rate: 0.2, seed: 3 }] {
        let (mut out, mut log) = (vec![0.0; 75 * 24], vec![0.0; 75 * 3]);
        forward(&qkv, sequences, HEADS, Outputs::All, dropout, &mut out, &mut log);
        for (a, b) in out.iter().zip(naive(&qkv, dropout)) {
            assert!((f64::from(*a) - b).abs() < 1e-5, "{a} {b}");
        }
    }
}

#[test]
fn probabilities_sum_to_one_and_are_those_of_forward() {
    let qkv = values(75 * 72, 2);
    let p = probabilities(&qkv, 5..75, HEADS);
    for row in p.chunks_exact(70) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let expected = naive(&qkv, Dropout::NONE);
    let value: f64 =
        (0..70).map(|j| f64::from(p[(70 + 3) * 70 + j]) * f64::from(qkv[(5 + j) * 72 + 48 + 8])).sum();
    assert!((value - expected[(5 + 3) * 24 + 8]).abs() < 1e-5);
}

#[test]
fn backward_agrees_with_finite_differences() {
    let sequences = Sequences::new(&OFFSETS);
    let qkv = values(75 * 72, 4);
    let d_out = values(75 * 24, 5);
    for dropout in [Dropout::NONE, Dropout { rate: 0.2, seed: 3 }] {
        let (mut out, mut log) = (vec![0.0; 75 * 24], vec![0.0; 75 * 3]);
        forward(&qkv, sequences, HEADS, Outputs::All, dropout, &mut out, &mut log);
        let mut d_qkv = vec![0.0; qkv.len()];
        backward(&qkv, sequences, HEADS, Outputs::All, dropout, &out, &log, &d_out, &mut d_qkv);
        let loss = |qkv: &[f32]| -> f64 {
            naive(qkv, dropout).iter().zip(&d_out).map(|(o, d)| o * f64::from(*d)).sum()
        };
        for i in (0..qkv.len()).step_by(97) {
            let (mut up, mut down) = (qkv.clone(), qkv.clone());
            up[i] += 1e-2;
            down[i] -= 1e-2;
            let slope = (loss(&up) - loss(&down)) / f64::from(up[i] - down[i]);
            assert!((f64::from(d_qkv[i]) - slope).abs() < 1e-4, "{i}: {} {slope}", d_qkv[i]);
        }
    }
}
