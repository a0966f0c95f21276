//! Devices that the program was built for learn what the CPU learns, through ordinary operations instead of fused ones.

use std::io::Write as _;

use cladist_core::{Classifier, Request};

use super::*;
use crate::device;
use crate::heads::{HEADS, Task};
use crate::toy::{design, fitting};

/// Names of the devices beside the CPU.
fn others() -> Vec<&'static str> {
    let features = [
        ("cuda", cfg!(feature = "cuda")),
        ("rocm", cfg!(feature = "rocm")),
        ("metal", cfg!(feature = "metal")),
        ("vulkan", cfg!(feature = "vulkan")),
        ("wgpu", cfg!(feature = "wgpu")),
    ];
    features.into_iter().filter(|(_, built)| *built).map(|(name, _)| name).collect()
}

#[test]
fn a_device_learns_what_the_cpu_learns() {
    let toy = Toy::new(Task::MultiLabel);
    let config = TrainConfig {
        epochs: 3,
        batch_size: 4,
        learning_rate: 1e-3,
        // Inside the encoder each kind of device draws its own masks.
        dropout: Some(0.0),
        checkpoint_minutes: 0.0,
        ..TrainConfig::default()
    };
    if others().is_empty() {
        // Past the harness, which keeps what a passing test prints.
        let _ = writeln!(std::io::stderr(), "skipped: built for the CPU alone");
    }
    for name in others() {
        for (head, _, settings) in HEADS {
            let design = design(fitting(settings()), Task::MultiLabel);
            let run = Run { design: design.clone(), n_dev: 4, ..Run::new(&toy, config.clone()) };
            let (here, _, seen) = run.finish();
            let device = device::parse(name).unwrap().autodiff();
            let (result, seen_there) = run.go_from(toy.model_on(&device, design, config.seed), Stop::Never);
            let there = result.unwrap().0;
            let (losses, losses_there) = (seen.losses(), seen_there.losses());
            assert_eq!(losses.len(), losses_there.len());
            for (step, (a, b)) in losses.iter().zip(&losses_there).enumerate() {
                assert!((a - b).abs() < 1e-3 * (1.0 + a.abs()), "{name}, {head}, step {step}: {a} {b}");
            }
            let score = |model: &NeuralModel| {
                let mut rows: Vec<Vec<_>> = Vec::new();
                let scores = model.score(&toy.documents, &Request::default()).unwrap();
                rows.extend(scores.rows().map(<[_]>::to_vec));
                rows.iter_mut().for_each(|row| row.sort_by_key(|(label, _)| *label));
                rows.concat()
            };
            for ((_, a), (_, b)) in score(&here).into_iter().zip(score(&there)) {
                assert!((a - b).abs() < 1e-3, "{name}, {head}: {a} {b}");
            }
        }
    }
}
