//! Documents per second of layers on documents of 128 tokens, forward and forward + backward: `layer_speed [LAYERS
//! [HIDDEN [DOCUMENTS]]]`, by default the shape of MiniLM and batches of 16.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its figures and knows its shapes"
)]
use cladist_kernels::{
    attention::{Heads, Outputs, Sequences},
    dropout::Dropout,
    layer::*,
};
use std::time::Instant;

fn main() {
    let argument = |n: usize, default: usize| {
        std::env::args().nth(n).and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (layers, h, documents) = (argument(1, 6), argument(2, 384), argument(3, 16));
    let i = 4 * h;
    let shape = Shape { heads: Heads { hidden: h, n_heads: 12 }, intermediate: i, epsilon: 1e-12 };
    let sizes = [3 * h * h, 3 * h, h * h, h, h, h, i * h, i, h * i, h, h, h];
    let parts: Vec<Vec<f32>> =
        sizes.iter().map(|&n| (0..n).map(|i| ((i * 31 % 17) as f32 - 8.0) / 200.0).collect()).collect();
    let p: Vec<&[f32]> = parts.iter().map(Vec::as_slice).collect();
    let weights = Parameters {
        qkv_weight: p[0],
        qkv_bias: p[1],
        out_weight: p[2],
        out_bias: p[3],
        norm1_gain: p[4],
        norm1_bias: p[5],
        up_weight: p[6],
        up_bias: p[7],
        down_weight: p[8],
        down_bias: p[9],
        norm2_gain: p[10],
        norm2_bias: p[11],
    };
    let offsets: Vec<usize> = (0..=documents).map(|i| i * 128).collect();
    let sequences = Sequences::new(&offsets);
    let x: Vec<f32> = (0..documents * 128 * h).map(|i| ((i * 7 % 23) as f32 - 11.0) / 11.0).collect();
    let drop = |seed| Dropout { rate: 0.1, seed };
    let dropouts = Dropouts { attention: drop(1), hidden1: drop(2), hidden2: drop(3) };
    for _ in 0..5 {
        let t = Instant::now();
        let mut panels = Panels::default();
        let mut y = vec![0.0; x.len()];
        for _ in 0..layers {
            panels.pack(
                shape,
                weights.qkv_weight,
                weights.out_weight,
                weights.up_weight,
                weights.down_weight,
            );
            forward(shape, &weights, &panels, &x, sequences, Outputs::All, Dropouts::NONE, &mut y, false);
        }
        let inference = documents as f64 / t.elapsed().as_secs_f64();
        let t = Instant::now();
        let mut saved = Vec::new();
        for _ in 0..layers {
            panels.pack(
                shape,
                weights.qkv_weight,
                weights.out_weight,
                weights.up_weight,
                weights.down_weight,
            );
            saved.push(
                forward(shape, &weights, &panels, &x, sequences, Outputs::All, dropouts, &mut y, true)
                    .unwrap(),
            );
        }
        let f = t.elapsed();
        let mut dx = vec![0.0; x.len()];
        for saved in saved.drain(..).rev() {
            let mut g: Vec<Vec<f32>> = sizes.iter().map(|&n| vec![0.0; n]).collect();
            let mut g = g.iter_mut().map(Vec::as_mut_slice);
            let mut n = || g.next().unwrap();
            let mut gradients = Parameters {
                qkv_weight: n(),
                qkv_bias: n(),
                out_weight: n(),
                out_bias: n(),
                norm1_gain: n(),
                norm1_bias: n(),
                up_weight: n(),
                up_bias: n(),
                down_weight: n(),
                down_bias: n(),
                norm2_gain: n(),
                norm2_bias: n(),
            };
            backward(
                shape,
                &weights,
                &x,
                sequences,
                Outputs::All,
                dropouts,
                saved,
                &y,
                &mut dx,
                &mut gradients,
            );
        }
        println!(
            "inference {inference:.1} docs/s, training {:.1} docs/s (forward {:.0?}, backward {:.0?})",
            documents as f64 / t.elapsed().as_secs_f64(),
            f,
            t.elapsed() - f
        );
    }
}
