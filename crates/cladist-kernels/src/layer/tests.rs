use super::*;
use crate::random::values;

const SHAPE: Shape = Shape { heads: Heads { hidden: 16, n_heads: 2 }, intermediate: 40, epsilon: 1e-5 };
const OFFSETS: [usize; 4] = [0, 3, 64, 70];

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

fn run(parts: &[Vec<f32>], x: &[f32], outputs: Outputs, dropouts: Dropouts) -> (Vec<f32>, Saved) {
    let weights = parameters(parts.iter().map(Vec::as_slice).collect());
    let mut panels = Panels::default();
    panels.pack(SHAPE, weights.qkv_weight, weights.out_weight, weights.up_weight, weights.down_weight);
    let sequences = Sequences::new(&OFFSETS);
    let mut y = vec![0.0; sequences.n_rows(outputs) * SHAPE.heads.hidden];
    assert!(forward(SHAPE, &weights, &panels, x, sequences, outputs, dropouts, &mut y, false).is_none());
    let without = y.clone();
    let saved = forward(SHAPE, &weights, &panels, x, sequences, outputs, dropouts, &mut y, true).unwrap();
    assert_eq!(y, without);
    (y, saved)
}

/// The gradients of the input and of all parameters.
fn slopes(
    parts: &[Vec<f32>],
    x: &[f32],
    outputs: Outputs,
    dropouts: Dropouts,
    d: &[f32],
) -> (Vec<f32>, Vec<Vec<f32>>) {
    let (_, saved) = run(parts, x, outputs, dropouts);
    let weights = parameters(parts.iter().map(Vec::as_slice).collect());
    let mut gradients: Vec<Vec<f32>> = sizes().iter().map(|&len| vec![0.0; len]).collect();
    let mut dx = vec![0.0; x.len()];
    let mut places = parameters(gradients.iter_mut().map(Vec::as_mut_slice).collect());
    let sequences = Sequences::new(&OFFSETS);
    backward(SHAPE, &weights, x, sequences, outputs, dropouts, saved, d, &mut dx, &mut places);
    (dx, gradients)
}

fn example() -> (Vec<f32>, Vec<Vec<f32>>) {
    let mut parts: Vec<Vec<f32>> =
        sizes().iter().enumerate().map(|(n, &len)| values(len, n as u64 + 2, 0.4)).collect();
    for gain in [4, 10] {
        parts[gain].iter_mut().for_each(|g| *g += 1.0);
    }
    (values(70 * 16, 1, 1.0), parts)
}

fn dropping() -> Dropouts {
    let seeded = |seed| Dropout { rate: 0.15, seed };
    Dropouts { attention: seeded(1), hidden1: seeded(2), hidden2: seeded(3) }
}

#[test]
fn backward_agrees_with_finite_differences_with_and_without_dropout() {
    let (x, parts) = example();
    let ways = [(Outputs::All, Dropouts::NONE), (Outputs::All, dropping()), (Outputs::First, dropping())];
    for (outputs, dropouts) in ways {
        let d = values(Sequences::new(&OFFSETS).n_rows(outputs) * 16, 99, 1.0);
        let loss = |parts: &[Vec<f32>], x: &[f32]| -> f64 {
            run(parts, x, outputs, dropouts).0.iter().zip(&d).map(|(y, d)| f64::from(y * d)).sum()
        };
        let (dx, gradients) = slopes(&parts, &x, outputs, dropouts, &d);
        let h = 4e-3;
        let check = |name: &str, i: usize, got: f32, slope: f64| {
            assert!(
                (f64::from(got) - slope).abs() < 2e-2 * (1.0 + slope.abs()),
                "{outputs:?} {name}[{i}]: {got} {slope}"
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
fn first_tokens_alone_give_what_they_give_among_all() {
    let (x, parts) = example();
    for dropouts in [Dropouts::NONE, dropping()] {
        let (all, _) = run(&parts, &x, Outputs::All, dropouts);
        let (firsts, _) = run(&parts, &x, Outputs::First, dropouts);
        let d = values(firsts.len(), 98, 1.0);
        let mut d_all = vec![0.0; all.len()];
        for (n, &start) in OFFSETS[..3].iter().enumerate() {
            assert_eq!(firsts[n * 16..][..16], all[start * 16..][..16], "sequence {n}");
            d_all[start * 16..][..16].copy_from_slice(&d[n * 16..][..16]);
        }
        let (dx, gradients) = slopes(&parts, &x, Outputs::First, dropouts, &d);
        let (dx_all, gradients_all) = slopes(&parts, &x, Outputs::All, dropouts, &d_all);
        let pairs =
            dx.iter().zip(&dx_all).chain(gradients.iter().flatten().zip(gradients_all.iter().flatten()));
        for (a, b) in pairs {
            assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{a} {b}");
        }
    }
}

#[test]
fn a_sequence_gives_the_same_alone_and_in_a_batch() {
    let x = values(70 * 16, 1, 1.0);
    let parts: Vec<Vec<f32>> =
        sizes().iter().enumerate().map(|(n, &len)| values(len, n as u64 + 2, 0.4)).collect();
    let (together, _) = run(&parts, &x, Outputs::All, Dropouts::NONE);
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
        Outputs::All,
        Dropouts::NONE,
        &mut alone,
        false,
    );
    assert_eq!(alone, together[3 * 16..64 * 16]);
}
