use super::*;

const SHAPE: Shape = Shape { heads: Heads { hidden: 16, n_heads: 2 }, intermediate: 40, epsilon: 1e-5 };
const OFFSETS: [usize; 4] = [0, 3, 64, 70];

fn values(n: usize, seed: u64, scale: f32) -> Vec<f32> {
    let mut x = seed;
    (0..n)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (((x >> 40) as f32 / (1u64 << 23) as f32) - 1.0) * scale
        })
        .collect()
}

fn sizes() -> [usize; 12] {
    let (h, i) = (SHAPE.heads.hidden, SHAPE.intermediate);
    [3 * h * h, 3 * h, h * h, h, h, h, i * h, i, h * i, h, h, h]
}

fn parameters<T>(parts: Vec<T>) -> Parameters<T> {
    let mut parts = parts.into_iter();
    let mut next = || parts.next().unwrap();
    Parameters {
        qkv_weight: next(),
        qkv_bias: next(),
        out_weight: next(),
        out_bias: next(),
        norm1_gain: next(),
        norm1_bias: next(),
        up_weight: next(),
        up_bias: next(),
        down_weight: next(),
        down_bias: next(),
        norm2_gain: next(),
        norm2_bias: next(),
    }
}

fn run(parts: &[Vec<f32>], x: &[f32], dropouts: Dropouts) -> (Vec<f32>, Saved) {
    let weights = parameters(parts.iter().map(Vec::as_slice).collect());
    let mut panels = Panels::default();
    panels.pack(SHAPE, weights.qkv_weight, weights.out_weight, weights.up_weight, weights.down_weight);
    let mut y = vec![0.0; x.len()];
    let sequences = Sequences::new(&OFFSETS);
    assert!(forward(SHAPE, &weights, &panels, x, sequences, dropouts, &mut y, false).is_none());
    let without = y.clone();
    let saved = forward(SHAPE, &weights, &panels, x, sequences, dropouts, &mut y, true).unwrap();
    assert_eq!(y, without);
    (y, saved)
}

#[test]
fn backward_agrees_with_finite_differences_with_and_without_dropout() {
    let x = values(70 * 16, 1, 1.0);
    let mut parts: Vec<Vec<f32>> =
        sizes().iter().enumerate().map(|(n, &len)| values(len, n as u64 + 2, 0.4)).collect();
    for gain in [4, 10] {
        parts[gain].iter_mut().for_each(|g| *g += 1.0);
    }
    let d = values(x.len(), 99, 1.0);
    let seeded = |seed| Dropout { rate: 0.15, seed };
    let active = Dropouts { attention: seeded(1), hidden1: seeded(2), hidden2: seeded(3) };
    for dropouts in [Dropouts::NONE, active] {
        let loss = |parts: &[Vec<f32>], x: &[f32]| -> f64 {
            run(parts, x, dropouts).0.iter().zip(&d).map(|(y, d)| f64::from(y * d)).sum()
        };
        let (_, saved) = run(&parts, &x, dropouts);
        let weights = parameters(parts.iter().map(Vec::as_slice).collect());
        let mut gradients: Vec<Vec<f32>> = sizes().iter().map(|&len| vec![0.0; len]).collect();
        let mut dx = vec![0.0; x.len()];
        let mut places = parameters(gradients.iter_mut().map(Vec::as_mut_slice).collect());
        backward(SHAPE, &weights, &x, Sequences::new(&OFFSETS), dropouts, saved, &d, &mut dx, &mut places);
        let h = 4e-3;
        let check = |name: &str, i: usize, got: f32, slope: f64| {
            assert!(
                (f64::from(got) - slope).abs() < 2e-2 * (1.0 + slope.abs()),
                "{name}[{i}]: {got} {slope}"
            );
        };
        for i in (0..x.len()).step_by(53) {
            let (mut up, mut down) = (x.clone(), x.clone());
            up[i] += h;
            down[i] -= h;
            let slope = (loss(&parts, &up) - loss(&parts, &down)) / f64::from(up[i] - down[i]);
            check("x", i, dx[i], slope);
        }
        for n in 0..parts.len() {
            for i in (0..parts[n].len()).step_by(parts[n].len() / 5 + 1) {
                let (mut up, mut down) = (parts.clone(), parts.clone());
                up[n][i] += h;
                down[n][i] -= h;
                let slope = (loss(&up, &x) - loss(&down, &x)) / f64::from(up[n][i] - down[n][i]);
                check(&format!("parameter {n}"), i, gradients[n][i], slope);
            }
        }
    }
}

#[test]
fn a_sequence_gives_the_same_alone_and_in_a_batch() {
    let x = values(70 * 16, 1, 1.0);
    let parts: Vec<Vec<f32>> =
        sizes().iter().enumerate().map(|(n, &len)| values(len, n as u64 + 2, 0.4)).collect();
    let (together, _) = run(&parts, &x, Dropouts::NONE);
    let weights = parameters(parts.iter().map(Vec::as_slice).collect());
    let mut panels = Panels::default();
    panels.pack(SHAPE, weights.qkv_weight, weights.out_weight, weights.up_weight, weights.down_weight);
    let mut alone = vec![0.0; 61 * 16];
    let offsets = [0, 61];
    forward(
        SHAPE,
        &weights,
        &panels,
        &x[3 * 16..64 * 16],
        Sequences::new(&offsets),
        Dropouts::NONE,
        &mut alone,
        false,
    );
    assert_eq!(alone, together[3 * 16..64 * 16]);
}
