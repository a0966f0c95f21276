use super::*;
use crate::random::values;

const OFFSETS: [usize; 6] = [0, 4, 5, 5, 12, 14];
const CELLS: [Cell; 2] = [Cell::Lstm, Cell::Gru];

fn shapes() -> impl Iterator<Item = Shape> {
    CELLS
        .into_iter()
        .flat_map(|cell| [(5, false), (19, true)].map(|(hidden, reverse)| Shape { cell, hidden, reverse }))
}

/// Input, weight and bias.
fn example(shape: Shape, n_tokens: usize) -> [Vec<f32>; 3] {
    let gates = shape.gates();
    [values(n_tokens * gates, 1, 1.5), values(gates * shape.hidden, 2, 0.7), values(gates, 3, 0.5)]
}

fn run(shape: Shape, [x, weight, bias]: &[Vec<f32>; 3], offsets: &[usize]) -> (Vec<f32>, Saved) {
    let sequences = Sequences::new(offsets);
    let mut out = vec![0.0; sequences.n_tokens() * shape.outputs()];
    assert!(forward(shape, x, weight, bias, sequences, &mut out, false).is_none());
    let without = out.clone();
    let saved = forward(shape, x, weight, bias, sequences, &mut out, true).unwrap();
    assert_eq!(out, without);
    (out, saved)
}

#[test]
fn the_cell_of_the_oracle() {
    // Scalar, W·x = .1 .2 .3 .4, U = .5 .6 .7 .8, h = .5, m = 0.
    let mut products = [0.25, 0.3, 0.35, 0.4];
    let (mut state, mut kept) = ([0.5, 0.0], [0.0; 4]);
    Cell::Lstm.forward(&[0.1, 0.2, 0.3, 0.4], &mut products, &mut state, &mut kept);
    assert!((state[0] - 0.223_083_4).abs() < 1e-6 && (state[1] - 0.335_351_7).abs() < 1e-6, "{state:?}");
}

#[test]
fn states_equal_the_formulas_step_by_step() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for shape in shapes() {
        let parts = example(shape, 14);
        let (out, _) = run(shape, &parts, &OFFSETS);
        let [x, weight, bias] = &parts;
        let (h, gates, outputs) = (shape.hidden, shape.gates(), shape.outputs());
        for pair in OFFSETS.windows(2) {
            let mut state = vec![0.0f64; 2 * h];
            for step in 0..pair[1] - pair[0] {
                let token = shape.token(&(pair[0]..pair[1]), step);
                let product = |gate: usize| -> f64 {
                    let weights = weight[gate * h..][..h].iter().zip(&state);
                    f64::from(bias[gate]) + weights.map(|(w, s)| f64::from(*w) * s).sum::<f64>()
                };
                let products: Vec<f64> = (0..gates).map(product).collect();
                let input = |part: usize, n: usize| f64::from(x[token * gates + part * h + n]);
                let sum = |part: usize, n: usize| input(part, n) + products[part * h + n];
                for n in 0..h {
                    match shape.cell {
                        Cell::Lstm => {
                            let m = sigmoid(sum(1, n)) * state[h + n] + sigmoid(sum(0, n)) * sum(2, n).tanh();
                            state[h + n] = m;
                            state[n] = sigmoid(sum(3, n)) * m.tanh();
                        }
                        Cell::Gru => {
                            let new = (input(2, n) + sigmoid(sum(0, n)) * products[2 * h + n]).tanh();
                            let z = sigmoid(sum(1, n));
                            state[n] = (1.0 - z) * new + z * state[n];
                        }
                    }
                }
                for (n, &got) in out[token * outputs..][..outputs].iter().enumerate() {
                    assert!(
                        (f64::from(got) - state[n]).abs() < 1e-5,
                        "{shape:?} {token} {n}: {got} {}",
                        state[n]
                    );
                }
            }
        }
    }
}

#[test]
fn backward_agrees_with_finite_differences() {
    for shape in shapes() {
        let parts = example(shape, 14);
        let (out, saved) = run(shape, &parts, &OFFSETS);
        let d = values(out.len(), 9, 1.0);
        let mut gradients = parts.each_ref().map(|part| vec![0.0; part.len()]);
        let [x, weight, bias] = &mut gradients;
        backward(
            shape,
            &parts[1],
            Sequences::new(&OFFSETS),
            &out,
            saved,
            &d,
            &mut Gradients { x, weight, bias },
        );
        let loss = |parts: &[Vec<f32>; 3]| -> f64 {
            run(shape, parts, &OFFSETS).0.iter().zip(&d).map(|(y, d)| f64::from(y * d)).sum()
        };
        for n in 0..3 {
            for i in (0..parts[n].len()).step_by(parts[n].len() / 40 + 1) {
                let (mut up, mut down) = (parts.clone(), parts.clone());
                up[n][i] += 4e-3;
                down[n][i] -= 4e-3;
                let slope = (loss(&up) - loss(&down)) / f64::from(up[n][i] - down[n][i]);
                let got = f64::from(gradients[n][i]);
                assert!(
                    (got - slope).abs() < 5e-3 * (1.0 + slope.abs()),
                    "{shape:?} {n}[{i}]: {got} {slope}"
                );
            }
        }
    }
}

#[test]
fn a_sequence_gives_the_same_alone_and_in_any_group() {
    for shape in shapes() {
        let parts = example(shape, 14);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (out, saved) = run(shape, &parts, &OFFSETS);
                let d = values(out.len(), 9, 1.0);
                let mut gradients = parts.each_ref().map(|part| vec![0.0; part.len()]);
                let [x, weight, bias] = &mut gradients;
                let places = &mut Gradients { x, weight, bias };
                backward(shape, &parts[1], Sequences::new(&OFFSETS), &out, saved, &d, places);
                (out, gradients)
            })
        };
        let (out, gradients) = on(1);
        for threads in [2, 3, 8] {
            assert!(on(threads) == (out.clone(), gradients.clone()), "{threads} threads");
        }
        let [x, weight, bias] = &parts;
        let alone = [x[5 * shape.gates()..12 * shape.gates()].to_vec(), weight.clone(), bias.clone()];
        assert_eq!(run(shape, &alone, &[0, 7]).0, out[5 * shape.outputs()..12 * shape.outputs()]);
    }
}
